/* SPDX-License-Identifier: MIT */
/* test_store: the port's contract (port_cases.c) on a real server, and what only a real server
 * does: locks of other sessions, deadlocks, killed sessions, a read-only server, the ledger. Exit
 * 77 (skipped) without IDEM_TEST_MYSQL. */
#include "cut_proxy.h"
#include "sql_world.h"
#include "idem/adapter/mysql_store.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct mysql_store *store;
static struct port_world world;
static struct err err;

#define SELF (world.store->self)

static void run_case(void **state)
{
    const struct port_case *one = *state;
    one->run(&world);
}

static int start(void **state)
{
    (void)state;
    port_start(&world);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    world.store->tx->rollback(SELF);
    return 0;
}

static void put_order(const char *order_no, const char *status)
{
    world.hooks->put_order(world.hooks->context, order_no, status, "10.00", NULL);
}

static void session_do(struct conn *conn, const char *sql)
{
    if (conn_state(conn) == CONN_IDLE)
        assert_int_equal(conn_begin(conn, &err), ERR_NONE);
    if (conn_run_text(conn, sql, "test", &err))
        fail_msg("%s in: %s", err.text, sql);
    conn_done(conn);
}

/* ---- locks ----------------------------------------------------------------------------------------------------- */

static void a_row_held_by_another_session(void **state)
{
    struct conn *other = sql_session();
    struct item *items[] = {port_item("A-1", "10.00", "t1", 1), port_item("A-2", "10.00", "t2", 2),
                            port_item("A-3", "10.00", "t3", 3)};
    uint64_t affected;
    (void)state;
    put_order("A-1", "PENDING");
    put_order("A-2", "PENDING");
    session_do(other, "SELECT * FROM orders WHERE order_no='A-1' FOR UPDATE");
    port_begin(&world);
    assert_int_equal(world.store->row->lock(SELF, port_rule(), 0, items, 3, true, port_scratch(), &err),
                     ERR_NONE);
    assert_true(items[0]->rows[0].found && items[0]->rows[0].locked);
    assert_true(items[1]->rows[0].found && !items[1]->rows[0].locked);
    assert_false(items[2]->rows[0].found);
    assert_int_equal(world.store->row->update(SELF, port_rule(), 0, items, 2, &affected, &err),
                     ERR_LOCKED);
    assert_int_equal(err.number, 1205);
    world.store->tx->rollback(SELF);
    port_begin(&world);
    assert_int_equal(world.store->row->lock(SELF, port_rule(), 0, items, 2, false, port_scratch(), &err),
                     ERR_LOCKED);
    world.store->tx->rollback(SELF);
    conn_destroy(other);
}

static void a_key_claimed_by_another_session(void **state)
{
    struct conn *other = sql_session();
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    (void)state;
    session_do(other, "INSERT INTO idem_record(biz_type,idem_key,biz_no,rule_id,params_hash,identity_hash,"
                      "fingerprint_version,outcome,claim,source,partition_id,kafka_offset,expires_at) VALUES "
                      "('payment','payment:A-1:pay','A-1',9,REPEAT('p',32),REPEAT('i',16),1,'parked',"
                      "'claim---','http',3,77,NOW())");
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_LOCKED);
    world.store->tx->rollback(SELF);
    assert_int_equal(conn_commit(other, &err), ERR_NONE);
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    assert_true(a->known.present && !a->claimed);
    assert_int_equal(a->known.status, RECORD_PROCESSING);
    assert_int_equal(a->known.source, SOURCE_HTTP);
    assert_int_equal(a->known.offset, 77);
    assert_true(bytes_equal(a->known.topic, BYTES_LIT("old.topic")));    /* of a rule that is gone */
    world.store->tx->rollback(SELF);
    conn_destroy(other);
}

static void *wait_for_a1(void *context)
{
    static struct err ignored;
    struct conn *other = context;
    /* Waits for the store's lock; the store then closes the circle. */
    conn_run_text(other, "UPDATE orders SET status='PENDING' WHERE order_no='A-1'", "test", &ignored);
    return NULL;
}

static void a_deadlock_is_a_retry(void **state)
{
    struct conn *other = sql_session();
    struct item *a = port_item("A-1", "10.00", "t1", 1), *b = port_item("A-2", "10.00", "t2", 2);
    uint64_t affected;
    pthread_t thread;
    (void)state;
    put_order("A-1", "PENDING");
    put_order("A-2", "PENDING");
    /* The heavier transaction survives: the store's is the victim. */
    session_do(other, "INSERT INTO account(id,balance) VALUES (1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0)");
    session_do(other, "UPDATE account SET balance=1");
    session_do(other, "UPDATE orders SET amount=11 WHERE order_no='A-2'");
    port_begin(&world);
    assert_int_equal(world.store->row->update(SELF, port_rule(), 0, &a, 1, &affected, &err), ERR_NONE);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_a1, other), 0);
    enum err_class class = world.store->row->update(SELF, port_rule(), 0, &b, 1, &affected, &err);
    assert_int_equal(class, ERR_RETRY);
    assert_int_equal(err.number, 1213);
    world.store->tx->rollback(SELF);
    pthread_join(thread, NULL);
    conn_destroy(other);
}

