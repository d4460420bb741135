/* SPDX-License-Identifier: MIT */
/* port_cases: what a transaction does, in its order. See port_cases.h. */
#include "port_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SELF (world->store->self)
#define HOOK(name, ...) (world->hooks->name(world->hooks->context, __VA_ARGS__))

static struct err err;

static void claim(struct port_world *world, struct item **items, uint32_t count, const uint8_t *mark)
{
    assert_int_equal(world->store->row->claim(SELF, items, count, mark, port_scratch(), &err), ERR_NONE);
}

static uint64_t update(struct port_world *world, struct item **items, uint32_t count)
{
    uint64_t affected = 99;
    assert_int_equal(world->store->row->update(SELF, port_rule(), 0, items, count, &affected, &err),
                     ERR_NONE);
    return affected;
}

static void lock(struct port_world *world, struct item **items, uint32_t count)
{
    assert_int_equal(world->store->row->lock(SELF, port_rule(), 0, items, count, false, port_scratch(),
                                             &err),
                     ERR_NONE);
}

static void write_records(struct port_world *world, struct item **items, uint32_t count,
                          const uint8_t *mark)
{
    assert_int_equal(world->store->effect->records(SELF, items, count, mark, &err), ERR_NONE);
}

/* ---- fence ----------------------------------------------------------------------------------------------------- */

static void fence_of_another_generation_is_not_current(struct port_world *world)
{
    struct bytes topic = port_config()->topics[0].name;
    struct fence fences[] = {{topic, 0, 7, world->server}, {topic, 1, 7, world->server}};
    bool current = false;
    assert_int_equal(world->store->tx->begin(SELF, fences, 2, &current, &err), ERR_NONE);
    assert_true(current);
    world->store->tx->rollback(SELF);
    HOOK(set_generation, 1, 8);
    assert_int_equal(world->store->tx->begin(SELF, fences, 2, &current, &err), ERR_NONE);
    assert_false(current);
    world->store->tx->rollback(SELF);
    fences[1].generation = 8;
    fences[1].topic = BYTES_LIT("elsewhere");        /* another topic's partition 1 is nobody's */
    assert_int_equal(world->store->tx->begin(SELF, fences, 2, &current, &err), ERR_NONE);
    assert_false(current);
    world->store->tx->rollback(SELF);
    fences[1].topic = topic;
    HOOK(set_generation, 1, 0);
    assert_int_equal(world->store->tx->begin(SELF, fences, 2, &current, &err), ERR_NONE);
    assert_false(current);
    world->store->tx->rollback(SELF);
    assert_int_equal(world->store->tx->begin(SELF, fences, 0, &current, &err), ERR_NONE);
    assert_true(current);
    world->store->tx->rollback(SELF);
}

/* Commits that the former server confirmed may be missing here, whatever the generation says. */
static void fence_of_another_server_starts_nothing(struct port_world *world)
{
    struct bytes topic = port_config()->topics[0].name;
    struct fence fences[] = {{topic, 0, 7, world->server}, {topic, 1, 7, world->server ^ 1}};
    bool current = true;
    assert_int_equal(world->store->tx->begin(SELF, fences, 2, &current, &err), ERR_WRONG_SERVER);
    world->store->tx->rollback(SELF);
    assert_int_equal(world->store->tx->open(SELF, &err), ERR_NONE);
    fences[1].server = world->server;
    assert_int_equal(world->store->tx->begin(SELF, fences, 2, &current, &err), ERR_NONE);
    assert_true(current);
    world->store->tx->rollback(SELF);
}

static void now_has_the_form_of_templates(struct port_world *world)
{
    char text[20] = "";
    port_begin(world);
    assert_int_equal(world->store->tx->now(SELF, text, &err), ERR_NONE);
    assert_int_equal(strlen(text), 19);
    assert_true(text[4] == '-' && text[10] == ' ' && text[16] == ':');
    world->store->tx->rollback(SELF);
}

/* ---- claims ---------------------------------------------------------------------------------------------------- */

