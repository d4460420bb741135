/* SPDX-License-Identifier: MIT */
/* blame: what proves that a record, and not the server, is at fault; for the worker. A session that dies may be killed
 * by what it was sent, or go down with its server: only others of the same database tell the two apart. Never decides
 * what is done about it. */
#ifndef IDEM_APP_BLAME_H
#define IDEM_APP_BLAME_H

#include "idem/app/worker.h"

/* A transaction was committed: the database works, and so do the rules of what it applied. */
void blame_committed(struct worker *worker, const struct segment *segment);

/* A connection was lost inside a transaction of the present segment, on a session that had just been opened. Returns
 * whether the segment is to blame: it lost several, while transactions of others were committed, or at least nobody
 * else lost one. */
bool blame_lost(struct worker *worker);

/* A number in no list, alone (details 1). True if it is poison: it failed before, and since then another record of its
 * rule was committed that went the same way: `first` if this one may be `first`, otherwise any that was judged by its
 * business row. Else the failure is noted. */
bool blame_failed(struct worker *worker, struct item *item);

#endif
