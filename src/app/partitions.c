/* SPDX-License-Identifier: MIT */
/* partitions: see idem/app/partitions.h. */
#include "idem/app/partitions.h"

#include <stdlib.h>

enum {
    RING_FIRST = 1024,           /* places; doubled when that many are between poll and commit */
    PAUSE_AT_ONCE = 64           /* partitions in one call to the source */
};

static const char *const halt_names[HALT_WHY_COUNT] = {
    [HALT_CONFIG] = "config",           [HALT_UNREACHABLE] = "unreachable", [HALT_FLOOD] = "flood",
    [HALT_FULL] = "full",               [HALT_OPERATOR] = "operator",       [HALT_OFFSET_GONE] = "offset_gone",
    [HALT_RECREATED] = "recreated",     [HALT_FAULT] = "fault",
};

const char *halt_why_name(enum halt_why why)
{
    return halt_names[why];
}

enum halt_why halt_why_parse(const char *name)
{
    uint32_t at = 0;
    while (at < HALT_FAULT && strcmp(halt_names[at], name) != 0)
        at++;
    return (enum halt_why)at;
}

void partitions_init(struct partitions *partitions)
{
    *partitions = (struct partitions){0};
}

void partitions_finish(struct partitions *partitions)
{
    for (uint32_t i = 0; i < partitions->count; i++) {
        free(partitions->slots[i].ring);
        free(partitions->slots[i].gate);
    }
    free(partitions->slots);
    *partitions = (struct partitions){0};
}

uint32_t partitions_find(const struct partitions *partitions, const struct topic *topic, int32_t number)
{
    for (uint32_t i = 0; i < partitions->count; i++)
        if (partitions->slots[i].number == number && partitions->slots[i].topic == topic)
            return i;
    return UINT32_MAX;
}

uint32_t partitions_slot(struct partitions *partitions, const struct topic *topic, int32_t number)
{
    uint32_t found = partitions_find(partitions, topic, number);
    if (found != UINT32_MAX)
        return found;
    if (partitions->count == partitions->size) {
        uint32_t size = partitions->size ? partitions->size * 2 : 16;
        struct partition *slots = realloc(partitions->slots, size * sizeof *slots);
        if (!slots)
            return UINT32_MAX;
        partitions->slots = slots;
        partitions->size = size;
    }
    struct park_gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return UINT32_MAX;
    partitions->slots[partitions->count] = (struct partition){
        .topic = topic, .number = number, .state = PARTITION_GONE, .committed = -1, .posted = -1, .gate = gate};
    return partitions->count++;
}

bool partition_start(struct partition *partition, uint64_t generation, int64_t start)
{
    if (!partition->ring) {
        partition->ring = calloc(RING_FIRST, sizeof *partition->ring);
        if (!partition->ring)
            return false;
        partition->places = RING_FIRST;
    }
    partition->epoch++;
    partition->state = PARTITION_RUNNING;
    partition->generation = generation;
    partition->inflight = 0;
    partition->is_paused = false;        /* the source fetches what it starts */
    partition->posted = start;
    partition->posting = false;
    partition->fenced_us = 0;
    partition->parked = 0;
    partition->proof = (struct proof){0};
    park_gate_raise(partition->gate);        /* a former owner may have left some */
    offsets_init(&partition->offsets, partition->ring, partition->places, start);
    return true;
}

void partition_fenced(struct partition *partition, int64_t now_us)
{
    if (partition->fenced_us == 0)
        partition->fenced_us = now_us;
}

void partition_end(struct partition *partition, enum partition_state state)
{
    partition->epoch++;
    partition->state = state;
    partition->inflight = 0;
    partition->posting = false;
}

void partition_pause(struct partition *partition, enum pause_why why, bool paused)
{
    if (paused)
        partition->pauses |= (uint32_t)why;
    else
        partition->pauses &= ~(uint32_t)why;
}

/* Tells the source about at most PAUSE_AT_ONCE of those that are to be paused (or fetched again) and are not yet. */
static bool tell_some(struct partitions *partitions, const struct source_port *source, bool paused, uint32_t *ret_told)
{
    struct source_partition list[PAUSE_AT_ONCE];
    struct partition *told[PAUSE_AT_ONCE];
    struct err err;
    uint32_t count = 0;
    for (uint32_t i = 0; i < partitions->count && count < PAUSE_AT_ONCE; i++) {
        struct partition *partition = &partitions->slots[i];
        if (partition->state != PARTITION_RUNNING || (partition->pauses != 0) != paused ||
            partition->is_paused == paused)
            continue;
        told[count] = partition;
        list[count++] = (struct source_partition){partition->topic->name, partition->number, SOURCE_OFFSET_NONE};
    }
    *ret_told = count;
    if (count > 0 && source->ops->pause(source->self, list, count, paused, &err) != ERR_NONE)
        return false;
    for (uint32_t i = 0; i < count; i++)
        told[i]->is_paused = paused;
    return true;
}

bool partitions_pause(struct partitions *partitions, const struct source_port *source)
{
    for (int paused = 0; paused < 2; paused++)
        for (uint32_t told = PAUSE_AT_ONCE; told == PAUSE_AT_ONCE;)
            if (!tell_some(partitions, source, paused, &told))
                return false;
    return true;
}

bool partition_deliver(struct partition *partition, int64_t offset, const uint8_t hash[OFFSET_HASH_LEN],
                       int64_t now_us)
{
    if (offsets_deliver(&partition->offsets, offset, hash, now_us))
        return true;
    uint32_t places = partition->places * 2;
    struct offset_slot *ring = calloc(places, sizeof *ring);
    if (!ring)
        return false;
    offsets_grow(&partition->offsets, ring, places);
    free(partition->ring);
    partition->ring = ring;
    partition->places = places;
    return offsets_deliver(&partition->offsets, offset, hash, now_us);
}

/* PAUSE_LIMITS is no alarm: it passes with the load. */
uint32_t partition_halts(const struct partition *partition)
{
    static const struct {
        enum pause_why pause;
        enum halt_why halt;
    } alarms[] = {{PAUSE_CONFIG, HALT_CONFIG}, {PAUSE_FLOOD, HALT_FLOOD}, {PAUSE_FULL, HALT_FULL}};
    uint32_t halts = partition->state == PARTITION_STOPPED ? 1u << partition->halt : 0;
    for (size_t i = 0; i < sizeof alarms / sizeof *alarms; i++)
        if (partition->pauses & alarms[i].pause)
            halts |= 1u << alarms[i].halt;
    return halts;
}
