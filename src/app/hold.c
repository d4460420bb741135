/* SPDX-License-Identifier: MIT */
/* hold: records of a topic that cannot be applied, in order, for the worker; see hold.h. */
#include "hold.h"

#include "down.h"
#include "worker_self.h"
#include "idem/core/retry.h"

enum { BASE_MS = 100, CAP_MS = 5000 };

static struct topic_hold *hold_of(struct worker *worker, const struct item *item)
{
    return &worker->holds[item->topic->index];
}

static bool is_active(const struct topic_hold *hold)
{
    return hold->down || hold->items.head;
}

static void count(struct worker *worker, const struct item *item, bool comes)
{
    struct shared *shared = worker->init.shared;
    if (comes) {
        atomic_fetch_add(&shared->held, 1);
        atomic_fetch_add(&shared->held_bytes, item->block_size);
    } else {
        atomic_fetch_sub(&shared->held, 1);
        atomic_fetch_sub(&shared->held_bytes, item->block_size);
    }
}

static void put_first(struct topic_hold *hold, struct item_list *front)
{
    item_list_join(front, &hold->items);
    hold->items = *front;
    *front = (struct item_list){0};
}

/* A row of idem_parked stays where it is, and is asked for again when its topic is up: here it would keep the rows of
 * other topics from being asked for. */
static bool gives_back(struct worker *worker, struct item *item)
{
    struct item_list done = {0};
    if (!item->parked.id)
        return false;
    item_reset(item);
    item_list_push(&done, item);
    queue_push(worker->init.done, &done);
    return true;
}

/* Those of the topic leave batch[from..], segments and all, in order. */
static struct item_list take_out(struct worker *worker, const struct topic *topic, uint32_t from)
{
    struct item_list taken = {0};
    for (uint32_t i = from; i < worker->batch_count;) {
        struct item *item = worker->batch[i];
        if (item->topic != topic) {
            i++;
            continue;
        }
        worker_remove(worker, i);
        if (gives_back(worker, item))
            continue;
        count(worker, item, true);
        item_list_push(&taken, item);
    }
    return taken;
}

void hold_topic(struct worker *worker, const struct topic *topic, uint32_t from, const struct err *err)
{
    const struct env_port *env = worker->init.env;
    struct topic_hold *hold = &worker->holds[topic->index];
    struct item_list front = take_out(worker, topic, from);
    put_first(hold, &front);
    uint32_t delay = retry_delay_ms(++hold->tries, BASE_MS, CAP_MS, env->random(env->self));
    hold->due_us = env->mono_us(env->self) + (int64_t)delay * 1000;
    if (hold->items.head)
        down_topic(worker, topic, err);
    else                             /* rows of idem_parked only: nothing here could find out that it is mended */
        worker_report(worker, EVENT_TX_RETRY, (struct report_fields){
            .level = LEVEL_WARNING, .topic = topic->name, .partition = -1, .offset = -1, .generation = -1, .count = -1,
            .attempt = hold->tries, .delay_ms = -1, .err = err});
    worker_after_removal(worker);
}

/* Sorts batch[from, to) so that the topic of its first record leads, each topic in its order (no order is promised
 * between topics). Returns where the others begin; `to` if there are none. */
static uint32_t part(struct worker *worker, uint32_t from, uint32_t to)
{
    uint32_t end = from;
    const struct topic *topic = worker->batch[from]->topic;
    for (uint32_t i = from; i < to; i++) {
        struct item *item = worker->batch[i];
        if (item->topic != topic)
            continue;
        for (uint32_t k = i; k > end; k--)
            worker->batch[k] = worker->batch[k - 1];
        worker->batch[end++] = item;
    }
    return end;
}

void hold_fault(struct worker *worker, const struct segment *segment, const struct err *err)
{
    const struct topic *topic = worker->batch[segment->from]->topic;
    uint32_t others = part(worker, segment->from, segment->to);
    if (others == segment->to) {
        hold_topic(worker, topic, segment->from, err);
        return;
    }
    segments_split(&worker->segments, others);
    worker_segment_begins(worker);
}

bool hold_takes(struct worker *worker, struct item *item)
{
    struct topic_hold *hold = hold_of(worker, item);
    if (!is_active(hold))
        return false;
    if (gives_back(worker, item))
        return true;
    count(worker, item, true);
    item_list_push(&hold->items, item);
    return true;
}

void hold_older(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->init.config->topic_count; i++) {
        struct topic_hold *hold = &worker->holds[i];
        if (!is_active(hold))
            continue;
        struct item_list front = take_out(worker, &worker->init.config->topics[i], 0);
        put_first(hold, &front);
    }
}

void hold_collect(struct worker *worker)
{
    int64_t now_us = worker->init.env->mono_us(worker->init.env->self);
    for (uint32_t i = 0; i < worker->init.config->topic_count && worker->batch_count == 0; i++) {
        struct topic_hold *hold = &worker->holds[i];
        if (!hold->items.head || hold->due_us > now_us)
            continue;
        worker->held = &worker->init.config->topics[i];
        while (hold->items.head && worker->batch_count < worker->init.config->batch_max) {
            struct item *item = item_list_pop(&hold->items);
            count(worker, item, false);
            worker_admit(worker, item);
        }
        if (worker->batch_count == 0)        /* they wait behind others of their numbers */
            hold_done(worker);
    }
}

void hold_done(struct worker *worker)
{
    const struct topic *topic = worker->held;
    worker->held = NULL;
    if (topic && !worker->holds[topic->index].items.head)
        up_topic(worker, topic);
}

int64_t hold_due(const struct worker *worker)
{
    int64_t due = INT64_MAX;
    for (uint32_t i = 0; i < worker->init.config->topic_count; i++)
        if (worker->holds[i].items.head && worker->holds[i].due_us < due)
            due = worker->holds[i].due_us;
    return due;
}

bool hold_is_empty(const struct worker *worker)
{
    for (uint32_t i = 0; i < worker->init.config->topic_count; i++)
        if (worker->holds[i].items.head)
            return false;
    return true;
}
