/* SPDX-License-Identifier: MIT */
/* fake_source: a member of the simulated group. Commits count only from the owner, as Kafka's coordinator does; a
 * member that was left behind is told by an error. */
#include "world.h"

static enum err_class commit(void *self, const struct source_partition *partitions, uint32_t count, bool wait,
                             uint32_t timeout_ms, struct err *err);
static void commit_again(struct fake_source *source);

struct bytes fake_headers(const struct sent *sent, uint8_t headers[FAKE_HEADERS_MAX])
{
    struct buf buf;
    uint8_t len = (uint8_t)strlen(sent->key_header);
    if (len == 0)
        return (struct bytes){0};
    buf_init(&buf, headers, FAKE_HEADERS_MAX);
    buf_put(&buf, "\0\0\0\1\0\0\0\17Idempotency-Key\0\0\0", 4 + 4 + 15 + 3);
    buf_put(&buf, &len, 1);
    buf_text(&buf, sent->key_header);
    return buf_view(&buf);
}

static enum source_polled give(struct fake_source *source, int partition, struct record *ret)
{
    static uint8_t headers[FAKE_HEADERS_MAX];
    struct log *log = &world.logs[partition];
    for (uint32_t i = 0; i < log->count; i++) {
        const struct sent *sent = &log->records[i];
        if (sent->offset < source->next[partition])
            continue;
        source->next[partition] = sent->offset + 1;
        if (world.breakage == BREAK_OFFSET_EARLY) {      /* what many consumers do: told before it was done */
            struct source_partition early = {bytes_text(world_topic(partition)), partition, sent->offset + 1};
            commit(source, &early, 1, false, 0, NULL);
        }
        *ret = (struct record){.topic = bytes_text(world_topic(partition)), .partition = partition,
                               .offset = sent->offset, .timestamp_ms = -1, .has_value = sent->has_value,
                               .value = bytes_text(sent->has_value ? sent->body : "")};
        ret->headers = fake_headers(sent, headers);
        return SOURCE_RECORD;
    }
    return SOURCE_NOTHING;
}

static enum source_polled poll(void *self, uint32_t timeout_ms, struct record *ret_record, struct err *err)
{
    struct fake_source *source = self;
    (void)timeout_ms, (void)err;
    commit_again(source);
    for (int i = 0; i < PARTITIONS; i++) {
        source->turn = (source->turn + 1) % PARTITIONS;
        if (source->started[source->turn] && !source->paused[source->turn] &&
            give(source, source->turn, ret_record) == SOURCE_RECORD)
            return SOURCE_RECORD;
    }
    return SOURCE_NOTHING;
}

static void set_start(struct fake_source *source, const struct source_partition *partition)
{
    source->started[partition->partition] = partition->offset != SOURCE_OFFSET_NONE;
    source->paused[partition->partition] = false;
    source->next[partition->partition] = partition->offset < 0 ? 0 : partition->offset;
}

static enum err_class start(void *self, const struct source_partition *partitions, uint32_t count, struct err *err)
{
    struct fake_source *source = self;
    (void)err;
    for (uint32_t i = 0; i < count; i++)
        if (source->assigned[partitions[i].partition])
            set_start(source, &partitions[i]);
    return ERR_NONE;
}

static enum err_class pause_some(void *self, const struct source_partition *partitions, uint32_t count, bool paused,
                                 struct err *err)
{
    struct fake_source *source = self;
    if (world.faults && world_chance(30))
        return err_set(err, ERR_RECONNECT, 0, "sim", "not now");
    for (uint32_t i = 0; i < count; i++)
        if (source->started[partitions[i].partition])
            source->paused[partitions[i].partition] = paused;
    return ERR_NONE;
}