/* ---- sessions that die ----------------------------------------------------------------------------------------- */

static void a_killed_session_mid_transaction(void **state)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    uint64_t affected;
    (void)state;
    put_order("A-1", "PENDING");
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    sql_do("KILL CONNECTION %llu",
           (unsigned long long)conn_thread_id(mysql_store_conn(store)));
    assert_int_equal(world.store->row->update(SELF, port_rule(), 0, &a, 1, &affected, &err),
                     ERR_RECONNECT);
    world.store->tx->rollback(SELF);
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_NONE);
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    assert_true(a->claimed);
    port_commit(&world);
}

static void a_killed_session_at_commit_is_in_doubt(void **state)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    bool committed = true;
    (void)state;
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    sql_do("KILL CONNECTION %llu",
           (unsigned long long)conn_thread_id(mysql_store_conn(store)));
    assert_int_equal(world.store->tx->commit(SELF, &err), ERR_IN_DOUBT);
    assert_int_equal(world.store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_NONE);
    assert_false(committed);
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    port_commit(&world);
}

/* The answer to COMMIT is lost and the old session lives on: it is ended first, then the rows are asked. */
static void lost_commit(bool forwarded)
{
    struct database_config database = *sql_world_database();
    struct config config = *port_config();
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    uint64_t affected;
    char address[64];
    bool committed = !forwarded;
    put_order("A-1", "PENDING");
    snprintf(address, sizeof address, "%.*s", (int)database.hosts[0].len,
             (const char *)database.hosts[0].at);
    database.port = cut_proxy_start(address, database.port);
    config.databases = &database;
    struct mysql_store *cut = mysql_store_create(&database, &config);
    struct port_world through = {mysql_store_port(cut), sql_world_hooks()};
    void *self = through.store->self;
    assert_int_equal(through.store->tx->open(self, &err), ERR_NONE);
    unsigned long long old = conn_thread_id(mysql_store_conn(cut));
    port_begin(&through);
    assert_int_equal(through.store->row->claim(self, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    assert_int_equal(through.store->row->update(self, port_rule(), 0, &a, 1, &affected, &err), ERR_NONE);
    cut_proxy_arm(forwarded);
    assert_int_equal(through.store->tx->commit(self, &err), ERR_IN_DOUBT);
    assert_string_equal(sql_value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID=%llu", old),
                        "1");
    if (through.store->tx->settle(self, &a, 1, port_claim, &committed, &err))
        fail_msg("settle: %s", err.text);
    assert_int_equal(committed, forwarded);
    assert_string_equal(sql_value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID=%llu", old),
                        "0");
    mysql_store_destroy(cut);
    cut_proxy_stop();
    assert_string_equal(sql_value("SELECT status FROM orders"), forwarded ? "PAID" : "PENDING");
}

static void a_lost_answer_of_a_commit_that_happened(void **state)
{
    (void)state;
    lost_commit(true);
}

static void a_lost_commit_that_never_arrived(void **state)
{
    (void)state;
    lost_commit(false);
}

static void a_read_only_server_is_the_wrong_one(void **state)
{
    struct mysql_ledger *ledger = mysql_ledger_create(sql_world_database(), port_config(), "me");
    const struct ledger_port *port = mysql_ledger_port(ledger);
    (void)state;
    assert_int_equal(port->ops->open(port->self, &err), ERR_NONE);
    assert_int_equal(port->ops->ping(port->self, &err), ERR_NONE);
    world.store->tx->close(SELF);
    if (!sql_try("SET GLOBAL read_only=1")) {
        mysql_ledger_destroy(ledger);
        print_message("not allowed to set read_only: not looked at\n");
        return;
    }
    enum err_class opened = world.store->tx->open(SELF, &err);
    enum err_class ping = port->ops->ping(port->self, &err);
    assert_true(sql_try("SET GLOBAL read_only=0"));
    assert_int_equal(opened, ERR_WRONG_SERVER);
    assert_int_equal(ping, ERR_WRONG_SERVER);
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_NONE);
    mysql_ledger_destroy(ledger);
}

static void a_wrong_password_is_configuration(void **state)
{
    struct database_config database = *sql_world_database();
    struct bytes hosts[] = {BYTES_LIT("127.0.0.1"), database.hosts[0]};
    (void)state;
    database.password = BYTES_LIT("certainly not");
    struct conn *conn = conn_create(&database);
    assert_int_equal(conn_open(conn, &err), ERR_CONFIG);
    assert_int_equal(err.number, 1045);
    database.password = sql_world_database()->password;
    database.time_zone = BYTES_LIT("Nowhere/Land");
    assert_int_equal(conn_open(conn, &err), ERR_CONFIG);
    database.time_zone = sql_world_database()->time_zone;
    database.tls = TLS_VERIFY;
    database.tls_ca = BYTES_LIT("/nonexistent.pem");
    assert_int_not_equal(conn_open(conn, &err), ERR_NONE);
    database.tls = TLS_OFF;
    assert_int_equal(conn_open(conn, &err), ERR_NONE);
    conn_destroy(conn);
    /* The next host of the list. */
    database.hosts = hosts;
    database.host_count = 2;
    hosts[0] = BYTES_LIT("no-such-host.invalid");
    conn = conn_create(&database);
    assert_int_equal(conn_open(conn, &err), ERR_NONE);
    conn_destroy(conn);
}

/* ---- effects of a real server ---------------------------------------------------------------------------------- */

static void a_statement_counts_its_rows(void **state)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1), *much = port_item("A-2", "1000.00", "t2", 2);
    uint64_t affected = 9;
    (void)state;
    sql_do("INSERT INTO account VALUES ('main',50)");
    port_begin(&world);
    assert_int_equal(world.store->effect->statement(SELF, port_rule(), 0, a, &affected, &err), ERR_NONE);
    assert_int_equal(affected, 1);
    assert_int_equal(world.store->effect->statement(SELF, port_rule(), 0, much, &affected, &err),
                     ERR_NONE);
    assert_int_equal(affected, 0);
    port_commit(&world);
    assert_string_equal(sql_value("SELECT balance FROM account"), "40.00");
}

