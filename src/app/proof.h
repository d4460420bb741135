/* SPDX-License-Identifier: MIT */
/* proof: whether a partition is still the log that was read before, or a topic made again under its name. Part of
 * intake: same thread. The last finished record is read once more before anything else is taken. */
#ifndef IDEM_APP_PROOF_H
#define IDEM_APP_PROOF_H

#include "idem/app/intake.h"

/* Asks for a proof if the database remembers a record. start: where reading goes on. Returns where to read from. */
int64_t proof_begin(struct partition *partition, const struct ledger_partition *owned, int64_t start);

/* A delivered record of a partition whose proof is pending. true: it is not to be taken. */
bool proof_takes(struct intake *intake, struct partition *partition, const struct record *record);

/* The source cannot read at the partition's position. true: that was only the proof's, gone by retention. */
bool proof_is_gone(struct partition *partition);

/* Starts those whose proof was gone. Not from within a handler of the source. */
void proof_round(struct intake *intake);

#endif
