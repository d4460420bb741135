/* SPDX-License-Identifier: MIT */
/* world: the seeded generator, the virtual clock, the rules of the simulated shop, and failing with a seed to replay.
 * */
#include "world.h"

#include "idem/adapter/config_load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct world world;

static const char head[] =
    "version: 1\n"
    "kafka: {brokers: \"k1:9093\", group: g}\n"
    "databases:\n"
    "  shop: {host: 127.0.0.1, database: shop, user: idemd, password: x, connections: 2}\n"
    "batch: {max: 16}\n"
    "limits: {inflight: 64, dead_letter_share: 1}\n"
    "topics:\n";

static const char topic_rules[] =
    "  %s:\n"
    "    database: shop\n"
    "    rules:\n"
    "      - name: paid\n"
    "        when: {/kind: PAY}\n"
    "        biz_type: payment\n"
    "        action: pay\n"
    "        key: [header Idempotency-Key, /no]\n"
    "        biz_no: /no\n"
    "        identity: {channel_txn: /txn}\n"
    "        fields: {amount: {at: /amount, type: decimal, scale: 2}}\n"
    "        fingerprint: {version: 1, fields: [/no, amount, /txn]}\n"
    "        ttl: 72h\n"
    "        transition: {table: orders, where: {order_no: /no}, column: status, from: [PENDING], to: PAID,\n"
    "          already: [PART], conflict: [CLOSED], require: {amount: amount}, set: {channel_txn: /txn}}\n"
    "        insert: [{table: payment_ledger, columns: {order_no: /no, channel_txn: /txn, amount: amount},\n"
    "          unique: [channel_txn]}]\n"
    "        events: [{topic: order.paid, aggregate: order, type: Paid, key: /no, payload: {no: /no}}]\n"
    "        on:\n"
    "          applied_by_other:\n"
    "            events: [{topic: refund.due, aggregate: order, type: Due, key: /no, payload: {no: /no}}]\n"
    "        respond: {code: OK, no: /no}\n"
    "        park: {for: 20s, attempts: 3, backoff: [1s, 5s], locked_after: 5s}\n"
    "      - name: refunded\n"
    "        when: {/kind: REFUND}\n"
    "        biz_type: refund\n"
    "        action: refund\n"
    "        key: /refund_no\n"
    "        biz_no: /no\n"
    "        identity: none\n"
    "        fingerprint: {version: 1, fields: [/no, /refund_no]}\n"
    "        ttl: 72h\n"
    "        transition: {table: orders, where: {order_no: /no}, column: status, from: [PAID, PART], to: PART,\n"
    "          early: [PENDING], conflict: [CLOSED], self: true}\n"
    "        statements:\n"
    "          - sql: \"UPDATE orders SET refunded = refunded + 5 WHERE order_no = :no AND refunded + 5 <= 20\"\n"
    "            params: {no: /no}\n"
    "        events: [{topic: order.refunded, aggregate: order, type: Refunded, key: /no, payload: {no: /no}}]\n"
    "        park: {for: 20s, attempts: 3, backoff: [1s, 5s], locked_after: 5s}\n";

/* What the schema would have said: all text but the amounts, unique by number. */
static void type_columns(const struct column_value *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct column *type = (struct column *)(uintptr_t)&list[i].type;
        if (bytes_equal(list[i].column, BYTES_LIT("amount")))
            *type = (struct column){.kind = COLUMN_DECIMAL, .precision = 10, .scale = 2};
        else
            *type = (struct column){.kind = COLUMN_TEXT, .utf8mb4 = true};
    }
}

const char *world_topic(int partition)
{
    return partition == PARTITIONS - 1 ? "u" : "t";
}

bool world_has(struct bytes topic, int32_t partition)
{
    return partition >= 0 && partition < PARTITIONS && bytes_equal(topic, bytes_text(world_topic(partition)));
}

