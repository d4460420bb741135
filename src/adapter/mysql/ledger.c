/* SPDX-License-Identifier: MIT */
/* ledger: idem_partition and idem_progress (port/ledger.h). For the keeper of one database; every
 * call is one transaction, and after any failure the session is rolled back. Repeating a call is
 * always safe. */
#include "ledger_self.h"

#include <stdlib.h>

enum { STATEMENT_MAX = 1 << 20 };

enum err_class ledger_run(struct mysql_ledger *ledger, const char *where, struct err *err)
{
    if (ledger->sql.overflow)
        return err_set(err, ERR_FATAL, 0, where, "too many partitions for one statement");
    return conn_run(ledger->conn, buf_view(&ledger->sql), where, err);
}

static enum err_class ledger_open(void *self, struct err *err)
{
    struct mysql_ledger *ledger = self;
    return conn_open(ledger->conn, err);
}

static void ledger_close(void *self)
{
    struct mysql_ledger *ledger = self;
    conn_close(ledger->conn);
}

static uint64_t ledger_server(void *self)
{
    const struct mysql_ledger *ledger = self;
    return conn_server(ledger->conn);
}

/* (group, topic, partition */
static void put_name(struct mysql_ledger *ledger, const struct ledger_partition *partition, bool first)
{
    buf_text(&ledger->sql, first ? "(" : ",(");
    sql_string(&ledger->sql, ledger->config->kafka.group);
    buf_char(&ledger->sql, ',');
    sql_string(&ledger->sql, partition->topic);
    buf_char(&ledger->sql, ',');
    buf_int(&ledger->sql, partition->partition);
}

static void put_where(struct mysql_ledger *ledger, const struct ledger_partition *partitions,
                      uint32_t count)
{
    struct buf *sql = &ledger->sql;
    buf_text(sql, " FORCE INDEX (PRIMARY) WHERE group_id=");
    sql_string(sql, ledger->config->kafka.group);
    buf_text(sql, " AND (");
    for (uint32_t i = 0; i < count; i++) {
        buf_text(sql, i > 0 ? " OR (topic=" : "(topic=");
        sql_string(sql, partitions[i].topic);
        buf_text(sql, " AND partition_id=");
        buf_int(sql, partitions[i].partition);
        buf_char(sql, ')');
    }
    buf_char(sql, ')');
}

int64_t ledger_number(const struct conn_cell *cell)
{
    char text[24] = "";
    if (cell->text.len < sizeof text && cell->text.len)
        memcpy(text, cell->text.at, cell->text.len);
    return strtoll(text, NULL, 10);
}

struct ledger_partition *ledger_find(struct ledger_partition *partitions, uint32_t count,
                                     const struct conn_cell *cells)
{
    for (uint32_t i = 0; i < count; i++)
        if (partitions[i].partition == ledger_number(&cells[1]) &&
            bytes_equal(partitions[i].topic, cells[0].text))
            return &partitions[i];
    return NULL;
}

/* ---- take over ------------------------------------------------------------------------------------------------- */

static enum err_class raise_generations(struct mysql_ledger *ledger,
                                        const struct ledger_partition *partitions, uint32_t count,
                                        struct err *err)
{
    struct bytes owner = bytes_of(ledger->owner, ledger->owner_len);
    struct buf *sql = &ledger->sql;
    buf_reset(sql);
    buf_text(sql, "INSERT INTO idem_partition(group_id,topic,partition_id,generation,owner) VALUES ");
    for (uint32_t i = 0; i < count; i++) {
        put_name(ledger, &partitions[i], i == 0);
        buf_char(sql, ',');
        buf_uint(sql, partitions[i].generation + 1);
        buf_text(sql, ",_binary");
        sql_string(sql, owner);
        buf_char(sql, ')');
    }
    buf_text(sql, " ON DUPLICATE KEY UPDATE generation=GREATEST(generation+1,VALUES(generation)),owner=_binary");
    sql_string(sql, owner);
    buf_text(sql, ",updated_at=UTC_TIMESTAMP(6)");
    return ledger_run(ledger, "take_over", err);
}

