/* SPDX-License-Identifier: MIT */
/* port_trouble: what may go wrong in a transaction: locks of others, deadlocks, sessions that die, answers that are
 * lost. See port_cases.h. */
#include "port_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define SELF (world->store->self)
#define HOOK(name, ...) (world->hooks->name(world->hooks->context, __VA_ARGS__))
#define CALL(name) (world->hooks->name(world->hooks->context))

static struct err err;

static enum err_class claim(struct port_world *world, struct item *item)
{
    return world->store->row->claim(SELF, &item, 1, port_claim, port_scratch(), &err);
}

static enum err_class update(struct port_world *world, struct item **items, uint32_t count)
{
    uint64_t affected = 99;
    return world->store->row->update(SELF, port_rule(), 0, items, count, &affected, &err);
}

static enum err_class lock(struct port_world *world, struct item **items, uint32_t count, bool skip)
{
    return world->store->row->lock(SELF, port_rule(), 0, items, count, skip, port_scratch(), &err);
}

static void is_state(struct port_world *world, const char *order_no, const char *status)
{
    struct port_order order;
    assert_true(HOOK(get_order, order_no, &order));
    assert_string_equal(order.status, status);
}

/* ---- locks ----------------------------------------------------------------------------------------------------- */

static void a_row_held_by_another_session(struct port_world *world)
{
    struct item *items[] = {port_item("A-1", "10.00", "t1", 1), port_item("A-2", "10.00", "t2", 2),
                            port_item("A-3", "10.00", "t3", 3)};
    HOOK(put_order, "A-1", "PENDING", "10.00", NULL);
    HOOK(put_order, "A-2", "PENDING", "10.00", NULL);
    HOOK(hold_order, "A-1");
    port_begin(world);
    assert_int_equal(lock(world, items, 3, true), ERR_NONE);
    assert_true(items[0]->rows[0].found && items[0]->rows[0].locked);
    assert_true(items[1]->rows[0].found && !items[1]->rows[0].locked);
    assert_false(items[2]->rows[0].found);
    assert_int_equal(world->store->row->look(SELF, items[0], port_scratch(), &err), ERR_NONE);
    assert_true(items[0]->rows[0].found && !items[0]->rows[0].locked);      /* a plain read waits for nobody */
    assert_int_equal(update(world, items, 2), ERR_LOCKED);
    world->store->tx->rollback(SELF);
    port_begin(world);
    assert_int_equal(lock(world, items, 2, false), ERR_LOCKED);
    world->store->tx->rollback(SELF);
    is_state(world, "A-2", "PENDING");
    CALL(calm);
    port_begin(world);
    assert_int_equal(update(world, items, 2), ERR_NONE);
    port_commit(world);
    is_state(world, "A-1", "PAID");
}

static void a_key_claimed_by_another_session(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *b = port_item("B-1", "10.00", "t2", 2);
    HOOK(hold_key, "payment:A-1:pay");
    port_begin(world);
    assert_int_equal(claim(world, b), ERR_NONE);
    assert_int_equal(claim(world, a), ERR_LOCKED);
    world->store->tx->rollback(SELF);
    CALL(calm);
    port_begin(world);
    assert_int_equal(claim(world, a), ERR_NONE);
    assert_true(a->claimed && !a->known.present);
    port_commit(world);
    assert_int_equal(HOOK(count, "idem_record"), 1);
}

static void a_deadlock_is_a_retry(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *b = port_item("A-2", "10.00", "t2", 2);
    HOOK(put_order, "A-1", "PENDING", "10.00", NULL);
    HOOK(put_order, "A-2", "PENDING", "10.00", NULL);
    port_begin(world);
    assert_int_equal(claim(world, a), ERR_NONE);
    assert_int_equal(update(world, &a, 1), ERR_NONE);
    HOOK(close_circle, "A-1", "A-2");
    assert_int_equal(update(world, &b, 1), ERR_RETRY);
    world->store->tx->rollback(SELF);
    CALL(calm);
    is_state(world, "A-1", "PENDING");
    assert_int_equal(HOOK(count, "idem_record"), 0);
    port_begin(world);                       /* the same session goes on */
    assert_int_equal(update(world, &b, 1), ERR_NONE);
    port_commit(world);
    is_state(world, "A-2", "PAID");
}

