/* SPDX-License-Identifier: MIT */
/* outcome: see idem/core/outcome.h. One table each; the compiler lists the places when a name is added. */
#include "idem/core/outcome.h"

#include <stdlib.h>

static const struct outcome_row rows[OUTCOME_COUNT] = {
    [OUTCOME_NONE] = {"none", LEVEL_ERR, false, false, RECORD_PROCESSING},
    [OUTCOME_FIRST] = {"first", LEVEL_INFO, false, true, RECORD_APPLIED},
    [OUTCOME_DUPLICATE] = {"duplicate", LEVEL_INFO, false, false, RECORD_APPLIED},
    [OUTCOME_PROCESSING] = {"processing", LEVEL_INFO, false, false, RECORD_PROCESSING},
    [OUTCOME_KEY_REUSED] = {"key_reused", LEVEL_WARNING, true, false, RECORD_APPLIED},
    [OUTCOME_ALREADY_APPLIED] = {"already_applied", LEVEL_INFO, false, true, RECORD_APPLIED},
    [OUTCOME_APPLIED_BY_OTHER] = {"applied_by_other", LEVEL_ERR, true, true, RECORD_CLOSED},
    [OUTCOME_STATE_CONFLICT] = {"state_conflict", LEVEL_ERR, true, true, RECORD_CLOSED},
    [OUTCOME_PARKED] = {"parked", LEVEL_WARNING, false, true, RECORD_PROCESSING},
    [OUTCOME_NOT_FOUND] = {"not_found", LEVEL_WARNING, true, true, RECORD_CLOSED},
    [OUTCOME_REJECTED] = {"rejected", LEVEL_ERR, true, true, RECORD_CLOSED},
    [OUTCOME_INVALID] = {"invalid", LEVEL_WARNING, true, false, RECORD_CLOSED},
    [OUTCOME_IGNORED] = {"ignored", LEVEL_INFO, false, false, RECORD_CLOSED},
};

static const char *const causes[CAUSE_COUNT] = {
    [CAUSE_NONE] = "",
    [CAUSE_KEY_MISSING] = "key_missing",
    [CAUSE_KEY_MALFORMED] = "key_malformed",
    [CAUSE_KEY_TOO_LONG] = "key_too_long",
    [CAUSE_KEY_CONFLICT] = "key_conflict",
    [CAUSE_KEY_TIME] = "key_time",
    [CAUSE_PAST_TTL] = "past_ttl",
    [CAUSE_FIELD_MISSING] = "field_missing",
    [CAUSE_FIELD_TYPE] = "field_type",
    [CAUSE_SCALE] = "scale",
    [CAUSE_BODY] = "body",
    [CAUSE_UTF8] = "utf8",
    [CAUSE_DUPLICATE_NAME] = "duplicate_name",
    [CAUSE_TOO_LARGE] = "too_large",
    [CAUSE_TOO_DEEP] = "too_deep",
    [CAUSE_TOO_LONG] = "too_long",
    [CAUSE_BATCH] = "batch",
    [CAUSE_UNMATCHED] = "unmatched",
    [CAUSE_TOMBSTONE] = "tombstone",
    [CAUSE_FINGERPRINT_MISMATCH] = "fingerprint_mismatch",
    [CAUSE_IDENTITY_MISMATCH] = "identity_mismatch",
    [CAUSE_BIZ_NO_MISMATCH] = "biz_no_mismatch",
    [CAUSE_IDENTITY_UNKNOWN] = "identity_unknown",
    [CAUSE_SUPERSEDED] = "superseded",
    [CAUSE_STATE] = "state",
    [CAUSE_EARLY] = "early",
    [CAUSE_UNKNOWN_STATE] = "unknown_state",
    [CAUSE_AMOUNT_MISMATCH] = "amount_mismatch",
    [CAUSE_REQUIRE_MISMATCH] = "require_mismatch",
    [CAUSE_STATEMENT_COUNT] = "statement_count",
    [CAUSE_HALF_APPLIED] = "half_applied",
    [CAUSE_GIVEN_UP] = "given_up",
    [CAUSE_ROW_MISSING] = "row_missing",
    [CAUSE_DATABASE] = "database",
    [CAUSE_UNIQUE_CONFLICT] = "unique_conflict",
    [CAUSE_NOT_FOUND] = "not_found",
    [CAUSE_LOCKED] = "locked",
    [CAUSE_BEHIND] = "behind",
    [CAUSE_REDRIVE] = "redrive",
};

const struct outcome_row *outcome_row(enum outcome outcome)
{
    if ((unsigned)outcome >= OUTCOME_COUNT)
        abort();
    return &rows[outcome];
}

const char *outcome_name(enum outcome outcome)
{
    return outcome_row(outcome)->name;
}

const char *cause_name(enum cause cause)
{
    if ((unsigned)cause >= CAUSE_COUNT)
        abort();
    return causes[cause];
}

bool outcome_parse(struct bytes name, enum outcome *ret_outcome)
{
    for (int i = OUTCOME_FIRST; i < OUTCOME_COUNT; i++)
        if (bytes_equal(name, bytes_text(rows[i].name))) {
            *ret_outcome = (enum outcome)i;
            return true;
        }
    return false;
}
