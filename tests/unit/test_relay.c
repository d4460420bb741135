/* SPDX-License-Identifier: MIT */
/* test_relay: the relay over a table and a producer in memory, on a clock that only the test moves. */
#include "table.h"

#include "idem/app/relay.h"

#include <stdio.h>

enum { ROWS = 64, SENT = 256 };

struct row {
    uint64_t seq;
    const char *aggregate, *topic;
    bool there, hidden;              /* hidden: not committed yet */
    uint64_t size;
};

static struct {
    struct row rows[ROWS];
    uint32_t count;
    bool lease_free, down, lease_taken_by_other;
    uint64_t generation;
    uint64_t sent[SENT];             /* in the order they were sent */
    bool sent_alone[SENT];
    uint32_t sent_count, reported;   /* reports come when the test says */
    uint64_t refused_seq;            /* this one is too large */
    const char *dead_topic;
    bool fatal, purged, batch_refused;   /* batch_refused: whatever is not sent alone */
    uint32_t reads, fetched, asked, alone;
    uint32_t renewed;
    int64_t now_us;
    uint32_t leases_taken, leases_lost, refusals;
} world;

static uint64_t add(const char *aggregate, const char *topic)
{
    world.rows[world.count] = (struct row){world.count + 1, aggregate, topic, true, false, 2};
    return ++world.count;
}

/* ---- fakes ------------------------------------------------------------------------------------------------------- */

static enum err_class open_session(void *self, struct err *err)
{
    (void)self;
    return world.down ? err_set(err, ERR_RECONNECT, 2002, "test", "nobody answers") : ERR_NONE;
}

static void close_session(void *self)
{
    (void)self;
}

static enum err_class lease(void *self, uint32_t for_ms, struct outbox_lease *ret, struct err *err)
{
    (void)self, (void)for_ms, (void)err;
    *ret = (struct outbox_lease){.held = !world.lease_taken_by_other, .generation = world.generation, .wait_ms = 1000};
    return ERR_NONE;
}

static enum err_class release(void *self, struct err *err)
{
    (void)self, (void)err;
    world.lease_free = true;
    return ERR_NONE;
}

static bool is_in_gaps(const struct gaps *gaps, uint64_t seq)
{
    for (uint32_t i = 0; i < gaps->count; i++)
        if (gaps->list[i].from <= seq && seq <= gaps->list[i].to)
            return true;
    return seq > gaps->high || (seq > gaps->again && seq <= gaps->again_end);
}

static bool give(const struct row *row, bool whole, bool (*take)(void *, const struct outbox_event *), void *context)
{
    struct outbox_event event = {.seq = row->seq, .id = BYTES_LIT("00000000000000000000000000000000"),
                                 .topic = bytes_text(row->topic), .aggregate = bytes_text(row->aggregate),
                                 .size = row->size, .payload = BYTES_LIT("{}")};
    if (!whole && row->size > OUTBOX_INLINE_MAX)
        event.payload = (struct bytes){0};
    return take(context, &event);
}

static enum err_class read_rows(void *self, const struct gaps *gaps, uint32_t limit, const struct bytes *bare,
                                uint32_t bare_count, bool (*take)(void *, const struct outbox_event *), void *context,
                                uint32_t *ret_count, struct err *err)
{
    (void)self, (void)bare, (void)bare_count, (void)err;
    *ret_count = 0;
    world.reads++;
    for (uint32_t i = 0; i < world.count && *ret_count < limit; i++) {
        const struct row *row = &world.rows[i];
        if (!row->there || row->hidden || !is_in_gaps(gaps, row->seq))
            continue;
        ++*ret_count;
        if (!give(row, false, take, context))
            break;
    }
    return ERR_NONE;
}

static enum err_class fetch_row(void *self, uint64_t seq, bool (*take)(void *, const struct outbox_event *),
                                void *context, bool *ret_found, struct err *err)
{
    (void)self, (void)err;
    world.fetched++;
    *ret_found = world.rows[seq - 1].there;
    if (*ret_found)
        give(&world.rows[seq - 1], true, take, context);
    return ERR_NONE;
}

