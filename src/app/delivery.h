/* SPDX-License-Identifier: MIT */
/* delivery: a record's way from the source, or from idem_parked, down to its worker, and back as a completion. Part of
 * intake: same thread, same struct. */
#ifndef IDEM_APP_DELIVERY_H
#define IDEM_APP_DELIVERY_H

#include "idem/app/intake.h"

/* Evaluates a record of the source and sends it down, unless it is of a former assignment or was delivered before.
 * false: out of memory. */
bool delivery_accept(struct intake *intake, const struct record *record);

/* The same for a due row of idem_parked of the running partition in `slot`. */
bool delivery_take_parked(struct intake *intake, uint32_t slot, const struct ledger_parked *row);

/* What is chained goes to the workers. */
void delivery_flush(struct intake *intake);

/* What the workers have done: offsets finished, memory given back. */
void delivery_take_back(struct intake *intake);

#endif
