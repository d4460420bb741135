/* SPDX-License-Identifier: MIT */
/* invariants: what must hold after a seed, however bad it was: nothing lost,
        nothing doubled. Looks only at what is stored and
 * at what was reported. */
#include "world.h"

#include <stdio.h>

static uint32_t events_of(const char *topic, const char *key)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < world.db.event_count; i++)
        count += strcmp(world.db.events[i].topic, topic) == 0 && strcmp(world.db.events[i].key, key) == 0;
    return count;
}

static void check_orders(void)
{
    uint32_t paid = 0;
    for (int i = 0; i < ORDERS; i++) {
        const struct db_order *order = &world.db.orders[i];
        bool is_paid = strcmp(order->status, "PAID") == 0 || strcmp(order->status, "PART") == 0;
        uint32_t events = events_of("order.paid", order->number), refunds = events_of("order.refunded", order->number);
        if (events != is_paid)
            world_fail("order %s is %s and has %u events", order->number, order->status, events);
        if (order->refunded != (int)refunds * 500 || order->refunded > 2000)
            world_fail("order %s: %d cents refunded by %u refunds", order->number, order->refunded, refunds);
        paid += is_paid;
    }
    if (world.db.ledger_count != paid)
        world_fail("%u orders paid, %u ledger rows", paid, world.db.ledger_count);
    for (uint32_t i = 0; i < world.db.event_count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (memcmp(world.db.events[i].id, world.db.events[k].id, EVENT_ID_LEN) == 0)
                world_fail("one event twice");
}

/* Every record has an outcome; a key is first once; what is applied has its row. */
static void check_records(void)
{
    uint32_t firsts = 0, applied = 0;
    for (int i = 0; i < PARTITIONS; i++)
        for (uint32_t k = 0; k < world.logs[i].count; k++) {
            const struct sent *sent = &world.logs[i].records[k];
            if (!sent->reported)
                world_fail("%d/%lld has no outcome", i, (long long)sent->offset);
            firsts += sent->outcome == OUTCOME_FIRST;
        }
    for (uint32_t i = 0; i < world.db.record_count; i++)
        if (world.db.records[i].status == RECORD_PROCESSING)
            world_fail("key %s waits for ever", world.db.records[i].key);
    for (uint32_t i = 0; i < world.db.record_count; i++)
        applied += world.db.records[i].status == RECORD_APPLIED && world.db.records[i].outcome == OUTCOME_FIRST;
    /* A process that dies between its COMMIT and its report leaves a first that nobody tells of: never the other way.
     * */
    if (firsts > applied)
        world_fail("%u records were first, %u rows say so", firsts, applied);
}

void invariants_hold(void)
{
    check_orders();
    check_records();
}

void invariants_same(const struct db *one, const struct log *log)
{
    for (uint32_t i = 0; i < log->count && world.verbose; i++)
        printf("%lld %s %s: %s %s / %s %s\n", (long long)log->records[i].offset, log->records[i].key_header,
               log->records[i].body, outcome_name(log->records[i].outcome), cause_name(log->records[i].cause),
               outcome_name(world.logs[0].records[i].outcome), cause_name(world.logs[0].records[i].cause));
    for (uint32_t i = 0; i < log->count; i++)
        if (log->records[i].outcome != world.logs[0].records[i].outcome ||
            log->records[i].cause != world.logs[0].records[i].cause)
            world_fail("batching shows: offset %lld (%s) is %s %s alone and %s %s in a batch",
                       (long long)log->records[i].offset, log->records[i].body, outcome_name(log->records[i].outcome),
                       cause_name(log->records[i].cause), outcome_name(world.logs[0].records[i].outcome),
                       cause_name(world.logs[0].records[i].cause));
    for (int i = 0; i < ORDERS; i++) {
        const struct db_order *a = &one->orders[i], *b = &world.db.orders[i];
        if (memcmp(a, b, sizeof *a) != 0)
            world_fail("batching shows: order %s is %s %s %d alone and %s %s %d in a batch", a->number, a->status,
                a->txn,
                       a->refunded, b->status, b->txn, b->refunded);
    }
    if (one->record_count != world.db.record_count ||
        memcmp(one->records, world.db.records, one->record_count * sizeof *one->records) != 0)
        world_fail("batching shows: dedupe rows differ");
    if (one->letter_count != world.db.letter_count ||
        memcmp(one->letters, world.db.letters, one->letter_count * sizeof *one->letters) != 0)
        world_fail("batching shows: dead letters differ");
    if (one->event_count != world.db.event_count ||
        memcmp(one->events, world.db.events, one->event_count * sizeof *one->events) != 0)
        world_fail("batching shows: events differ");
}
