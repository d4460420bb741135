/* SPDX-License-Identifier: MIT */
/* set_aside: records leave the batch that runs, for the worker; see worker_self.h. Never looks at the database. */
#include "aside.h"
#include "down.h"
#include "hold.h"
#include "idem/core/retry.h"
#include "worker_self.h"

enum { ASIDE_BASE_MS = 500, ASIDE_CAP_MS = 60000 };

void worker_remove(struct worker *worker, uint32_t index)
{
    for (uint32_t i = index; i + 1 < worker->batch_count; i++)
        worker->batch[i] = worker->batch[i + 1];
    worker->batch_count--;
    segments_remove(&worker->segments, index);
}

void worker_set_aside(struct worker *worker, uint32_t index, const struct err *err)
{
    struct item *item = worker->batch[index];
    const struct env_port *env = worker->init.env;
    uint32_t delay = retry_delay_ms(++item->aside_count, ASIDE_BASE_MS, ASIDE_CAP_MS,
                                    env->random(env->self));
    aside_delay(item, worker_now(worker), delay);
    worker_report(worker, EVENT_SET_ASIDE, (struct report_fields){
        .level = LEVEL_WARNING, .topic = item->record.topic, .partition = item->record.partition,
        .offset = item->record.offset, .generation = -1, .count = -1, .attempt = item->aside_count,
        .delay_ms = delay, .key = item->eval.key, .err = err});
    struct item_list front = {0};
    worker_remove(worker, index);
    item_list_push(&front, item);
    for (uint32_t i = index; i < worker->batch_count;) {
        struct item *later = worker->batch[i];
        if (later->number_hash != item->number_hash) {
            i++;
            continue;
        }
        worker_remove(worker, i);
        later->not_before_us = INT64_MAX;
        item_list_push(&front, later);
    }
    aside_put_first(&worker->aside, &front);
}

void worker_after_removal(struct worker *worker)
{
    if (worker->segments.count == 0)
        worker_batch_ends(worker);
    worker_segment_begins(worker);
}

void worker_waiting(struct worker *worker)
{
    const struct segment segment = *segments_top(&worker->segments);
    uint32_t to = segment.to;
    for (uint32_t i = segment.from; i < to && i < worker->batch_count;) {
        struct item *item = worker->batch[i];
        bool parks = item->parks_if_locked && !item->queue.same_key;
        if (item->outcome != OUTCOME_PARKED || item->cause != CAUSE_LOCKED || parks) {
            i++;
            continue;
        }
        uint32_t before = worker->batch_count;
        aside_note_locked(item, worker_now(worker));
        worker_set_aside(worker, i, NULL);
        uint32_t removed = before - worker->batch_count;
        to = removed > to - i ? i : to - removed;
    }
    worker_after_removal(worker);
    worker->mode.lock_first = true;
    worker->mode.skip_locked = true;
}
