/* SPDX-License-Identifier: MIT */
/* port_parked: records that wait: who is at the head of a number, what a row says, when it is due again, and whom its
 * end wakes. See port_cases.h. */
#include "port_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SELF (world->store->self)
#define HOOK(name, ...) (world->hooks->name(world->hooks->context, __VA_ARGS__))

enum { TICKS_MAX = 20000, GIVEN_MAX = 8 };

static struct err err;

/* Rows that the ledger gave, in its order. */
static struct {
    uint32_t count, stop_after;
    uint64_t ids[GIVEN_MAX];
    int64_t offsets[GIVEN_MAX];
} given;

static const struct park_step soon = {
    .reason = CAUSE_NOT_FOUND, .delay_ms = 1, .clock = PARK_CLOCK_STARTED, .for_ms = 3600000};
static const struct park_step behind = {
    .reason = CAUSE_BEHIND, .delay_ms = PARK_UNTIL_WOKEN, .clock = PARK_CLOCK_STOPPED};

/* A record of that number with a key of its own. */
static struct item *record_of(const char *order_no, struct bytes key, int64_t offset)
{
    struct item *item = port_item(order_no, "10.00", "t1", offset);
    item->eval.key = key;
    return item;
}

static void park(struct port_world *world, struct item *item, const struct park_step *step)
{
    assert_int_equal(world->store->park->insert(SELF, &item, step, 1, &err), ERR_NONE);
}

static uint64_t head_of(struct port_world *world, struct item *item)
{
    assert_int_equal(world->store->park->queue(SELF, &item, 1, &err), ERR_NONE);
    return item->queue.head;
}

static void read_row(struct port_world *world, struct item *item, uint64_t id)
{
    item->parked.id = id;
    assert_int_equal(world->store->park->read(SELF, &item, 1, &err), ERR_NONE);
}

static bool take(void *context, const struct ledger_parked *row)
{
    (void)context;
    assert_true(given.count < GIVEN_MAX);
    assert_true(bytes_equal(row->record.topic, BYTES_LIT(PORT_TOPIC)));
    given.ids[given.count] = row->row.id;
    given.offsets[given.count++] = row->record.offset;
    return given.count != given.stop_after;
}

/* Asks until so many are due; a moment passes in between. Returns how many rows there are in all. */
static uint64_t wait_due(struct port_world *world, uint32_t count, uint32_t limit)
{
    const struct ledger_port *ledger = world->ledgers[0];
    struct ledger_partition mine = {.topic = BYTES_LIT(PORT_TOPIC), .partition = 0};
    assert_int_equal(ledger->ops->open(ledger->self, &err), ERR_NONE);
    for (int i = 0; i < TICKS_MAX; i++) {
        given.count = 0;
        assert_int_equal(ledger->ops->parked(ledger->self, &mine, 1, limit, take, NULL, &err), ERR_NONE);
        if (given.count >= count)
            return mine.parked;
        world->hooks->tick(world->hooks->context);
    }
    fail_msg("%u rows of %u became due", given.count, count);
    return 0;
}

static void a_number_has_a_head(struct port_world *world)
{
    struct item *first = record_of("A-1", BYTES_LIT("k1"), 1), *second = record_of("A-1", BYTES_LIT("k2"), 2);
    struct item *third = record_of("A-1", BYTES_LIT("k3"), 3), *other = record_of("B-1", BYTES_LIT("k1"), 4);
    port_begin(world);
    assert_int_equal(head_of(world, first), 0);
    park(world, first, &soon);
    uint64_t head = head_of(world, third);
    assert_int_not_equal(head, 0);
    park(world, second, &behind);
    assert_int_equal(head_of(world, third), head);       /* the oldest stays it */
    assert_false(third->queue.same_key);
    assert_int_equal(head_of(world, second), head);
    assert_true(second->queue.same_key);
    assert_int_equal(head_of(world, other), 0);          /* another number waits for nobody */
    third->partition = 1;                                /* nor does another partition's */
    assert_int_equal(head_of(world, third), 0);
    world->store->tx->rollback(SELF);
    port_begin(world);
    assert_int_equal(head_of(world, first), 0);
    world->store->tx->rollback(SELF);
}