static enum err_class is_open(void *self, const struct gap *gap, bool *ret_open, struct err *err)
{
    (void)self, (void)err;
    *ret_open = false;
    world.asked++;
    for (uint64_t seq = gap->from; seq <= gap->to && seq <= world.count; seq++)
        *ret_open = *ret_open || world.rows[seq - 1].there;
    return ERR_NONE;
}

static enum err_class remove_rows(void *self, const uint64_t *seqs, const struct bytes *ids, uint32_t count,
                                  uint64_t generation, bool *ret_held, struct err *err)
{
    (void)self, (void)ids;
    if (world.down)
        return err_set(err, ERR_RECONNECT, 2013, "test", "lost connection");
    *ret_held = generation == world.generation && !world.lease_taken_by_other;
    for (uint32_t i = 0; i < count && *ret_held; i++)
        world.rows[seqs[i] - 1].there = false;
    return ERR_NONE;
}

static enum err_class count_rows(void *self, uint64_t *after, uint32_t limit, uint32_t *ret_rows,
                                 uint64_t *ret_oldest_ms, struct err *err)
{
    (void)self, (void)after, (void)limit, (void)err;
    *ret_rows = 0;
    *ret_oldest_ms = 0;
    return ERR_NONE;
}

static enum err_class send_message(void *self, const struct message *message, struct delivery_report *ret_report,
                                   struct err *err)
{
    (void)self;
    if (world.fatal)
        return err_set(err, ERR_RECONNECT, -150, "test", "fatal");
    if (message->seq == world.refused_seq) {
        *ret_report = (struct delivery_report){message->seq, DELIVERY_REFUSED, 10, "too large"};
        return err_set(err, ERR_DATA, 10, "test", "too large");
    }
    if (world.dead_topic && bytes_equal(message->topic, bytes_text(world.dead_topic))) {
        *ret_report = (struct delivery_report){message->seq, DELIVERY_NO_TOPIC, 3, "no such topic"};
        return err_set(err, ERR_DATA, 3, "test", "no such topic");
    }
    assert_int_equal(message->header_count, 1);
    assert_int_equal(message->value.len, 2);
    world.alone += message->alone;
    world.sent_alone[world.sent_count] = message->alone;
    world.sent[world.sent_count++] = message->seq;
    return ERR_NONE;
}

static enum delivery next_delivery = DELIVERY_DONE;

static enum err_class poll_reports(void *self, uint32_t timeout_ms,
                                   void (*take)(void *context, const struct delivery_report *), void *context,
                                   struct err *err)
{
    (void)self, (void)timeout_ms, (void)err;
    for (; world.reported < world.sent_count; world.reported++) {
        bool refused = world.batch_refused && !world.sent_alone[world.reported];
        struct delivery_report report = {world.sent[world.reported], refused ? DELIVERY_REFUSED : next_delivery, 0,
                                         "test"};
        take(context, &report);
    }
    return ERR_NONE;
}

static void purge(void *self)
{
    (void)self;
    world.purged = true;
    world.reported = world.sent_count;
}

static enum err_class renew(void *self, struct err *err)
{
    (void)self, (void)err;
    world.fatal = false;
    world.renewed++;
    world.reported = world.sent_count;
    return ERR_NONE;
}

static int64_t mono_us(void *self)
{
    (void)self;
    return world.now_us;
}

static uint64_t random_bits(void *self)
{
    (void)self;
    return 7;
}

static void event(void *self, enum report_event number, const struct report_fields *fields)
{
    (void)self;
    world.refusals += number == EVENT_RELAY_REFUSED;
    world.leases_taken += number == EVENT_RELAY_LEASE && strcmp(fields->why, "taken") == 0;
    world.leases_lost += number == EVENT_RELAY_LEASE && strcmp(fields->why, "taken") != 0;
}

static bool parse(void *self, struct bytes body, struct parsed *ret)
{
    (void)self, (void)body;
    *ret = (struct parsed){.cause = CAUSE_BODY};
    return true;
}

