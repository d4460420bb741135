/* SPDX-License-Identifier: MIT */
/* fake_ledger: the ledger port over the simulated database. Every call is one transaction. tests/contract holds it
 * against the real adapter. */
#include "world.h"

static enum err_class ledger_open(void *self, struct err *err)
{
    struct fake_ledger *ledger = self;
    if (world.outage)
        return err_set(err, ERR_RECONNECT, 2002, "sim", "nobody answers");
    if (!ledger->open)
        ledger->server = world.server;
    ledger->open = true;
    return ERR_NONE;
}

static uint64_t ledger_server(void *self)
{
    (void)self;
    return world_server();
}

static void ledger_close(void *self)
{
    struct fake_ledger *ledger = self;
    ledger->open = false;
}

/* What may go wrong with any call: then nothing of it happened. */
static enum err_class fault(struct fake_ledger *ledger, enum err_class class, int number, struct err *err)
{
    world_may_crash();
    if (world.outage || !ledger->open || ledger->server != world.server) {
        ledger->open = false;
        return err_set(err, ERR_RECONNECT, 2013, "sim", "lost connection");
    }
    if (world.faults && world_chance(20))
        return err_set(err, class, number, "sim", "not now");
    return ERR_NONE;
}

static enum err_class take_over(void *self, struct ledger_partition *partitions, uint32_t count, struct err *err)
{
    enum err_class class = fault(self, ERR_RETRY, 1213, err);
    for (uint32_t i = 0; i < count && class == ERR_NONE; i++) {
        int32_t number = partitions[i].partition;
        if (!world_has(partitions[i].topic, number))
            world_fail("a partition that there is not: %d", number);
        if (world.db.generation[number] < partitions[i].generation)
            world.db.generation[number] = partitions[i].generation;
        partitions[i].generation = ++world.db.generation[number];
        partitions[i].server = world_server();
        partitions[i].next_offset = world.db.progress[number];
        partitions[i].last_offset = world.db.last_offset[number];
        memcpy(partitions[i].last_hash, world.db.last_hash[number], OFFSET_HASH_LEN);
    }
    return class;
}

static void check_passed(int32_t partition, int64_t offset, const char *what)
{
    const struct log *log = &world.logs[partition];
    for (uint32_t i = 0; i < log->count; i++)
        if (log->records[i].offset < offset && !log->records[i].reported)
            world_fail("%s of partition %d passed unfinished offset %lld", what, partition,
                       (long long)log->records[i].offset);
}

static enum err_class progress(void *self, struct ledger_partition *partitions, uint32_t count, struct err *err)
{
    enum err_class class = fault(self, ERR_LOCKED, 1205, err);
    for (uint32_t i = 0; i < count && class == ERR_NONE; i++) {
        int32_t number = partitions[i].partition;
        partitions[i].current = world.breakage == BREAK_NO_FENCE ||
                                (world_has(partitions[i].topic, number) && world.db.generation[number] > 0 &&
                                 world.db.generation[number] == partitions[i].generation &&
                                 (partitions[i].server == world_server() || world.breakage == BREAK_PROGRESS_BLIND));
        if (!partitions[i].current)
            continue;
        check_passed(number, partitions[i].next_offset, "idem_progress");
        /* It may go back: a new owner starts at the lower of the two offsets and reports from there. */
        world.db.progress[number] = partitions[i].next_offset;
        if (world.logs[number].progress_ever < partitions[i].next_offset)
            world.logs[number].progress_ever = partitions[i].next_offset;
        world.db.last_offset[number] = partitions[i].last_offset;
        memset(world.db.last_hash[number], 0, OFFSET_HASH_LEN);
        if (partitions[i].last_offset >= 0)
            memcpy(world.db.last_hash[number], partitions[i].last_hash, OFFSET_HASH_LEN);
    }
    return class;
}

static enum err_class ping(void *self, struct err *err)
{
    return fault(self, ERR_RECONNECT, 2013, err);
}

static enum err_class count_rows(void *self, enum ledger_list list, uint64_t *after, uint32_t limit,
                                 void (*each)(void *context, const struct ledger_kind *kind), void *context,
                                 bool *ret_end, struct err *err)
{
    uint64_t size = list == LEDGER_LETTERS ? world.db.letter_count : world.db.parked_count;
    (void)self, (void)err;
    for (uint32_t i = 0; i < limit && *after < size;) {
        uint64_t at = (*after)++;
        if (list == LEDGER_LETTERS && world.db.letters[at].state != LETTER_OPEN)
            continue;
        i++;
        struct ledger_kind kind = {.topic = BYTES_LIT("t"), .count = 1};
        kind.word = bytes_text(list == LEDGER_LETTERS ? outcome_name(world.db.letters[at].outcome)
                                                      : cause_name(world.db.parked[at].reason));
        each(context, &kind);
    }
    *ret_end = *after == size;
    return ERR_NONE;
}

void fake_ledger_init(struct fake_ledger *ledger)
{
    static const struct ledger_ops ops = {ledger_open, ledger_close, ledger_server, take_over, progress,
                                          fake_ledger_parked, ping, count_rows};
    memset(ledger, 0, sizeof *ledger);
    ledger->port = (struct ledger_port){ledger, &ops};
}
