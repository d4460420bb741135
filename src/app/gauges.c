/* SPDX-License-Identifier: MIT */
/* gauges: see idem/app/gauges.h. */
#include "idem/app/gauges.h"

#include <stdlib.h>

bool gauges_init(struct gauges *gauges, const struct config *config)
{
    *gauges = (struct gauges){.config = config};
    gauges->inflight = calloc(config->topic_count + 1, sizeof *gauges->inflight);
    return gauges->inflight && pthread_mutex_init(&gauges->lock, NULL) == 0;
}

void gauges_finish(struct gauges *gauges)
{
    if (!gauges->inflight)
        return;
    pthread_mutex_destroy(&gauges->lock);
    free(gauges->list);
    free(gauges->inflight);
    *gauges = (struct gauges){0};
}

/* Where a partition stands that has not begun: its offset in Kafka, until the database has its say. */
static int64_t commit_point(const struct partition *partition)
{
    int64_t next = partition->state == PARTITION_HELD ? partition->committed : offsets_low(&partition->offsets);
    return next < 0 ? -1 : next;
}

static struct gauge measure(const struct partition *partition, const struct source_port *source, int64_t now_us)
{
    struct source_partition place = {partition->topic->name, partition->number, SOURCE_OFFSET_NONE};
    int64_t commit = commit_point(partition), end = source->ops->end(source->self, &place);
    return (struct gauge){
        .topic = partition->topic,
        .number = partition->number,
        .commit = commit < 0 ? 0 : commit,
        .lag = commit >= 0 && end > commit ? end - commit : 0,
        .oldest_ms = partition->state == PARTITION_RUNNING ? offsets_oldest_ms(&partition->offsets, now_us) : 0,
        .halts = partition_halts(partition),
    };
}

static bool make_room(struct gauges *gauges, uint32_t count)
{
    if (count <= gauges->size)
        return true;
    struct gauge *list = realloc(gauges->list, count * sizeof *list);
    if (!list)
        return false;
    gauges->list = list;
    gauges->size = count;
    return true;
}

void gauges_take(struct gauges *gauges, const struct intake *intake)
{
    const struct partitions *partitions = &intake->partitions;
    int64_t now_us = intake->init.env->mono_us(intake->init.env->self);
    if (pthread_mutex_trylock(&gauges->lock) != 0)
        return;
    gauges->count = 0;
    memset(gauges->inflight, 0, gauges->config->topic_count * sizeof *gauges->inflight);
    bool room = make_room(gauges, partitions->count);
    for (uint32_t i = 0; i < partitions->count && room; i++) {
        const struct partition *partition = &partitions->slots[i];
        gauges->inflight[partition->topic->index] += partition->inflight;
        if (partition->state != PARTITION_GONE)
            gauges->list[gauges->count++] = measure(partition, intake->init.source, now_us);
    }
    pthread_mutex_unlock(&gauges->lock);
}

void gauges_hold(struct gauges *gauges)
{
    pthread_mutex_lock(&gauges->lock);
}

void gauges_release(struct gauges *gauges)
{
    pthread_mutex_unlock(&gauges->lock);
}
