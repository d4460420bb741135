/* SPDX-License-Identifier: MIT */
/* sql_world: see sql_world.h. Uses the adapter's own sessions, so that no other file needs the
 * client library. */
#include "sql_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct conn *admin, *root;        /* root: opened when first asked for */
static struct bytes host;
static char server[512];

static const char *const business[] = {
    "CREATE TABLE orders (order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
    " status VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NULL, amount DECIMAL(20,2) NOT NULL,"
    " channel_txn VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL, paid_at DATETIME(3) NULL,"
    " refunded DECIMAL(20,2) NOT NULL DEFAULT 0, PRIMARY KEY (order_no)) ENGINE=InnoDB",
    "CREATE TABLE payment_ledger (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
    " order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,"
    " channel_txn VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,"
    " amount DECIMAL(20,2) NOT NULL, UNIQUE KEY uk_txn (channel_txn)) ENGINE=InnoDB",
    "CREATE TABLE account (id VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,"
    " balance DECIMAL(20,2) NOT NULL) ENGINE=InnoDB",
};

static void give_up(const struct err *err)
{
    fprintf(stderr, "the test's server: error %d: %s\n", err->number, err->text);
    exit(1);
}

static void run_or_stop(const char *sql)
{
    struct err err;
    if (conn_run_text(admin, sql, "setup", &err)) {
        fprintf(stderr, "in: %.200s\n", sql);
        give_up(&err);
    }
    conn_done(admin);
}

/* Statements end with `;` at the end of a line. */
static void run_script(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "re");
    if (!file) {
        perror(path);
        exit(1);
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (char *from = text, *end; (end = strstr(from, ";\n")); from = end + 2) {
        *end = '\0';
        run_or_stop(from);
    }
}

static void make_tables(void)
{
    static const char *const mine[] = {"idem_schema", "idem_rule", "idem_record", "idem_outbox",
                                       "idem_dead_letter", "idem_parked", "idem_partition",
                                       "idem_progress", "idem_lease", "orders", "payment_ledger",
                                       "account"};
    char text[4096];
    const char *folder = getenv("IDEM_TEST_MIGRATIONS");
    run_or_stop("DROP VIEW IF EXISTS idem_record_view");
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++) {
        snprintf(text, sizeof text, "DROP TABLE IF EXISTS %s", mine[i]);
        run_or_stop(text);
    }
    snprintf(text, sizeof text, "%s/0001_tables.sql", folder ? folder : "migrations");
    run_script(text);
    for (size_t i = 0; i < sizeof business / sizeof *business; i++)
        run_or_stop(business[i]);
    run_or_stop("INSERT INTO idem_rule(id,topic,rule,biz_type,action) VALUES "
                "(1,'" PORT_TOPIC "','paid','payment','pay'),(9,'old.topic','gone','payment','pay')");
    run_or_stop("COMMIT");
}

/* IDEM_TEST_MYSQL, or what scripts/servers gives its command. */
static bool find_server(void)
{
    static const char *const names[] = {"HOST", "PORT", "USER", "PASSWORD", "NAME"};
    const char *wanted = getenv("IDEM_TEST_MYSQL");
    size_t len = 0;
    if (wanted && *wanted) {
        snprintf(server, sizeof server, "%s", wanted);
        return true;
    }
    for (int i = 0; i < 5; i++) {
        char name[40];
        snprintf(name, sizeof name, "IDEMD_TEST_DB_%s", names[i]);
        const char *value = getenv(name);
        if (!value || len >= sizeof server)
            return false;
        len += (size_t)snprintf(server + len, sizeof server - len, "%s%s", i ? ":" : "", value);
    }
    return len < sizeof server;
}

bool sql_world_init(void)
{
    char *part[5] = {server};
    struct err err;
    if (!find_server())
        return false;
    for (int i = 1; i < 5; i++) {
        part[i] = strchr(part[i - 1], ':');
        if (!part[i]) {
            fputs("IDEM_TEST_MYSQL is host:port:user:password:database\n", stderr);
            exit(1);
        }
        *part[i]++ = '\0';
    }
    struct database_config *database = port_config()->databases;
    host = bytes_text(part[0]);
    database->hosts = &host;
    database->host_count = 1;
    database->port = (uint16_t)strtoul(part[1], NULL, 10);
    database->user = bytes_text(part[2]);
    database->password = bytes_text(part[3]);
    database->database = bytes_text(part[4]);
    admin = conn_create(database);
    if (!admin || conn_open(admin, &err))
        give_up(&err);
    make_tables();
    return true;
}

