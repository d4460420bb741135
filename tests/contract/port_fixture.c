/* SPDX-License-Identifier: MIT */
/* port_fixture: the one rule and the records of the port's contract test. See port_cases.h. */
#include "port_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ITEMS_MAX = 64, VALUES = 5 };
enum { ORDER_NO, AMOUNT, TXN, NOW, ID };

#define TEXT(text) {(const uint8_t *)("" text), sizeof(text) - 1}

static const struct expr exprs[VALUES] = {
    [ORDER_NO] = {.source = EXPR_POINTER, .text = TEXT("/order_no"), .required = true},
    [AMOUNT] = {.source = EXPR_FIELD, .text = TEXT("amount"), .field = 0, .required = true},
    [TXN] = {.source = EXPR_POINTER, .text = TEXT("/channel_txn"), .required = true},
    [NOW] = {.source = EXPR_NOW, .text = TEXT("now")},
    [ID] = {.source = EXPR_META, .text = TEXT("meta offset"), .meta = META_OFFSET},
};
static const struct field fields[] = {
    {.name = TEXT("amount"), .at = ID, .type = FIELD_DECIMAL, .scale = 2, .minor_by = NO_EXPR}};

#define ASCII_BIN                                                                                   \
    {.kind = COLUMN_TEXT, .charset = "ascii", .collation = "ascii_bin"}
#define MONEY                                                                                       \
    {.kind = COLUMN_DECIMAL, .scale = 2, .precision = 20}
#define UTF8_BIN                                                                                    \
    {.kind = COLUMN_TEXT, .charset = "utf8mb4", .collation = "utf8mb4_bin", .utf8mb4 = true,        \
     .nullable = true}

static const struct bytes from[] = {TEXT("PENDING")}, already[] = {TEXT("SHIPPED")},
                          early[] = {TEXT("CREATED")}, conflict[] = {TEXT("CLOSED")};
static const struct column_value where[] = {{TEXT("order_no"), ORDER_NO, ASCII_BIN}},
                                 require[] = {{TEXT("amount"), AMOUNT, MONEY}},
                                 set[] = {{TEXT("paid_at"), NOW,
                                           {.kind = COLUMN_TIME, .precision = 3, .nullable = true}},
                                          {TEXT("channel_txn"), TXN, UTF8_BIN}},
                                 identity[] = {{TEXT("channel_txn"), TXN, UTF8_BIN}},
                                 columns[] = {{TEXT("order_no"), ORDER_NO, ASCII_BIN},
                                              {TEXT("channel_txn"), TXN, UTF8_BIN},
                                              {TEXT("amount"), AMOUNT, MONEY}};
static const uint16_t unique[] = {1};
static struct transition transitions[] = {{
    .table = TEXT("orders"), .where = where, .where_count = 1, .column = TEXT("status"),
    .column_type = ASCII_BIN, .from = from, .from_count = 1, .already = already, .already_count = 1,
    .early = early, .early_count = 1, .conflict = conflict, .conflict_count = 1, .to = TEXT("PAID"),
    .require = require, .require_count = 1, .set = set, .set_count = 2, .index = TEXT("PRIMARY"),
    .set_based = true,
}};
static const struct insert inserts[] = {{.table = TEXT("payment_ledger"), .columns = columns,
                                         .column_count = 3, .unique = unique, .unique_count = 1}};
static const struct bytes pieces[] = {TEXT("UPDATE orders SET refunded=refunded+5 WHERE order_no="),
                                      TEXT(" AND refunded+5<=20")};
static const uint16_t params[] = {ORDER_NO};
static const struct statement statements[] = {{
    .sql = TEXT("UPDATE orders SET refunded=refunded+5 WHERE order_no=:no AND refunded+5<=20"),
    .text = pieces, .params = params, .param_count = 1, .affected = 1,
    .otherwise = OUTCOME_STATE_CONFLICT,
}};
static const struct member members[] = {{TEXT("order_no"), ORDER_NO}, {TEXT("amount"), AMOUNT}};
static const struct event events[] = {{
    .topic = TEXT("order.paid"), .aggregate = TEXT("order"), .type = TEXT("OrderPaid"),
    .key = ORDER_NO, .payload = {members, 2},
}};
static struct rule rules[] = {{
    .name = TEXT("paid"), .topic = TEXT(PORT_TOPIC), .biz_type = TEXT("payment"),
    .action = TEXT("pay"), .id = 1, .exprs = exprs, .expr_count = VALUES, .scope = NO_EXPR,
    .biz_no = ORDER_NO, .identity = identity, .identity_count = 1, .fields = fields,
    .field_count = 1, .fingerprint_version = 1, .ttl_s = 259200, .transitions = transitions,
    .transition_count = 1, .inserts = inserts, .insert_count = 1, .statements = statements,
    .statement_count = 1, .events = {events, 1}, .reads_now = true,
}};
static struct topic topics[] = {
    {.name = TEXT(PORT_TOPIC), .rules = rules, .rule_count = 1, .max_bytes = 1 << 20}};
static struct bytes hosts[1];
static struct database_config databases[] = {
    {.name = TEXT("shop"), .hosts = hosts, .lock_wait_ms = 1000, .time_zone = TEXT("+08:00"),
     .connections = 1}};
static const struct config config = {
    .kafka = {.group = TEXT("g")}, .databases = databases, .database_count = 1, .topics = topics,
    .topic_count = 1, .rule_count = 1, .batch_max = ITEMS_MAX, .batch_bytes = 1 << 20,
    .dead_letter = {.payload_max = 16},
};

const uint8_t port_claim[CLAIM_LEN] = {1, 2, 3, 4, 5, 6, 7, 8},
              port_other_claim[CLAIM_LEN] = {9, 9, 9, 9, 9, 9, 9, 9};

