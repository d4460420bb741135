/* SPDX-License-Identifier: MIT */
/* test_outbox: the outbox port on a real server: the lease between two owners, what a reading brings, gaps, and that
 * nothing waits for somebody else's open transaction. Exit 77 (skipped) without a server. */
#include "sql_world.h"

#include "idem/adapter/mysql_outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SKIPPED = 77, LEASE_MS = 30000, SEEN_MAX = 100 };

static struct mysql_outbox *one, *two;
static struct err err;
static struct {
    uint64_t seq[SEEN_MAX], size[SEEN_MAX];
    size_t payload[SEEN_MAX];
    uint32_t count;
} seen;

#define CALL(outbox, call, ...) mysql_outbox_port(outbox)->ops->call(mysql_outbox_port(outbox)->self, __VA_ARGS__)

static void done(enum err_class class)
{
    if (class)
        fail_msg("%s: %s", err_class_name(class), err.text);
}

static int start(void **state)
{
    (void)state;
    sql_do("DELETE FROM idem_lease");
    sql_do("TRUNCATE idem_outbox");
    one = mysql_outbox_create(sql_world_database(), LEASE_MS, "host/1/one");
    two = mysql_outbox_create(sql_world_database(), LEASE_MS, "host/2/two");
    assert_true(one && two);
    done(CALL(one, open, &err));
    done(CALL(two, open, &err));
    memset(&seen, 0, sizeof seen);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    mysql_outbox_destroy(one);
    mysql_outbox_destroy(two);
    return 0;
}

static void insert(struct conn *conn, const char *values)
{
    char text[512];
    snprintf(text, sizeof text, "INSERT INTO idem_outbox(id,topic,aggregatetype,aggregateid,type,payload) VALUES %s",
             values);
    if (conn)
        done(conn_run_text(conn, text, "test", &err));
    else
        sql_do("%s", text);
}

#define ROW "('00000000000000000000000000000001','t','order','A','Moved','{}')"

static bool take(void *context, const struct outbox_event *event)
{
    (void)context;
    assert_true(seen.count < SEEN_MAX);
    seen.seq[seen.count] = event->seq;
    seen.size[seen.count] = event->size;
    seen.payload[seen.count++] = event->payload.len;
    return true;
}

static void read_all(const struct gaps *gaps, const struct bytes *bare, uint32_t bare_count)
{
    uint32_t count;
    seen.count = 0;
    done(CALL(one, read, gaps, SEEN_MAX, bare, bare_count, take, NULL, &count, &err));
    assert_int_equal(count, seen.count);
}

/* ---- the lease --------------------------------------------------------------------------------------------------- */

static void one_of_two_has_the_lease(void **state)
{
    struct outbox_lease lease;
    (void)state;
    done(CALL(one, lease, LEASE_MS, &lease, &err));
    assert_true(lease.held && lease.generation == 1);
    done(CALL(two, lease, LEASE_MS, &lease, &err));
    assert_true(!lease.held && lease.wait_ms > LEASE_MS / 2 && lease.wait_ms <= LEASE_MS);
    done(CALL(one, lease, LEASE_MS, &lease, &err));
    assert_true(lease.held && lease.generation == 1 && lease.step >= 1);
    done(CALL(two, release, &err));                  /* not his: nothing happens */
    done(CALL(two, lease, LEASE_MS, &lease, &err));
    assert_false(lease.held);
    done(CALL(one, release, &err));
    done(CALL(two, lease, LEASE_MS, &lease, &err));
    assert_true(lease.held && lease.generation == 2);
    done(CALL(one, lease, LEASE_MS, &lease, &err));
    assert_false(lease.held);
    assert_string_equal(sql_value("SELECT CONCAT(name,' ',owner,' ',generation) FROM idem_lease"),
                        "relay host/2/two 2");
}

static void a_lease_ends_by_the_clock_of_the_database(void **state)
{
    struct outbox_lease lease;
    (void)state;
    done(CALL(one, lease, 200, &lease, &err));
    for (lease.held = false; !lease.held;)           /* at most 0.2 s */
        done(CALL(two, lease, LEASE_MS, &lease, &err));
    assert_int_equal(lease.generation, 2);
}

