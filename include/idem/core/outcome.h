/* SPDX-License-Identifier: MIT */
/* outcome: what happened to one record, and why. One table, design section 4 and details section 5.
 * The names are frozen: they are log values, column values and metric labels. */
#ifndef IDEM_CORE_OUTCOME_H
#define IDEM_CORE_OUTCOME_H

#include "idem/base/bytes.h"

enum outcome {
    OUTCOME_NONE = 0,       /* not decided yet; never leaves the process */
    OUTCOME_FIRST,
    OUTCOME_DUPLICATE,
    OUTCOME_PROCESSING,
    OUTCOME_KEY_REUSED,
    OUTCOME_ALREADY_APPLIED,
    OUTCOME_APPLIED_BY_OTHER,
    OUTCOME_STATE_CONFLICT,
    OUTCOME_PARKED,
    OUTCOME_NOT_FOUND,
    OUTCOME_REJECTED,
    OUTCOME_INVALID,
    OUTCOME_IGNORED,
    OUTCOME_COUNT
};

enum cause {
    CAUSE_NONE = 0,
    /* invalid */
    CAUSE_KEY_MISSING, CAUSE_KEY_MALFORMED, CAUSE_KEY_TOO_LONG, CAUSE_KEY_CONFLICT, CAUSE_KEY_TIME,
    CAUSE_PAST_TTL, CAUSE_FIELD_MISSING, CAUSE_FIELD_TYPE, CAUSE_SCALE, CAUSE_BODY, CAUSE_UTF8,
    CAUSE_DUPLICATE_NAME, CAUSE_TOO_LARGE, CAUSE_TOO_DEEP, CAUSE_TOO_LONG, CAUSE_BATCH,
    CAUSE_UNMATCHED, CAUSE_TOMBSTONE,
    /* key_reused, applied_by_other */
    CAUSE_FINGERPRINT_MISMATCH, CAUSE_IDENTITY_MISMATCH, CAUSE_BIZ_NO_MISMATCH,
    CAUSE_IDENTITY_UNKNOWN,
    /* already_applied */
    CAUSE_SUPERSEDED,
    /* state_conflict */
    CAUSE_STATE, CAUSE_EARLY, CAUSE_UNKNOWN_STATE, CAUSE_AMOUNT_MISMATCH, CAUSE_REQUIRE_MISMATCH,
    CAUSE_STATEMENT_COUNT, CAUSE_HALF_APPLIED, CAUSE_GIVEN_UP,
    /* not_found, rejected, parked */
    CAUSE_ROW_MISSING, CAUSE_DATABASE, CAUSE_UNIQUE_CONFLICT, CAUSE_NOT_FOUND, CAUSE_LOCKED,
    CAUSE_BEHIND, CAUSE_REDRIVE,
    CAUSE_COUNT
};

/* idem_record.status */
enum record_status { RECORD_PROCESSING = 0, RECORD_APPLIED = 1, RECORD_CLOSED = 2 };

enum outcome_level { LEVEL_ERR, LEVEL_WARNING, LEVEL_INFO };

struct outcome_row {
    const char *name;            /* "first" */
    enum outcome_level level;    /* details 5, Levels */
    bool dead_letter;            /* leaves a row in idem_dead_letter */
    bool stored;                 /* may stand in idem_record.outcome */
    enum record_status status;   /* of the dedupe row, if this outcome writes one */
};

/* Never NULL; aborts on a value outside the enum. */
const struct outcome_row *outcome_row(enum outcome outcome);
const char *outcome_name(enum outcome outcome);
const char *cause_name(enum cause cause);       /* CAUSE_NONE: "" */

/* false if there is no such name; ret_outcome is then untouched. */
bool outcome_parse(struct bytes name, enum outcome *ret_outcome);

#endif