static enum err_class read_generations(struct mysql_ledger *ledger,
                                       struct ledger_partition *partitions, uint32_t count,
                                       struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns, found = 0;
    buf_reset(&ledger->sql);
    buf_text(&ledger->sql, "SELECT topic,partition_id,generation FROM idem_partition");
    put_where(ledger, partitions, count);
    enum err_class class = ledger_run(ledger, "take_over", err);
    while (!class && conn_next(ledger->conn, &cells, &columns)) {
        struct ledger_partition *partition = ledger_find(partitions, count, cells);
        if (!partition)
            continue;
        partition->generation = (uint64_t)ledger_number(&cells[2]);
        partition->server = conn_server(ledger->conn);
        found++;
    }
    conn_done(ledger->conn);
    return class || found == count ? class
                                   : err_set(err, ERR_FATAL, 0, "take_over", "a fence row is missing");
}

static enum err_class read_progress(struct mysql_ledger *ledger, struct ledger_partition *partitions,
                                    uint32_t count, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    for (uint32_t i = 0; i < count; i++) {
        partitions[i].next_offset = partitions[i].last_offset = -1;
        memset(partitions[i].last_hash, 0, OFFSET_HASH_LEN);
    }
    buf_reset(&ledger->sql);
    buf_text(&ledger->sql, "SELECT topic,partition_id,next_offset,last_offset,last_hash "
                           "FROM idem_progress");
    put_where(ledger, partitions, count);
    enum err_class class = ledger_run(ledger, "take_over", err);
    while (!class && conn_next(ledger->conn, &cells, &columns)) {
        struct ledger_partition *partition = ledger_find(partitions, count, cells);
        if (!partition)
            continue;
        partition->next_offset = ledger_number(&cells[2]);
        /* Without its hash the last record proves nothing. */
        if (cells[4].text.len == OFFSET_HASH_LEN) {
            partition->last_offset = ledger_number(&cells[3]);
            memcpy(partition->last_hash, cells[4].text.at, OFFSET_HASH_LEN);
        }
    }
    conn_done(ledger->conn);
    return class;
}

/* An unknown COMMIT is repeated: one more generation or the same progress again harm nobody. */
static enum err_class finish(struct mysql_ledger *ledger, enum err_class class, struct err *err)
{
    if (!class) {
        class = conn_commit(ledger->conn, err);
        if (class == ERR_IN_DOUBT) {
            class = ERR_RECONNECT;
            if (err)
                err->class = class;
        }
    }
    if (class)
        conn_rollback(ledger->conn);
    return class;
}

static enum err_class ledger_take_over(void *self, struct ledger_partition *partitions, uint32_t count,
                                       struct err *err)
{
    struct mysql_ledger *ledger = self;
    if (count == 0)
        return ERR_NONE;
    enum err_class class = conn_begin(ledger->conn, err);
    if (class)
        return class;
    class = raise_generations(ledger, partitions, count, err);
    if (!class)
        class = read_generations(ledger, partitions, count, err);
    if (!class)
        class = read_progress(ledger, partitions, count, err);
    return finish(ledger, class, err);
}

/* ---- progress -------------------------------------------------------------------------------------------------- */

static enum err_class check_fences(struct mysql_ledger *ledger, struct ledger_partition *partitions,
                                   uint32_t count, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    for (uint32_t i = 0; i < count; i++)
        partitions[i].current = false;
    buf_reset(&ledger->sql);
    buf_text(&ledger->sql, "SELECT topic,partition_id,generation FROM idem_partition");
    put_where(ledger, partitions, count);
    buf_text(&ledger->sql, " LOCK IN SHARE MODE");
    enum err_class class = ledger_run(ledger, "progress", err);
    while (!class && conn_next(ledger->conn, &cells, &columns)) {
        struct ledger_partition *partition = ledger_find(partitions, count, cells);
        if (partition)
            partition->current = partition->generation == (uint64_t)ledger_number(&cells[2]) &&
                                 partition->server == conn_server(ledger->conn);
    }
    conn_done(ledger->conn);
    return class;
}

