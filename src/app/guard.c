/* SPDX-License-Identifier: MIT */
/* guard: see guard.h. A flood lasts until the process starts anew: only somebody who has looked can know that the rules
 * are right. A full park ends by itself when records leave it. */
#include "guard.h"

static int64_t now_s(const struct intake *intake)
{
    return intake->init.env->mono_us(intake->init.env->self) / 1000000;
}

void guard_note(struct intake *intake, const struct item *item)
{
    /* A redrive is somebody's own doing. */
    if (item->record.source != SOURCE_REDRIVE)
        flood_note(&intake->guards[item->topic->index].flood, now_s(intake), outcome_row(item->outcome)->dead_letter);
}

static void say(struct intake *intake, enum report_event event, const char *why, const struct topic *topic,
                int64_t partition, int64_t count)
{
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.level = event == EVENT_RESUMED ? LEVEL_INFO : LEVEL_ERR;
    fields.why = why;
    fields.topic = topic->name;
    fields.partition = partition;
    fields.count = count;
    intake->init.report->event(intake->init.report->self, event, &fields);
}

static void look_for_floods(struct intake *intake)
{
    const struct config *config = intake->init.config;
    for (uint32_t i = 0; i < config->topic_count; i++) {
        struct topic_guard *guard = &intake->guards[i];
        if (guard->flooded || !flood_is_over(&guard->flood, now_s(intake), config->limits.letter_ppm))
            continue;
        guard->flooded = true;
        atomic_fetch_add(&intake->init.shared->floods, 1);
        say(intake, EVENT_DEAD_LETTER_FLOOD, NULL, &config->topics[i], -1, (int64_t)guard->flood.letters);
        say(intake, EVENT_PAUSED, "flood", &config->topics[i], -1, (int64_t)guard->flood.letters);
    }
}

/* Full is told once, and its end when a tenth is free again. */
static void look_at_park(struct intake *intake, struct partition *partition)
{
    uint64_t most = intake->init.config->limits.parked_max;
    bool was = partition->pauses & PAUSE_FULL;
    bool is = partition->state == PARTITION_RUNNING &&
              (partition->parked >= most || (was && partition->parked > most - most / 10));
    partition_pause(partition, PAUSE_FULL, is);
    if (is == was)
        return;
    atomic_fetch_add(&intake->init.shared->full, is ? 1 : -1);
    if (partition->state == PARTITION_RUNNING)
        say(intake, is ? EVENT_PAUSED : EVENT_RESUMED, "full", partition->topic, partition->number,
            (int64_t)partition->parked);
}

void guard_round(struct intake *intake)
{
    look_for_floods(intake);
    for (uint32_t i = 0; i < intake->partitions.count; i++) {
        struct partition *partition = &intake->partitions.slots[i];
        partition_pause(partition, PAUSE_FLOOD, intake->guards[partition->topic->index].flooded);
        look_at_park(intake, partition);
    }
}