static void a_row_says_why_and_how_often(struct port_world *world)
{
    struct item *item = record_of("A-1", BYTES_LIT("k1"), 1), *hidden = record_of("B-1", BYTES_LIT("k2"), 2);
    struct park_step again = {.reason = CAUSE_STATE, .attempts = 3, .delay_ms = 5, .clock = PARK_CLOCK_KEPT};
    port_begin(world);
    park(world, item, &soon);
    park(world, hidden, &behind);
    port_commit(world);
    port_begin(world);
    uint64_t id = head_of(world, item), other = head_of(world, hidden);
    read_row(world, item, id);
    assert_true(item->parked.found && item->parked.clock_runs && !item->parked.over);
    assert_int_equal(item->parked.reason, CAUSE_NOT_FOUND);
    assert_int_equal(item->parked.attempts, 0);
    read_row(world, hidden, other);
    assert_true(hidden->parked.found && !hidden->parked.clock_runs && !hidden->parked.over);
    assert_int_equal(world->store->park->keep(SELF, item, &again, &err), ERR_NONE);
    read_row(world, item, id);
    assert_int_equal(item->parked.reason, CAUSE_STATE);
    assert_int_equal(item->parked.attempts, 3);
    assert_true(item->parked.clock_runs);
    read_row(world, item, id + other + 1);               /* nobody's */
    assert_false(item->parked.found);
    world->store->tx->rollback(SELF);
}

static void a_key_is_parked_once(struct port_world *world)
{
    struct item *item = record_of("A-1", BYTES_LIT("k1"), 1), *again = record_of("A-2", BYTES_LIT("k1"), 2);
    port_begin(world);
    park(world, item, &soon);
    port_commit(world);
    port_begin(world);
    assert_int_equal(world->store->park->insert(SELF, &again, &soon, 1, &err), ERR_RETRY);
    assert_int_equal(err.class, ERR_RETRY);
    world->store->tx->rollback(SELF);
}

static void the_end_of_one_wakes_those_behind(struct port_world *world)
{
    struct item *first = record_of("A-1", BYTES_LIT("k1"), 1), *second = record_of("A-1", BYTES_LIT("k2"), 2);
    struct item *stranger = record_of("B-1", BYTES_LIT("k3"), 3);
    port_begin(world);
    park(world, first, &soon);
    park(world, second, &behind);
    park(world, stranger, &behind);
    port_commit(world);
    assert_int_equal(wait_due(world, 1, GIVEN_MAX), 3);
    assert_int_equal(given.count, 1);
    assert_int_equal(given.offsets[0], 1);
    port_begin(world);
    read_row(world, first, given.ids[0]);
    first->parked.biz_type = first->eval.rule->biz_type;
    first->parked.biz_no = first->eval.biz_no;
    first->outcome = OUTCOME_FIRST;
    assert_int_equal(world->store->park->leave(SELF, &first, 1, &err), ERR_NONE);
    read_row(world, first, given.ids[0]);
    assert_false(first->parked.found);
    port_commit(world);
    assert_int_equal(wait_due(world, 1, GIVEN_MAX), 2);
    assert_int_equal(given.count, 1);
    assert_int_equal(given.offsets[0], 2);
}

static void the_longest_due_come_first(struct port_world *world)
{
    struct item *late = record_of("A-1", BYTES_LIT("k1"), 1), *early = record_of("B-1", BYTES_LIT("k2"), 2);
    struct park_step later = soon;
    later.delay_ms = 20;
    port_begin(world);
    park(world, late, &later);
    park(world, early, &soon);
    port_commit(world);
    assert_int_equal(wait_due(world, 2, GIVEN_MAX), 2);
    assert_int_equal(given.offsets[0], 2);
    assert_int_equal(given.offsets[1], 1);
    assert_int_equal(wait_due(world, 1, 1), 2);          /* as many as asked for */
    assert_int_equal(given.count, 1);
    given.stop_after = 1;                                /* or as many as are taken */
    wait_due(world, 1, GIVEN_MAX);
    given.stop_after = 0;
    assert_int_equal(given.count, 1);
    assert_int_equal(given.offsets[0], 2);
}

#define CASE(name) {#name, name}
const struct port_case port_parked_cases[] = {
    CASE(a_number_has_a_head),
    CASE(a_row_says_why_and_how_often),
    CASE(a_key_is_parked_once),
    CASE(the_end_of_one_wakes_those_behind),
    CASE(the_longest_due_come_first),
};
const size_t port_parked_case_count = sizeof port_parked_cases / sizeof *port_parked_cases;
