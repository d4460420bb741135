/* SPDX-License-Identifier: MIT */
/* evaluate: see idem/core/evaluate.h. The order of failures: tombstone, size, body, batch, unmatched; then of the
 * rule scope, key, biz_no, fields in their order, the values in the order of the rule's table, forms that columns
 * demand, fingerprint. The first failure is the outcome; what was made before it is kept for the dead letter. */
#include "idem/core/evaluate.h"

#include "idem/core/key.h"
#include "source_value.h"

/* Everything one evaluation works with. */
struct work {
    const struct topic *topic;
    const struct rule *rule;
    struct input in;
    struct value *fields;        /* by field index */
    struct value *values;        /* by expr index */
    struct evaluation *ret;
};

static bool is_absent(const struct value *value)
{
    return value->tag == VALUE_ABSENT || value->tag == VALUE_NULL;
}

static bool is_text(const struct value *value)
{
    return value->tag != VALUE_OTHER && value->tag != VALUE_BOOL;
}

/* ---- choosing the rule ----------------------------------------------------------------------------------------- */

static bool literal_matches(const struct condition *condition, const struct value *value)
{
    for (uint32_t i = 0; i < condition->literal_count; i++)
        if (value->text.len == condition->literals[i].len && bytes_equal(value->text, condition->literals[i]))
            return true;
    return false;
}

/* An array or object equals no literal; a number is its lexeme. */
static bool is_scalar(const struct value *value)
{
    return value->tag != VALUE_OTHER || value->text.len > 0;
}

static bool condition_holds(const struct condition *condition, const struct value *value)
{
    switch (condition->match) {
    case MATCH_PRESENT:
        return !is_absent(value);
    case MATCH_ABSENT:
        return is_absent(value);
    case MATCH_EQUAL:
        return !is_absent(value) && is_scalar(value) && literal_matches(condition, value);
    case MATCH_NOT:
        return is_absent(value) || !is_scalar(value) || !literal_matches(condition, value);
    }
    return false;
}

static bool rule_matches(const struct rule *rule, struct input *in)
{
    for (uint32_t i = 0; i < rule->when_count; i++) {
        struct value value;
        if (source_value(&rule->exprs[rule->when[i].expr], in, &value) != CAUSE_NONE ||
            !condition_holds(&rule->when[i], &value))
            return false;
    }
    return true;
}

/* An array that is there and does not hold exactly one element: what to do with several is not known, with none
 * nothing is. One that is missing is left to the rules, which will not match or find their values missing. */
