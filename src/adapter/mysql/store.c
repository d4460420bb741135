/* SPDX-License-Identifier: MIT */
/* store: life of a store, its session and its transaction (port/store.h, store_tx_ops). For a
 * worker; decides nothing and retries nothing. All memory is taken at creation and at open, none
 * while statements run. */
#include "store_self.h"

#include "idem/adapter/clock.h"
#include "idem/adapter/mysql_schema.h"

#include <stdlib.h>

enum { SQL_MAX = 32 << 20, TEXT_MAX = 8 << 20, LOOK_EVERY_US = 60000000 };

struct buf *store_sql(struct mysql_store *store)
{
    buf_reset(&store->sql);
    return &store->sql;
}

enum err_class store_run(struct mysql_store *store, const char *where, struct err *err)
{
    if (store->sql.overflow)
        return err_set(err, ERR_TOO_LARGE, 0, where, "the statement is over half of max_allowed_packet");
    return conn_run(store->conn, buf_view(&store->sql), where, err);
}

enum err_class store_list(struct mysql_store *store, struct item *const *items, uint32_t count,
                          const char *where, struct err *err)
{
    if (count > store->places)
        return err_set(err, ERR_TOO_LARGE, 0, where, "more records than batch.max");
    if (count)
        memcpy(store->sorted, items, count * sizeof *items);
    return ERR_NONE;
}

uint64_t cell_number(const struct conn_cell *cell)
{
    uint64_t number = 0;
    for (size_t i = 0; i < cell->text.len && cell->text.at[i] >= '0' && cell->text.at[i] <= '9'; i++)
        number = number * 10 + (uint64_t)(cell->text.at[i] - '0');
    return number;
}

int64_t cell_integer(const struct conn_cell *cell)
{
    struct conn_cell digits = *cell;
    if (cell->text.len == 0 || cell->text.at[0] != '-')
        return (int64_t)cell_number(cell);
    digits.text = bytes_of(cell->text.at + 1, cell->text.len - 1);
    return (int64_t)(0 - cell_number(&digits));
}

/* ---- session --------------------------------------------------------------------------------------------------- */

/* The statement buffer follows max_allowed_packet: half of it, so that escapes and the rest of a
 * packet have room. */
static enum err_class make_buffers(struct mysql_store *store, struct err *err)
{
    uint64_t size = conn_packet_max(store->conn) / 2;
    if (size > SQL_MAX)
        size = SQL_MAX;
    size_t sql_size = (size_t)size, text_size = sql_size / 2 < TEXT_MAX ? sql_size / 2 : TEXT_MAX;
    if (store->block && store->sql.size == sql_size)
        return ERR_NONE;
    void *block = malloc(sql_size + text_size);
    if (!block)
        return err_set(err, ERR_RECONNECT, 0, "connect", "out of memory");
    free(store->block);
    store->block = block;
    buf_init(&store->sql, block, sql_size);
    buf_init(&store->text, (char *)block + sql_size, text_size);
    return ERR_NONE;
}

/* Without its unique index a set-based UPDATE could move strangers. */
static enum err_class store_stands(void *self, const struct topic *topic, struct err *err)
{
    struct mysql_store *store = self;
    int64_t now_us = clock_mono_us();
    if (now_us < store->look_us[topic->index])
        return ERR_NONE;
    enum err_class class = schema_indexes_stand(store->conn, topic, err);
    if (class == ERR_NONE)
        store->look_us[topic->index] = now_us + LOOK_EVERY_US;
    return class;
}

static enum err_class store_open(void *self, struct err *err)
{
    struct mysql_store *store = self;
    enum conn_state before = conn_state(store->conn);
    enum err_class class = conn_open(store->conn, err);
    if (class)
        return class;
    if (before != CONN_IDLE) {               /* another database may number its rules otherwise, and lack an index */
        memset(store->topics, 0, sizeof store->topics);
        memset(store->look_us, 0, store->config->topic_count * sizeof *store->look_us);
    }
    return make_buffers(store, err);
}

static void store_close(void *self)
{
    struct mysql_store *store = self;
    conn_close(store->conn);
}

/* ---- transaction ----------------------------------------------------------------------------------------------- */

static bool topic_seen(const struct fence *fences, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (bytes_equal(fences[i].topic, fences[at].topic))
            return true;
    return false;
}

static void put_fences(struct buf *sql, struct bytes group, const struct fence *fences, uint32_t count)
{
    buf_text(sql, "SELECT topic,partition_id,generation FROM idem_partition FORCE INDEX (PRIMARY) "
                  "WHERE group_id=");
    sql_string(sql, group);
    for (uint32_t i = 0; i < count; i++) {
        if (topic_seen(fences, i))
            continue;
        buf_text(sql, i == 0 ? " AND ((topic=" : ") OR (topic=");
        sql_string(sql, fences[i].topic);
        buf_text(sql, " AND partition_id IN (");
        for (uint32_t k = i; k < count; k++) {
            if (!bytes_equal(fences[k].topic, fences[i].topic))
                continue;
            if (k > i)
                buf_char(sql, ',');
            buf_int(sql, fences[k].partition);
        }
        buf_char(sql, ')');
    }
    buf_text(sql, ")) LOCK IN SHARE MODE");
}

