/* SPDX-License-Identifier: MIT */
/* aside: records of a worker that wait while their neighbours go on. A number's records stay in delivery order: the
 * first of them, its head, has a time; those behind it have none (INT64_MAX) and go with it. Owned by the worker. */
#ifndef IDEM_APP_ASIDE_H
#define IDEM_APP_ASIDE_H

#include "idem/app/queue.h"

/* Whether a record of that number waits. */
bool aside_has(const struct item_list *aside, uint64_t number_hash);

/* When the next head is due (monotonic microseconds), INT64_MAX = none. */
int64_t aside_due(const struct item_list *aside);

/* Takes the first head that is due, with its followers, in order: at most max. Returns how many. */
uint32_t aside_take(struct item_list *aside, int64_t now_us, struct item **ret_items, uint32_t max);

/* Puts a head and its followers (one number, in order) before everything else of that number; `front` becomes empty. */
void aside_put_first(struct item_list *aside, struct item_list *front);

/* The row was found locked, for the first time or again. */
void aside_note_locked(struct item *item, int64_t now_us);

/* Monotonic moment from which a locked row parks the record; INT64_MAX: it is never parked for that. */
int64_t aside_parks_from(const struct item *item);

/* Not before now + delay, but in time for being parked. */
void aside_delay(struct item *item, int64_t now_us, uint32_t delay_ms);

#endif
