/* SPDX-License-Identifier: MIT */
/* outbox: see idem/adapter/mysql_outbox.h. The lease's clock is the database's; rows are read without locks and deleted
 * by their primary key under a shared lock of the lease. Never updates a row. */
#include "idem/adapter/mysql_outbox.h"

#include "idem/core/limits.h"

#include <stdlib.h>

enum { STATEMENT_MAX = 256 << 10 };

#define LEASE_NAME "'relay'"

struct mysql_outbox {
    struct outbox_port port;
    struct conn *conn;
    struct buf sql;
    char owner[GROUP_MAX];
    size_t owner_len;
};

static uint64_t number(const struct conn_cell *cell)
{
    char text[24] = "";
    if (cell->text.len < sizeof text && cell->text.len)
        memcpy(text, cell->text.at, cell->text.len);
    return strtoull(text, NULL, 10);
}

static struct buf *sql_begin(struct mysql_outbox *outbox)
{
    buf_reset(&outbox->sql);
    return &outbox->sql;
}

static enum err_class run(struct mysql_outbox *outbox, const char *where, struct err *err)
{
    if (outbox->sql.overflow)
        return err_set(err, ERR_FATAL, 0, where, "the statement is too long");
    return conn_run(outbox->conn, buf_view(&outbox->sql), where, err);
}

static struct bytes owner(const struct mysql_outbox *outbox)
{
    return bytes_of(outbox->owner, outbox->owner_len);
}

/* An unknown COMMIT is asked again: taking, renewing and deleting may be repeated. */
static enum err_class finish(struct mysql_outbox *outbox, enum err_class class, struct err *err)
{
    conn_done(outbox->conn);
    if (!class)
        class = conn_commit(outbox->conn, err);
    if (class == ERR_IN_DOUBT) {
        class = ERR_RECONNECT;
        if (err)
            err->class = class;
    }
    if (class)
        conn_rollback(outbox->conn);
    return class;
}

static enum err_class outbox_open(void *self, struct err *err)
{
    struct mysql_outbox *outbox = self;
    return conn_open(outbox->conn, err);
}

static void outbox_close(void *self)
{
    struct mysql_outbox *outbox = self;
    conn_close(outbox->conn);
}

/* ---- the lease --------------------------------------------------------------------------------------------------- */

struct lease_row {
    bool found, ours, expired;
    uint64_t generation, left_us, step;
};

static enum err_class read_lease(struct mysql_outbox *outbox, struct lease_row *ret, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    struct buf *sql = sql_begin(outbox);
    buf_text(sql, "SELECT owner=_binary");
    sql_string(sql, owner(outbox));
    buf_text(sql, ",generation,until_at<=UTC_TIMESTAMP(6),"
                  "GREATEST(0,TIMESTAMPDIFF(MICROSECOND,UTC_TIMESTAMP(6),until_at)),"
                  "@@auto_increment_increment FROM idem_lease FORCE INDEX (PRIMARY) "
                  "WHERE name=" LEASE_NAME " FOR UPDATE");
    enum err_class class = run(outbox, "lease", err);
    *ret = (struct lease_row){0};
    if (!class && conn_next(outbox->conn, &cells, &columns))
        *ret = (struct lease_row){true, number(&cells[0]) != 0, number(&cells[2]) != 0, number(&cells[1]),
                                  number(&cells[3]), number(&cells[4])};
    conn_done(outbox->conn);
    return class;
}

/* Ours: a longer time. Free: the next generation. */
static enum err_class write_lease(struct mysql_outbox *outbox, const struct lease_row *row, uint32_t for_ms,
                                  struct err *err)
{
    struct buf *sql = sql_begin(outbox);
    buf_text(sql, "INSERT INTO idem_lease(name,owner,generation,until_at) VALUES (" LEASE_NAME ",_binary");
    sql_string(sql, owner(outbox));
    buf_text(sql, ",1,UTC_TIMESTAMP(6)+INTERVAL ");
    buf_uint(sql, (uint64_t)for_ms * 1000);
    buf_text(sql, " MICROSECOND) ON DUPLICATE KEY UPDATE owner=VALUES(owner),until_at=VALUES(until_at),generation=");
    buf_uint(sql, row->ours ? row->generation : row->generation + 1);
    return run(outbox, "lease", err);
}

