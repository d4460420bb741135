/* SPDX-License-Identifier: MIT */
/* assignment: partitions come, start, move on and go; for intake. Never touches a record. */
#include "assignment.h"
#include "delivery.h"
#include "parked.h"
#include "proof.h"

#include <stdlib.h>

enum {
    PROGRESS_EVERY_US = 1000000,     /* design section 3, step 10: at most a second late */
    WAIT_MS = 20,
    REVOKE_WAIT_US = 10000000,       /* a rebalance may wait so long for running transactions */
    COMMIT_WAIT_MS = 5000,
    FENCED_WAIT_US = 15000000        /* so long the group has to tell us that a partition is another's */
};

static int64_t now_us(const struct intake *intake)
{
    return intake->init.env->mono_us(intake->init.env->self);
}

static const struct topic *topic_of(const struct intake *intake, struct bytes name)
{
    for (uint32_t i = 0; i < intake->init.config->topic_count; i++)
        if (bytes_equal(intake->init.config->topics[i].name, name))
            return &intake->init.config->topics[i];
    return NULL;
}

static void say(struct intake *intake, enum report_event event, const struct partition *partition,
                int64_t offset, enum outcome_level level, const char *why)
{
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.level = level;
    fields.topic = partition->topic->name;
    fields.partition = partition->number;
    fields.offset = offset;
    fields.generation = partition->generation ? (int64_t)partition->generation : -1;
    fields.why = why;
    intake->init.report->event(intake->init.report->self, event, &fields);
}

/* ---- taking over ----------------------------------------------------------------------------------------------- */

/* min of what Kafka and MySQL know; one known: that one; none: the beginning. A server that lacks even the first
 * progress of this assignment knows nothing of what was done in it. */
static int64_t start_offset(const struct partition *partition, int64_t progress)
{
    int64_t committed = partition->committed;
    if (progress < 0 && partition->begun)
        return partition->began < 0 ? SOURCE_OFFSET_BEGINNING : partition->began;
    if (committed < 0 && progress < 0)
        return SOURCE_OFFSET_BEGINNING;
    if (committed < 0)
        return progress;
    if (progress < 0)
        return committed;
    return committed < progress ? committed : progress;
}

/* Where to read from, or SOURCE_OFFSET_NONE if memory is out. */
static int64_t begin_partition(struct intake *intake, struct partition *partition,
                               const struct ledger_partition *owned)
{
    int64_t start = start_offset(partition, owned->next_offset);
    if (!partition_start(partition, owned->generation, start < 0 ? -1 : start))
        return SOURCE_OFFSET_NONE;
    partition->server = owned->server;
    if (!partition->begun)
        partition->began = start < 0 ? -1 : start;
    partition->begun = true;
    if (start >= 0 && start == owned->next_offset) {     /* where the former owner stopped: his last record is ours */
        partition->offsets.last_offset = owned->last_offset;
        memcpy(partition->offsets.last_hash, owned->last_hash, OFFSET_HASH_LEN);
        if (partition->committed < start)                /* he died before he told Kafka: say it again */
            partition->posted = -1;
    }
    if (start >= 0 && owned->next_offset < 0)            /* from now on this database knows the partition */
        partition->posted = -1;
    if (partition->committed >= 0 && start < partition->committed)
        say(intake, EVENT_REWOUND, partition, start < 0 ? -1 : start, LEVEL_ERR, NULL);
    say(intake, EVENT_ASSIGN, partition, start < 0 ? -1 : start, LEVEL_INFO, NULL);
    return proof_begin(partition, owned, start);
}

/* A take-over that came back: partitions that still wait for it begin. Returns those that the source has to start, in
 * `started` (room for job->count). */
static uint32_t take_over_done(struct intake *intake, const struct keeper_job *job,
                               struct source_partition *started)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < job->count && job->done; i++) {
        struct partition *partition = &intake->partitions.slots[job->slots[i]];
        if (partition->epoch != job->epochs[i] || partition->state != PARTITION_HELD)
            continue;
        int64_t start = begin_partition(intake, partition, &job->partitions[i]);
        if (start != SOURCE_OFFSET_NONE)
            started[count++] = (struct source_partition){partition->topic->name, partition->number, start};
    }
    return count;
}