/* What the coordinator does with a commit that it does not refuse. */
static void store_offset(int partition, int64_t offset)
{
    struct log *log = &world.logs[partition];
    for (uint32_t i = 0; i < log->count; i++)
        if (log->records[i].offset < offset && !log->records[i].ever)
            world_fail("the committed offset of partition %d passed unfinished offset %lld", partition,
                       (long long)log->records[i].offset);
    if (offset > log->progress_ever && world.breakage == BREAK_NOTHING)
        world_fail("Kafka's offset of partition %d is ahead of idem_progress", partition);
    if (offset < log->committed)
        world_fail("the committed offset of partition %d went back", partition);
    log->committed = offset;
}

static enum err_class commit(void *self, const struct source_partition *partitions, uint32_t count, bool wait,
                             uint32_t timeout_ms, struct err *err)
{
    struct fake_source *source = self;
    (void)timeout_ms;
    world_may_crash();
    bool refused = world.refuse_commit || (world.faults && world_chance(30));
    world.refuse_commit = false;
    if (refused && wait)
        return err_set(err, ERR_RECONNECT, 0, "sim", "coordinator moved");
    for (uint32_t i = 0; i < count; i++) {
        int partition = partitions[i].partition;
        if (world.logs[partition].owner != source->instance)
            continue;            /* refused: another generation of the group */
        if (partitions[i].offset < source->committed[partition] + !wait)
            continue;            /* within one assignment a lower one is left out */
        source->committed[partition] = partitions[i].offset;
        source->refused[partition] = refused;
        if (!refused)
            store_offset(partition, partitions[i].offset);
    }
    return ERR_NONE;
}

static void commit_again(struct fake_source *source)
{
    for (int i = 0; i < PARTITIONS; i++) {
        if (source->refused[i] && world.logs[i].owner == source->instance)
            store_offset(i, source->committed[i]);
        source->refused[i] = false;
    }
}

static enum err_class range(void *self, const struct source_partition *partition, int64_t *ret_low, int64_t *ret_high,
                            struct err *err)
{
    const struct log *log = &world.logs[partition->partition];
    (void)self, (void)err;
    *ret_low = 0;
    *ret_high = log->count > 0 ? log->records[log->count - 1].offset + 1 : 0;
    return ERR_NONE;
}

static int64_t end(void *self, const struct source_partition *partition)
{
    (void)self;
    if (partition->partition >= PARTITIONS)
        return -1;
    const struct log *log = &world.logs[partition->partition];
    return log->count > 0 ? log->records[log->count - 1].offset + 1 : -1;
}

static enum err_class close_source(void *self, uint32_t timeout_ms, struct err *err)
{
    struct fake_source *source = self;
    (void)timeout_ms, (void)err;
    fake_source_revoke(source, false);
    return ERR_NONE;
}

void fake_source_init(struct fake_source *source, int instance)
{
    static const struct source_ops ops = {poll, start, pause_some, commit, range, end, close_source};
    memset(source, 0, sizeof *source);
    source->port = (struct source_port){source, &ops};
    source->instance = instance;
}

void fake_source_revoke(struct fake_source *source, bool lost)
{
    struct source_partition list[PARTITIONS];
    uint32_t count = 0;
    for (int i = 0; i < PARTITIONS; i++)
        if (source->assigned[i])
            list[count++] = (struct source_partition){bytes_text(world_topic(i)), i, SOURCE_OFFSET_NONE};
    source->events.revoked(source->events.context, list, count, lost);
    if (lost)
        memset(source->refused, 0, sizeof source->refused);
    commit_again(source);
    for (int i = 0; i < PARTITIONS; i++)
        source->assigned[i] = source->started[i] = false;
}

void fake_source_assign(struct fake_source *source, const bool *mine)
{
    struct source_partition list[PARTITIONS];
    uint32_t count = 0;
    for (int i = 0; i < PARTITIONS; i++)
        if (mine[i]) {
            world.logs[i].owner = source->instance;
            source->assigned[i] = true;
            source->committed[i] = -1;
            source->refused[i] = false;
            list[count++] = (struct source_partition){bytes_text(world_topic(i)), i, world.logs[i].committed};
        }
    source->events.joined(source->events.context);
    if (count > 0)
        source->events.assigned(source->events.context, list, count);
    for (uint32_t i = 0; i < count; i++)
        set_start(source, &list[i]);
}