struct place {
    struct item item;
    struct value values[VALUES];
    char key[300], order_no[80], amount[80], txn[80];
};

static struct place places[ITEMS_MAX];
static uint32_t used;
static struct arena scratch;
static uint8_t memory[1 << 20];

const struct config *port_config(void)
{
    return &config;
}

struct rule *port_rule(void)
{
    return &rules[0];
}

struct arena *port_scratch(void)
{
    return &scratch;
}

/* Hashes need only differ where the texts differ. */
static void fill_hash(uint8_t *hash, size_t len, const char *text)
{
    for (size_t i = 0; i < len; i++)
        hash[i] = (uint8_t)bytes_hash(bytes_text(text), i);
}

struct item *port_item(const char *order_no, const char *amount, const char *txn, int64_t offset)
{
    assert_true(used < ITEMS_MAX);
    struct place *place = &places[used++];
    struct item *item = &place->item;
    *place = (struct place){0};
    snprintf(place->order_no, sizeof place->order_no, "%s", order_no);
    snprintf(place->amount, sizeof place->amount, "%s", amount);
    snprintf(place->txn, sizeof place->txn, "%s", txn);
    snprintf(place->key, sizeof place->key, "payment:%s:pay", order_no);
    place->values[ORDER_NO] = (struct value){.tag = VALUE_TEXT, .text = bytes_text(place->order_no)};
    place->values[AMOUNT] = (struct value){.tag = VALUE_DECIMAL, .text = bytes_text(place->amount)};
    place->values[TXN] = (struct value){.tag = VALUE_TEXT, .text = bytes_text(place->txn)};
    place->values[NOW] = (struct value){.tag = VALUE_NOW};
    place->values[ID] = (struct value){.tag = VALUE_INTEGER, .text = BYTES_LIT("0")};
    item->record = (struct record){.source = SOURCE_KAFKA, .topic = topics[0].name, .offset = offset,
                                   .timestamp_ms = 1764547200123, .has_value = true,
                                   .value = BYTES_LIT("{\"a\":\"0123456789'\\\"}")};
    item->topic = &topics[0];
    item->generation = 7;
    item->partition = item->record.partition;
    item->eval = (struct evaluation){.rule = &rules[0], .key = bytes_text(place->key),
                                     .biz_no = bytes_text(place->order_no), .values = place->values};
    item->number_hash = bytes_hash(item->eval.biz_no, 0);
    fill_hash(item->eval.params_hash, PARAMS_HASH_LEN, place->amount);
    fill_hash(item->eval.identity_hash, IDENTITY_HASH_LEN, place->txn);
    item->response = BYTES_LIT("{\"code\":\"SUCCESS\"}");
    return item;
}

void port_start(struct port_world *world)
{
    struct err err;
    used = 0;
    arena_init(&scratch, memory, sizeof memory);
    world->store->tx->rollback(world->store->self);
    world->hooks->reset(world->hooks->context);
    assert_int_equal(world->store->tx->open(world->store->self, &err), ERR_NONE);
    const struct ledger_port *ledger = world->ledgers[0];
    if (!ledger)                                     /* whoever has none says it himself */
        return;
    assert_int_equal(ledger->ops->open(ledger->self, &err), ERR_NONE);
    world->server = ledger->ops->server(ledger->self);
    assert_int_not_equal(world->server, 0);
    ledger->ops->close(ledger->self);
}

void port_finish(struct port_world *world)
{
    world->store->tx->rollback(world->store->self);
    for (int i = 0; i < 2; i++)
        if (world->ledgers[i])
            world->ledgers[i]->ops->close(world->ledgers[i]->self);
    if (world->hooks->calm)
        world->hooks->calm(world->hooks->context);
}

/* ---- running --------------------------------------------------------------------------------------------------- */

enum { TESTS_MAX = 96 };

static struct port_world *running;

static int start(void **state)
{
    (void)state;
    port_start(running);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    port_finish(running);
    return 0;
}

static void run_case(void **state)
{
    const struct port_case *one = *state;
    one->run(running);
}

static size_t add(struct CMUnitTest *tests, size_t at, const struct port_case *cases, size_t count)
{
    assert_true(at + count <= TESTS_MAX);
    for (size_t i = 0; i < count; i++)
        tests[at + i] = (struct CMUnitTest){cases[i].name, run_case, start, finish, (void *)(uintptr_t)&cases[i]};
    return at + count;
}

int port_run(const char *name, struct port_world *world, const struct CMUnitTest *more, size_t more_count)
{
    static struct CMUnitTest tests[TESTS_MAX];
    size_t count = add(tests, 0, port_cases, port_case_count);
    count = add(tests, count, port_trouble_cases, port_trouble_case_count);
    count = add(tests, count, port_ledger_cases, port_ledger_case_count);
    count = add(tests, count, port_parked_cases, port_parked_case_count);
    assert_true(count + more_count <= TESTS_MAX);
    for (size_t i = 0; i < more_count; i++)
        tests[count++] = more[i];
    running = world;
    return _cmocka_run_group_tests(name, tests, count, NULL, NULL);
}

/* ---- transactions ---------------------------------------------------------------------------------------------- */

void port_begin(struct port_world *world)
{
    struct fence fence = {topics[0].name, 0, 7, world->server};
    bool current = false;
    struct err err;
    assert_int_equal(world->store->tx->begin(world->store->self, &fence, 1, &current, &err), ERR_NONE);
    assert_true(current);
}

void port_commit(struct port_world *world)
{
    struct err err;
    assert_int_equal(world->store->tx->commit(world->store->self, &err), ERR_NONE);
}