/* ---- sessions that die ----------------------------------------------------------------------------------------- */

static void a_killed_session_mid_transaction(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    HOOK(put_order, "A-1", "PENDING", "10.00", NULL);
    port_begin(world);
    assert_int_equal(claim(world, a), ERR_NONE);
    CALL(kill);
    assert_int_equal(update(world, &a, 1), ERR_RECONNECT);
    world->store->tx->rollback(SELF);
    assert_int_equal(HOOK(count, "idem_record"), 0);
    assert_int_equal(world->store->tx->open(SELF, &err), ERR_NONE);
    port_begin(world);
    assert_int_equal(claim(world, a), ERR_NONE);
    assert_true(a->claimed);
    port_commit(world);
    assert_int_equal(HOOK(count, "idem_record"), 1);
}

static void a_killed_session_cannot_undo(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    port_begin(world);
    assert_int_equal(claim(world, a), ERR_NONE);
    assert_int_equal(world->store->tx->savepoint(SELF, &err), ERR_NONE);
    CALL(kill);
    assert_int_equal(world->store->tx->undo(SELF, &err), ERR_RECONNECT);
    world->store->tx->rollback(SELF);
    assert_int_equal(HOOK(count, "idem_record"), 0);
}

static void in_doubt(struct port_world *world, struct item *item, bool happened)
{
    bool committed = !happened;
    assert_int_equal(world->store->tx->commit(SELF, &err), ERR_IN_DOUBT);
    if (world->store->tx->settle(SELF, &item, 1, port_claim, &committed, &err))
        fail_msg("settle: %s", err.text);
    assert_int_equal(committed, happened);
    assert_int_equal(HOOK(count, "idem_record"), happened);
    is_state(world, "A-1", happened ? "PAID" : "PENDING");
    port_begin(world);                       /* a new session, and the key is free or known */
    assert_int_equal(world->store->row->claim(SELF, &item, 1, port_other_claim, port_scratch(), &err), ERR_NONE);
    assert_int_equal(item->claimed, !happened);
    assert_int_equal(item->known.present, happened);
    port_commit(world);
}

static struct item *move_a1(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    HOOK(put_order, "A-1", "PENDING", "10.00", NULL);
    port_begin(world);
    assert_int_equal(claim(world, a), ERR_NONE);
    assert_int_equal(update(world, &a, 1), ERR_NONE);
    return a;
}

static void a_killed_session_at_commit_is_in_doubt(struct port_world *world)
{
    struct item *a = move_a1(world);
    CALL(kill);
    in_doubt(world, a, false);
}

static void a_lost_answer_of_a_commit_that_happened(struct port_world *world)
{
    struct item *a = move_a1(world);
    HOOK(lose_commit, true);
    in_doubt(world, a, true);
}

static void a_lost_commit_that_never_arrived(struct port_world *world)
{
    struct item *a = move_a1(world);
    HOOK(lose_commit, false);
    in_doubt(world, a, false);
}

static void nobody_answers(struct port_world *world)
{
    struct item *a = move_a1(world);
    bool committed = true;
    CALL(outage);
    HOOK(lose_commit, false);
    assert_int_equal(world->store->tx->commit(SELF, &err), ERR_IN_DOUBT);
    assert_int_equal(world->store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_RECONNECT);
    world->store->tx->close(SELF);
    assert_int_equal(world->store->tx->open(SELF, &err), ERR_RECONNECT);
    CALL(calm);
    assert_int_equal(world->store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_NONE);
    assert_false(committed);
}

#define CASE(name) {#name, name}
const struct port_case port_trouble_cases[] = {
    CASE(a_row_held_by_another_session),
    CASE(a_key_claimed_by_another_session),
    CASE(a_deadlock_is_a_retry),
    CASE(a_killed_session_mid_transaction),
    CASE(a_killed_session_cannot_undo),
    CASE(a_killed_session_at_commit_is_in_doubt),
    CASE(a_lost_answer_of_a_commit_that_happened),
    CASE(a_lost_commit_that_never_arrived),
    CASE(nobody_answers),
};
const size_t port_trouble_case_count = sizeof port_trouble_cases / sizeof *port_trouble_cases;