/* ---- the world --------------------------------------------------------------------------------------------------- */

static struct relay_counts counts;

static struct relay *start(void)
{
    static const struct outbox_ops outbox_ops = {
        .open = open_session, .close = close_session, .lease = lease, .release = release, .read = read_rows,
        .fetch = fetch_row, .is_open = is_open, .remove = remove_rows, .count = count_rows};
    static const struct producer_ops producer_ops = {send_message, poll_reports, purge, renew};
    static const struct outbox_port outbox = {NULL, &outbox_ops};
    static const struct producer_port producer = {NULL, &producer_ops};
    static const struct env_port env = {.mono_us = mono_us, .random = random_bits};
    static const struct report_port report = {.event = event};
    static const struct parser_port parser = {NULL, parse};
    memset(&world, 0, sizeof world);
    memset(&counts, 0, sizeof counts);
    world.generation = 1;
    world.now_us = 1000000;
    next_delivery = DELIVERY_DONE;
    counts.topic_count = 1;
    struct relay_init init = {.database = BYTES_LIT("shop"), .lease_ms = 30000, .outbox = &outbox,
                              .producer = &producer, .parser = &parser, .env = &env, .report = &report,
                              .counts = &counts};
    struct relay *relay = relay_create(&init);
    assert_non_null(relay);
    return relay;
}

/* Steps until the clock has moved that far. */
static void run(struct relay *relay, int64_t ms)
{
    for (int64_t end = world.now_us + ms * 1000; world.now_us < end; world.now_us += 10000)
        relay_step(relay, 0);
}

static uint32_t rows_left(void)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < world.count; i++)
        left += world.rows[i].there;
    return left;
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void one_of_an_aggregate_at_a_time(void **state)
{
    struct relay *relay = start();
    (void)state;
    for (int i = 0; i < 3; i++) {
        add("A", "t");
        add("B", "t");
    }
    relay_step(relay, 0);
    assert_int_equal(world.sent_count, 2);           /* the first of A and of B */
    assert_int_equal(world.sent[0], 1);
    assert_int_equal(world.sent[1], 2);
    run(relay, 200);
    static const uint64_t order[] = {1, 2, 3, 4, 5, 6};
    assert_int_equal(world.sent_count, 6);
    assert_memory_equal(world.sent, order, sizeof order);
    assert_int_equal(rows_left(), 0);
    assert_int_equal(counts.topics[0].published, 6);
    relay_destroy(relay);
}

static void a_lower_number_that_comes_late(void **state)
{
    struct relay *relay = start();
    (void)state;
    add("LATE", "t");
    world.rows[0].hidden = true;
    for (int i = 0; i < 10; i++)
        add("A", "t");
    run(relay, 500);
    assert_int_equal(rows_left(), 1);
    world.rows[0].hidden = false;
    run(relay, 2500);
    assert_int_equal(rows_left(), 0);
    world.rows[5].there = true;                      /* one that nobody could expect: numbers of long ago */
    run(relay, 31000);
    assert_int_equal(rows_left(), 0);
    relay_destroy(relay);
}

/* A transaction holds a number for long; the next event of its aggregate is written once it has committed. */
static void a_late_number_goes_before_the_next_of_its_aggregate(void **state)
{
    struct relay *relay = start();
    (void)state;
    for (int hold_ms = 20; hold_ms < 100000; hold_ms *= 8) {
        uint32_t before = world.sent_count;
        uint64_t late = add("LATE", "t");
        world.rows[late - 1].hidden = true;
        add("A", "t");
        run(relay, hold_ms);
        assert_int_equal(rows_left(), 1 + (hold_ms < 100));      /* A's may not be deleted yet */
        world.rows[late - 1].hidden = false;
        add("LATE", "t");
        add("A", "t");
        run(relay, 200);
        assert_int_equal(rows_left(), 0);
        assert_int_equal(world.sent_count - before, 4);
        assert_int_equal(world.sent[before + 1], late);
    }
    assert_true(world.asked > 0);
    relay_destroy(relay);
}

