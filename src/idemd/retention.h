/* SPDX-License-Identifier: MIT */
/* retention: a thread that compares each rule's ttl with what Kafka keeps, at the start and every hour, for it can be
 * changed there at any time. Says what is too short when it finds it first, and again when it has changed. Keeps
 * nobody waiting and never ends the process. */
#ifndef IDEMD_RETENTION_H
#define IDEMD_RETENTION_H

#include "report.h"

struct retention_watch;

/* Both are borrowed until retention_stop; the report is this thread's alone. NULL: out of memory, or no thread. */
struct retention_watch *retention_start(const struct config *config, struct report *report);
/* Waits for a question that is out, some seconds at most. NULL is fine. */
void retention_stop(struct retention_watch *watch);

#endif
