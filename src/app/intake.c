/* SPDX-License-Identifier: MIT */
/* intake: see idem/app/intake.h. One round after the other, within the limits; what a record goes through is in
 * delivery.c, offsets and ownership in assignment.c. */
#include "assignment.h"
#include "delivery.h"
#include "guard.h"
#include "parked.h"

#include <stdlib.h>

enum {
    BURST = 256,                     /* records polled before completions are looked at again */
    STALL_BEFORE_PAUSE_US = 2000000  /* pausing throws prefetched records away (hazards K2): only for long stalls */
};

bool intake_init(struct intake *intake, const struct intake_init *init)
{
    *intake = (struct intake){.init = *init};
    intake->chains = calloc(init->worker_count, sizeof *intake->chains);
    intake->first_worker = calloc(init->config->database_count, sizeof *intake->first_worker);
    intake->watches = calloc(init->config->database_count, sizeof *intake->watches);
    intake->guards = calloc(init->config->topic_count, sizeof *intake->guards);
    if (!intake->chains || !intake->first_worker || !intake->watches || !intake->guards) {
        free(intake->guards);
        free(intake->chains);
        free(intake->first_worker);
        free(intake->watches);
        return false;
    }
    for (uint32_t i = 0, first = 0; i < init->config->database_count; i++) {
        intake->first_worker[i] = first;
        first += init->config->databases[i].connections;
    }
    partitions_init(&intake->partitions);
    pool_init(&intake->pool);
    queue_init(&intake->done);
    return true;
}

void intake_finish(struct intake *intake)
{
    while (intake->deferred) {
        struct keeper_job *job = intake->deferred;
        intake->deferred = job->next;
        keeper_job_free(job);
    }
    partitions_finish(&intake->partitions);
    pool_finish(&intake->pool);
    queue_finish(&intake->done);
    free(intake->chains);
    free(intake->first_worker);
    free(intake->watches);
    free(intake->guards);
}

/* ---- the limits ------------------------------------------------------------------------------------------------ */

/* What waits for a topic's schema leaves the other topics their room, up to once more the limits. */
static uint64_t without_held(uint64_t all, const atomic_uint_fast64_t *held_count, uint64_t limit)
{
    uint64_t held = atomic_load_explicit(held_count, memory_order_relaxed);
    if (held > limit)
        held = limit;
    return all > held ? all - held : 0;
}

static uint64_t records_out(const struct intake *intake)
{
    return without_held(intake->inflight, &intake->init.shared->held, intake->init.config->limits.inflight);
}

static uint64_t bytes_out(const struct intake *intake)
{
    return without_held(intake->inflight_bytes, &intake->init.shared->held_bytes,
                        intake->init.config->limits.inflight_bytes);
}

static bool over_limits(const struct intake *intake)
{
    const struct limits_config *limits = &intake->init.config->limits;
    return records_out(intake) >= limits->inflight || bytes_out(intake) >= limits->inflight_bytes;
}

static bool under_half(const struct intake *intake)
{
    const struct limits_config *limits = &intake->init.config->limits;
    return records_out(intake) <= limits->inflight / 2 && bytes_out(intake) <= limits->inflight_bytes / 2;
}

/* Partitions are fetched or not, by what holds now. false: the source could not be told. */
static bool pause_round(struct intake *intake)
{
    for (uint32_t i = 0; i < intake->partitions.count; i++) {
        struct partition *partition = &intake->partitions.slots[i];
        bool is_down = atomic_load(&intake->init.shared->topic_down[partition->topic->index]) > 0;
        partition_pause(partition, PAUSE_LIMITS, intake->paused);
        partition_pause(partition, PAUSE_CONFIG, is_down);
    }
    return partitions_pause(&intake->partitions, intake->init.source);
}

/* All partitions, because of the limits. */
static void pause_all(struct intake *intake, bool paused)
{
    intake->paused = paused;
    if (!pause_round(intake))
        intake->paused = !paused;
}

/* true: no record may be taken now, and what had to be done about that was done. */
static bool held_back(struct intake *intake, uint32_t wait_ms)
{
    int64_t now = intake->init.env->mono_us(intake->init.env->self);
    if (!over_limits(intake) && !(intake->paused && !under_half(intake))) {
        intake->stalled_us = 0;
        if (intake->paused)
            pause_all(intake, false);
        return false;
    }
    if (intake->stalled_us == 0)
        intake->stalled_us = now;
    if (!intake->paused && now - intake->stalled_us > STALL_BEFORE_PAUSE_US)
        pause_all(intake, true);
    if (!intake->paused)
        intake->init.wait(intake->init.context, wait_ms < 20 ? wait_ms : 20);
    return !intake->paused;                          /* paused: poll on, for the group's sake */
}

/* ---- rounds ---------------------------------------------------------------------------------------------------- */

static bool poll_burst(struct intake *intake, uint32_t wait_ms, struct err *err)
{
    struct record record;
    for (uint32_t i = 0; i < BURST; i++) {
        switch (intake->init.source->ops->poll(intake->init.source->self, i == 0 ? wait_ms : 0, &record,
                                               err)) {
        case SOURCE_NOTHING:
            return true;
        case SOURCE_RECORD:
            if (!delivery_accept(intake, &record)) {
                err_set(err, ERR_FATAL, 0, "intake", "out of memory");
                return false;
            }
            break;
        case SOURCE_FATAL:
            return false;
        }
        if (over_limits(intake))
            return true;
    }
    return true;
}

bool intake_step(struct intake *intake, uint32_t wait_ms, struct err *err)
{
    delivery_take_back(intake);
    assignment_round(intake, false);
    parked_round(intake);
    guard_round(intake);
    pause_round(intake);
    if (held_back(intake, wait_ms))
        return true;
    bool alive = poll_burst(intake, wait_ms, err);
    delivery_flush(intake);
    return alive;
}

bool intake_stop(struct intake *intake, uint32_t timeout_ms)
{
    struct err err;
    int64_t start = intake->init.env->mono_us(intake->init.env->self);
    struct report_fields fields = REPORT_FIELDS_INIT;
    intake->stopping = true;
    delivery_flush(intake);
    fields.count = (int64_t)intake->inflight;
    intake->init.report->event(intake->init.report->self, EVENT_DRAIN, &fields);
    int64_t deadline = start + (int64_t)timeout_ms * 1000 / 2;
    assignment_drain(intake, deadline);
    assignment_settle(intake, start + (int64_t)timeout_ms * 1000 * 3 / 4);
    int64_t left_ms = (start + (int64_t)timeout_ms * 1000 - intake->init.env->mono_us(intake->init.env->self)) / 1000;
    if (intake->init.source->ops->close(intake->init.source->self,
                                        left_ms > 100 ? (uint32_t)left_ms : 100, &err) != ERR_NONE)
        return intake->inflight == 0;
    return intake->inflight == 0;
}