/* Numbers that were rolled back are asked about, and then forgotten. */
static void what_was_rolled_back_is_forgotten(void **state)
{
    struct relay *relay = start();
    (void)state;
    for (int i = 0; i < 20; i++) {
        world.rows[add("GONE", "t") - 1].there = false;
        add("A", "t");
    }
    run(relay, 20000);
    assert_int_equal(rows_left(), 0);
    uint32_t asked = world.asked;
    assert_true(asked >= 20);
    run(relay, 20000);
    assert_int_equal(world.asked, asked);
    relay_destroy(relay);
}

static void a_batch_that_is_refused_is_sent_in_parts(void **state)
{
    struct relay *relay = start();
    (void)state;
    for (int i = 0; i < 3; i++) {
        add("A", "t");
        add("B", "t");
    }
    world.batch_refused = true;
    run(relay, 1000);
    assert_int_equal(rows_left(), 0);
    assert_int_equal(world.refusals, 0);
    assert_int_equal(world.alone, 6);
    assert_int_equal(world.sent_count, 8);           /* two in a batch that was refused; from then on alone */
    world.batch_refused = false;
    run(relay, 61000);
    add("A", "t");
    run(relay, 1000);
    assert_int_equal(world.alone, 6);                /* and after a while together again */
    relay_destroy(relay);
}

static void what_is_large_is_fetched_when_it_is_sent(void **state)
{
    struct relay *relay = start();
    (void)state;
    world.rows[add("A", "t") - 1].size = OUTBOX_INLINE_MAX + 1;
    world.rows[add("A", "t") - 1].size = 1 << 20;
    world.rows[add("B", "t") - 1].size = 16 << 20;
    world.rows[add("C", "t") - 1].size = 16 << 20;
    world.rows[add("D", "t") - 1].size = 16 << 20;
    relay_step(relay, 0);
    assert_int_equal(world.sent_count, 3);           /* no more than some of them at a time */
    run(relay, 1000);
    assert_int_equal(rows_left(), 0);
    assert_int_equal(world.fetched, 5);
    assert_int_equal(world.alone, 4);
    relay_destroy(relay);
}

static void what_may_pass_is_sent_again_before_its_successors(void **state)
{
    struct relay *relay = start();
    (void)state;
    add("A", "t");
    add("A", "t");
    next_delivery = DELIVERY_AGAIN;
    run(relay, 1000);
    assert_true(world.sent_count < 20);              /* backed off, not spinning */
    for (uint32_t i = 0; i < world.sent_count; i++)
        assert_int_equal(world.sent[i], 1);
    next_delivery = DELIVERY_DONE;
    run(relay, 10000);
    assert_int_equal(rows_left(), 0);
    assert_int_equal(world.sent[world.sent_count - 1], 2);
    relay_destroy(relay);
}

static void what_is_refused_stops_its_aggregate_only(void **state)
{
    struct relay *relay = start();
    (void)state;
    world.refused_seq = add("BIG", "t");
    add("BIG", "t");
    add("OK", "t");
    run(relay, 59000);
    assert_int_equal(rows_left(), 2);
    assert_int_equal(world.refusals, 1);
    run(relay, 120000);                              /* tried again, told once */
    assert_int_equal(world.refusals, 1);
    world.rows[0].there = false;                     /* discarded by hand */
    world.refused_seq = 0;
    run(relay, 5000);
    assert_int_equal(rows_left(), 0);
    for (uint32_t i = 0; i < world.sent_count; i++)
        assert_int_not_equal(world.sent[i], 1);
    relay_destroy(relay);
}

static void a_topic_that_is_not_there_is_passed_over(void **state)
{
    struct relay *relay = start();
    (void)state;
    world.dead_topic = "gone";
    for (int i = 0; i < 5; i++) {
        add("A", "gone");
        add("B", "gone");
        add("C", "t");
    }
    run(relay, 1000);
    assert_int_equal(rows_left(), 10);
    assert_int_equal(world.refusals, 1);
    world.dead_topic = NULL;                         /* somebody makes it */
    run(relay, 70000);
    assert_int_equal(rows_left(), 0);
    relay_destroy(relay);
}