static void type_topic(struct topic *typed)
{
    for (uint32_t i = 0; i < typed->rule_count; i++) {
        struct rule *rule = &typed->rules[i];
        struct transition *t = (struct transition *)(uintptr_t)&rule->transitions[0];
        t->column_type = (struct column){.kind = COLUMN_TEXT, .utf8mb4 = true};
        t->set_based = true;
        t->index = BYTES_LIT("uk_number");
        type_columns(t->where, t->where_count);
        type_columns(t->require, t->require_count);
        type_columns(t->set, t->set_count);
        type_columns(rule->identity, rule->identity_count);
        rule->id = (uint16_t)(rule->index + 1);
    }
}

void world_load_rules(void)
{
    static struct diagnostic list[8];
    static char rules[sizeof head + 2 * sizeof topic_rules];
    struct diagnostics mistakes = {.list = list, .size = 8};
    int len = snprintf(rules, sizeof rules, "%s", head);
    len += snprintf(rules + len, sizeof rules - (size_t)len, topic_rules, world_topic(0));
    snprintf(rules + len, sizeof rules - (size_t)len, topic_rules, world_topic(PARTITIONS - 1));
    if (!config_text_load(bytes_text(rules), "rules", &world.config, &mistakes))
        world_fail("%u: %s: %s", list[0].line, list[0].path, list[0].message);
    for (uint32_t i = 0; i < world.config->topic_count; i++)
        type_topic(&world.config->topics[i]);
}

enum breakage world_breakage(const char *name)
{
    if (strcmp(name, "offset-early") == 0)
        return BREAK_OFFSET_EARLY;
    if (strcmp(name, "no-fence") == 0)
        return BREAK_NO_FENCE;
    if (strcmp(name, "double-apply") == 0)
        return BREAK_DOUBLE_APPLY;
    if (strcmp(name, "overtake") == 0)
        return BREAK_OVERTAKE;
    if (strcmp(name, "failover-blind") == 0)
        return BREAK_FAILOVER_BLIND;
    if (strcmp(name, "progress-blind") == 0)
        return BREAK_PROGRESS_BLIND;
    if (strcmp(name, "worker-blind") == 0)
        return BREAK_WORKER_BLIND;
    if (strcmp(name, "relay-blind") == 0)
        return BREAK_RELAY_BLIND;
    fprintf(stderr, "no such break: %s\n", name);
    exit(64);
}

uint64_t world_server(void)
{
    return world.breakage == BREAK_FAILOVER_BLIND ? 1 : world.server;
}

uint64_t world_random(void)
{
    world.random ^= world.random << 13;
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return world.random * 0x2545f4914f6cdd1du >> 16;
}

bool world_chance(uint32_t of)
{
    return world_random() % of == 0;
}

void world_fail(const char *format, ...)
{
    va_list arguments;
    printf("seed %llu: ", (unsigned long long)world.seed);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nreplay: sim --seed %llu\n", (unsigned long long)world.seed);
    exit(1);
}

struct sent *world_sent(int32_t partition, int64_t offset)
{
    struct log *log = &world.logs[partition];
    for (uint32_t i = 0; i < log->count; i++)
        if (log->records[i].offset == offset)
            return &log->records[i];
    world_fail("a record that was never sent: %d/%lld", partition, (long long)offset);
}

void world_may_crash(void)
{
    if (world.may_crash && world.faults && world_chance(900)) {
        world.may_crash = false;
        longjmp(world.crash, 1);
    }
}

static int64_t mono_us(void *self)
{
    (void)self;
    return ++world.now_us;
}

static int64_t wall_ms(void *self)
{
    (void)self;
    return 1764547200000 + world.now_us / 1000;
}

static uint64_t random_bits(void *self)
{
    (void)self;
    return world_random() << 32 ^ world_random();
}

static void probe(void *self, enum probe_point point)
{
    (void)self, (void)point;
    world_may_crash();
}

const struct env_port *world_env(void)
{
    static const struct env_port env = {.mono_us = mono_us, .wall_ms = wall_ms, .random = random_bits, .probe = probe};
    return &env;
}