static void claims_are_new_then_known(struct port_world *world)
{
    struct item *a = port_item("B-2", "10.00", "t2", 11), *b = port_item("A-1", "10.00", "t1", 12);
    struct item *items[] = {a, b};
    struct port_record record;
    port_begin(world);
    claim(world, items, 2, port_claim);
    assert_true(a->claimed && b->claimed && !a->known.present);
    port_commit(world);
    assert_true(HOOK(get_record, "payment:A-1:pay", &record));
    assert_int_equal(record.status, 1);
    assert_string_equal(record.outcome, "first");
    assert_string_equal(record.biz_no, "A-1");
    assert_string_equal(record.response, "{\"code\":\"SUCCESS\"}");
    assert_true(record.request_id_null);
    assert_int_equal(record.attempts, 1);

    struct item *again = port_item("A-1", "11.00", "t9", 20), *fresh = port_item("C-3", "1.00", "t3", 21);
    struct item *second[] = {fresh, again};
    port_begin(world);
    claim(world, second, 2, port_other_claim);
    assert_true(fresh->claimed && !fresh->known.present);
    assert_false(again->claimed);
    assert_true(again->known.present && !again->known.mine);
    assert_int_equal(again->known.status, RECORD_APPLIED);
    assert_int_equal(again->known.outcome, OUTCOME_FIRST);
    assert_int_equal(again->known.offset, 12);
    assert_int_equal(again->known.partition, 0);
    assert_int_equal(again->known.source, SOURCE_KAFKA);
    assert_true(bytes_equal(again->known.topic, BYTES_LIT(PORT_TOPIC)));
    assert_true(bytes_equal(again->known.biz_no, BYTES_LIT("A-1")));
    assert_memory_equal(again->known.identity_hash, b->eval.identity_hash, IDENTITY_HASH_LEN);
    assert_memory_equal(again->known.params_hash, b->eval.params_hash, PARAMS_HASH_LEN);
    assert_int_equal(again->known.fingerprint_version, 1);
    world->store->tx->rollback(SELF);
    assert_int_equal(HOOK(count, "idem_record"), 2);
}

static void a_key_claimed_twice_by_one_attempt_is_a_fault(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *again = port_item("A-1", "10.00", "t1", 2);
    port_begin(world);
    claim(world, &a, 1, port_claim);
    assert_int_equal(world->store->row->claim(SELF, &again, 1, port_claim, port_scratch(), &err), ERR_FATAL);
    world->store->tx->rollback(SELF);
    assert_int_equal(HOOK(count, "idem_record"), 0);
}

static void probe_reports_status_1_only(struct port_world *world)
{
    struct item *a = port_item("A-1", "1.00", "t1", 1), *b = port_item("B-1", "1.00", "t2", 2);
    struct item *c = port_item("C-1", "1.00", "t3", 3), *items[] = {a, b, c};
    port_begin(world);
    claim(world, items, 2, port_claim);
    b->outcome = OUTCOME_STATE_CONFLICT;
    b->write = WRITE_CLOSE;
    write_records(world, items, 2, port_claim);
    port_commit(world);
    port_begin(world);
    b->known.present = c->known.present = true;      /* of a former look */
    assert_int_equal(world->store->row->probe(SELF, items, 3, port_scratch(), &err), ERR_NONE);
    assert_true(a->known.present && a->known.status == RECORD_APPLIED);
    assert_false(b->known.present);
    assert_false(c->known.present);
    world->store->tx->rollback(SELF);
}

/* ---- business rows --------------------------------------------------------------------------------------------- */

static void update_changes_rows_in_from_that_hold_require(struct port_world *world)
{
    struct port_order order;
    struct item *items[] = {port_item("A-1", "10.00", "t1", 1), port_item("A-2", "10.00", "t2", 2),
                            port_item("A-3", "99.00", "t3", 3), port_item("A-4", "10.00", "t4", 4),
                            port_item("A-5", "10.00", "t5", 5)};
    HOOK(put_order, "A-1", "PENDING", "10.00", NULL);
    HOOK(put_order, "A-2", "CLOSED", "10.00", NULL);
    HOOK(put_order, "A-3", "PENDING", "10.00", NULL);
    HOOK(put_order, "A-4", "PENDING", "10.00", NULL);
    port_begin(world);
    assert_int_equal(update(world, items, 5), 2);
    assert_int_equal(update(world, items, 1), 0);
    port_commit(world);
    assert_true(HOOK(get_order, "A-1", &order));
    assert_string_equal(order.status, "PAID");
    assert_string_equal(order.txn, "t1");
    assert_true(order.paid_at_set);
    assert_true(HOOK(get_order, "A-2", &order));
    assert_string_equal(order.status, "CLOSED");
    assert_true(HOOK(get_order, "A-3", &order));
    assert_string_equal(order.status, "PENDING");
    assert_true(order.txn_null);
    HOOK(put_order, "A-9", "PENDING", "10.00", NULL);
    port_begin(world);
    struct item *one = port_item("A-9", "10.00", "it's \\ one", 9);
    assert_int_equal(update(world, &one, 1), 1);
    port_commit(world);
    assert_true(HOOK(get_order, "A-9", &order));
    assert_string_equal(order.txn, "it's \\ one");
}