static enum err_class outbox_lease(void *self, uint32_t for_ms, struct outbox_lease *ret, struct err *err)
{
    struct mysql_outbox *outbox = self;
    struct lease_row row;
    *ret = (struct outbox_lease){0};
    enum err_class class = conn_begin(outbox->conn, err);
    if (class)
        return class;
    class = read_lease(outbox, &row, err);
    bool mine = row.ours || row.expired || !row.found;
    if (!class && mine)
        class = write_lease(outbox, &row, for_ms, err);
    class = finish(outbox, class, err);
    if (class)
        return class;
    ret->held = mine;
    ret->generation = row.found ? row.generation + !row.ours : 1;
    ret->step = (uint32_t)row.step;
    ret->wait_ms = mine ? 0 : (uint32_t)(row.left_us / 1000 < UINT32_MAX ? row.left_us / 1000 : UINT32_MAX);
    return ERR_NONE;
}

static enum err_class outbox_release(void *self, struct err *err)
{
    struct mysql_outbox *outbox = self;
    enum err_class class = conn_open(outbox->conn, err);
    if (!class)
        class = conn_begin(outbox->conn, err);
    if (class)
        return class;
    struct buf *sql = sql_begin(outbox);
    buf_text(sql, "UPDATE idem_lease FORCE INDEX (PRIMARY) SET until_at=UTC_TIMESTAMP(6) WHERE name=" LEASE_NAME
                  " AND owner=_binary");
    sql_string(sql, owner(outbox));
    return finish(outbox, run(outbox, "lease", err), err);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void put_topics(struct buf *sql, const char *head, const struct bytes *topics, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_text(sql, i == 0 ? head : ",");
        buf_text(sql, "_binary");
        sql_string(sql, topics[i]);
    }
    if (count > 0)
        buf_char(sql, ')');
}

/* A row that is small, or wanted whatever its size. */
static void put_columns(struct buf *sql, bool whole, const struct bytes *bare, uint32_t bare_count)
{
    static const char *const columns[] = {",payload", ",headers"};
    buf_text(sql, "SELECT seq,id,topic,aggregateid,LENGTH(payload)+COALESCE(LENGTH(headers),0)");
    for (int i = 0; i < 2; i++) {
        if (whole) {
            buf_text(sql, columns[i]);
            continue;
        }
        buf_text(sql, ",IF(LENGTH(payload)+COALESCE(LENGTH(headers),0)>");
        buf_uint(sql, OUTBOX_INLINE_MAX);
        put_topics(sql, " OR topic IN (", bare, bare_count);
        buf_text(sql, ",NULL");
        buf_text(sql, columns[i]);
        buf_char(sql, ')');
    }
    buf_text(sql, " FROM idem_outbox FORCE INDEX (PRIMARY) WHERE ");
}

/* What is looked at again has no gaps to be told: topics that wait are passed over in the server. */
static void put_ranges(struct buf *sql, const struct gaps *gaps, const struct bytes *bare, uint32_t bare_count)
{
    buf_text(sql, "(seq>");
    buf_uint(sql, gaps->high);
    for (uint32_t i = 0; i < gaps->count; i++) {
        buf_text(sql, " OR seq BETWEEN ");
        buf_uint(sql, gaps->list[i].from);
        buf_text(sql, " AND ");
        buf_uint(sql, gaps->list[i].to);
    }
    if (gaps->again < gaps->again_end) {
        buf_text(sql, " OR (seq>");
        buf_uint(sql, gaps->again);
        buf_text(sql, " AND seq<=");
        buf_uint(sql, gaps->again_end);
        put_topics(sql, " AND topic NOT IN (", bare, bare_count);
        buf_char(sql, ')');
    }
    buf_char(sql, ')');
}

