/* SPDX-License-Identifier: MIT */
/* judge: moving business rows and saying what that made of each record: optimistic (affected rows prove it) or under
 * locks (design section 3, steps 4d and 4e). Used by txn.c only. */
#ifndef IDEM_APP_JUDGE_H
#define IDEM_APP_JUDGE_H

#include "idem/app/txn.h"

/* What a step of the attempt means for the attempt. Anything but STEP_ON ends it with a rollback. */
enum txn_step { STEP_ON, STEP_DIFFERS, STEP_WAITING, STEP_CULPRIT, STEP_ERROR };

/* items: records of one rule, with distinct rows, that have to be judged by their business row. Sets outcome, cause,
 * write, moved. STEP_WAITING: those held by others have outcome PARKED, cause LOCKED. */
enum txn_step judge_rule(struct txn *txn, struct txn_mode mode, const struct rule *rule,
                         struct item **items, uint32_t count, struct err *err);

/* Sets an outcome that the business row (not the key) decided; chooses how the dedupe row gets it. */
void judge_set(struct item *item, enum outcome outcome, enum cause cause);

#endif
