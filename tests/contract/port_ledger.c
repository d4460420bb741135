/* SPDX-License-Identifier: MIT */
/* port_ledger: who owns a partition and how far it got, seen by two instances. See port_cases.h. */
#include "port_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define HOOK(name, ...) (world->hooks->name(world->hooks->context, __VA_ARGS__))
#define CALL(name) (world->hooks->name(world->hooks->context))

enum { FIRST, SECOND };

static struct err err;

static void open_both(struct port_world *world)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(world->ledgers[i]->ops->open(world->ledgers[i]->self, &err), ERR_NONE);
}

static void take_over(struct port_world *world, int who, struct ledger_partition *partitions, uint32_t count)
{
    const struct ledger_port *ledger = world->ledgers[who];
    assert_int_equal(ledger->ops->take_over(ledger->self, partitions, count, &err), ERR_NONE);
}

static void progress(struct port_world *world, int who, struct ledger_partition *partitions, uint32_t count)
{
    const struct ledger_port *ledger = world->ledgers[who];
    assert_int_equal(ledger->ops->progress(ledger->self, partitions, count, &err), ERR_NONE);
}

static struct ledger_partition partition(int32_t number)
{
    return (struct ledger_partition){.topic = BYTES_LIT(PORT_TOPIC), .partition = number, .last_offset = -1};
}

static void taking_over_raises_the_generation(struct port_world *world)
{
    struct ledger_partition both[] = {partition(0), partition(1)};
    open_both(world);
    HOOK(set_generation, 1, 0);
    take_over(world, FIRST, both, 2);
    assert_int_equal(both[0].generation, 8);
    assert_int_equal(both[1].generation, 1);         /* nobody had it */
    assert_int_equal(both[0].next_offset, -1);
    assert_int_equal(both[0].last_offset, -1);
    take_over(world, SECOND, both, 2);
    assert_int_equal(both[0].generation, 9);
    assert_int_equal(both[1].generation, 2);
}

static void progress_is_what_the_next_owner_reads(struct port_world *world)
{
    struct ledger_partition mine[] = {partition(0), partition(1)}, theirs[] = {partition(0), partition(1)};
    open_both(world);
    take_over(world, FIRST, mine, 2);
    mine[0].next_offset = 11;
    mine[0].last_offset = 9;
    memset(mine[0].last_hash, 0xab, OFFSET_HASH_LEN);
    mine[1].next_offset = 5;
    progress(world, FIRST, mine, 2);
    assert_true(mine[0].current && mine[1].current);
    take_over(world, SECOND, theirs, 2);
    assert_int_equal(theirs[0].next_offset, 11);
    assert_int_equal(theirs[0].last_offset, 9);
    assert_memory_equal(theirs[0].last_hash, mine[0].last_hash, OFFSET_HASH_LEN);
    assert_int_equal(theirs[1].next_offset, 5);
    assert_int_equal(theirs[1].last_offset, -1);     /* no last record was told */
    theirs[0].next_offset = 4;                       /* an owner may start over: the fence decides, not the number */
    progress(world, SECOND, theirs, 1);
    assert_int_equal(HOOK(get_progress, 0), 4);
}

static void progress_stops_at_the_fence(struct port_world *world)
{
    struct ledger_partition mine[] = {partition(0), partition(1)}, theirs[] = {partition(1)};
    open_both(world);
    take_over(world, FIRST, mine, 2);
    mine[0].next_offset = 11;
    mine[1].next_offset = 5;
    progress(world, FIRST, mine, 2);
    take_over(world, SECOND, theirs, 1);
    mine[0].next_offset = 12;
    mine[1].next_offset = 6;
    progress(world, FIRST, mine, 2);
    assert_true(mine[0].current && !mine[1].current);
    assert_int_equal(HOOK(get_progress, 0), 12);
    assert_int_equal(HOOK(get_progress, 1), 5);
    HOOK(set_generation, 0, 0);                      /* a partition without a row is nobody's */
    mine[0].next_offset = 13;
    progress(world, FIRST, mine, 1);
    assert_false(mine[0].current);
    assert_int_equal(HOOK(get_progress, 0), 12);
}

static void a_generation_that_a_failover_lost_is_not_given_again(struct port_world *world)
{
    struct ledger_partition mine[] = {partition(0), partition(1)};
    open_both(world);
    mine[0].generation = 20;                         /* the last that this owner had; the row says 7 */
    mine[1].generation = 3;
    take_over(world, FIRST, mine, 2);
    assert_int_equal(mine[0].generation, 21);
    assert_int_equal(mine[1].generation, 8);
    HOOK(set_generation, 1, 0);
    take_over(world, FIRST, mine, 2);
    assert_int_equal(mine[0].generation, 22);
    assert_int_equal(mine[1].generation, 9);         /* not even the row is left */
}

static void progress_of_another_server_is_not_written(struct port_world *world)
{
    struct ledger_partition mine[] = {partition(0), partition(1)};
    open_both(world);
    take_over(world, FIRST, mine, 2);
    assert_true(mine[0].server == world->server && mine[1].server == world->server);
    mine[0].server ^= 1;
    mine[0].next_offset = mine[1].next_offset = 11;
    progress(world, FIRST, mine, 2);
    assert_true(!mine[0].current && mine[1].current);
    assert_int_equal(HOOK(get_progress, 0), -1);
    assert_int_equal(HOOK(get_progress, 1), 11);
}