void sql_world_finish(void)
{
    conn_destroy(admin);
    conn_destroy(root);
}

const struct database_config *sql_world_database(void)
{
    return port_config()->databases;
}

struct conn *sql_session(void)
{
    struct err err;
    struct conn *conn = conn_create(port_config()->databases);
    assert_non_null(conn);
    if (conn_open(conn, &err))
        fail_msg("a second session: %s", err.text);
    return conn;
}

bool sql_try(const char *text)
{
    struct err err;
    enum err_class class = conn_run_text(admin, text, "test", &err);
    conn_done(admin);
    run_or_stop(class ? "ROLLBACK" : "COMMIT");
    return class == ERR_NONE;
}

bool sql_as_root(const char *text)
{
    static struct database_config database;
    const char *socket = getenv("IDEMD_TEST_DB_SOCKET");
    struct err err;
    if (!socket)
        return false;
    if (!root) {
        database = *port_config()->databases;
        database.host_count = 0;
        database.socket = bytes_text(socket);
        database.user = BYTES_LIT("root");
        database.password = BYTES_LIT("");
        root = conn_create(&database);
        if (!root || conn_open(root, &err))
            fail_msg("root: %s", err.text);
    }
    enum err_class class = conn_run_text(root, text, "test", &err);
    conn_done(root);
    return class == ERR_NONE;
}

void sql_do(const char *format, ...)
{
    static char text[4096];
    struct err err;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (conn_run_text(admin, text, "test", &err))
        fail_msg("%s in: %s", err.text, text);
    run_or_stop("COMMIT");
}

const char *sql_value(const char *format, ...)
{
    static char text[4096], value[4096];
    const struct conn_cell *cells;
    struct err err;
    uint32_t count;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (conn_run_text(admin, text, "test", &err))
        fail_msg("%s in: %s", err.text, text);
    value[0] = '\0';
    if (conn_next(admin, &cells, &count))
        snprintf(value, sizeof value, "%.*s", (int)cells[0].text.len,
                 cells[0].text.at ? (const char *)cells[0].text.at : "");
    conn_done(admin);
    run_or_stop("COMMIT");
    return value;
}

/* ---- hooks ----------------------------------------------------------------------------------------------------- */

static void reset(void *context)
{
    static const char *const tables[] = {"orders", "payment_ledger", "account", "idem_record",
                                         "idem_outbox", "idem_dead_letter", "idem_parked",
                                         "idem_partition", "idem_progress"};
    (void)context;
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        sql_do("DELETE FROM %s", tables[i]);
    for (int i = 0; i < 2; i++)
        sql_do("INSERT INTO idem_partition(group_id,topic,partition_id,generation,owner) VALUES "
               "('g','" PORT_TOPIC "',%d,7,'test')", i);
}

static void set_generation(void *context, int32_t partition, uint64_t generation)
{
    (void)context;
    if (generation == 0)
        sql_do("DELETE FROM idem_partition WHERE partition_id=%d", partition);
    else
        sql_do("UPDATE idem_partition SET generation=%llu WHERE partition_id=%d",
               (unsigned long long)generation, partition);
}

static void put_order(void *context, const char *order_no, const char *status, const char *amount,
                      const char *txn)
{
    (void)context;
    sql_do("INSERT INTO orders(order_no,status,amount,channel_txn) VALUES ('%s','%s',%s,%s%s%s)",
           order_no, status, amount, txn ? "'" : "", txn ? txn : "NULL", txn ? "'" : "");
}

static void take(char *ret, size_t size, const struct conn_cell *cell)
{
    snprintf(ret, size, "%.*s", (int)cell->text.len, cell->text.at ? (const char *)cell->text.at : "");
}

static bool row_of(const char *sql, const struct conn_cell **ret_cells)
{
    uint32_t count;
    struct err err;
    if (conn_run_text(admin, sql, "test", &err))
        fail_msg("%s in: %s", err.text, sql);
    return conn_next(admin, ret_cells, &count);
}

static bool done(bool found)
{
    conn_done(admin);
    run_or_stop("COMMIT");
    return found;
}