static void only_the_present_owner_deletes(void **state)
{
    struct outbox_lease lease;
    const uint64_t seqs[] = {1, 2};
    const struct bytes ids[] = {BYTES_LIT("00000000000000000000000000000001"),
                                BYTES_LIT("00000000000000000000000000000001")};
    bool held = true;
    (void)state;
    insert(NULL, ROW "," ROW "," ROW);
    done(CALL(one, lease, LEASE_MS, &lease, &err));
    done(CALL(one, remove, seqs, ids, 2, lease.generation + 1, &held, &err));
    assert_false(held);
    done(CALL(two, remove, seqs, ids, 2, lease.generation, &held, &err));
    assert_false(held);
    assert_string_equal(sql_value("SELECT COUNT(*) FROM idem_outbox"), "3");
    done(CALL(one, remove, seqs, ids, 2, lease.generation, &held, &err));
    assert_true(held);
    assert_string_equal(sql_value("SELECT GROUP_CONCAT(seq) FROM idem_outbox"), "3");
}

/* A plan that scans would wait for the row that is not committed. */
static void deleting_waits_for_no_open_transaction(void **state)
{
    struct outbox_lease lease;
    uint64_t seqs[20];
    struct bytes ids[20];
    bool held = false;
    struct conn *other = sql_session();
    (void)state;
    done(conn_begin(other, &err));
    insert(other, ROW);
    for (uint32_t i = 0; i < 20; i++) {
        insert(NULL, ROW);
        seqs[i] = i + 2;
        ids[i] = BYTES_LIT("00000000000000000000000000000001");
    }
    done(CALL(one, lease, LEASE_MS, &lease, &err));
    done(CALL(one, remove, seqs, ids, 20, lease.generation, &held, &err));
    assert_true(held);
    assert_string_equal(sql_value("SELECT COUNT(*) FROM idem_outbox"), "0");
    conn_rollback(other);
    conn_destroy(other);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void a_reading_brings_gaps_and_what_is_new(void **state)
{
    struct gaps gaps;
    (void)state;
    for (int i = 0; i < 10; i++)
        insert(NULL, ROW);
    gaps_init(&gaps);
    read_all(&gaps, NULL, 0);
    assert_int_equal(seen.count, 10);
    assert_int_equal(seen.seq[0], 1);
    assert_int_equal(seen.seq[9], 10);
    gaps_see(&gaps, 1, 1);
    gaps_see(&gaps, 4, 1);                           /* 2-3 */
    gaps_see(&gaps, 8, 1);                           /* 5-7 */
    read_all(&gaps, NULL, 0);
    static const uint64_t wanted[] = {2, 3, 5, 6, 7, 9, 10};
    assert_int_equal(seen.count, 7);
    assert_memory_equal(seen.seq, wanted, sizeof wanted);
    gaps_look_again(&gaps);
    gaps_read_to(&gaps, 3, false);
    read_all(&gaps, NULL, 0);                        /* each once */
    static const uint64_t again[] = {2, 3, 4, 5, 6, 7, 8, 9, 10};
    assert_int_equal(seen.count, 9);
    assert_memory_equal(seen.seq, again, sizeof again);
}

static void topics_that_wait_come_bare_and_once(void **state)
{
    struct gaps gaps;
    const struct bytes bare[] = {BYTES_LIT("it's \\ no"), BYTES_LIT("t")};
    (void)state;
    insert(NULL, ROW ",('2','other','order','A','Moved','{}')," ROW);
    gaps_init(&gaps);
    read_all(&gaps, bare, 2);
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.payload[0] + seen.payload[2], 0);
    assert_int_equal(seen.payload[1], 2);
    for (uint64_t n = 1; n <= 3; n++)
        gaps_see(&gaps, n, 1);
    gaps_look_again(&gaps);
    read_all(&gaps, bare, 2);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.seq[0], 2);
}

