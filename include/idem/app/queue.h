/* SPDX-License-Identifier: MIT */
/* queue: items between threads, a list under a mutex; what it may hold is bounded by limits.inflight, so it needs no
 * bound of its own. One of the two shared objects of the app floor (the other is shared.h). */
#ifndef IDEM_APP_QUEUE_H
#define IDEM_APP_QUEUE_H

#include "idem/core/item.h"

#include <pthread.h>

struct item_list {
    struct item *head, *tail;
    uint32_t count;
};

/* Appends; the item is taken. */
void item_list_push(struct item_list *list, struct item *item);
void item_list_join(struct item_list *list, struct item_list *tail);   /* tail becomes empty */
struct item *item_list_pop(struct item_list *list);                    /* NULL if empty */

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;      /* CLOCK_MONOTONIC */
    struct item_list list;
    bool poked, waiting;
};

/* Empty; finish frees nothing but the lock. */
void queue_init(struct queue *queue);
/* Items still in it are the caller's. */
void queue_finish(struct queue *queue);

/* Appends the list (which becomes empty) and wakes the reader. */
void queue_push(struct queue *queue, struct item_list *list);

/* Moves at most max_count items and (beyond the first) max_bytes of record values to ret_list; never waits. Returns
 * how many were moved. */
uint32_t queue_take(struct queue *queue, uint32_t max_count, uint64_t max_bytes,
                    struct item_list *ret_list);

/* At this moment. */
bool queue_is_empty(struct queue *queue);

/* Waits until there is an item, somebody poked, or `until_us` on the monotonic clock (INT64_MAX: no end). */
void queue_wait(struct queue *queue, int64_t until_us);

/* The same, but items do not end it: only a poke or the time. */
void queue_wait_poke(struct queue *queue, int64_t until_us);

/* Ends the present wait, or the next one. */
void queue_poke(struct queue *queue);

#endif