static void post_take_over(struct intake *intake, uint32_t database, const uint32_t *slots, uint32_t count)
{
    struct keeper_job *job = keeper_job_create(KEEPER_TAKE_OVER, count);
    if (!job)
        return;
    job->count = 0;
    job->number = intake->assignments;
    for (uint32_t i = 0; i < count; i++) {
        const struct partition *partition = &intake->partitions.slots[slots[i]];
        if (partition->topic->database != database)
            continue;
        job->partitions[job->count] = (struct ledger_partition){
            .topic = partition->topic->name, .partition = partition->number,
            .generation = partition->generation, .next_offset = -1, .last_offset = -1};
        job->slots[job->count] = slots[i];
        job->epochs[job->count++] = partition->epoch;
    }
    if (job->count > 0)
        keeper_post(&intake->init.keepers[database], job);
    else
        keeper_job_free(job);
}

/* ---- progress -------------------------------------------------------------------------------------------------- */

static bool has_moved(const struct partition *partition)
{
    return partition->state == PARTITION_RUNNING && !partition->posting &&
           partition->offsets.next >= 0 && partition->offsets.next != partition->posted;
}

static void post_progress(struct intake *intake, uint32_t database)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < intake->partitions.count; i++)
        count += has_moved(&intake->partitions.slots[i]) &&
                 intake->partitions.slots[i].topic->database == database;
    struct keeper_job *job = count ? keeper_job_create(KEEPER_PROGRESS, count) : NULL;
    if (!job)
        return;
    job->count = 0;
    for (uint32_t i = 0; i < intake->partitions.count; i++) {
        struct partition *partition = &intake->partitions.slots[i];
        if (!has_moved(partition) || partition->topic->database != database)
            continue;
        struct ledger_partition *written = &job->partitions[job->count];
        *written = (struct ledger_partition){
            .topic = partition->topic->name, .partition = partition->number,
            .generation = partition->generation, .server = partition->server, .next_offset = partition->offsets.next,
            .last_offset = partition->offsets.last_offset};
        memcpy(written->last_hash, partition->offsets.last_hash, OFFSET_HASH_LEN);
        job->slots[job->count] = i;
        job->epochs[job->count++] = partition->epoch;
        partition->posted = partition->offsets.next;
        partition->posting = true;
    }
    intake->jobs_out++;
    keeper_post(&intake->init.keepers[database], job);
}

/* Kafka's offset never goes back while the partition stays ours. */
static void note_committed(struct intake *intake, const struct keeper_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct partition *partition = &intake->partitions.slots[job->slots[i]];
        const struct ledger_partition *written = &job->partitions[i];
        if (partition->epoch == job->epochs[i] && written->current && written->next_offset > partition->committed)
            partition->committed = written->next_offset;
    }
}

/* Progress is written: now, and only now, Kafka's offset. While a lost tail is read again Kafka keeps the higher one:
 * the next owner starts at the lower of the two all the same. */
static void progress_done(struct intake *intake, const struct keeper_job *job, bool wait)
{
    struct err err;
    uint32_t count = 0;
    struct source_partition *committed = calloc(job->count, sizeof *committed);
    for (uint32_t i = 0; i < job->count; i++) {
        struct partition *partition = &intake->partitions.slots[job->slots[i]];
        const struct ledger_partition *written = &job->partitions[i];
        if (partition->epoch != job->epochs[i])
            continue;
        partition->posting = false;
        if (job->done && !written->current) {
            partition_fenced(partition, now_us(intake));
            say(intake, EVENT_FENCED, partition, written->next_offset, LEVEL_WARNING, NULL);
        } else if (job->done && committed && written->next_offset >= partition->committed)
            committed[count++] = (struct source_partition){partition->topic->name, partition->number,
                                                           written->next_offset};
    }
    if (count > 0 && intake->init.source->ops->commit(intake->init.source->self, committed, count, wait,
                                                      COMMIT_WAIT_MS, &err) == ERR_NONE) {
        note_committed(intake, job);
        env_probe(intake->init.env, PROBE_AFTER_OFFSET);
    }
    free(committed);
}

static void stand_still(struct partition *partition, enum halt_why why)
{
    partition_end(partition, PARTITION_STOPPED);
    partition->halt = why;
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* Partitions of a cancelled take-over that are still ours ask again. */
static void ask_again(struct intake *intake, const struct keeper_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        const struct partition *partition = &intake->partitions.slots[job->slots[i]];
        if (partition->epoch == job->epochs[i] && partition->state == PARTITION_HELD)
            post_take_over(intake, partition->topic->database, &job->slots[i], 1);
    }
}

