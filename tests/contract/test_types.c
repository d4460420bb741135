/* SPDX-License-Identifier: MIT */
/* test_types: business rows of every kind of key column on a real server: the plan of each
 * statement must be one look-up a row by the unique index, on an empty table as well, and no
 * stranger may ever be touched (design 3 step 6). */
#include "sql_world.h"
#include "idem/adapter/mysql_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 3, STATEMENT_MAX = 1 << 16 };

/* One kind of key column: three values that have rows, and strangers that must never be taken for
 * the first. */
struct kind {
    const char *name, *type;
    struct column column;
    enum value_tag tag;
    const char *keys[KEYS];
    const char *strangers[4];            /* values a record may bring that equal no row */
    const char *strange_rows[4];         /* rows, as SQL, that stand beside */
};

#define TEXT_COLUMN(charset_, collation_, utf8_)                                                    \
    {.kind = COLUMN_TEXT, .charset = charset_, .collation = collation_, .utf8mb4 = utf8_}

static const struct kind kinds[] = {
    {"ascii_bin", "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin",
     TEXT_COLUMN("ascii", "ascii_bin", false), VALUE_TEXT, {"A1", "A2", "A3"},
     {"a1", "A1 ", "\xE8\xAE\xA2" "1"}, {"'?1'", "'0'", "'h'"}},
    {"utf8mb4_ci", "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
     TEXT_COLUMN("utf8mb4", "utf8mb4_unicode_ci", true), VALUE_TEXT, {"a1", "b2", "\xE8\xAE\xA2" "3"},
     {"A1", "a1 ", "\xC3\xA1" "1"}, {"'0'"}},
    {"utf8mb4_general_ci", "CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
     TEXT_COLUMN("utf8mb4", "utf8mb4_general_ci", true), VALUE_TEXT, {"a1", "b2", "c3"},
     {"A1", "a1 "}, {"'1'"}},
    {"latin1", "VARCHAR(64) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
     TEXT_COLUMN("latin1", "latin1_swedish_ci", false), VALUE_TEXT, {"A1", "A2", "A3"},
     {"\xE8\xAE\xA2" "1", "a1", "\xC3\xA9"}, {"'?1'", "'\xC3\xA9'"}},
    {"utf16", "VARCHAR(64) CHARACTER SET utf16 COLLATE utf16_general_ci",
     TEXT_COLUMN("utf16", "utf16_general_ci", false), VALUE_TEXT, {"A1", "A2", "A3"}, {"a1"}, {"'x'"}},
    {"varbinary", "VARBINARY(64)", {.kind = COLUMN_BINARY}, VALUE_TEXT,
     {"A1", "A2", "\xE8\xAE\xA2" "3"}, {"a1", "A1 "}, {"'0'"}},
    {"bigint_unsigned", "BIGINT UNSIGNED",
     {.kind = COLUMN_INTEGER, .is_unsigned = true, .bytes_count = 8}, VALUE_INTEGER,
     {"9223372036854775809", "1000000000000000005", "7"}, {"1000000000000000004", "8"},
     {"1000000000000000006", "9223372036854775808", "0"}},
    {"bigint", "BIGINT", {.kind = COLUMN_INTEGER, .bytes_count = 8}, VALUE_INTEGER,
     {"1000000000000000005", "-1000000000000000005", "2"}, {"1000000000000000004", "-2"},
     {"1000000000000000006", "-1000000000000000004"}},
    {"decimal", "DECIMAL(30,2)", {.kind = COLUMN_DECIMAL, .scale = 2, .precision = 30}, VALUE_DECIMAL,
     {"1234567890123456789012345678.90", "1.10", "-5.00"}, {"1234567890123456789012345678.92", "1.12"},
     {"1234567890123456789012345678.91", "1.11"}},
    {"datetime", "DATETIME(3)", {.kind = COLUMN_TIME, .precision = 3}, VALUE_TIME,
     {"2026-01-02T03:04:05.678000Z", "2026-01-02T03:04:05.679999Z", "2026-07-01T00:00:00.000000Z"},
     {"2026-01-02T03:04:05.670000Z"}, {"'2026-01-02 03:04:05.678'"}},
};

static struct mysql_store *store;
static const struct store_port *port;
static struct err err;
static char seen[STATEMENT_MAX];
static struct transition transition;
static struct column_value where, require;
static struct rule rule;
static struct value values[16][5];