static void non_ascii_for_another_charset_is_data(void **state)
{
    struct item *items[] = {port_item("A-1", "10.00", "t1", 1), port_item("\xE8\xAE\xA2" "1", "10.00", "t2", 2)};
    uint64_t affected = 9;
    (void)state;
    put_order("A-1", "PENDING");
    put_order("?1", "PENDING");
    port_begin(&world);
    assert_int_equal(world.store->row->update(SELF, port_rule(), 0, items, 2, &affected, &err), ERR_NONE);
    assert_int_equal(affected, 1);
    assert_int_equal(world.store->row->lock(SELF, port_rule(), 0, items, 2, false, port_scratch(), &err),
                     ERR_NONE);
    assert_false(items[1]->rows[0].found);
    assert_int_equal(world.store->effect->insert(SELF, port_rule(), 0, &items[1], 1, &err), ERR_DATA);
    world.store->tx->rollback(SELF);
    assert_string_equal(sql_value("SELECT status FROM orders WHERE order_no='?1'"), "PENDING");
}

static void a_record_keeps_its_facts(void **state)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    bool is_new;
    (void)state;
    a->eval.request_id = BYTES_LIT("r'\\\xff\0x");
    a->record.has_key = true;
    a->record.key = BYTES_LIT("k\0k");
    a->outcome = OUTCOME_STATE_CONFLICT;
    a->cause = CAUSE_STATE;
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    assert_int_equal(world.store->effect->letter(SELF, a, BYTES_LIT(""), &is_new, &err), ERR_NONE);
    port_commit(&world);
    assert_string_equal(sql_value("SELECT HEX(request_id) FROM idem_record"), "72275CFF0078");
    assert_string_equal(sql_value("SELECT TIMESTAMPDIFF(SECOND,updated_at,expires_at) FROM idem_record"),
                        "259200");
    assert_string_equal(sql_value("SELECT HEX(record_key) FROM idem_dead_letter"), "6B006B");
    assert_string_equal(sql_value("SELECT record_ts FROM idem_dead_letter"), "2025-12-01 00:00:00.123");
    assert_string_equal(sql_value("SELECT headers IS NULL AND row_state IS NULL FROM idem_dead_letter"), "1");
    assert_string_equal(sql_value("SELECT payload_sha256=UNHEX(SHA2('{\"a\":\"0123456789\\'\\\\\"}',256)) "
                                  "FROM idem_dead_letter"), "1");
}

/* ---- indexes --------------------------------------------------------------------------------------------------- */