/* Outside of a rebalance: partitions that were held back are started by the source. */
static void start_now(struct intake *intake, const struct keeper_job *job)
{
    struct err err;
    struct source_partition *started = calloc(job->count, sizeof *started);
    uint32_t count = started ? take_over_done(intake, job, started) : 0;
    if (count > 0 &&
        intake->init.source->ops->start(intake->init.source->self, started, count, &err) != ERR_NONE)
        for (uint32_t i = 0; i < job->count; i++)
            stand_still(&intake->partitions.slots[job->slots[i]], HALT_FAULT);
    free(started);
}

static void take_answers(struct intake *intake, bool wait)
{
    for (uint32_t i = 0; i < intake->init.config->database_count; i++) {
        for (struct keeper_job *job; (job = keeper_fetch(&intake->init.keepers[i]));) {
            if (job->task == KEEPER_TAKE_OVER) {     /* the source may not be called just now */
                job->next = intake->deferred;
                intake->deferred = job;
                continue;
            }
            if (job->task == KEEPER_PARKED) {
                parked_answer(intake, job);
                keeper_job_free(job);
                continue;
            }
            intake->jobs_out--;
            progress_done(intake, job, wait);
            keeper_job_free(job);
        }
    }
}

static void start_deferred(struct intake *intake)
{
    while (intake->deferred) {
        struct keeper_job *job = intake->deferred;
        intake->deferred = job->next;
        if (job->done)
            start_now(intake, job);
        else
            ask_again(intake, job);
        keeper_job_free(job);
    }
}

/* Taken over on a server that the keeper has left, which may have taken confirmed commits with it; or fenced for so
 * long that the group would have told us if it were another's: somebody took it over who had lost it. */
static bool must_be_taken_again(const struct intake *intake, const struct partition *partition, uint64_t server)
{
    return partition->state == PARTITION_RUNNING &&
           (partition->server != server ||
            (partition->fenced_us && now_us(intake) - partition->fenced_us > FENCED_WAIT_US));
}

/* What is on its way belongs to a former epoch from now on; where to go on, the database says. */
static void take_again(struct intake *intake, uint32_t database)
{
    uint32_t count = 0, *slots = NULL;
    uint64_t server = atomic_load(&intake->init.shared->servers[database]);
    for (uint32_t i = 0; i < intake->partitions.count; i++) {
        struct partition *partition = &intake->partitions.slots[i];
        if (partition->topic->database != database || !must_be_taken_again(intake, partition, server))
            continue;
        if (!slots)
            slots = calloc(intake->partitions.count, sizeof *slots);
        if (!slots)
            return;              /* the next round tries again */
        partition_end(partition, PARTITION_HELD);
        slots[count++] = i;
    }
    if (count > 0)
        post_take_over(intake, database, slots, count);
    free(slots);
}

void assignment_round(struct intake *intake, bool now)
{
    take_answers(intake, false);
    start_deferred(intake);
    for (uint32_t i = 0; i < intake->init.config->database_count; i++)
        take_again(intake, i);
    proof_round(intake);
    if (!now && now_us(intake) - intake->progress_us < PROGRESS_EVERY_US)
        return;
    intake->progress_us = now_us(intake);
    for (uint32_t i = 0; i < intake->init.config->database_count; i++)
        post_progress(intake, i);
}

void assignment_drain(struct intake *intake, int64_t deadline_us)
{
    delivery_flush(intake);
    delivery_take_back(intake);
    /* What waits for a topic's schema does not end by waiting. */
    while (intake->inflight > atomic_load(&intake->init.shared->held) && now_us(intake) < deadline_us) {
        intake->init.wait(intake->init.context, WAIT_MS);
        delivery_take_back(intake);
    }
}

static bool anything_moved(const struct intake *intake)
{
    for (uint32_t i = 0; i < intake->partitions.count; i++)
        if (has_moved(&intake->partitions.slots[i]))
            return true;
    return false;
}

void assignment_settle(struct intake *intake, int64_t deadline_us)
{
    for (;;) {
        take_answers(intake, true);
        for (uint32_t i = 0; i < intake->init.config->database_count; i++)
            post_progress(intake, i);
        if ((intake->jobs_out == 0 && !anything_moved(intake)) || now_us(intake) >= deadline_us)
            return;
        intake->init.wait(intake->init.context, WAIT_MS);
    }
}

/* ---- handlers of the source ------------------------------------------------------------------------------------ */

static void fill_start(struct source_partition *partitions, uint32_t count,
                       const struct source_partition *started)
{
    for (uint32_t i = 0; i < count; i++)
        if (partitions[i].partition == started->partition &&
            bytes_equal(partitions[i].topic, started->topic))
            partitions[i].offset = started->offset;
}

