/* SPDX-License-Identifier: MIT */
/* waiting: who has to wait in idem_parked, and what becomes of those who waited; the part of txn that the table calls
 * B0 and B13. For txn.c; never commits. */
#ifndef IDEM_APP_WAITING_H
#define IDEM_APP_WAITING_H

#include "judge.h"

/* Locks the rows of parked records; those that are gone or orphaned have nothing more to do in this attempt and are
 * taken out of items. */
enum txn_step waiting_begin(struct txn *txn, struct item **items, uint32_t *count, struct err *err);

/* B0 for records that the business row would have to judge: those that wait are taken out of items. STEP_WAITING: one
 * has to be set aside. */
enum txn_step waiting_behind(struct txn *txn, struct item **items, uint32_t *count, struct err *err);

/* After the judgement of a wave: gives up what has waited long enough (B13), parks, keeps, lets go. */
enum txn_step waiting_end(struct txn *txn, struct item **wave, uint32_t count, struct err *err);

#endif