static void a_lost_unique_index_refuses_every_open_until_it_stands(void **state)
{
    (void)state;
    world.store->tx->close(SELF);
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_NONE);
    sql_do("ALTER TABLE orders DROP PRIMARY KEY");
    world.store->tx->close(SELF);
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_CONFIG);
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_CONFIG);     /* the session stands, the index does not */
    sql_do("ALTER TABLE orders ADD PRIMARY KEY (order_no)");
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_NONE);
}

/* ---- ledger ---------------------------------------------------------------------------------------------------- */

static void the_ledger_fences(void **state)
{
    struct mysql_ledger *first = mysql_ledger_create(sql_world_database(), port_config(), "one");
    struct mysql_ledger *second = mysql_ledger_create(sql_world_database(), port_config(), "two");
    const struct ledger_port *a = mysql_ledger_port(first), *b = mysql_ledger_port(second);
    struct ledger_partition mine[] = {{.topic = BYTES_LIT("payment.callback"), .partition = 0},
                                      {.topic = BYTES_LIT("payment.callback"), .partition = 4}};
    struct ledger_partition theirs[] = {{.topic = BYTES_LIT("payment.callback"), .partition = 4}};
    (void)state;
    assert_int_equal(a->ops->open(a->self, &err), ERR_NONE);
    assert_int_equal(b->ops->open(b->self, &err), ERR_NONE);
    assert_int_equal(a->ops->take_over(a->self, mine, 2, &err), ERR_NONE);
    assert_int_equal(mine[0].generation, 8);
    assert_int_equal(mine[1].generation, 1);
    assert_int_equal(mine[1].next_offset, -1);
    mine[0].next_offset = 11;
    mine[0].last_offset = 9;
    memset(mine[0].last_hash, 0xab, OFFSET_HASH_LEN);
    mine[1].next_offset = 5;
    assert_int_equal(a->ops->progress(a->self, mine, 2, &err), ERR_NONE);
    assert_true(mine[0].current && mine[1].current);
    assert_int_equal(b->ops->take_over(b->self, theirs, 1, &err), ERR_NONE);
    assert_int_equal(theirs[0].generation, 2);
    assert_int_equal(theirs[0].next_offset, 5);
    assert_int_equal(theirs[0].last_offset, -1);
    mine[0].next_offset = 12;
    mine[1].next_offset = 3;
    assert_int_equal(a->ops->progress(a->self, mine, 2, &err), ERR_NONE);
    assert_true(mine[0].current && !mine[1].current);
    assert_string_equal(sql_value("SELECT next_offset FROM idem_progress WHERE partition_id=0"), "12");
    assert_string_equal(sql_value("SELECT next_offset FROM idem_progress WHERE partition_id=4"), "5");
    assert_string_equal(sql_value("SELECT owner FROM idem_partition WHERE partition_id=4"), "two");
    assert_int_equal(b->ops->take_over(b->self, mine, 1, &err), ERR_NONE);
    assert_int_equal(mine[0].last_offset, 9);
    assert_int_equal(mine[0].last_hash[15], 0xab);
    mysql_ledger_destroy(first);
    mysql_ledger_destroy(second);
}

#define REAL(name) {#name, name, start, finish, NULL}
static const struct CMUnitTest real[] = {
    REAL(a_row_held_by_another_session),
    REAL(a_key_claimed_by_another_session),
    REAL(a_deadlock_is_a_retry),
    REAL(a_killed_session_mid_transaction),
    REAL(a_killed_session_at_commit_is_in_doubt),
    REAL(a_lost_answer_of_a_commit_that_happened),
    REAL(a_lost_commit_that_never_arrived),
    REAL(a_read_only_server_is_the_wrong_one),
    REAL(a_wrong_password_is_configuration),
    REAL(a_statement_counts_its_rows),
    REAL(non_ascii_for_another_charset_is_data),
    REAL(a_record_keeps_its_facts),
    REAL(a_lost_unique_index_refuses_every_open_until_it_stands),
    REAL(the_ledger_fences),
};

enum { TESTS_MAX = 64, SKIPPED = 77 };

int main(void)
{
    static struct CMUnitTest tests[TESTS_MAX];
    size_t count = 0;
    if (!sql_world_init()) {
        puts("IDEM_TEST_MYSQL is not set: no server, nothing tested");
        return SKIPPED;
    }
    store = mysql_store_create(sql_world_database(), port_config());
    world = (struct port_world){mysql_store_port(store), sql_world_hooks()};
    for (size_t i = 0; i < port_case_count; i++)
        tests[count++] = (struct CMUnitTest){port_cases[i].name, run_case, start, finish,
                                             (void *)(uintptr_t)&port_cases[i]};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        tests[count++] = real[i];
    int failed = _cmocka_run_group_tests("store", tests, count, NULL, NULL);
    mysql_store_destroy(store);
    sql_world_finish();
    return failed != 0;
}