/* Puts the starts that this assignment's take-overs gave into the list of the source. Returns how many. */
static uint32_t fill_starts(struct intake *intake, struct source_partition *partitions, uint32_t count)
{
    uint32_t filled = 0;
    for (struct keeper_job **at = &intake->deferred; *at;) {
        struct keeper_job *job = *at;
        if (job->number != intake->assignments || !job->done) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        struct source_partition *started = calloc(job->count, sizeof *started);
        uint32_t started_count = started ? take_over_done(intake, job, started) : 0;
        for (uint32_t i = 0; i < started_count; i++)
            fill_start(partitions, count, &started[i]);
        filled += started_count;
        free(started);
        keeper_job_free(job);
    }
    return filled;
}

static uint32_t hold_all(struct intake *intake, struct source_partition *partitions, uint32_t count,
                         uint32_t *slots)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct topic *topic = topic_of(intake, partitions[i].topic);
        uint32_t slot = topic ? partitions_slot(&intake->partitions, topic, partitions[i].partition)
                              : UINT32_MAX;
        if (slot != UINT32_MAX) {
            struct partition *partition = &intake->partitions.slots[slot];
            partition_end(partition, PARTITION_HELD);
            partition->begun = false;
            partition->committed = partitions[i].offset;
            slots[held++] = slot;
        }
        partitions[i].offset = SOURCE_OFFSET_NONE;
    }
    return held;
}

static void assigned(void *context, struct source_partition *partitions, uint32_t count)
{
    struct intake *intake = context;
    uint32_t *slots = calloc(count ? count : 1, sizeof *slots);
    if (!slots)
        return;
    uint32_t left = hold_all(intake, partitions, count, slots);
    intake->assignments++;
    for (uint32_t i = 0; i < intake->init.config->database_count && left > 0; i++)
        post_take_over(intake, i, slots, left);
    free(slots);
    int64_t deadline = now_us(intake) + (int64_t)intake->init.assign_wait_ms * 1000;
    while (left > 0 && now_us(intake) < deadline) {
        intake->init.wait(intake->init.context, WAIT_MS);
        delivery_take_back(intake);
        take_answers(intake, false);
        left -= fill_starts(intake, partitions, count);
    }                                /* those left are held back; assignment_round() starts them */
}

static void give_up(struct intake *intake, const struct source_partition *partitions, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct topic *topic = topic_of(intake, partitions[i].topic);
        uint32_t slot = topic ? partitions_find(&intake->partitions, topic, partitions[i].partition)
                              : UINT32_MAX;
        if (slot == UINT32_MAX)
            continue;
        struct partition *partition = &intake->partitions.slots[slot];
        say(intake, EVENT_REVOKE, partition, partition->offsets.next, LEVEL_INFO, NULL);
        partition_end(partition, PARTITION_GONE);
    }
}

static void revoked(void *context, const struct source_partition *partitions, uint32_t count, bool lost)
{
    struct intake *intake = context;
    for (uint32_t i = 0; i < intake->init.config->database_count; i++)
        keeper_cancel_take_overs(&intake->init.keepers[i]);
    intake->joined = intake->joined && !lost;    /* out of the group, until the next assignment */
    if (!lost) {
        /* Stopping: intake_stop() has drained already, as long as there was time. */
        int64_t deadline = now_us(intake) + (intake->stopping ? 0 : REVOKE_WAIT_US);
        assignment_drain(intake, deadline);
        assignment_settle(intake, deadline);
    }
    give_up(intake, partitions, count);
}

static void joined(void *context)
{
    struct intake *intake = context;
    intake->joined = true;
}

static void stopped(void *context, const struct source_partition *gone, const char *why)
{
    struct intake *intake = context;
    const struct topic *topic = topic_of(intake, gone->topic);
    uint32_t slot = topic ? partitions_find(&intake->partitions, topic, gone->partition) : UINT32_MAX;
    if (slot == UINT32_MAX)
        return;
    if (proof_is_gone(&intake->partitions.slots[slot]))
        return;
    say(intake, EVENT_PAUSED, &intake->partitions.slots[slot], gone->offset, LEVEL_ERR, why);
    stand_still(&intake->partitions.slots[slot], halt_why_parse(why));
}

struct source_events intake_events(struct intake *intake)
{
    return (struct source_events){.context = intake, .assigned = assigned, .revoked = revoked,
                                  .joined = joined, .stopped = stopped};
}
