/* SPDX-License-Identifier: MIT */
/* decide: the decision table of details section 2. Pure: looks at what was read, says what it means. */
#ifndef IDEM_CORE_DECIDE_H
#define IDEM_CORE_DECIDE_H

#include "idem/core/item.h"

enum verdict_kind {
    VERDICT_DONE,        /* outcome and cause stand */
    VERDICT_BUSINESS,    /* "biz": judge by the business row; write says how the dedupe row is kept */
    VERDICT_APPLY,       /* row in `from` and `require` holds: outcome `first` if everything else succeeds */
    VERDICT_WAIT,        /* locked: set aside */
    VERDICT_ORPHANED,    /* a parked record that today's rules judge otherwise: its row stays */
    VERDICT_FAULT        /* K2: an internal fault */
};

struct verdict {
    enum verdict_kind kind;
    enum outcome outcome;
    enum cause cause;
    enum outcome first_outcome;      /* of `duplicate` */
    enum record_write write;
    bool fingerprint_skipped;
};

/* Part K. item->known must be filled. `inserted`: this statement inserted it. */
struct verdict decide_key(const struct item *item, bool inserted);

/* Part B over all transitions of the rule; rows[i] belongs to rule->transitions[i]. */
struct verdict decide_business(const struct rule *rule, const struct value *values,
                               const struct row_view *rows);

#endif
