/* SPDX-License-Identifier: MIT */
/* effects: what a decided record leaves behind besides its business row: the rule's inserts and statements, dead
 * letters, outbox rows, the final form of its dedupe row (design section 3, step 4f). Used by txn.c only. */
#ifndef IDEM_APP_EFFECTS_H
#define IDEM_APP_EFFECTS_H

#include "judge.h"

/* The rule's inserts of all `first` records of the wave. */
enum txn_step effects_insert(struct txn *txn, struct item **wave, uint32_t count, struct err *err);

/* Their statements, record by record in delivery order. STEP_CULPRIT: wave[*ret_culprit]'s count was off. */
enum txn_step effects_statements(struct txn *txn, struct item **wave, uint32_t count,
                                 uint32_t *ret_culprit, struct err *err);

/* One record whose refusals end in its own outcome: savepoint, judge, inserts, statements; undone as a whole. */
enum txn_step effects_single(struct txn *txn, struct txn_mode mode, struct item *item, struct err *err);

/* Dead letters of the items that owe one, then outbox rows of `first` and of new letters. */
enum txn_step effects_letters_and_events(struct txn *txn, struct item **items, uint32_t count,
                                         struct err *err);

/* Final form of the dedupe rows. */
enum txn_step effects_records(struct txn *txn, struct item **items, uint32_t count, struct err *err);

#endif