#define TEXT(text) {(const uint8_t *)("" text), sizeof(text) - 1}
static const struct bytes from[] = {TEXT("PENDING")};

static void keep(void *context, struct bytes sql)
{
    (void)context;
    snprintf(seen, sizeof seen, "%.*s", (int)sql.len, (const char *)sql.at);
}

static struct item *item_of(const struct kind *kind, uint32_t at, const char *key)
{
    struct item *item = port_item("A", "10.00", key, at);
    memcpy(values[at], item->eval.values, sizeof values[at]);
    values[at][0] = (struct value){.tag = kind->tag, .text = bytes_text(key)};
    item->eval.values = values[at];
    item->eval.rule = &rule;
    return item;
}

static void make_rule(const struct kind *kind)
{
    rule = *port_rule();
    where = rule.transitions[0].where[0];
    where.column = BYTES_LIT("k");
    where.type = kind->column;
    require = rule.transitions[0].require[0];
    transition = (struct transition){
        .table = BYTES_LIT("typed"), .where = &where, .where_count = 1, .column = BYTES_LIT("status"),
        .column_type = TEXT_COLUMN("ascii", "ascii_bin", false), .from = from, .from_count = 1,
        .to = BYTES_LIT("PAID"), .require = &require, .require_count = 1,
        .set = rule.transitions[0].set, .set_count = rule.transitions[0].set_count,
        .index = BYTES_LIT("uk"), .set_based = true};
    rule.transitions = &transition;
}

static void make_table(const struct kind *kind)
{
    assert_true(sql_try("DROP TABLE IF EXISTS typed"));
    sql_do("CREATE TABLE typed (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k %s NOT NULL,"
           " status VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'PENDING',"
           " amount DECIMAL(20,2) NOT NULL DEFAULT 10.00, paid_at DATETIME(3) NULL,"
           " channel_txn VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, UNIQUE KEY uk (k),"
           " KEY ix_status (status)) ENGINE=InnoDB", kind->type);
}

static void put_row(const struct kind *kind, const char *key)
{
    if (kind->tag == VALUE_TIME)         /* the session's zone is +08:00 */
        sql_do("INSERT INTO typed(k) VALUES (CAST('%.10s %.12s' AS DATETIME(3)) + INTERVAL 8 HOUR)", key,
               key + 11);
    else if (kind->tag == VALUE_TEXT)
        sql_do("INSERT INTO typed(k) VALUES ('%s')", key);
    else
        sql_do("INSERT INTO typed(k) VALUES (%s)", key);
}

/* The last statement must look rows up by the unique index. */
static void plan_is_a_look_up(const char *what)
{
    static char sql[STATEMENT_MAX + 64];
    const struct conn_cell *cells;
    uint32_t count;
    bool looked_up = false;
    struct conn *conn = sql_session();
    snprintf(sql, sizeof sql, "EXPLAIN FORMAT=TRADITIONAL %s", seen);
    if (conn_run_text(conn, sql, "test", &err)) {
        /* MariaDB knows only its own traditional form. */
        snprintf(sql, sizeof sql, "EXPLAIN %s", seen);
        if (conn_run_text(conn, sql, "test", &err))
            fail_msg("%s in: %s", err.text, sql);
    }
    while (conn_next(conn, &cells, &count)) {
        /* id select_type table [partitions] type possible_keys key ... */
        uint32_t type = count >= 12 ? 4 : 3;
        if (!bytes_equal(cells[2].text, BYTES_LIT("t")))
            continue;
        looked_up = (bytes_equal(cells[type].text, BYTES_LIT("eq_ref")) ||
                     bytes_equal(cells[type].text, BYTES_LIT("const")) ||
                     bytes_equal(cells[type].text, BYTES_LIT("range"))) &&
                    bytes_equal(cells[type + 2].text, BYTES_LIT("uk"));
        if (!looked_up)
            print_error("%s: type %.*s key %.*s in %.600s\n", what, (int)cells[type].text.len,
                        (const char *)cells[type].text.at, (int)cells[type + 2].text.len,
                        (const char *)cells[type + 2].text.at, seen);
    }
    conn_destroy(conn);
    if (!looked_up)
        fail_msg("%s: the plan is no look-up: %.600s", what, seen);
}