static void update_counts_what_changed(struct port_world *world)
{
    static const struct bytes paid[] = {{(const uint8_t *)"PAID", 4}};
    struct transition again = port_rule()->transitions[0];
    struct rule rule = *port_rule();
    struct item *items[] = {port_item("A-1", "10.00", "t1", 1), port_item("A-2", "10.00", "t2", 2)};
    uint64_t affected = 9;
    again.from = paid;
    again.self = true;
    again.already_count = again.early_count = again.set_count = 0;
    rule.transitions = &again;
    items[0]->eval.rule = items[1]->eval.rule = &rule;
    HOOK(put_order, "A-1", "PAID", "10.00", "t1");
    HOOK(put_order, "A-2", "PAID", "10.00", "t2");
    port_begin(world);
    assert_int_equal(world->store->row->update(SELF, &rule, 0, items, 2, &affected, &err), ERR_NONE);
    assert_int_equal(affected, 0);           /* to PAID from PAID: found, not changed */
    world->store->tx->rollback(SELF);
}

static void lock_reads_rows_in_layout_order(struct port_world *world)
{
    struct item *items[] = {port_item("B-1", "10.00", "t1", 1), port_item("A-1", "10.00", "t2", 2),
                            port_item("C-1", "10.00", "t3", 3)};
    struct row_layout layout;
    HOOK(put_order, "A-1", "PAID", "12.50", "other");
    HOOK(put_order, "B-1", "PENDING", "10.00", NULL);
    row_layout(port_rule(), 0, &layout);
    port_begin(world);
    lock(world, items, 3);
    assert_true(items[0]->rows[0].found && !items[0]->rows[0].locked);
    assert_true(bytes_equal(items[0]->rows[0].columns[0].text, BYTES_LIT("PENDING")));
    assert_true(items[0]->rows[0].columns[layout.identity_at[0]].is_null);
    assert_true(items[1]->rows[0].found);
    assert_true(bytes_equal(items[1]->rows[0].columns[0].text, BYTES_LIT("PAID")));
    assert_true(bytes_equal(items[1]->rows[0].columns[layout.identity_at[0]].text, BYTES_LIT("other")));
    assert_true(bytes_equal(items[1]->rows[0].columns[layout.require_at[0]].text, BYTES_LIT("12.50")));
    assert_false(items[2]->rows[0].found);
    items[2]->rows[0].found = true;                  /* of a former look */
    lock(world, items, 3);
    assert_false(items[2]->rows[0].found);
    items[1]->rows = NULL;
    assert_int_equal(world->store->row->look(SELF, items[1], port_scratch(), &err), ERR_NONE);
    assert_true(items[1]->rows[0].found);
    assert_int_equal(world->store->row->lock(SELF, port_rule(), 0, items, 3, true, port_scratch(), &err),
                     ERR_NONE);
    assert_true(items[1]->rows[0].found && !items[1]->rows[0].locked);
    world->store->tx->rollback(SELF);
}

/* ---- effects --------------------------------------------------------------------------------------------------- */

static void insert_conflict_is_told_apart(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *same = port_item("A-1", "10.00", "t1", 2);
    struct item *other = port_item("A-2", "10.00", "t1", 3), *more = port_item("A-1", "10.50", "t1", 4);
    bool is_same = false;
    port_begin(world);
    assert_int_equal(world->store->effect->insert(SELF, port_rule(), 0, &a, 1, &err), ERR_NONE);
    port_commit(world);
    port_begin(world);
    assert_int_equal(world->store->tx->savepoint(SELF, &err), ERR_NONE);
    assert_int_equal(world->store->effect->insert(SELF, port_rule(), 0, &same, 1, &err), ERR_UNIQUE);
    assert_int_equal(world->store->tx->undo(SELF, &err), ERR_NONE);
    assert_int_equal(world->store->effect->insert_known(SELF, port_rule(), 0, same, &is_same, &err),
                     ERR_NONE);
    assert_true(is_same);
    assert_int_equal(world->store->effect->insert_known(SELF, port_rule(), 0, other, &is_same, &err),
                     ERR_NONE);
    assert_false(is_same);
    assert_int_equal(world->store->effect->insert_known(SELF, port_rule(), 0, more, &is_same, &err),
                     ERR_NONE);
    assert_false(is_same);                   /* the same transaction, but another amount */
    port_commit(world);
    assert_int_equal(HOOK(count, "payment_ledger"), 1);
}