static enum err_class give_rows(struct mysql_outbox *outbox,
                                bool (*take)(void *context, const struct outbox_event *event), void *context,
                                uint32_t *ret_count, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    *ret_count = 0;
    enum err_class class = run(outbox, "outbox", err);
    for (bool more = true; !class && more && conn_next(outbox->conn, &cells, &columns);) {
        struct outbox_event event = {.seq = number(&cells[0]), .id = cells[1].text, .topic = cells[2].text,
                                     .aggregate = cells[3].text, .size = number(&cells[4]),
                                     .payload = cells[5].text, .headers = cells[6].text};
        ++*ret_count;
        more = take(context, &event);
    }
    conn_done(outbox->conn);
    conn_rollback(outbox->conn);     /* ends the read view */
    return class;
}

static enum err_class outbox_read(void *self, const struct gaps *gaps, uint32_t limit, const struct bytes *bare,
                                  uint32_t bare_count, bool (*take)(void *context, const struct outbox_event *event),
                                  void *context, uint32_t *ret_count, struct err *err)
{
    struct mysql_outbox *outbox = self;
    enum err_class class = conn_begin(outbox->conn, err);
    if (class)
        return class;
    struct buf *sql = sql_begin(outbox);
    put_columns(sql, false, bare, bare_count);
    put_ranges(sql, gaps, bare, bare_count);
    buf_text(sql, " ORDER BY seq LIMIT ");
    buf_uint(sql, limit);
    return give_rows(outbox, take, context, ret_count, err);
}

static enum err_class outbox_fetch(void *self, uint64_t seq,
                                   bool (*take)(void *context, const struct outbox_event *event), void *context,
                                   bool *ret_found, struct err *err)
{
    struct mysql_outbox *outbox = self;
    uint32_t count = 0;
    enum err_class class = conn_begin(outbox->conn, err);
    if (class)
        return class;
    struct buf *sql = sql_begin(outbox);
    put_columns(sql, true, NULL, 0);
    buf_text(sql, "seq=");
    buf_uint(sql, seq);
    class = give_rows(outbox, take, context, &count, err);
    *ret_found = count > 0;
    return class;
}

/* A row that was inserted and not committed is locked: asking for it fails at once. */
static enum err_class outbox_is_open(void *self, const struct gap *gap, bool *ret_open, struct err *err)
{
    struct mysql_outbox *outbox = self;
    const struct conn_cell *cells;
    uint32_t columns;
    enum err_class class = conn_begin(outbox->conn, err);
    if (class)
        return class;
    struct buf *sql = sql_begin(outbox);
    buf_text(sql, "SELECT seq FROM idem_outbox FORCE INDEX (PRIMARY) WHERE seq BETWEEN ");
    buf_uint(sql, gap->from);
    buf_text(sql, " AND ");
    buf_uint(sql, gap->to);
    buf_text(sql, conn_is_mariadb(outbox->conn) ? " LIMIT 1 LOCK IN SHARE MODE NOWAIT" : " LIMIT 1 FOR SHARE NOWAIT");
    class = run(outbox, "outbox", err);
    *ret_open = class == ERR_LOCKED || (!class && conn_next(outbox->conn, &cells, &columns));
    conn_done(outbox->conn);
    conn_rollback(outbox->conn);
    return class == ERR_LOCKED ? ERR_NONE : class;
}

static enum err_class still_ours(struct mysql_outbox *outbox, uint64_t generation, bool *ret_held, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    struct buf *sql = sql_begin(outbox);
    buf_text(sql, "SELECT 1 FROM idem_lease FORCE INDEX (PRIMARY) WHERE name=" LEASE_NAME " AND owner=_binary");
    sql_string(sql, owner(outbox));
    buf_text(sql, " AND generation=");
    buf_uint(sql, generation);
    buf_text(sql, " LOCK IN SHARE MODE");
    enum err_class class = run(outbox, "outbox", err);
    *ret_held = !class && conn_next(outbox->conn, &cells, &columns);
    conn_done(outbox->conn);
    return class;
}

