/* SPDX-License-Identifier: MIT */
/* fake_parked: idem_parked of the simulated database: the park part of the store port and the ledger's look at it. */
#include "world.h"

static int64_t now_us(void)
{
    return world.now_us;
}

static struct db_parked *row_of(uint64_t id)
{
    for (uint32_t i = 0; i < world.db.parked_count; i++)
        if (world.db.parked[i].id == id)
            return &world.db.parked[i];
    return NULL;
}

static enum err_class read_rows(void *self, struct item *const *items, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct parked_row *own = &items[i]->parked;
        const struct db_parked *row = row_of(own->id);
        own->found = row != NULL;
        if (!row)
            continue;
        own->reason = row->reason;
        own->attempts = row->attempts;
        own->clock_runs = row->give_up_us != INT64_MAX;
        own->over = row->give_up_us <= now_us();
    }
    return fake_fault(self, err);
}

static enum err_class queue(void *self, struct item *const *items, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = items[i];
        item->queue = (struct parked_queue){0};
        for (uint32_t k = 0; k < world.db.parked_count && world.breakage != BREAK_OVERTAKE; k++) {
            const struct db_parked *row = &world.db.parked[k];
            if (!bytes_equal(bytes_text(row->biz_type), item->eval.rule->biz_type))
                continue;
            item->queue.same_key = item->queue.same_key || bytes_equal(bytes_text(row->key), item->eval.key);
            if (row->partition == item->partition && bytes_equal(bytes_text(row->biz_no), item->eval.biz_no) &&
                (item->queue.head == 0 || row->id < item->queue.head))
                item->queue.head = row->id;
        }
    }
    return fake_fault(self, err);
}

static int64_t after(uint64_t ms)
{
    return ms == PARK_UNTIL_WOKEN ? INT64_MAX : now_us() + (int64_t)ms * 1000;
}

static void schedule(struct db_parked *row, const struct park_step *step)
{
    row->reason = step->reason;
    row->attempts = step->attempts;
    if (step->clock == PARK_CLOCK_STOPPED)
        row->give_up_us = INT64_MAX;
    else if (step->clock == PARK_CLOCK_STARTED)
        row->give_up_us = after(step->for_ms);
    else if (step->clock == PARK_CLOCK_SHIFTED)
        row->give_up_us += (int64_t)step->delay_ms * 1000;
    row->next_us = after(step->delay_ms);
    if (step->until_give_up && row->next_us > row->give_up_us)
        row->next_us = row->give_up_us > now_us() ? row->give_up_us : now_us();
}

static enum err_class insert(void *self, struct item *const *items, const struct park_step *steps, uint32_t count,
                             struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct item *item = items[i];
        for (uint32_t k = 0; k < world.db.parked_count; k++)
            if (bytes_equal(bytes_text(world.db.parked[k].key), item->eval.key) &&
                bytes_equal(bytes_text(world.db.parked[k].biz_type), item->eval.rule->biz_type))
                return err_set(err, ERR_RETRY, 1062, "sim", "one key is parked twice");
        if (world.db.parked_count == PARKED_MAX)
            world_fail("too many rows");
        struct db_parked *row = &world.db.parked[world.db.parked_count++];
        *row = (struct db_parked){.id = ++world.db.parked_next, .partition = item->record.partition,
                                  .offset = item->record.offset};
        fake_copy(row->rule, TEXT, item->eval.rule->name);
        fake_copy(row->biz_type, TEXT, item->eval.rule->biz_type);
        fake_copy(row->biz_no, TEXT, item->eval.biz_no);
        fake_copy(row->key, TEXT, item->eval.key);
        schedule(row, &steps[i]);
    }
    return fake_fault(self, err);
}

static enum err_class keep(void *self, const struct item *item, const struct park_step *step, struct err *err)
{
    schedule(row_of(item->parked.id), step);
    return fake_fault(self, err);
}

static enum err_class leave(void *self, struct item *const *items, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct db_parked *row = row_of(items[i]->parked.id);
        *row = world.db.parked[--world.db.parked_count];
        for (uint32_t k = 0; k < world.db.parked_count; k++) {
            struct db_parked *behind = &world.db.parked[k];
            if (behind->partition == items[i]->partition &&
                bytes_equal(bytes_text(behind->biz_type), items[i]->parked.biz_type) &&
                bytes_equal(bytes_text(behind->biz_no), items[i]->parked.biz_no))
                behind->next_us = now_us();
        }
    }
    return fake_fault(self, err);
}

const struct store_park_ops fake_park_table = {read_rows, queue, insert, keep, leave};

/* ---- ledger ------------------------------------------------------------------------------------------------------ */

static bool give(const struct db_parked *row, bool (*take)(void *context, const struct ledger_parked *row),
                     void *context)
{
    uint8_t headers[FAKE_HEADERS_MAX];
    const struct sent *sent = world_sent(row->partition, row->offset);
    struct ledger_parked given = {
        .record = {.source = SOURCE_KAFKA, .topic = bytes_text(world_topic(row->partition)),
                   .partition = row->partition, .offset = row->offset, .timestamp_ms = -1, .has_value = true,
                   .value = bytes_text(sent->body)},
        .row = {.id = row->id, .rule = bytes_text(row->rule), .biz_type = bytes_text(row->biz_type),
                .biz_no = bytes_text(row->biz_no), .key = bytes_text(row->key)}};
    given.record.headers = fake_headers(sent, headers);
    return take(context, &given);
}

/* Rows of a partition that are due, in the order of next_us, then id. */
static const struct db_parked *next_due(struct ledger_partition *partitions, uint32_t count,
                                        const struct db_parked *last)
{
    const struct db_parked *best = NULL;
    for (uint32_t i = 0; i < world.db.parked_count; i++) {
        const struct db_parked *row = &world.db.parked[i];
        bool mine = false;
        for (uint32_t k = 0; k < count; k++)
            mine = mine || partitions[k].partition == row->partition;
        bool given = last && (row->next_us < last->next_us || (row->next_us == last->next_us && row->id <= last->id));
        if (!mine || given || row->next_us > now_us())
            continue;
        if (!best || row->next_us < best->next_us || (row->next_us == best->next_us && row->id < best->id))
            best = row;
    }
    return best;
}

enum err_class fake_ledger_parked(void *self, struct ledger_partition *partitions, uint32_t count, uint32_t limit,
                                  bool (*take)(void *context, const struct ledger_parked *row), void *context,
                                  struct err *err)
{
    struct fake_ledger *ledger = self;
    world_may_crash();
    if (ledger->server != world.server || (world.faults && world_chance(20)))
        return err_set(err, ERR_RECONNECT, 2013, "sim", "lost connection");
    for (uint32_t i = 0; i < count; i++) {
        partitions[i].parked = 0;
        for (uint32_t k = 0; k < world.db.parked_count; k++)
            partitions[i].parked += world.db.parked[k].partition == partitions[i].partition;
    }
    const struct db_parked *row = NULL;
    for (uint32_t given = 0; given < limit && (row = next_due(partitions, count, row)); given++)
        if (!give(row, take, context))
            break;
    return ERR_NONE;
}