static bool fence_stands(const struct conn_cell *cells, const struct fence *fences, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (fences[i].partition == cell_integer(&cells[1]) &&
            bytes_equal(fences[i].topic, cells[0].text))
            return fences[i].generation == cell_number(&cells[2]);
    return false;
}

static enum err_class store_begin(void *self, const struct fence *fences, uint32_t count,
                                  bool *ret_current, struct err *err)
{
    struct mysql_store *store = self;
    const struct conn_cell *cells;
    uint32_t columns, current = 0;
    enum err_class class = conn_begin(store->conn, err);
    if (class)
        return class;
    for (uint32_t i = 0; i < count; i++)
        if (fences[i].server != conn_server(store->conn)) {
            conn_leave(store->conn);
            return err_set(err, ERR_WRONG_SERVER, 0, "fence", "the partitions were taken over on another server");
        }
    if (count > 0) {
        put_fences(store_sql(store), store->config->kafka.group, fences, count);
        class = store_run(store, "fence", err);
        if (class)
            return class;
        while (conn_next(store->conn, &cells, &columns))
            current += fence_stands(cells, fences, count);
        conn_done(store->conn);
    }
    *ret_current = current == count;
    return ERR_NONE;
}

static enum err_class store_now(void *self, char ret_text[20], struct err *err)
{
    struct mysql_store *store = self;
    const struct conn_cell *cells;
    uint32_t columns;
    enum err_class class = conn_run_text(store->conn, "SELECT NOW()", "now", err);
    if (class)
        return class;
    bool done = conn_next(store->conn, &cells, &columns) && cells[0].text.len == 19;
    if (done) {
        memcpy(ret_text, cells[0].text.at, 19);
        ret_text[19] = '\0';
    }
    conn_done(store->conn);
    return done ? ERR_NONE : err_set(err, ERR_FATAL, 0, "now", "NOW() has another form");
}

static enum err_class store_savepoint(void *self, struct err *err)
{
    struct mysql_store *store = self;
    return conn_run_text(store->conn, "SAVEPOINT idem", "savepoint", err);
}

static enum err_class store_undo(void *self, struct err *err)
{
    struct mysql_store *store = self;
    return conn_run_text(store->conn, "ROLLBACK TO SAVEPOINT idem", "savepoint", err);
}

static enum err_class store_commit(void *self, struct err *err)
{
    struct mysql_store *store = self;
    uint64_t thread = conn_thread_id(store->conn);
    enum err_class class = conn_commit(store->conn, err);
    if (class == ERR_IN_DOUBT) {
        store->in_doubt = true;
        store->doubt_thread = thread;
        store->doubt_us = clock_mono_us();
        store->doubt_server = conn_server(store->conn);
    }
    return class;
}

static void store_rollback(void *self)
{
    struct mysql_store *store = self;
    conn_rollback(store->conn);
}

static const struct store_tx_ops tx_table = {
    .open = store_open, .stands = store_stands, .close = store_close, .begin = store_begin, .now = store_now,
    .savepoint = store_savepoint, .undo = store_undo, .commit = store_commit,
    .rollback = store_rollback, .settle = store_settle,
};

/* ---- life ------------------------------------------------------------------------------------------------------ */

struct mysql_store *mysql_store_create(const struct database_config *database,
                                       const struct config *config)
{
    struct mysql_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    store->database = database;
    store->config = config;
    store->places = config->batch_max ? config->batch_max : 1;
    store->conn = conn_create(database);
    store->sorted = calloc(store->places, sizeof *store->sorted);
    store->rule_ids = calloc(store->places, sizeof *store->rule_ids);
    store->seen = calloc(store->places, sizeof *store->seen);
    store->look_us = calloc(config->topic_count + 1, sizeof *store->look_us);
    if (!store->conn || !store->look_us || !store->sorted || !store->rule_ids || !store->seen) {
        mysql_store_destroy(store);
        return NULL;
    }
    store->port = (struct store_port){store, &tx_table, &store_row_table, &store_effect_table, &store_park_table};
    return store;
}

void mysql_store_destroy(struct mysql_store *store)
{
    if (!store)
        return;
    conn_destroy(store->conn);
    free(store->block);
    free(store->sorted);
    free(store->rule_ids);
    free(store->seen);
    free(store->look_us);
    free(store);
}

const struct store_port *mysql_store_port(struct mysql_store *store)
{
    return &store->port;
}

struct conn *mysql_store_conn(struct mysql_store *store)
{
    return store->conn;
}
