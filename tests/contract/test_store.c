/* SPDX-License-Identifier: MIT */
/* test_store: the ports' contract (port_cases.h) on a real server, and what the fakes do not have: rows of other
 * rules and sources, sessions that live on after their client, a server's modes and its passwords, charsets, columns
 * that no decision reads, indexes. Exit 77 (skipped) without a server. */
#include "sql_trouble.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct mysql_store *store;
static struct port_world world;
static struct err err;

#define SELF (world.store->self)

static int start(void **state)
{
    (void)state;
    port_start(&world);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    port_finish(&world);
    return 0;
}

static void put_order(const char *order_no, const char *status)
{
    world.hooks->put_order(world.hooks->context, order_no, status, "10.00", NULL);
}

/* ---- rows of others -------------------------------------------------------------------------------------------- */

static void a_row_of_another_rule_and_source(void **state)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    (void)state;
    sql_do("INSERT INTO idem_record(biz_type,idem_key,biz_no,rule_id,params_hash,identity_hash,"
           "fingerprint_version,outcome,claim,source,partition_id,kafka_offset,expires_at) VALUES "
           "('payment','payment:A-1:pay','A-1',9,REPEAT('p',32),REPEAT('i',16),1,'parked','claim---','http',3,77,"
           "NOW())");
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    assert_true(a->known.present && !a->claimed);
    assert_int_equal(a->known.status, RECORD_PROCESSING);
    assert_int_equal(a->known.source, SOURCE_HTTP);
    assert_int_equal(a->known.offset, 77);
    assert_true(bytes_equal(a->known.topic, BYTES_LIT("old.topic")));    /* of a rule that is gone */
    world.store->tx->rollback(SELF);
}

/* ---- sessions -------------------------------------------------------------------------------------------------- */

static const char *listed(unsigned long long thread)
{
    return sql_value("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID=%llu", thread);
}

/* Behind the proxy the old session lives on: settling ends it before it asks the rows. */
static void settling_ends_the_old_session(void **state)
{
    struct item *a = port_item("A-1", "10.00", "t1", 1);
    unsigned long long old = conn_thread_id(mysql_store_conn(store));
    bool committed = true;
    (void)state;
    port_begin(&world);
    assert_int_equal(world.store->row->claim(SELF, &a, 1, port_claim, port_scratch(), &err), ERR_NONE);
    world.hooks->lose_commit(NULL, false);
    assert_int_equal(world.store->tx->commit(SELF, &err), ERR_IN_DOUBT);
    assert_string_equal(listed(old), "1");
    assert_int_equal(world.store->tx->settle(SELF, &a, 1, port_claim, &committed, &err), ERR_NONE);
    assert_false(committed);
    assert_string_equal(listed(old), "0");
}

static void a_read_only_server_is_the_wrong_one(void **state)
{
    struct mysql_ledger *ledger = mysql_ledger_create(sql_world_database(), port_config(), "me");
    const struct ledger_port *port = mysql_ledger_port(ledger);
    (void)state;
    assert_int_equal(port->ops->open(port->self, &err), ERR_NONE);
    assert_int_equal(port->ops->ping(port->self, &err), ERR_NONE);
    world.store->tx->close(SELF);
    if (!sql_as_root("SET GLOBAL read_only=1")) {
        mysql_ledger_destroy(ledger);
        print_message("no socket for root, who sets read_only: not looked at\n");
        return;
    }
    enum err_class opened = world.store->tx->open(SELF, &err);
    enum err_class ping = port->ops->ping(port->self, &err);
    assert_true(sql_as_root("SET GLOBAL read_only=0"));
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

/* ---- values ---------------------------------------------------------------------------------------------------- */

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

static void a_lost_unique_index_is_told_until_it_stands(void **state)
{
    (void)state;
    world.store->tx->close(SELF);
    const struct topic *topic = &port_config()->topics[0];
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_NONE);
    assert_int_equal(world.store->tx->stands(SELF, topic, &err), ERR_NONE);
    sql_do("ALTER TABLE orders DROP PRIMARY KEY");
    world.store->tx->close(SELF);
    assert_int_equal(world.store->tx->open(SELF, &err), ERR_NONE);       /* the session stands, the index does not */
    assert_int_equal(world.store->tx->stands(SELF, topic, &err), ERR_SCHEMA);
    assert_int_equal(world.store->tx->stands(SELF, topic, &err), ERR_SCHEMA);
    sql_do("ALTER TABLE orders ADD PRIMARY KEY (order_no)");
    assert_int_equal(world.store->tx->stands(SELF, topic, &err), ERR_NONE);
}

#define REAL(name) {#name, name, start, finish, NULL}
static const struct CMUnitTest real[] = {
    REAL(a_row_of_another_rule_and_source),
    REAL(settling_ends_the_old_session),
    REAL(a_read_only_server_is_the_wrong_one),
    REAL(a_wrong_password_is_configuration),
    REAL(non_ascii_for_another_charset_is_data),
    REAL(a_record_keeps_its_facts),
    REAL(a_lost_unique_index_is_told_until_it_stands),
};

enum { SKIPPED = 77 };

int main(void)
{
    if (!sql_world_init()) {
        puts("IDEM_TEST_MYSQL is not set: no server, nothing tested");
        return SKIPPED;
    }
    const struct config *config = sql_trouble_init();
    struct mysql_ledger *ledgers[] = {mysql_ledger_create(config->databases, config, "one"),
                                      mysql_ledger_create(config->databases, config, "two")};
    store = mysql_store_create(config->databases, config);
    world = (struct port_world){mysql_store_port(store),
                                {mysql_ledger_port(ledgers[0]), mysql_ledger_port(ledgers[1])},
                                sql_trouble_hooks(store), 0};
    int failed = port_run("store", &world, real, sizeof real / sizeof *real);
    mysql_store_destroy(store);
    mysql_ledger_destroy(ledgers[0]);
    mysql_ledger_destroy(ledgers[1]);
    sql_trouble_finish();
    sql_world_finish();
    return failed != 0;
}