static bool get_order(void *context, const char *order_no, struct port_order *ret)
{
    const struct conn_cell *cells;
    char sql[512];
    (void)context;
    snprintf(sql, sizeof sql, "SELECT status,amount,channel_txn,paid_at FROM orders WHERE order_no='%s'",
             order_no);
    bool found = row_of(sql, &cells);
    if (found) {
        take(ret->status, sizeof ret->status, &cells[0]);
        take(ret->amount, sizeof ret->amount, &cells[1]);
        take(ret->txn, sizeof ret->txn, &cells[2]);
        ret->txn_null = cells[2].is_null;
        ret->paid_at_set = !cells[3].is_null;
    }
    return done(found);
}

static uint64_t count(void *context, const char *table)
{
    (void)context;
    return strtoull(sql_value("SELECT COUNT(*) FROM %s", table), NULL, 10);
}

static int64_t integer(const struct conn_cell *cell)
{
    char text[32];
    take(text, sizeof text, cell);
    return strtoll(text, NULL, 10);
}

static bool get_record(void *context, const char *key, struct port_record *ret)
{
    const struct conn_cell *cells;
    char sql[512];
    (void)context;
    snprintf(sql, sizeof sql,
             "SELECT outcome,biz_no,response,status,attempts,kafka_offset,request_id FROM idem_record "
             "WHERE bucket=0 AND biz_type='payment' AND idem_key='%s'", key);
    bool found = row_of(sql, &cells);
    if (found) {
        take(ret->outcome, sizeof ret->outcome, &cells[0]);
        take(ret->biz_no, sizeof ret->biz_no, &cells[1]);
        take(ret->response, sizeof ret->response, &cells[2]);
        ret->response_null = cells[2].is_null;
        ret->status = (int)integer(&cells[3]);
        ret->attempts = (uint32_t)integer(&cells[4]);
        ret->offset = integer(&cells[5]);
        ret->request_id_null = cells[6].is_null;
    }
    return done(found);
}

static bool get_letter(void *context, struct port_letter *ret)
{
    const struct conn_cell *cells;
    (void)context;
    bool found = row_of("SELECT cause,state,row_state,attempts,payload_bytes,LENGTH(payload),"
                        "kafka_offset FROM idem_dead_letter", &cells);
    if (found) {
        take(ret->cause, sizeof ret->cause, &cells[0]);
        take(ret->state, sizeof ret->state, &cells[1]);
        take(ret->row_state, sizeof ret->row_state, &cells[2]);
        ret->attempts = (uint32_t)integer(&cells[3]);
        ret->payload_bytes = (uint32_t)integer(&cells[4]);
        ret->payload_len = (uint32_t)integer(&cells[5]);
        ret->offset = integer(&cells[6]);
    }
    return done(found);
}

static void set_letter_state(void *context, const char *state)
{
    (void)context;
    sql_do("UPDATE idem_dead_letter SET state='%s'", state);
}

static bool get_event(void *context, uint32_t index, struct port_event *ret)
{
    const struct conn_cell *cells;
    char sql[512];
    (void)context;
    snprintf(sql, sizeof sql, "SELECT topic,aggregateid,id FROM idem_outbox ORDER BY seq LIMIT %u,1",
             (unsigned)index);
    bool found = row_of(sql, &cells);
    if (found) {
        take(ret->topic, sizeof ret->topic, &cells[0]);
        take(ret->key, sizeof ret->key, &cells[1]);
        take(ret->id, sizeof ret->id, &cells[2]);
    }
    return done(found);
}

static int64_t get_progress(void *context, int32_t partition)
{
    (void)context;
    const char *text = sql_value("SELECT next_offset FROM idem_progress WHERE partition_id=%d", partition);
    return *text ? strtoll(text, NULL, 10) : -1;
}

/* The server's clock goes by itself. */
static void tick(void *context)
{
    (void)context;
}

static const struct port_hooks hooks = {
    .reset = reset, .set_generation = set_generation, .put_order = put_order, .get_order = get_order,
    .count = count, .get_record = get_record, .get_letter = get_letter,
    .set_letter_state = set_letter_state, .get_event = get_event, .get_progress = get_progress, .tick = tick,
};

const struct port_hooks *sql_world_hooks(void)
{
    return &hooks;
}
