/* SPDX-License-Identifier: MIT */
/* test_fake_source: the source's contract on the simulator's member of a group. The group settles at the next poll
 * after somebody came or went: all give up what they have, then each gets its share, as the eager protocol does. */
#include "source_cases.h"

#include "../sim/world.h"

#include <stdio.h>

static struct fake_source sources[SOURCE_MEMBERS];
static bool present[SOURCE_MEMBERS], unsettled;

static void reset(void *context)
{
    (void)context;
    memset(&world, 0, sizeof world);
    for (int i = 0; i < PARTITIONS; i++) {
        world.logs[i].committed = world.logs[i].owner = -1;
        world.logs[i].progress_ever = INT64_MAX;       /* what the ledger knows is not this port's */
    }
    memset(present, 0, sizeof present);
    unsettled = false;
}

static void produce(void *context, int32_t partition, uint32_t count)
{
    struct log *log = &world.logs[partition];
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        struct sent *sent = &log->records[log->count];
        *sent = (struct sent){.offset = log->count++, .has_value = true, .reported = true, .ever = true};
        snprintf(sent->body, sizeof sent->body, "%lld", (long long)sent->offset);
    }
}

static const struct source_port *join(void *context, int slot, const struct source_events *events)
{
    (void)context;
    fake_source_init(&sources[slot], slot);
    sources[slot].events = *events;
    present[slot] = unsettled = true;
    return &sources[slot].port;
}

static bool has_any(const struct fake_source *source)
{
    return source->assigned[0] || source->assigned[1];
}

static void settle(void)
{
    int members = 0, turn = 0;
    unsettled = false;
    for (int i = 0; i < SOURCE_MEMBERS; i++) {
        members += present[i];
        if (present[i] && has_any(&sources[i]))
            fake_source_revoke(&sources[i], false);
    }
    for (int i = 0; i < SOURCE_MEMBERS; i++) {
        bool mine[PARTITIONS] = {false};
        for (int k = 0; k < SOURCE_PARTITIONS; k++)
            mine[k] = present[i] && k % members == turn;
        if (present[i])
            fake_source_assign(&sources[i], mine);
        turn += present[i];
    }
}

static enum source_polled poll(void *context, int slot, struct record *ret_record)
{
    struct err err;
    (void)context;
    if (unsettled)
        settle();
    return sources[slot].port.ops->poll(sources[slot].port.self, 0, ret_record, &err);
}

static void leave(void *context, int slot)
{
    (void)context;
    unsettled = unsettled || present[slot];
    present[slot] = false;
}

static int64_t committed(void *context, int32_t partition)
{
    (void)context;
    return world.logs[partition].committed;
}

static void refuse_commit(void *context)
{
    (void)context;
    world.refuse_commit = true;
}

static struct bytes topic(void *context)
{
    (void)context;
    return bytes_text(world_topic(0));
}

int main(void)
{
    static const struct source_hooks hooks = {
        .reset = reset, .produce = produce, .join = join, .poll = poll, .leave = leave, .committed = committed,
        .refuse_commit = refuse_commit, .topic = topic};
    return source_cases_run("fake source", &hooks) != 0;
}
