/* SPDX-License-Identifier: MIT */
/* down: what of a database, or of one topic, a worker cannot apply now; the first worker that meets it says `paused`,
 * the last that comes over it says `resumed`. For the worker; never decides. */
#ifndef IDEM_APP_DOWN_H
#define IDEM_APP_DOWN_H

#include "idem/app/worker.h"

/* An event with the worker's database in it. */
void worker_report(const struct worker *worker, enum report_event event, struct report_fields fields);

/* `paused` with a reason that nobody takes back. */
void down_for_good(const struct worker *worker, const char *why, const struct err *err);

/* enum down_why, or -1 for none; err may be NULL then. */
void down_set(struct worker *worker, int why, const struct err *err);

/* One topic: its schema or grants. Idempotent. */
void down_topic(struct worker *worker, const struct topic *topic, const struct err *err);
void up_topic(struct worker *worker, const struct topic *topic);

#endif