static void a_lost_lease_stops_everything(void **state)
{
    struct relay *relay = start();
    (void)state;
    add("A", "t");
    run(relay, 100);
    assert_int_equal(world.leases_taken, 1);
    world.lease_taken_by_other = true;
    add("B", "t");
    run(relay, 11000);                               /* asked for again after a third of its time */
    assert_int_equal(world.leases_lost, 1);
    assert_true(world.purged);
    uint32_t sent = world.sent_count;
    add("C", "t");
    run(relay, 20000);
    assert_int_equal(world.sent_count, sent);
    world.lease_taken_by_other = false;
    world.generation = 3;
    run(relay, 11000);
    assert_int_equal(rows_left(), 0);
    assert_int_equal(world.leases_taken, 2);
    relay_destroy(relay);
}

static void a_database_that_is_gone_ends_the_lease_in_time(void **state)
{
    struct relay *relay = start();
    (void)state;
    run(relay, 100);
    world.down = true;
    add("A", "t");
    run(relay, 25000);                               /* a fifth before its 30 s are over */
    assert_int_equal(world.leases_lost, 1);
    uint32_t sent = world.sent_count;
    run(relay, 60000);
    assert_int_equal(world.sent_count, sent);
    world.down = false;
    run(relay, 10000);
    assert_int_equal(rows_left(), 0);
    relay_destroy(relay);
}

/* Within the lease, another server may answer, with rows under numbers that were seen. */
static void after_an_outage_everything_is_looked_at_again(void **state)
{
    struct relay *relay = start();
    (void)state;
    for (int i = 0; i < 5; i++)
        add("A", "t");
    run(relay, 500);
    assert_int_equal(rows_left(), 0);
    world.down = true;
    run(relay, 11000);                               /* the lease could not be renewed, and is ours yet */
    assert_int_equal(world.leases_lost, 0);
    world.down = false;
    world.rows[1].there = true;
    add("A", "t");
    run(relay, 5500);
    assert_int_equal(rows_left(), 0);
    assert_int_equal(world.sent[world.sent_count - 2], 2);
    relay_destroy(relay);
}

static void a_producer_that_is_lost_is_renewed(void **state)
{
    struct relay *relay = start();
    (void)state;
    add("A", "t");
    add("A", "t");
    world.fatal = true;
    run(relay, 1000);
    assert_int_equal(world.renewed, 1);
    assert_int_equal(rows_left(), 0);
    relay_destroy(relay);
}

static void stopping_waits_for_reports_and_gives_the_lease_back(void **state)
{
    struct relay *relay = start();
    (void)state;
    add("A", "t");
    relay_step(relay, 0);
    assert_int_equal(rows_left(), 1);                /* sent, no report yet */
    while (!relay_stop_step(relay, 0, world.now_us + 1000000))
        world.now_us += 1000;
    assert_int_equal(rows_left(), 0);
    assert_true(world.lease_free);
    relay_destroy(relay);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_an_aggregate_at_a_time),
        cmocka_unit_test(a_lower_number_that_comes_late),
        cmocka_unit_test(a_late_number_goes_before_the_next_of_its_aggregate),
        cmocka_unit_test(what_was_rolled_back_is_forgotten),
        cmocka_unit_test(a_batch_that_is_refused_is_sent_in_parts),
        cmocka_unit_test(what_is_large_is_fetched_when_it_is_sent),
        cmocka_unit_test(what_may_pass_is_sent_again_before_its_successors),
        cmocka_unit_test(what_is_refused_stops_its_aggregate_only),
        cmocka_unit_test(a_topic_that_is_not_there_is_passed_over),
        cmocka_unit_test(a_lost_lease_stops_everything),
        cmocka_unit_test(a_database_that_is_gone_ends_the_lease_in_time),
        cmocka_unit_test(after_an_outage_everything_is_looked_at_again),
        cmocka_unit_test(a_producer_that_is_lost_is_renewed),
        cmocka_unit_test(stopping_waits_for_reports_and_gives_the_lease_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