static bool is_batch(const struct topic *topic, const struct doc *doc)
{
    for (uint32_t i = 0; i < topic->exactly_one_count; i++) {
        const struct doc_node *node = doc_find(doc, topic->exactly_one[i]);
        if (node && node->type == DOC_ARRAY && node->count != 1)
            return true;
    }
    return false;
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static enum cause evaluate_fields(struct work *work)
{
    for (uint32_t i = 0; i < work->rule->field_count; i++) {
        enum cause cause = field_value(work->rule, &work->rule->fields[i], &work->in, &work->fields[i]);
        if (cause != CAUSE_NONE)
            return cause;
    }
    return CAUSE_NONE;
}

static enum cause evaluate_expr(struct work *work, const struct expr *expr, struct value *ret)
{
    if (expr->source == EXPR_FIELD) {
        *ret = work->fields[expr->field];
        return CAUSE_NONE;
    }
    return source_value(expr, &work->in, ret);
}

static enum cause evaluate_values(struct work *work)
{
    for (uint32_t i = 0; i < work->rule->expr_count; i++) {
        const struct expr *expr = &work->rule->exprs[i];
        struct value *value = &work->values[i];
        enum cause cause = evaluate_expr(work, expr, value);
        if (cause != CAUSE_NONE)
            return cause;
        if (expr->required && (is_absent(value) || (value->tag == VALUE_TEXT && value->text.len == 0)))
            return CAUSE_FIELD_MISSING;
        if (expr->needs_text && !is_text(value))
            return CAUSE_FIELD_TYPE;
    }
    return CAUSE_NONE;
}

/* ---- key ------------------------------------------------------------------------------------------------------- */

static enum cause needed_text(struct work *work, uint16_t expr, struct bytes *ret)
{
    struct value value;
    const struct expr *source = &work->rule->exprs[expr];
    enum cause cause = CAUSE_NONE;
    if (source->source == EXPR_FIELD)
        cause = field_value(work->rule, &work->rule->fields[source->field], &work->in, &value);
    else
        cause = source_value(source, &work->in, &value);
    if (cause != CAUSE_NONE)
        return cause;
    if (is_absent(&value) || (is_text(&value) && value.text.len == 0))
        return CAUSE_FIELD_MISSING;
    if (!is_text(&value))
        return CAUSE_FIELD_TYPE;
    *ret = value.text;
    return CAUSE_NONE;
}

/* The key header: equal repeats are one, different values are a conflict; null is not there. */
static enum cause supplied_key(struct work *work, struct bytes name, struct bytes *ret, bool *ret_present)
{
    size_t at = 0;
    struct bytes header, value;
    bool is_null;
    *ret_present = false;
    while (record_header_next(work->in.record->headers, &at, &header, &value, &is_null)) {
        if (is_null || !bytes_equal_nocase(header, name))
            continue;
        if (*ret_present && !bytes_equal(*ret, value))
            return CAUSE_KEY_CONFLICT;
        *ret = value;
        *ret_present = true;
    }
    return *ret_present && !key_is_supplied(*ret) ? CAUSE_KEY_MALFORMED : CAUSE_NONE;
}

/* A number that derives the key. Absent and null: the next source. */
static enum cause number_of_key(struct work *work, uint16_t expr, struct bytes *ret, bool *ret_present)
{
    struct value value;
    const struct expr *source = &work->rule->exprs[expr];
    enum cause cause;
    if (source->source == EXPR_FIELD && source_is_absent(work->rule, source, &work->in)) {
        *ret_present = false;
        return CAUSE_NONE;
    }
    if (source->source != EXPR_FIELD) {
        cause = source_value(source, &work->in, &value);
        *ret_present = !is_absent(&value);
        if (cause != CAUSE_NONE || !*ret_present)
            return cause;
    }
    *ret_present = true;
    cause = needed_text(work, expr, ret);
    if (cause == CAUSE_NONE && memchr(ret->at, 0, ret->len))
        cause = CAUSE_KEY_MALFORMED;
    return cause;
}

static enum cause write_key(struct work *work, bool supplied, struct bytes scope, struct bytes part)
{
    char text[4 * KEY_MAX];      /* what does not fit is too long anyway */
    struct buf buf;
    bool has_scope = work->rule->scope != NO_EXPR;
    buf_init(&buf, text, sizeof text);
    if (supplied) {
        if (has_scope) {
            key_encode(scope, &buf);
            buf_char(&buf, ':');
        }
        buf_bytes(&buf, part);
    } else {
        key_derive(has_scope, scope, work->rule->biz_type, part, work->rule->action, &buf);
    }
    if (buf.overflow || buf.len > KEY_MAX)
        return CAUSE_KEY_TOO_LONG;
    work->ret->key = arena_copy(work->in.arena, buf_view(&buf));
    work->ret->key_supplied = supplied;
    return CAUSE_NONE;
}

static enum cause evaluate_key(struct work *work)
{
    const struct rule *rule = work->rule;
    struct bytes scope = {0}, part = {0};
    enum cause cause = CAUSE_NONE;
    if (rule->scope != NO_EXPR)
        cause = needed_text(work, rule->scope, &scope);
    for (uint32_t i = 0; i < rule->key_count && cause == CAUSE_NONE; i++) {
        bool present = false;
        const struct expr *source = &rule->exprs[rule->keys[i]];
        bool supplied = source->source == EXPR_HEADER;
        cause = supplied ? supplied_key(work, source->header, &part, &present)
                         : number_of_key(work, rule->keys[i], &part, &present);
        if (cause == CAUSE_NONE && present)
            return write_key(work, supplied, scope, part);
    }
    return cause != CAUSE_NONE ? cause : CAUSE_KEY_MISSING;
}

static enum cause evaluate_number(struct work *work)
{
    struct bytes number;
    enum cause cause = needed_text(work, work->rule->biz_no, &number);
    if (cause != CAUSE_NONE)
        return cause;
    if (number.len > BIZ_NO_MAX)
        return CAUSE_TOO_LONG;
    work->ret->biz_no = number;
    return CAUSE_NONE;
}

/* ---- columns --------------------------------------------------------------------------------------------------- */

static bool forms_fit(const struct work *work, const struct column_value *columns, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (columns[i].type.kind == COLUMN_INTEGER &&
            column_fit(&columns[i].type, &work->values[columns[i].expr]) == COLUMN_BAD_FORM)
            return false;
    return true;
}

/* A text for an integer column has the form of an integer, or the record is invalid (details 1). */
static enum cause check_forms(const struct work *work)
{
    const struct rule *rule = work->rule;
    bool fit = forms_fit(work, rule->identity, rule->identity_count);
    for (uint32_t i = 0; i < rule->transition_count && fit; i++) {
        const struct transition *transition = &rule->transitions[i];
        fit = forms_fit(work, transition->where, transition->where_count) &&
              forms_fit(work, transition->require, transition->require_count) &&
              forms_fit(work, transition->set, transition->set_count);
    }
    for (uint32_t i = 0; i < rule->insert_count && fit; i++)
        fit = forms_fit(work, rule->inserts[i].columns, rule->inserts[i].column_count);
    return fit ? CAUSE_NONE : CAUSE_FIELD_TYPE;
}

/* ---- hashes ---------------------------------------------------------------------------------------------------- */

static struct hash_part part_of(struct bytes name, const struct value *value)
{
    bool empty = is_absent(value);
    return (struct hash_part){name, value->tag, empty ? (struct bytes){0} : value->text};
}

static enum cause evaluate_hashes(struct work *work)
{
    const struct rule *rule = work->rule;
    struct hash_part parts[EXPRS_MAX];
    for (uint32_t i = 0; i < rule->fingerprint_count; i++) {
        uint16_t expr = rule->fingerprint[i];
        if (work->values[expr].tag > VALUE_TIME)
            return CAUSE_FIELD_TYPE;
        parts[i] = part_of(rule->exprs[expr].text, &work->values[expr]);
    }
    params_hash(rule->fingerprint_version, rule->action, parts, rule->fingerprint_count,
                work->ret->params_hash);
    uint32_t count = rule->identity_none ? 0 : rule->identity_count;
    for (uint32_t i = 0; i < count; i++)
        parts[i] = part_of(rule->identity[i].column, &work->values[rule->identity[i].expr]);
    identity_hash(parts, count, work->ret->identity_hash);
    return CAUSE_NONE;
}

/* ---- the whole ------------------------------------------------------------------------------------------------- */

static void find_request_id(const struct record *record, struct evaluation *ret)
{
    size_t at = 0;
    struct bytes name, value;
    bool is_null;
    while (record_header_next(record->headers, &at, &name, &value, &is_null))
        if (!is_null && value.len > 0 && bytes_equal_nocase(name, BYTES_LIT("X-Request-Id"))) {
            if (value.len > REQUEST_ID_MAX)
                value.len = REQUEST_ID_MAX;
            ret->request_id = value;
            return;
        }
}

static bool reads_record_key(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->expr_count; i++)
        if (rule->exprs[i].source == EXPR_META && rule->exprs[i].meta == META_KEY)
            return true;
    return false;
}