static enum err_class write_progress(struct mysql_ledger *ledger,
                                     const struct ledger_partition *partitions, uint32_t count,
                                     struct err *err)
{
    struct buf *sql = &ledger->sql;
    uint32_t rows = 0;
    buf_reset(sql);
    buf_text(sql, "INSERT INTO idem_progress(group_id,topic,partition_id,next_offset,last_offset,"
                  "last_hash) VALUES ");
    for (uint32_t i = 0; i < count; i++) {
        if (!partitions[i].current)
            continue;
        put_name(ledger, &partitions[i], rows++ == 0);
        buf_char(sql, ',');
        buf_int(sql, partitions[i].next_offset);
        buf_char(sql, ',');
        buf_int(sql, partitions[i].last_offset);
        buf_char(sql, ',');
        if (partitions[i].last_offset >= 0)
            sql_hex(sql, bytes_of(partitions[i].last_hash, OFFSET_HASH_LEN));
        else
            buf_text(sql, "NULL");
        buf_char(sql, ')');
    }
    buf_text(sql, " ON DUPLICATE KEY UPDATE next_offset=VALUES(next_offset),"
                  "last_offset=VALUES(last_offset),last_hash=VALUES(last_hash),"
                  "updated_at=UTC_TIMESTAMP(6)");
    return rows > 0 ? ledger_run(ledger, "progress", err) : ERR_NONE;
}

static enum err_class ledger_progress(void *self, struct ledger_partition *partitions, uint32_t count,
                                      struct err *err)
{
    struct mysql_ledger *ledger = self;
    if (count == 0)
        return ERR_NONE;
    enum err_class class = conn_begin(ledger->conn, err);
    if (class)
        return class;
    class = check_fences(ledger, partitions, count, err);
    if (!class)
        class = write_progress(ledger, partitions, count, err);
    return finish(ledger, class, err);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static enum err_class ledger_ping(void *self, struct err *err)
{
    struct mysql_ledger *ledger = self;
    const struct conn_cell *cells;
    uint32_t columns;
    bool writable = true;
    enum err_class class = conn_run_text(ledger->conn, "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
                                                       "('read_only','innodb_read_only')",
                                         "ping", err);
    while (!class && conn_next(ledger->conn, &cells, &columns))
        writable = writable && bytes_equal_nocase(cells[1].text, BYTES_LIT("OFF"));
    conn_done(ledger->conn);
    /* The same end as a statement that it refuses: the next open takes the next host. */
    if (!class && !writable)
        class = err_set(err, ERR_WRONG_SERVER, 1290, "ping", "the server has become read-only");
    if (class == ERR_WRONG_SERVER)
        conn_close(ledger->conn);
    return class;
}

static const struct ledger_ops ledger_table = {
    .open = ledger_open, .close = ledger_close, .server = ledger_server, .take_over = ledger_take_over,
    .progress = ledger_progress, .parked = ledger_parked, .ping = ledger_ping, .count = ledger_count,
};

struct mysql_ledger *mysql_ledger_create(const struct database_config *database,
                                         const struct config *config, const char *owner)
{
    struct mysql_ledger *ledger = calloc(1, sizeof *ledger);
    void *block = malloc(STATEMENT_MAX);
    if (!ledger || !block) {
        free(ledger);
        free(block);
        return NULL;
    }
    ledger->conn = conn_create(database);
    buf_init(&ledger->sql, block, STATEMENT_MAX);
    if (!ledger->conn) {
        mysql_ledger_destroy(ledger);
        return NULL;
    }
    ledger->config = config;
    ledger->owner_len = strnlen(owner, sizeof ledger->owner);
    memcpy(ledger->owner, owner, ledger->owner_len);
    ledger->port = (struct ledger_port){ledger, &ledger_table};
    return ledger;
}

void mysql_ledger_destroy(struct mysql_ledger *ledger)
{
    if (!ledger)
        return;
    conn_destroy(ledger->conn);
    free(ledger->sql.at);
    free(ledger);
}

const struct ledger_port *mysql_ledger_port(struct mysql_ledger *ledger)
{
    return &ledger->port;
}

struct conn *mysql_ledger_conn(struct mysql_ledger *ledger)
{
    return ledger->conn;
}
