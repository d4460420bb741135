/* SPDX-License-Identifier: MIT */
/* decide: the decision table of details section 2, row by row. For the transaction; never reads or writes anything.
 * The names K1..K13 and B1..B13 are the table's. */
#include "idem/core/decide.h"

static struct verdict done(enum outcome outcome, enum cause cause)
{
    return (struct verdict){.kind = VERDICT_DONE, .outcome = outcome, .cause = cause};
}

static struct verdict business(enum record_write write)
{
    return (struct verdict){.kind = VERDICT_BUSINESS, .write = write};
}

static bool same_identity(const struct item *item)
{
    return item->eval.rule->identity_none ||
           memcmp(item->known.identity_hash, item->eval.identity_hash, IDENTITY_HASH_LEN) == 0;
}

/* Only records read from Kafka itself have an origin that can come again: a replay or redrive never is the same. */
static bool same_origin(const struct item *item)
{
    const struct known_row *known = &item->known;
    const struct record *record = &item->record;
    return record->source == known->source &&
           (record->source == SOURCE_KAFKA || record->source == SOURCE_HTTP) &&
           record->partition == known->partition && record->offset == known->offset &&
           bytes_equal(record->topic, known->topic);
}

/* K9/K10, K12/K13: identity is equal. */
static struct verdict by_fingerprint(const struct item *item, enum outcome same)
{
    struct verdict verdict = done(same, CAUSE_NONE);
    if (item->known.fingerprint_version != item->eval.rule->fingerprint_version) {
        verdict.fingerprint_skipped = true;
    } else if (memcmp(item->known.params_hash, item->eval.params_hash, PARAMS_HASH_LEN) != 0) {
        return done(OUTCOME_KEY_REUSED, CAUSE_FINGERPRINT_MISMATCH);
    }
    if (same == OUTCOME_DUPLICATE)
        verdict.first_outcome = item->known.outcome;
    return verdict;
}

static struct verdict decide_closed(const struct item *item)
{
    if (!same_origin(item))
        return business(WRITE_REPLACE);                              /* K5 */
    if (!same_identity(item))
        return business(WRITE_REPLACE);                              /* K4 */
    struct verdict verdict = done(OUTCOME_DUPLICATE, CAUSE_NONE);    /* K3 */
    verdict.first_outcome = item->known.outcome;
    return verdict;
}

/* K6, unless today's rules make another fact of the record than the one that was parked (details 1, "A changed
 * rule"). */
static struct verdict own_retry(const struct item *item)
{
    bool same = same_identity(item) && bytes_equal(item->known.biz_no, item->eval.biz_no) &&
                item->known.fingerprint_version == item->eval.rule->fingerprint_version &&
                memcmp(item->known.params_hash, item->eval.params_hash, PARAMS_HASH_LEN) == 0;
    return same || item->parked.given_up ? business(WRITE_RETRY) : (struct verdict){.kind = VERDICT_ORPHANED};
}

struct verdict decide_key(const struct item *item, bool inserted)
{
    const struct known_row *known = &item->known;
    if (inserted)
        return business(WRITE_NONE);                                 /* K1 */
    if (known->mine)
        return (struct verdict){.kind = VERDICT_FAULT};              /* K2 */
    if (known->status == RECORD_CLOSED)
        return decide_closed(item);
    if (known->status == RECORD_PROCESSING && item->parked.id)
        return own_retry(item);
    if (!bytes_equal(known->biz_no, item->eval.biz_no))
        return done(OUTCOME_KEY_REUSED, CAUSE_BIZ_NO_MISMATCH);      /* K7 */
    if (known->status == RECORD_PROCESSING)
        return same_identity(item) ? by_fingerprint(item, OUTCOME_PROCESSING)        /* K9, K10 */
                                   : done(OUTCOME_KEY_REUSED, CAUSE_IDENTITY_MISMATCH);   /* K8 */
    return same_identity(item) ? by_fingerprint(item, OUTCOME_DUPLICATE)             /* K12, K13 */
                               : done(OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_MISMATCH);   /* K11 */
}

/* ---- part B ---------------------------------------------------------------------------------------------------- */

enum standing { STANDS_FROM, STANDS_DONE, STANDS_OTHER, STANDS_UNKNOWN_OTHER, STANDS_LOCKED,
                STANDS_MISSING, STANDS_EARLY, STANDS_CONFLICT };

struct one {
    enum standing standing;
    enum cause cause;        /* of STANDS_CONFLICT */
};

static bool column_holds(const struct row_layout *layout, const struct row_view *row, uint8_t at,
                         const struct value *value)
{
    const struct stored *stored = &row->columns[at];
    return !stored->is_null && column_equals(layout->types[at], stored->text, value);
}

