/* SPDX-License-Identifier: MIT */
/* settle: what became of a COMMIT whose answer was lost (design 3 step 8, details 4 "In doubt";
 * hazards M23, M36). The old session is made to go first: it could still be committing. COMMIT is
 * never sent again. A call waits a second at most: the worker calls again. */
#include "store_self.h"

#include "idem/adapter/clock.h"

#include <time.h>

enum {
    GONE_WAIT_US = 30000000,         /* for the old session, since the doubt began */
    ROUND_US = 1000000,              /* of which one call takes so much */
    GONE_POLL_MS = 50,
    NO_SUCH_THREAD = 1094, NOT_OWNER = 1095
};

/* What the old session does, as far as we may touch it. */
enum session { SESSION_GONE, SESSION_IDLE, SESSION_COMMITTING };

/* Columns of SHOW PROCESSLIST. The table of that name would be read through a temporary one, which may need the very
 * disk that is full. */
enum { LIST_ID, LIST_USER, LIST_HOST, LIST_DB, LIST_COMMAND, LIST_TIME, LIST_STATE, LIST_INFO };

static enum err_class look_for_session(struct mysql_store *store, enum session *ret, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    enum err_class class = conn_run_text(store->conn, "SHOW PROCESSLIST", "settle", err);
    if (class)
        return class;
    *ret = SESSION_GONE;
    while (conn_next(store->conn, &cells, &columns)) {
        if (columns <= LIST_INFO || cell_number(&cells[LIST_ID]) != store->doubt_thread)
            continue;
        bool commits = !cells[LIST_INFO].is_null && bytes_equal_nocase(cells[LIST_INFO].text, BYTES_LIT("COMMIT"));
        *ret = commits ? SESSION_COMMITTING : SESSION_IDLE;
    }
    conn_done(store->conn);
    return ERR_NONE;
}

static enum err_class kill_session(struct mysql_store *store, struct err *err)
{
    struct err refused;
    struct buf *sql = store_sql(store);
    buf_text(sql, "KILL CONNECTION ");
    buf_uint(sql, store->doubt_thread);
    enum err_class class = store_run(store, "settle", &refused);
    /* 1095: the number belongs to somebody else by now, so ours is gone. */
    if (class && refused.number != NO_SUCH_THREAD && refused.number != NOT_OWNER) {
        if (err)
            *err = refused;
        return class;
    }
    return ERR_NONE;
}

/* Only on the server that had it: elsewhere the number is a stranger's. A session that is inside COMMIT is left to end
 * by itself, for its client is gone: killed while it waits for space on a full disk, it leaves MariaDB a torn binary
 * log that takes no transaction any more (MDEV-27803), and stops a MySQL whose binlog_error_action is ABORT_SERVER. */
static enum err_class end_old_session(struct mysql_store *store, struct err *err)
{
    int64_t start = clock_mono_us();
    enum session session = SESSION_GONE;
    bool killed = false;
    if (store->doubt_server != conn_server(store->conn) ||
        store->doubt_thread == conn_thread_id(store->conn))
        return ERR_NONE;
    for (;;) {
        enum err_class class = look_for_session(store, &session, err);
        if (!class && session == SESSION_IDLE && !killed)
            class = kill_session(store, err);
        if (class)
            return class;
        killed = killed || session == SESSION_IDLE;
        if (session == SESSION_GONE || clock_mono_us() - store->doubt_us >= GONE_WAIT_US)
            return ERR_NONE;             /* the rows that it holds, or does not, decide */
        if (clock_mono_us() - start >= ROUND_US)
            return err_set(err, ERR_LOCKED, 0, "settle", "the old session is still there");
        nanosleep(&(struct timespec){.tv_nsec = GONE_POLL_MS * 1000000L}, NULL);
    }
}

static enum err_class find_claim(struct mysql_store *store, uint32_t count,
                                 const uint8_t claim[CLAIM_LEN], bool *ret_found, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    bool found = false;
    for (uint32_t from = 0, run; from < count && !found; from += run) {
        struct buf *sql = store_sql(store);
        run = same_type_run(store->sorted + from, count - from);
        buf_text(sql, "SELECT claim FROM idem_record FORCE INDEX (PRIMARY)");
        put_keys(sql, store->sorted + from, run);
        buf_text(sql, " LOCK IN SHARE MODE");
        enum err_class class = store_run(store, "settle", err);
        if (class)
            return class;
        while (conn_next(store->conn, &cells, &columns))
            found = found || bytes_equal(cells[0].text, bytes_of(claim, CLAIM_LEN));
        conn_done(store->conn);
    }
    *ret_found = found;
    return ERR_NONE;
}

enum err_class store_settle(void *self, struct item *const *items, uint32_t count,
                            const uint8_t claim[CLAIM_LEN], bool *ret_committed, struct err *err)
{
    struct mysql_store *store = self;
    uint32_t mine = 0;
    bool found = false;
    if (conn_state(store->conn) == CONN_IN_TX)
        conn_rollback(store->conn);
    enum err_class class = store->port.tx->open(store, err);
    if (!class && store->in_doubt)
        class = end_old_session(store, err);
    if (class)
        return class;
    if (count > store->places)
        return err_set(err, ERR_FATAL, 0, "settle", "more records than batch.max");
    for (uint32_t i = 0; i < count; i++)
        if (items[i]->claimed || items[i]->write == WRITE_REPLACE || items[i]->write == WRITE_RETRY)
            store->sorted[mine++] = items[i];
    items_sort_by_key(store->sorted, mine);
    class = conn_begin(store->conn, err);
    if (!class)
        class = find_claim(store, mine, claim, &found, err);
    conn_rollback(store->conn);
    if (class)
        return class;
    store->in_doubt = false;
    *ret_committed = found;
    return ERR_NONE;
}
