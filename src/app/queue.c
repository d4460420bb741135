/* SPDX-License-Identifier: MIT */
/* queue: see idem/app/queue.h. */
#include "idem/app/queue.h"

#include <time.h>

void item_list_push(struct item_list *list, struct item *item)
{
    item->next = NULL;
    if (list->tail)
        list->tail->next = item;
    else
        list->head = item;
    list->tail = item;
    list->count++;
}

void item_list_join(struct item_list *list, struct item_list *tail)
{
    if (!tail->head)
        return;
    if (list->tail)
        list->tail->next = tail->head;
    else
        list->head = tail->head;
    list->tail = tail->tail;
    list->count += tail->count;
    *tail = (struct item_list){0};
}

struct item *item_list_pop(struct item_list *list)
{
    struct item *item = list->head;
    if (!item)
        return NULL;
    list->head = item->next;
    if (!list->head)
        list->tail = NULL;
    list->count--;
    item->next = NULL;
    return item;
}

void queue_init(struct queue *queue)
{
    pthread_condattr_t attributes;
    *queue = (struct queue){0};
    pthread_mutex_init(&queue->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void queue_finish(struct queue *queue)
{
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
}

void queue_push(struct queue *queue, struct item_list *list)
{
    if (!list->head)
        return;
    pthread_mutex_lock(&queue->lock);
    item_list_join(&queue->list, list);
    bool waiting = queue->waiting;
    pthread_mutex_unlock(&queue->lock);
    if (waiting)
        pthread_cond_signal(&queue->changed);
}

uint32_t queue_take(struct queue *queue, uint32_t max_count, uint64_t max_bytes,
                    struct item_list *ret_list)
{
    uint32_t count = 0;
    uint64_t bytes = 0;
    pthread_mutex_lock(&queue->lock);
    while (queue->list.head && count < max_count) {
        bytes += queue->list.head->record.value.len;
        if (count > 0 && bytes > max_bytes)
            break;
        item_list_push(ret_list, item_list_pop(&queue->list));
        count++;
    }
    pthread_mutex_unlock(&queue->lock);
    return count;
}

bool queue_is_empty(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    bool empty = queue->list.head == NULL;
    pthread_mutex_unlock(&queue->lock);
    return empty;
}

static void wait(struct queue *queue, int64_t until_us, bool for_items)
{
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    int timed_out = 0;
    pthread_mutex_lock(&queue->lock);
    queue->waiting = true;
    while (!(for_items && queue->list.head) && !queue->poked && !timed_out) {
        if (until_us == INT64_MAX)
            pthread_cond_wait(&queue->changed, &queue->lock);
        else
            timed_out = pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
    }
    queue->waiting = false;
    queue->poked = false;
    pthread_mutex_unlock(&queue->lock);
}

void queue_wait(struct queue *queue, int64_t until_us)
{
    wait(queue, until_us, true);
}

void queue_wait_poke(struct queue *queue, int64_t until_us)
{
    wait(queue, until_us, false);
}

void queue_poke(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->poked = true;
    pthread_mutex_unlock(&queue->lock);
    pthread_cond_broadcast(&queue->changed);
}