/* The cause of the first entry that fails; CAUSE_NONE if all hold. NULL fails (details 1). */
static enum cause require_fails(const struct rule *rule, const struct transition *transition,
                                const struct value *values, const struct row_layout *layout,
                                const struct row_view *row)
{
    for (uint32_t i = 0; i < transition->require_count; i++) {
        uint16_t expr = transition->require[i].expr;
        if (column_holds(layout, row, layout->require_at[i], &values[expr]))
            continue;
        const struct expr *source = &rule->exprs[expr];
        bool decimal = source->source == EXPR_FIELD &&
                       rule->fields[source->field].type == FIELD_DECIMAL;
        return decimal ? CAUSE_AMOUNT_MISMATCH : CAUSE_REQUIRE_MISMATCH;
    }
    return CAUSE_NONE;
}

/* B4, B5, B6. */
static enum standing identity_of_done(const struct rule *rule, const struct value *values,
                                      const struct row_layout *layout, const struct row_view *row)
{
    enum standing standing = STANDS_DONE;
    for (uint32_t i = 0; i < rule->identity_count; i++) {
        uint8_t at = layout->identity_at[i];
        if (row->columns[at].is_null)
            return STANDS_UNKNOWN_OTHER;
        if (!column_holds(layout, row, at, &values[rule->identity[i].expr]))
            standing = STANDS_OTHER;
    }
    return standing;
}

static struct one stand(const struct rule *rule, uint32_t index, const struct value *values,
                        const struct row_view *row)
{
    const struct transition *transition = &rule->transitions[index];
    struct row_layout layout;
    if (!row->found)
        return (struct one){STANDS_MISSING, CAUSE_ROW_MISSING};
    if (row->locked)
        return (struct one){STANDS_LOCKED, CAUSE_LOCKED};
    row_layout(rule, index, &layout);
    const struct stored *state = &row->columns[0];
    switch (transition_class(transition, state->text, state->is_null)) {
    case STATE_FROM: {
        enum cause cause = require_fails(rule, transition, values, &layout, row);
        return (struct one){cause == CAUSE_NONE ? STANDS_FROM : STANDS_CONFLICT, cause};
    }
    case STATE_DONE:
        if (index > 0 || rule->identity_none)
            return (struct one){STANDS_DONE, CAUSE_NONE};
        return (struct one){identity_of_done(rule, values, &layout, row), CAUSE_NONE};
    case STATE_EARLY:
        return (struct one){STANDS_EARLY, CAUSE_EARLY};
    case STATE_CONFLICT:
        return (struct one){STANDS_CONFLICT, CAUSE_STATE};
    case STATE_UNKNOWN:
        break;
    }
    return (struct one){STANDS_CONFLICT, CAUSE_UNKNOWN_STATE};
}

static struct verdict other(enum standing standing)
{
    return done(OUTCOME_APPLIED_BY_OTHER,
                standing == STANDS_OTHER ? CAUSE_IDENTITY_MISMATCH : CAUSE_IDENTITY_UNKNOWN);
}

/* details 1, "Several transitions": all in from; all done; else the first of these that applies. */
static struct verdict combine(const struct one *ones, uint32_t count, bool waits)
{
    const struct one *seen[STANDS_CONFLICT + 1] = {NULL};
    bool all_done = true, all_from = true;
    for (uint32_t i = 0; i < count; i++) {
        enum standing standing = ones[i].standing;
        if (!seen[standing])
            seen[standing] = &ones[i];
        all_from = all_from && standing == STANDS_FROM;
        all_done = all_done && (standing == STANDS_DONE || standing == STANDS_OTHER ||
                                standing == STANDS_UNKNOWN_OTHER);
    }
    if (all_from)
        return (struct verdict){.kind = VERDICT_APPLY, .outcome = OUTCOME_FIRST};
    if (all_done)
        return ones[0].standing == STANDS_DONE ? done(OUTCOME_ALREADY_APPLIED, CAUSE_NONE)
                                               : other(ones[0].standing);
    if (seen[STANDS_CONFLICT])
        return done(OUTCOME_STATE_CONFLICT, seen[STANDS_CONFLICT]->cause);
    if (seen[STANDS_LOCKED])
        return (struct verdict){.kind = VERDICT_WAIT, .cause = CAUSE_LOCKED};
    if (seen[STANDS_MISSING])
        return waits ? done(OUTCOME_PARKED, CAUSE_NOT_FOUND) : done(OUTCOME_NOT_FOUND, CAUSE_ROW_MISSING);   /* B1 */
    if (seen[STANDS_EARLY])
        return waits ? done(OUTCOME_PARKED, CAUSE_STATE) : done(OUTCOME_STATE_CONFLICT, CAUSE_EARLY);   /* B8 */
    if (seen[STANDS_OTHER] || seen[STANDS_UNKNOWN_OTHER])
        return other(seen[STANDS_OTHER] ? STANDS_OTHER : STANDS_UNKNOWN_OTHER);
    return done(OUTCOME_STATE_CONFLICT, CAUSE_HALF_APPLIED);
}

struct verdict decide_business(const struct rule *rule, const struct value *values,
                               const struct row_view *rows)
{
    struct one ones[TRANSITIONS_MAX];
    for (uint32_t i = 0; i < rule->transition_count; i++)
        ones[i] = stand(rule, i, values, &rows[i]);
    return combine(ones, rule->transition_count, rule->park.for_ms > 0);     /* none: B12, all_from holds */
}
