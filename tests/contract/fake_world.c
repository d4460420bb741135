/* SPDX-License-Identifier: MIT */
/* fake_world: see fake_world.h. Reads and writes the simulated rows as they lie; the store's transactions are copies
 * of the whole, so what lies there between two of them is committed. */
#include "fake_world.h"

#include "../sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SENT = 16 };

static struct db_order *order_at(const char *order_no)
{
    for (int i = 0; i < ORDERS; i++)
        if (strcmp(world.db.orders[i].number, order_no) == 0)
            return &world.db.orders[i];
    return NULL;
}

static void calm(void *context)
{
    (void)context;
    memset(world.held, 0, sizeof world.held);
    world.held_key[0] = '\0';
    world.strike = STRIKE_NONE;
    world.outage = false;
}

/* What is parked is read again from the log. */
static void sent_at(struct log *log, int64_t offset)
{
    struct sent *sent = &log->records[log->count++];
    *sent = (struct sent){.offset = offset, .has_value = true, .reported = true};
    snprintf(sent->body, sizeof sent->body, "{}");
}

static void tick(void *context)
{
    (void)context;
    world.now_us += 1000;
}

static void reset(void *context)
{
    calm(context);
    world.db = (struct db){.generation = {7, 7}};
    for (int i = 0; i < PARTITIONS; i++) {
        world.db.progress[i] = world.db.last_offset[i] = -1;
        world.logs[i].count = 0;
        for (uint32_t k = 0; k < SENT; k++)
            sent_at(&world.logs[i], k);
    }
}

static void set_generation(void *context, int32_t partition, uint64_t generation)
{
    (void)context;
    world.db.generation[partition] = generation;
}

static void put_order(void *context, const char *order_no, const char *status, const char *amount, const char *txn)
{
    struct db_order *order = order_at("");
    (void)context;
    assert_non_null(order);
    *order = (struct db_order){.has_txn = txn != NULL};
    snprintf(order->number, TEXT, "%s", order_no);
    snprintf(order->status, TEXT, "%s", status);
    snprintf(order->amount, TEXT, "%s", amount);
    snprintf(order->txn, TEXT, "%s", txn ? txn : "");
}

static bool get_order(void *context, const char *order_no, struct port_order *ret)
{
    const struct db_order *order = order_at(order_no);
    (void)context;
    if (!order)
        return false;
    *ret = (struct port_order){.txn_null = !order->has_txn, .paid_at_set = order->is_paid};
    snprintf(ret->status, sizeof ret->status, "%s", order->status);
    snprintf(ret->amount, sizeof ret->amount, "%s", order->amount);
    snprintf(ret->txn, sizeof ret->txn, "%s", order->txn);
    return true;
}

static uint64_t count(void *context, const char *table)
{
    const struct {
        const char *name;
        uint32_t count;
    } tables[] = {{"payment_ledger", world.db.ledger_count}, {"idem_record", world.db.record_count},
                  {"idem_outbox", world.db.event_count}, {"idem_dead_letter", world.db.letter_count}};
    (void)context;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (strcmp(table, tables[i].name) == 0)
            return tables[i].count;
    fail_msg("no table %s", table);
    return 0;
}

static bool get_record(void *context, const char *key, struct port_record *ret)
{
    (void)context;
    for (uint32_t i = 0; i < world.db.record_count; i++) {
        const struct db_record *record = &world.db.records[i];
        if (strcmp(record->key, key) != 0)
            continue;
        *ret = (struct port_record){.status = (int)record->status, .attempts = record->attempts,
                                    .offset = record->offset, .response_null = !record->response[0],
                                    .request_id_null = !record->has_request_id};
        snprintf(ret->outcome, sizeof ret->outcome, "%s", outcome_name(record->outcome));
        snprintf(ret->biz_no, sizeof ret->biz_no, "%s", record->biz_no);
        snprintf(ret->response, sizeof ret->response, "%s", record->response);
        return true;
    }
    return false;
}

static const char *const letter_states[] = {
    [LETTER_OPEN] = "open", [LETTER_RESOLVED] = "resolved", [LETTER_DISCARDED] = "discarded"};

static bool get_letter(void *context, struct port_letter *ret)
{
    const struct db_letter *letter = &world.db.letters[0];
    (void)context;
    if (world.db.letter_count == 0)
        return false;
    *ret = (struct port_letter){.attempts = letter->attempts, .payload_bytes = letter->payload_bytes,
                                .payload_len = letter->payload_len, .offset = letter->offset};
    snprintf(ret->cause, sizeof ret->cause, "%s", cause_name(letter->cause));
    snprintf(ret->state, sizeof ret->state, "%s", letter_states[letter->state]);
    snprintf(ret->row_state, sizeof ret->row_state, "%s", world.db.row_states[0]);
    return true;
}

static void set_letter_state(void *context, const char *state)
{
    (void)context;
    for (int i = LETTER_OPEN; i <= LETTER_DISCARDED; i++)
        if (strcmp(state, letter_states[i]) == 0)
            world.db.letters[0].state = (enum letter_state)i;
}

static bool get_event(void *context, uint32_t index, struct port_event *ret)
{
    const struct db_event *event = &world.db.events[index];
    (void)context;
    if (index >= world.db.event_count)
        return false;
    snprintf(ret->topic, sizeof ret->topic, "%s", event->topic);
    snprintf(ret->key, sizeof ret->key, "%s", event->key);
    snprintf(ret->id, sizeof ret->id, "%.*s", (int)EVENT_ID_LEN, event->id);
    return true;
}

static int64_t get_progress(void *context, int32_t partition)
{
    (void)context;
    return world.db.progress[partition];
}

/* ---- trouble --------------------------------------------------------------------------------------------------- */

static void hold_order(void *context, const char *order_no)
{
    (void)context;
    world.held[order_at(order_no) - world.db.orders] = true;
}

static void hold_key(void *context, const char *key)
{
    (void)context;
    snprintf(world.held_key, TEXT, "%s", key);
}

static void close_circle(void *context, const char *mine, const char *theirs)
{
    (void)context, (void)mine, (void)theirs;
    world.strike = STRIKE_DEADLOCK;
}

static void kill_session(void *context)
{
    (void)context;
    world.strike = STRIKE_LOST;
}

static void lose_commit(void *context, bool happened)
{
    (void)context;
    world.strike = happened ? STRIKE_ANSWER_LOST : STRIKE_LOST;
}

static void outage(void *context)
{
    (void)context;
    world.outage = true;
}

void fake_world_init(void)
{
    static struct config config;
    config = *port_config();
    memset(&world, 0, sizeof world);
    world.server = 6;
    world.config = &config;
}

const struct port_hooks *fake_world_hooks(void)
{
    static const struct port_hooks hooks = {
        .reset = reset, .set_generation = set_generation, .put_order = put_order, .get_order = get_order,
        .count = count, .get_record = get_record, .get_letter = get_letter, .set_letter_state = set_letter_state,
        .get_event = get_event, .get_progress = get_progress, .tick = tick,
        .hold_order = hold_order, .hold_key = hold_key, .close_circle = close_circle, .kill = kill_session,
        .lose_commit = lose_commit, .outage = outage, .calm = calm,
    };
    return &hooks;
}