static void undo_keeps_what_came_before(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    HOOK(put_order, "A-1", "PENDING", "10.00", NULL);
    struct port_order order;
    port_begin(world);
    claim(world, &a, 1, port_claim);
    assert_int_equal(world->store->tx->savepoint(SELF, &err), ERR_NONE);
    assert_int_equal(update(world, &a, 1), 1);
    assert_int_equal(world->store->effect->insert(SELF, port_rule(), 0, &a, 1, &err), ERR_NONE);
    assert_int_equal(world->store->tx->undo(SELF, &err), ERR_NONE);
    port_commit(world);
    assert_int_equal(HOOK(count, "idem_record"), 1);
    assert_int_equal(HOOK(count, "payment_ledger"), 0);
    assert_true(HOOK(get_order, "A-1", &order));
    assert_string_equal(order.status, "PENDING");
}

static void a_statement_counts_its_rows(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *nobody = port_item("A-2", "10.00", "t2", 2);
    uint64_t affected = 9;
    HOOK(put_order, "A-1", "PAID", "20.00", NULL);
    port_begin(world);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(world->store->effect->statement(SELF, port_rule(), 0, a, &affected, &err), ERR_NONE);
        assert_int_equal(affected, 1);
    }
    assert_int_equal(world->store->effect->statement(SELF, port_rule(), 0, a, &affected, &err), ERR_NONE);
    assert_int_equal(affected, 0);
    assert_int_equal(world->store->effect->statement(SELF, port_rule(), 0, nobody, &affected, &err), ERR_NONE);
    assert_int_equal(affected, 0);
    world->store->tx->rollback(SELF);
}

static void events_are_rows_in_order(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *b = port_item("B-1", "10.00", "t2", 2);
    const struct event *event = &port_rule()->events.events[0];
    struct outbox_row rows[] = {{b, event, OUTCOME_FIRST, 0}, {a, event, OUTCOME_FIRST, 0},
                                {a, event, OUTCOME_FIRST, 1}};
    static const char *const keys[] = {"B-1", "A-1", "A-1"};
    struct port_event seen[3];
    port_begin(world);
    assert_int_equal(world->store->effect->events(SELF, rows, 3, BYTES_LIT("2026-01-01 00:00:00"), &err),
                     ERR_NONE);
    port_commit(world);
    assert_int_equal(HOOK(count, "idem_outbox"), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(HOOK(get_event, i, &seen[i]));
        assert_string_equal(seen[i].topic, "order.paid");
        assert_string_equal(seen[i].key, keys[i]);
    }
    assert_string_not_equal(seen[0].id, seen[1].id);
    assert_string_not_equal(seen[1].id, seen[2].id);
}

/* ---- letters --------------------------------------------------------------------------------------------------- */

static bool letter(struct port_world *world, struct item *item, enum cause cause, struct bytes state)
{
    bool is_new = false;
    item->outcome = OUTCOME_STATE_CONFLICT;
    item->cause = cause;
    port_begin(world);
    assert_int_equal(world->store->effect->letter(SELF, item, state, &is_new, &err), ERR_NONE);
    port_commit(world);
    return is_new;
}