static void a_transaction_of_a_former_owner_is_not_current(struct port_world *world)
{
    struct fence fence = {BYTES_LIT(PORT_TOPIC), 0, 7, world->server};
    struct ledger_partition theirs[] = {partition(0)};
    bool current = true;
    open_both(world);
    take_over(world, SECOND, theirs, 1);
    assert_int_equal(world->store->tx->begin(world->store->self, &fence, 1, &current, &err), ERR_NONE);
    assert_false(current);
    world->store->tx->rollback(world->store->self);
    fence.generation = theirs[0].generation;
    assert_int_equal(world->store->tx->begin(world->store->self, &fence, 1, &current, &err), ERR_NONE);
    assert_true(current);
    world->store->tx->rollback(world->store->self);
}

static void a_ledger_that_nobody_answers(struct port_world *world)
{
    const struct ledger_port *ledger = world->ledgers[FIRST];
    struct ledger_partition mine[] = {partition(0)};
    open_both(world);
    assert_int_equal(ledger->ops->ping(ledger->self, &err), ERR_NONE);
    ledger->ops->close(ledger->self);
    CALL(outage);
    assert_int_equal(ledger->ops->open(ledger->self, &err), ERR_RECONNECT);
    CALL(calm);
    assert_int_equal(ledger->ops->open(ledger->self, &err), ERR_NONE);
    assert_int_equal(ledger->ops->ping(ledger->self, &err), ERR_NONE);
    take_over(world, FIRST, mine, 1);
    assert_int_equal(mine[0].generation, 8);
}

/* ---- counting -------------------------------------------------------------------------------------------------- */

static void put_letter(struct port_world *world, const char *order_no, enum outcome outcome, int64_t offset)
{
    struct item *item = port_item(order_no, "10.00", order_no, offset);
    bool is_new = false;
    item->outcome = outcome;
    item->cause = outcome == OUTCOME_REJECTED ? CAUSE_DATABASE : CAUSE_STATE;
    port_begin(world);
    assert_int_equal(world->store->effect->letter(world->store->self, item, BYTES_LIT(""), &is_new, &err), ERR_NONE);
    port_commit(world);
    assert_true(is_new);
}

struct counted {
    uint64_t rejected, conflicts, others;
};

static void take_kind(void *context, const struct ledger_kind *kind)
{
    struct counted *counted = context;
    assert_true(bytes_equal(kind->topic, BYTES_LIT(PORT_TOPIC)));
    assert_true(kind->count > 0);
    if (bytes_equal(kind->word, BYTES_LIT("rejected")))
        counted->rejected += kind->count;
    else if (bytes_equal(kind->word, BYTES_LIT("state_conflict")))
        counted->conflicts += kind->count;
    else
        counted->others += kind->count;
}

/* All of a list, by parts of two. Returns how many parts there were. */
static uint32_t count_all(struct port_world *world, enum ledger_list list, struct counted *ret)
{
    const struct ledger_port *ledger = world->ledgers[FIRST];
    uint64_t after = 0;
    uint32_t parts = 0;
    *ret = (struct counted){0};
    for (bool end = false; !end; parts++)
        assert_int_equal(ledger->ops->count(ledger->self, list, &after, 2, take_kind, ret, &end, &err), ERR_NONE);
    return parts;
}

static void letters_are_counted_part_by_part(struct port_world *world)
{
    struct counted counted;
    open_both(world);
    assert_int_equal(count_all(world, LEDGER_LETTERS, &counted), 1);
    assert_int_equal(counted.rejected + counted.conflicts + counted.others, 0);
    assert_int_equal(count_all(world, LEDGER_PARKED, &counted), 1);
    assert_int_equal(counted.others, 0);
    put_letter(world, "A-1", OUTCOME_REJECTED, 1);
    assert_int_equal(count_all(world, LEDGER_LETTERS, &counted), 1);
    assert_int_equal(counted.rejected, 1);
    HOOK(set_letter_state, "resolved");
    assert_int_equal(count_all(world, LEDGER_LETTERS, &counted), 1);
    assert_int_equal(counted.rejected, 0);
    put_letter(world, "B-1", OUTCOME_STATE_CONFLICT, 2);
    put_letter(world, "C-1", OUTCOME_REJECTED, 3);
    put_letter(world, "D-1", OUTCOME_REJECTED, 4);
    put_letter(world, "E-1", OUTCOME_REJECTED, 5);
    put_letter(world, "F-1", OUTCOME_REJECTED, 6);
    assert_int_equal(count_all(world, LEDGER_LETTERS, &counted), 3);
    assert_int_equal(counted.rejected, 4);
    assert_int_equal(counted.conflicts, 1);
    assert_int_equal(counted.others, 0);
}

#define CASE(name) {#name, name}
const struct port_case port_ledger_cases[] = {
    CASE(taking_over_raises_the_generation),
    CASE(progress_is_what_the_next_owner_reads),
    CASE(progress_stops_at_the_fence),
    CASE(a_generation_that_a_failover_lost_is_not_given_again),
    CASE(progress_of_another_server_is_not_written),
    CASE(a_transaction_of_a_former_owner_is_not_current),
    CASE(a_ledger_that_nobody_answers),
    CASE(letters_are_counted_part_by_part),
};
const size_t port_ledger_case_count = sizeof port_ledger_cases / sizeof *port_ledger_cases;
