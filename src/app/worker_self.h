/* SPDX-License-Identifier: MIT */
/* worker_self: what the files of the worker share beside its struct: the batch it runs. Not for others. */
#ifndef IDEM_APP_WORKER_SELF_H
#define IDEM_APP_WORKER_SELF_H

#include "idem/app/worker.h"

/* The item joins the batch, or waits behind one of its number that is set aside: it may not overtake. */
void worker_admit(struct worker *worker, struct item *item);

/* batch[index] leaves the batch and its segment. */
void worker_remove(struct worker *worker, uint32_t index);

/* After that, once all have left that shall; the batch may be over. */
void worker_after_removal(struct worker *worker);

/* batch[index] and all of its number that come after it wait aside. */
void worker_set_aside(struct worker *worker, uint32_t index, const struct err *err);

/* Records of the present segment that others hold go aside; the rest runs again at once. */
void worker_waiting(struct worker *worker);

/* The batch is over: nothing of it is left. */
void worker_batch_ends(struct worker *worker);

/* Monotonic microseconds. */
int64_t worker_now(const struct worker *worker);

/* The present segment is run as if for the first time. */
void worker_segment_begins(struct worker *worker);

#endif