static enum err_class outbox_remove(void *self, const uint64_t *seqs, const struct bytes *ids, uint32_t count,
                                    uint64_t generation, bool *ret_held, struct err *err)
{
    struct mysql_outbox *outbox = self;
    enum err_class class = conn_begin(outbox->conn, err);
    if (class)
        return class;
    class = still_ours(outbox, generation, ret_held, err);
    if (!class && *ret_held) {
        struct buf *sql = sql_begin(outbox);
        /* The index is named: a plan that scans would wait for rows of transactions that are still open. */
        buf_text(sql, "DELETE o FROM idem_outbox AS o FORCE INDEX (PRIMARY) WHERE o.seq IN (");
        for (uint32_t i = 0; i < count; i++) {
            buf_text(sql, i > 0 ? "," : "");
            buf_uint(sql, seqs[i]);
        }
        buf_text(sql, ") AND o.id IN (");
        for (uint32_t i = 0; i < count; i++) {
            buf_text(sql, i > 0 ? "," : "");
            sql_string(sql, ids[i]);
        }
        buf_char(sql, ')');
        class = run(outbox, "outbox", err);
    }
    return finish(outbox, class, err);
}

static enum err_class outbox_count(void *self, uint64_t *after, uint32_t limit, uint32_t *ret_rows,
                                   uint64_t *ret_oldest_ms, struct err *err)
{
    struct mysql_outbox *outbox = self;
    const struct conn_cell *cells;
    uint32_t columns;
    enum err_class class = conn_begin(outbox->conn, err);
    if (class)
        return class;
    struct buf *sql = sql_begin(outbox);
    buf_text(sql, "SELECT COUNT(*),COALESCE(MAX(seq),0),COALESCE(GREATEST(0,TIMESTAMPDIFF(MICROSECOND,MIN(created_at),"
                  "UTC_TIMESTAMP(6)) DIV 1000),0) FROM (SELECT seq,created_at FROM idem_outbox FORCE INDEX (PRIMARY) "
                  "WHERE seq>");
    buf_uint(sql, *after);
    buf_text(sql, " ORDER BY seq LIMIT ");
    buf_uint(sql, limit);
    buf_text(sql, ") AS part");
    class = run(outbox, "outbox", err);
    if (!class && conn_next(outbox->conn, &cells, &columns)) {
        *ret_rows = (uint32_t)number(&cells[0]);
        *after = *ret_rows ? number(&cells[1]) : *after;
        *ret_oldest_ms = number(&cells[2]);
    }
    conn_done(outbox->conn);
    conn_rollback(outbox->conn);
    return class;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static const struct outbox_ops outbox_table = {
    .open = outbox_open, .close = outbox_close, .lease = outbox_lease, .release = outbox_release,
    .read = outbox_read, .fetch = outbox_fetch, .is_open = outbox_is_open, .remove = outbox_remove,
    .count = outbox_count,
};

struct mysql_outbox *mysql_outbox_create(const struct database_config *database, uint32_t lease_ms,
                                         const char *owner_name)
{
    struct mysql_outbox *outbox = calloc(1, sizeof *outbox);
    void *block = malloc(STATEMENT_MAX);
    if (outbox)
        outbox->conn = conn_create(database);
    if (!outbox || !block || !outbox->conn) {
        free(block);
        mysql_outbox_destroy(outbox);
        return NULL;
    }
    /* One that is frozen within a transaction loses its locks with its lease. */
    conn_options_set(outbox->conn, &(struct conn_options){.silence_s = (lease_ms + 999) / 1000});
    buf_init(&outbox->sql, block, STATEMENT_MAX);
    outbox->owner_len = strnlen(owner_name, sizeof outbox->owner);
    memcpy(outbox->owner, owner_name, outbox->owner_len);
    outbox->port = (struct outbox_port){outbox, &outbox_table};
    return outbox;
}

void mysql_outbox_destroy(struct mysql_outbox *outbox)
{
    if (!outbox)
        return;
    conn_destroy(outbox->conn);
    free(outbox->sql.at);
    free(outbox);
}

const struct outbox_port *mysql_outbox_port(struct mysql_outbox *outbox)
{
    return &outbox->port;
}