static void letters_are_upserts_on_the_fact(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *later = port_item("A-1", "10.00", "t1", 2);
    struct port_letter seen;
    assert_true(letter(world, a, CAUSE_STATE, BYTES_LIT("{\"status\":\"CLOSED\"}")));
    assert_false(letter(world, a, CAUSE_STATE, BYTES_LIT("")));
    assert_true(HOOK(get_letter, &seen));
    assert_int_equal(seen.attempts, 1);              /* the same origin never counts */
    assert_int_equal(seen.payload_len, 16);
    assert_int_equal(seen.payload_bytes, a->record.value.len);
    assert_false(letter(world, later, CAUSE_AMOUNT_MISMATCH, BYTES_LIT("{\"status\":\"X\"}")));
    assert_true(HOOK(get_letter, &seen));
    assert_int_equal(seen.attempts, 2);
    assert_int_equal(seen.offset, 1);                /* origin keeps the first */
    assert_string_equal(seen.cause, "amount_mismatch");
    assert_string_equal(seen.row_state, "{\"status\":\"X\"}");
    HOOK(set_letter_state, "resolved");
    assert_false(letter(world, later, CAUSE_STATE, BYTES_LIT("")));
    assert_true(HOOK(get_letter, &seen));
    assert_string_equal(seen.state, "open");
    assert_int_equal(seen.attempts, 3);
    HOOK(set_letter_state, "discarded");
    assert_false(letter(world, later, CAUSE_STATE, BYTES_LIT("")));
    assert_true(HOOK(get_letter, &seen));
    assert_string_equal(seen.state, "discarded");
    assert_int_equal(HOOK(count, "idem_dead_letter"), 1);
}

static void a_letter_of_another_fact_is_another_row(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *b = port_item("A-1", "11.00", "t1", 2);
    struct item *c = port_item("A-1", "10.00", "t1", 3);
    bool is_new = false;
    assert_true(letter(world, a, CAUSE_STATE, BYTES_LIT("")));
    assert_true(letter(world, b, CAUSE_STATE, BYTES_LIT("")));
    c->outcome = OUTCOME_INVALID;
    c->cause = CAUSE_BODY;
    port_begin(world);
    assert_int_equal(world->store->effect->letter(SELF, c, BYTES_LIT(""), &is_new, &err), ERR_NONE);
    port_commit(world);
    assert_true(is_new);
    assert_int_equal(HOOK(count, "idem_dead_letter"), 3);
}

/* ---- final form ------------------------------------------------------------------------------------------------ */

static void records_close_and_replace(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *b = port_item("B-1", "10.00", "t2", 2);
    struct item *c = port_item("C-1", "10.00", "t3", 3), *items[] = {a, b, c};
    struct port_record record;
    port_begin(world);
    claim(world, items, 3, port_claim);
    a->outcome = OUTCOME_STATE_CONFLICT;
    a->write = WRITE_CLOSE;
    b->outcome = OUTCOME_ALREADY_APPLIED;
    b->write = WRITE_CLOSE;
    c->outcome = OUTCOME_FIRST;
    write_records(world, items, 3, port_claim);
    port_commit(world);
    assert_true(HOOK(get_record, "payment:A-1:pay", &record));
    assert_int_equal(record.status, 2);
    assert_string_equal(record.outcome, "state_conflict");
    assert_true(record.response_null);
    assert_true(HOOK(get_record, "payment:B-1:pay", &record));
    assert_int_equal(record.status, 1);
    assert_string_equal(record.outcome, "already_applied");
    assert_false(record.response_null);
    assert_true(HOOK(get_record, "payment:C-1:pay", &record));
    assert_string_equal(record.outcome, "first");

    struct item *again = port_item("A-1", "12.00", "t7", 40);
    port_begin(world);
    claim(world, &again, 1, port_other_claim);
    assert_true(again->known.present);
    assert_int_equal(again->known.status, RECORD_CLOSED);
    again->outcome = OUTCOME_FIRST;
    again->write = WRITE_REPLACE;
    write_records(world, &again, 1, port_other_claim);
    port_commit(world);
    assert_true(HOOK(get_record, "payment:A-1:pay", &record));
    assert_int_equal(record.status, 1);
    assert_string_equal(record.outcome, "first");
    assert_int_equal(record.attempts, 2);
    assert_int_equal(record.offset, 40);
    assert_false(record.response_null);
}