static uint64_t update(struct item **items, uint32_t count)
{
    uint64_t affected = 99;
    if (port->row->update(port->self, &rule, 0, items, count, &affected, &err))
        fail_msg("%s in: %.900s", err.text, seen);
    return affected;
}

static struct port_world whole(void)
{
    return (struct port_world){port, {NULL, NULL}, sql_world_hooks(), conn_server(mysql_store_conn(store))};
}

static void plans(const struct kind *kind, struct item **items)
{
    struct port_world world = whole();
    port_begin(&world);
    update(items, KEYS);
    plan_is_a_look_up("update of three");
    update(items, 1);
    (void)kind;
    plan_is_a_look_up("update of one");
    if (port->row->lock(port->self, &rule, 0, items, KEYS, true, port_scratch(), &err))
        fail_msg("%s in: %.900s", err.text, seen);
    if (items[0]->rows[0].found)
        assert_int_equal(items[0]->rows[0].columns[0].is_null, false);
    char *suffix = strstr(seen, " FOR UPDATE");      /* a plain EXPLAIN */
    if (suffix)
        *suffix = '\0';
    plan_is_a_look_up("lock");
    port->tx->rollback(port->self);
}

static void only_the_named_rows_change(void **state)
{
    const struct kind *kind = *state;
    struct port_world world = whole();
    struct item *items[KEYS], *strange[4];
    uint32_t strangers = 0;
    for (uint32_t i = 0; i < KEYS; i++)
        items[i] = item_of(kind, i, kind->keys[i]);
    for (uint32_t i = 0; i < 4 && kind->strangers[i]; i++)
        strange[strangers++] = item_of(kind, KEYS + i, kind->strangers[i]);
    make_rule(kind);
    make_table(kind);
    plans(kind, items);                              /* an empty table */
    for (uint32_t i = 0; i < KEYS; i++)
        put_row(kind, kind->keys[i]);
    for (uint32_t i = 0; i < 4 && kind->strange_rows[i]; i++)
        sql_do("INSERT INTO typed(k) VALUES (%s)", kind->strange_rows[i]);
    plans(kind, items);

    port_begin(&world);
    for (uint32_t i = 0; i < strangers; i++)
        assert_int_equal(update(&strange[i], 1), 0);
    assert_int_equal(update(strange, strangers), 0);
    if (port->row->lock(port->self, &rule, 0, strange, strangers, false, port_scratch(), &err))
        fail_msg("%s in: %.900s", err.text, seen);
    for (uint32_t i = 0; i < strangers; i++)
        assert_false(strange[i]->rows[0].found);
    if (port->row->lock(port->self, &rule, 0, items, KEYS, false, port_scratch(), &err))
        fail_msg("%s in: %.900s", err.text, seen);
    for (uint32_t i = 0; i < KEYS; i++)
        assert_true(items[i]->rows[0].found &&
                    column_equals(&where.type, items[i]->rows[0].columns[1].text, &values[i][0]));
    assert_int_equal(update(items, KEYS), KEYS);
    port_commit(&world);
    assert_string_equal(sql_value("SELECT COUNT(*) FROM typed WHERE status='PAID'"), "3");
    assert_string_equal(sql_value("SELECT COUNT(*) FROM typed WHERE status='PAID' AND id<=3"), "3");
    assert_string_equal(sql_value("SELECT COUNT(*) FROM typed WHERE paid_at IS NULL AND id<=3"), "0");
}

static int start(void **state)
{
    struct port_world world = whole();
    (void)state;
    port_start(&world);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    port->tx->rollback(port->self);
    return 0;
}

enum { SKIPPED = 77 };

int main(void)
{
    static struct CMUnitTest tests[sizeof kinds / sizeof *kinds];
    const size_t count = sizeof kinds / sizeof *kinds;
    if (!sql_world_init()) {
        puts("IDEM_TEST_MYSQL is not set: no server, nothing tested");
        return SKIPPED;
    }
    store = mysql_store_create(sql_world_database(), port_config());
    port = mysql_store_port(store);
    conn_trace_set(mysql_store_conn(store), keep, NULL);
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){kinds[i].name, only_the_named_rows_change, start, finish,
                                       (void *)(uintptr_t)&kinds[i]};
    int failed = _cmocka_run_group_tests("types", tests, count, NULL, NULL);
    mysql_store_destroy(store);
    sql_world_finish();
    return failed != 0;
}