static enum cause evaluate_rule(struct work *work)
{
    const struct rule *rule = work->rule;
    work->fields = arena_calloc(work->in.arena, rule->field_count + 1u, sizeof *work->fields);
    work->values = arena_calloc(work->in.arena, rule->expr_count + 1u, sizeof *work->values);
    if (!work->fields || !work->values)
        return CAUSE_TOO_LARGE;
    work->ret->values = work->values;
    if (work->in.record->key.len > RECORD_KEY_MAX && reads_record_key(rule))
        return CAUSE_TOO_LARGE;
    enum cause cause = evaluate_key(work);
    if (cause == CAUSE_NONE)
        cause = evaluate_number(work);
    if (cause == CAUSE_NONE)
        cause = evaluate_fields(work);
    if (cause == CAUSE_NONE)
        cause = evaluate_values(work);
    if (cause == CAUSE_NONE)
        cause = check_forms(work);
    return cause == CAUSE_NONE ? evaluate_hashes(work) : cause;
}

static void end(struct evaluation *ret, enum outcome outcome, enum cause cause)
{
    ret->outcome = outcome;
    ret->cause = cause;
}

void evaluate(const struct topic *topic, const struct record *record, const struct parsed *parsed,
              struct arena *arena, struct evaluation *ret)
{
    struct work work = {.topic = topic, .in = {.record = record, .arena = arena}, .ret = ret};
    *ret = (struct evaluation){0};
    find_request_id(record, ret);
    if (!record->has_value) {
        end(ret, OUTCOME_IGNORED, CAUSE_TOMBSTONE);
        return;
    }
    if (record->value.len > topic->max_bytes || parsed->cause != CAUSE_NONE) {
        end(ret, OUTCOME_INVALID, record->value.len > topic->max_bytes ? CAUSE_TOO_LARGE : parsed->cause);
        return;
    }
    work.in.doc = parsed->doc;
    if (is_batch(topic, parsed->doc)) {
        end(ret, OUTCOME_INVALID, CAUSE_BATCH);
        return;
    }
    for (uint32_t i = 0; i < topic->rule_count && !work.rule; i++)
        if (rule_matches(&topic->rules[i], &work.in))
            work.rule = &topic->rules[i];
    if (!work.rule) {
        end(ret, topic->unmatched_ignored ? OUTCOME_IGNORED : OUTCOME_INVALID, CAUSE_UNMATCHED);
        ret->fault = arena->exhausted;
        return;
    }
    ret->rule = work.rule;
    enum cause cause = evaluate_rule(&work);
    if (cause != CAUSE_NONE)
        end(ret, OUTCOME_INVALID, cause);
    ret->fault = arena->exhausted;
}