static void a_row_that_waits_keeps_its_origin(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 5), *again = port_item("A-1", "10.00", "t1", 6);
    struct port_record record;
    bool committed = false;
    port_begin(world);
    claim(world, &a, 1, port_claim);
    a->outcome = OUTCOME_PARKED;
    a->write = WRITE_CLOSE;
    write_records(world, &a, 1, port_claim);
    port_commit(world);
    for (int i = 0; i < 2; i++) {                    /* it waits on, then it is applied */
        const uint8_t mark[CLAIM_LEN] = {(uint8_t)i, 0x77};
        port_begin(world);
        claim(world, &again, 1, mark);
        assert_int_equal(again->known.status, RECORD_PROCESSING);
        assert_int_equal(again->known.outcome, OUTCOME_PARKED);
        again->outcome = i == 0 ? OUTCOME_PARKED : OUTCOME_FIRST;
        again->write = WRITE_RETRY;
        write_records(world, &again, 1, mark);
        port_commit(world);
        assert_int_equal(world->store->tx->settle(SELF, &again, 1, mark, &committed, &err), ERR_NONE);
        assert_true(committed);
        assert_true(HOOK(get_record, "payment:A-1:pay", &record));
        assert_int_equal(record.status, i);
        assert_string_equal(record.outcome, i == 0 ? "parked" : "first");
        assert_int_equal(record.response_null, i == 0);
        assert_int_equal(record.attempts, 1);
        assert_int_equal(record.offset, 5);
    }
}

static void records_touch_what_they_are_told(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    struct port_record record;
    port_begin(world);
    claim(world, &a, 1, port_claim);
    port_commit(world);
    a->outcome = OUTCOME_STATE_CONFLICT;
    a->write = WRITE_NONE;
    port_begin(world);
    write_records(world, &a, 1, port_claim);
    port_commit(world);
    assert_true(HOOK(get_record, "payment:A-1:pay", &record));
    assert_string_equal(record.outcome, "first");
    a->write = WRITE_CLOSE;                  /* the row is of another attempt */
    port_begin(world);
    assert_int_equal(world->store->effect->records(SELF, &a, 1, port_other_claim, &err), ERR_FATAL);
    world->store->tx->rollback(SELF);
    assert_true(HOOK(get_record, "payment:A-1:pay", &record));
    assert_int_equal(record.status, 1);
}

static void settle_tells_whether_the_claim_is_there(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    bool committed = true;
    port_begin(world);
    claim(world, &a, 1, port_claim);
    world->store->tx->rollback(SELF);
    assert_int_equal(world->store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_NONE);
    assert_false(committed);
    port_begin(world);
    claim(world, &a, 1, port_claim);
    port_commit(world);
    assert_int_equal(world->store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_NONE);
    assert_true(committed);
    assert_int_equal(world->store->tx->settle(SELF, &a, 1, port_other_claim, &committed, &err), ERR_NONE);
    assert_false(committed);
    a->claimed = false;                      /* a row that this attempt did not write tells nothing */
    assert_int_equal(world->store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_NONE);
    assert_false(committed);
    a->write = WRITE_REPLACE;
    assert_int_equal(world->store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_NONE);
    assert_true(committed);
    port_begin(world);                       /* the session is idle afterwards */
    world->store->tx->rollback(SELF);
}

static void rollback_leaves_nothing(struct port_world *world)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    HOOK(put_order, "A-1", "PENDING", "10.00", NULL);
    struct port_order order;
    port_begin(world);
    claim(world, &a, 1, port_claim);
    assert_int_equal(update(world, &a, 1), 1);
    world->store->tx->rollback(SELF);
    assert_int_equal(HOOK(count, "idem_record"), 0);
    assert_true(HOOK(get_order, "A-1", &order));
    assert_string_equal(order.status, "PENDING");
}

#define CASE(name) {#name, name}
const struct port_case port_cases[] = {
    CASE(fence_of_another_generation_is_not_current),
    CASE(fence_of_another_server_starts_nothing),
    CASE(now_has_the_form_of_templates),
    CASE(claims_are_new_then_known),
    CASE(a_key_claimed_twice_by_one_attempt_is_a_fault),
    CASE(probe_reports_status_1_only),
    CASE(update_changes_rows_in_from_that_hold_require),
    CASE(update_counts_what_changed),
    CASE(lock_reads_rows_in_layout_order),
    CASE(insert_conflict_is_told_apart),
    CASE(undo_keeps_what_came_before),
    CASE(a_statement_counts_its_rows),
    CASE(events_are_rows_in_order),
    CASE(letters_are_upserts_on_the_fact),
    CASE(a_letter_of_another_fact_is_another_row),
    CASE(records_close_and_replace),
    CASE(a_row_that_waits_keeps_its_origin),
    CASE(records_touch_what_they_are_told),
    CASE(settle_tells_whether_the_claim_is_there),
    CASE(rollback_leaves_nothing),
};
const size_t port_case_count = sizeof port_cases / sizeof *port_cases;
