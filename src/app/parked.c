/* SPDX-License-Identifier: MIT */
/* parked: see parked.h. Only rows of partitions that run here are asked for: nobody else may retry them. The order of a
 * number is kept by its worker, which looks at the table again before it judges. */
#include "parked.h"

#include "delivery.h"

#include "idem/core/batch.h"

enum {
    ASK_EVERY_US = 1000000,          /* redrives and retries by hand are found so fast */
    ROWS_AT_ONCE = 200,
    BYTES_AT_ONCE = 8 << 20          /* of payloads; one row is always taken */
};

static bool is_watched(const struct intake *intake, const struct partition *partition, uint32_t database)
{
    return partition->state == PARTITION_RUNNING && partition->topic->database == database &&
           atomic_load(&intake->init.shared->topic_down[partition->topic->index]) == 0;
}

static void ask(struct intake *intake, uint32_t database)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < intake->partitions.count; i++)
        count += is_watched(intake, &intake->partitions.slots[i], database);
    struct keeper_job *job = count ? keeper_job_create(KEEPER_PARKED, count) : NULL;
    if (!job)
        return;
    job->count = 0;
    job->limit = ROWS_AT_ONCE;
    job->byte_limit = BYTES_AT_ONCE;
    for (uint32_t i = 0; i < intake->partitions.count; i++) {
        const struct partition *partition = &intake->partitions.slots[i];
        if (!is_watched(intake, partition, database))
            continue;
        job->partitions[job->count] = (struct ledger_partition){
            .topic = partition->topic->name, .partition = partition->number, .generation = partition->generation,
            .mark = atomic_load(&partition->gate->raised)};
        job->slots[job->count] = i;
        job->epochs[job->count++] = partition->epoch;
    }
    intake->watches[database].asked = true;
    keeper_post(&intake->init.keepers[database], job);
}

/* While records of the last answer are on their way, the table would only give them again. */
void parked_round(struct intake *intake)
{
    int64_t now = intake->init.env->mono_us(intake->init.env->self);
    for (uint32_t i = 0; i < intake->init.config->database_count; i++) {
        struct parked_watch *watch = &intake->watches[i];
        if (watch->asked || watch->out > 0 || watch->due_us > now)
            continue;
        watch->due_us = now + ASK_EVERY_US;
        ask(intake, i);
    }
}

static void take_counts(struct intake *intake, const struct keeper_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct partition *partition = &intake->partitions.slots[job->slots[i]];
        const struct ledger_partition *counted = &job->partitions[i];
        if (partition->epoch != job->epochs[i])
            continue;
        partition->parked = counted->parked;
        if (counted->parked == 0)
            atomic_store(&partition->gate->lowered, counted->mark);
    }
}

/* Its slot if the partition is still the one that was asked for. */
static uint32_t slot_of(const struct intake *intake, const struct keeper_job *job, const struct record *record)
{
    for (uint32_t i = 0; i < job->count; i++)
        if (job->partitions[i].partition == record->partition &&
            bytes_equal(job->partitions[i].topic, record->topic) &&
            intake->partitions.slots[job->slots[i]].epoch == job->epochs[i])
            return job->slots[i];
    return UINT32_MAX;
}

void parked_answer(struct intake *intake, const struct keeper_job *job)
{
    uint32_t database = intake->partitions.slots[job->slots[0]].topic->database;
    struct parked_watch *watch = &intake->watches[database];
    watch->asked = false;
    if (!job->done || intake->stopping)
        return;
    take_counts(intake, job);
    for (const struct keeper_parked *parked = job->parked; parked; parked = parked->next) {
        uint32_t slot = slot_of(intake, job, &parked->row.record);
        if (slot == UINT32_MAX)
            continue;
        if (!delivery_take_parked(intake, slot, &parked->row))
            return;                  /* no memory now: it is due the next time too */
        watch->out++;
    }
}
