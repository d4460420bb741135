/* SPDX-License-Identifier: MIT */
/* hold: records of a topic whose schema or grants somebody has to mend (design 3 step 7, configuration). They wait in
 * their worker, in order, while other topics go on; intake pauses the topic's partitions meanwhile, so what waits is
 * bounded by what was out already. While a topic has records here, all that come later of it go behind them. For the
 * worker; never runs anything. */
#ifndef IDEM_APP_HOLD_H
#define IDEM_APP_HOLD_H

#include "idem/app/worker.h"

/* What the topic's rules need is not there: all its records in batch[from..] leave the batch and wait, before those
 * that wait already; they are tried again after a back-off. */
void hold_topic(struct worker *worker, const struct topic *topic, uint32_t from, const struct err *err);

/* The segment failed for that reason: its topic waits; of several topics one at least is to blame, so that each is run
 * alone first. */
void hold_fault(struct worker *worker, const struct segment *segment, const struct err *err);

/* true: the item waits behind others of its topic now; a row of idem_parked was given back, to wait there. */
bool hold_takes(struct worker *worker, struct item *item);

/* The records of a batch that were set aside before, and came back: those of waiting topics wait before the others, as
 * they are older. */
void hold_older(struct worker *worker);

/* Fills worker->batch with the oldest of the first topic that is due and sets worker->held; nothing if none is due. */
void hold_collect(struct worker *worker);

/* The batch that hold_collect() gave is done: the topic is up again if nothing of it waits any more. */
void hold_done(struct worker *worker);

/* When hold_collect() gives something: INT64_MAX = nothing waits. */
int64_t hold_due(const struct worker *worker);

/* Nothing waits. */
bool hold_is_empty(const struct worker *worker);

#endif
