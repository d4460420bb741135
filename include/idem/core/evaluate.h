/* SPDX-License-Identifier: MIT */
/* evaluate: from a record to key, identity, fingerprint and typed values, by the rules of its topic. A pure
 * function of the record (design 3 step 1): a failure is already an outcome, never an error. */
#ifndef IDEM_CORE_EVALUATE_H
#define IDEM_CORE_EVALUATE_H

#include "idem/core/record.h"
#include "idem/core/rule.h"

/* What evaluation makes of a record. All views point into the record, the doc or the arena. */
struct evaluation {
    const struct rule *rule;       /* NULL if none matched */
    enum outcome outcome;          /* OUTCOME_NONE: to be applied; else OUTCOME_INVALID or OUTCOME_IGNORED */
    enum cause cause;
    bool fault;                    /* the arena was too small: give a larger one and evaluate again */
    struct bytes key;              /* whole key with scope, 1..255 bytes; empty if it could not be made */
    struct bytes biz_no;           /* 1..64 bytes */
    bool key_supplied;
    struct bytes request_id;       /* header X-Request-Id, cut at 128 bytes; empty = none */
    uint8_t params_hash[PARAMS_HASH_LEN];
    uint8_t identity_hash[IDENTITY_HASH_LEN];
    const struct value *values;    /* by expr index, rule->expr_count of them */
};

/* What is wrong with a body before any rule sees it; CAUSE_NONE if it was parsed. */
struct parsed {
    enum cause cause;              /* CAUSE_BODY, CAUSE_UTF8, CAUSE_DUPLICATE_NAME, CAUSE_TOO_DEEP, CAUSE_TOO_LARGE */
    const struct doc *doc;         /* if CAUSE_NONE */
};

/* Order of checks: tombstone -> ignored; too large; parse fault; exactly_one -> batch; first rule whose `when`
 * holds; unmatched; then within the rule: key, scope, biz_no, typed fields, every required value, hashes. Where a
 * rule matched and the key could be made before the failure, key and biz_no are given for the dead letter.
 * `parsed` may have doc NULL only with a cause. Never allocates but from `arena`. */
void evaluate(const struct topic *topic, const struct record *record, const struct parsed *parsed,
              struct arena *arena, struct evaluation *ret);

/* Writes the template as JSON (details 1, "JSON that we write"). `now` is the text for VALUE_NOW. */
void template_write(const struct template *template, const struct rule *rule, const struct value *values,
                    struct bytes now, struct buf *buf);

/* One value as JSON: decimal = string, integer = number, text = string, untyped pointer = its token. */
void value_write_json(const struct value *value, struct bytes now, struct buf *buf);

#endif