static void what_is_large_is_left_out_until_it_is_fetched(void **state)
{
    struct gaps gaps;
    bool found = false;
    (void)state;
    sql_do("INSERT INTO idem_outbox(id,topic,aggregatetype,aggregateid,type,payload) VALUES "
           "('1','t','order','A','Moved',REPEAT('x',%d)),('2','t','order','A','Moved',REPEAT('x',%d))",
           OUTBOX_INLINE_MAX, OUTBOX_INLINE_MAX + 1);
    gaps_init(&gaps);
    read_all(&gaps, NULL, 0);
    assert_int_equal(seen.payload[0], OUTBOX_INLINE_MAX);
    assert_int_equal(seen.payload[1], 0);
    assert_int_equal(seen.size[1], OUTBOX_INLINE_MAX + 1);
    done(CALL(one, fetch, 2, take, NULL, &found, &err));
    assert_true(found);
    assert_int_equal(seen.payload[2], OUTBOX_INLINE_MAX + 1);
    done(CALL(one, fetch, 3, take, NULL, &found, &err));
    assert_false(found);
}

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

static bool is_open(uint64_t from, uint64_t to)
{
    struct gap gap = {from, to, 0};
    bool open = false;
    done(CALL(one, is_open, &gap, &open, &err));
    return open;
}

static void a_gap_is_open_while_a_transaction_is_at_work(void **state)
{
    struct conn *other = sql_session();
    (void)state;
    done(conn_begin(other, &err));
    insert(other, ROW);
    insert(NULL, ROW);
    assert_true(is_open(1, 1));
    conn_rollback(other);
    assert_false(is_open(1, 1));
    assert_true(is_open(1, 2));                      /* a row is left there */
    done(conn_begin(other, &err));
    insert(other, ROW);
    insert(NULL, ROW);
    assert_true(is_open(3, 3));
    done(conn_commit(other, &err));
    assert_true(is_open(3, 3));
    sql_do("DELETE FROM idem_outbox WHERE seq=3");
    assert_false(is_open(3, 3));
    conn_destroy(other);
}

static void rows_are_counted_in_parts(void **state)
{
    uint64_t after = 0, oldest_ms;
    uint32_t rows;
    (void)state;
    done(CALL(one, count, &after, 3, &rows, &oldest_ms, &err));
    assert_int_equal(rows, 0);
    for (int i = 0; i < 5; i++)
        insert(NULL, ROW);
    sql_do("INSERT INTO idem_outbox(id,topic,aggregatetype,aggregateid,type,payload,created_at) VALUES "
           "('1','t','order','A','Moved','{}',UTC_TIMESTAMP(6)-INTERVAL 1 HOUR)");
    done(CALL(one, count, &after, 3, &rows, &oldest_ms, &err));
    assert_int_equal(rows, 3);
    assert_true(oldest_ms < 600000);
    done(CALL(one, count, &after, 4, &rows, &oldest_ms, &err));
    assert_int_equal(rows, 3);
    assert_true(oldest_ms >= 3600000 && oldest_ms < 4200000);
}

#define CASE(name) {#name, name, start, finish, NULL}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(one_of_two_has_the_lease),
        CASE(a_lease_ends_by_the_clock_of_the_database),
        CASE(only_the_present_owner_deletes),
        CASE(deleting_waits_for_no_open_transaction),
        CASE(a_reading_brings_gaps_and_what_is_new),
        CASE(topics_that_wait_come_bare_and_once),
        CASE(what_is_large_is_left_out_until_it_is_fetched),
        CASE(a_gap_is_open_while_a_transaction_is_at_work),
        CASE(rows_are_counted_in_parts),
    };
    if (!sql_world_init()) {
        puts("IDEM_TEST_MYSQL is not set: no server, nothing tested");
        return SKIPPED;
    }
    int failed = cmocka_run_group_tests_name("outbox", tests, NULL, NULL);
    sql_world_finish();
    return failed != 0;
}
