/* SPDX-License-Identifier: MIT */
/* conn_run: statements and transactions on the session that conn.c opened; see idem/adapter/mysql_conn.h. Never
 * retries. */
#include "conn_self.h"

#include "idem/adapter/clock.h"

/* Errors that leave no session behind, whatever they mean for the transaction. */
static bool session_is_gone(unsigned number)
{
    return number == 0 || mysql_class(number, false) == ERR_RECONNECT || number == 2020 || number == 1153;
}

static enum err_class fail(struct conn *conn, bool in_commit, const char *where, struct err *err)
{
    unsigned number = mysql_errno(conn->db);
    enum err_class class = mysql_class(number, in_commit);
    err_set(err, class, (int)number, where, "%s", mysql_error(conn->db));
    conn_done(conn);
    if (class == ERR_IN_DOUBT || session_is_gone(number)) {
        conn->state = CONN_BROKEN;
    } else if (class == ERR_WRONG_SERVER) {
        conn_leave(conn);            /* its TCP connection would live on for ever (hazards M26) */
    }
    return class;
}

static enum err_class run(struct conn *conn, struct bytes sql, bool in_commit, const char *where,
                          struct err *err)
{
    conn_done(conn);
    conn->spoke_us = clock_mono_us();
    if (conn->state != CONN_IDLE && conn->state != CONN_IN_TX)
        return err_set(err, ERR_RECONNECT, CR_SERVER_GONE_ERROR, where, "not connected");
    if (conn->trace)
        conn->trace(conn->trace_context, sql);
    /* Larger than the server takes: MariaDB's library would report a lost connection (hazards M21). */
    if (conn->packet_max && sql.len >= conn->packet_max)
        return err_set(err, ERR_TOO_LARGE, CR_NET_PACKET_TOO_LARGE, where,
                       "a statement of %zu bytes is over max_allowed_packet", sql.len);
    if (mysql_real_query(conn->db, (const char *)sql.at, sql.len))
        return fail(conn, in_commit, where, err);
    if (conn->state == CONN_IDLE)
        conn->leftover = true;
    if (mysql_field_count(conn->db) == 0) {
        conn->affected = mysql_affected_rows(conn->db);
        conn->insert_id = mysql_insert_id(conn->db);
        return ERR_NONE;
    }
    /* Lock errors of a SELECT arrive here (hazards M9). */
    conn->result = mysql_store_result(conn->db);
    if (!conn->result)
        return fail(conn, in_commit, where, err);
    conn->affected = mysql_num_rows(conn->result);
    if (mysql_num_fields(conn->result) > CELLS_MAX) {
        conn_done(conn);
        return err_set(err, ERR_FATAL, 0, where, "a result of too many columns");
    }
    return ERR_NONE;
}

enum err_class conn_run(struct conn *conn, struct bytes sql, const char *where, struct err *err)
{
    return run(conn, sql, false, where, err);
}

enum err_class conn_run_text(struct conn *conn, const char *sql, const char *where, struct err *err)
{
    return run(conn, bytes_text(sql), false, where, err);
}

bool conn_next(struct conn *conn, const struct conn_cell **ret_cells, uint32_t *ret_count)
{
    MYSQL_ROW row = conn->result ? mysql_fetch_row(conn->result) : NULL;
    if (!row)
        return false;
    const unsigned long *lengths = mysql_fetch_lengths(conn->result);
    uint32_t count = mysql_num_fields(conn->result);
    for (uint32_t i = 0; i < count; i++)
        conn->cells[i] = (struct conn_cell){
            .text = bytes_of(row[i], row[i] ? lengths[i] : 0), .is_null = row[i] == NULL};
    *ret_cells = conn->cells;
    *ret_count = count;
    return true;
}

/* ---- transactions ---------------------------------------------------------------------------------------------- */

enum err_class conn_begin(struct conn *conn, struct err *err)
{
    if (conn->state != CONN_IDLE)
        return err_set(err, conn->state == CONN_IN_TX ? ERR_FATAL : ERR_RECONNECT, 0, "begin",
                       "the session is not idle");
    if (conn->leftover) {
        enum err_class class = conn_run_text(conn, "ROLLBACK", "begin", err);
        if (class)
            return class;
        conn->leftover = false;
    }
    conn->state = CONN_IN_TX;
    return ERR_NONE;
}

enum err_class conn_commit(struct conn *conn, struct err *err)
{
    if (conn->state != CONN_IN_TX)
        return err_set(err, ERR_FATAL, 0, "commit", "no transaction is open");
    enum err_class class = run(conn, BYTES_LIT("COMMIT"), true, "commit", err);
    if (class) {
        /* Surely not committed, but a second COMMIT on this session would succeed with nothing
         * (hazards M24). */
        if (conn->state == CONN_IN_TX)
            conn_rollback(conn);
        return class;
    }
    conn->state = CONN_IDLE;
    return ERR_NONE;
}

void conn_rollback(struct conn *conn)
{
    if (conn->state == CONN_BROKEN)
        conn_close(conn);
    if (conn->state == CONN_CLOSED)
        return;
    if (run(conn, BYTES_LIT("ROLLBACK"), false, "rollback", NULL)) {
        conn_close(conn);
        return;
    }
    conn->state = CONN_IDLE;
    conn->leftover = false;
}

/* ---- facts ----------------------------------------------------------------------------------------------------- */

uint64_t conn_affected(const struct conn *conn)
{
    return conn->affected;
}

uint64_t conn_insert_id(const struct conn *conn)
{
    return conn->insert_id;
}

bool conn_is_mariadb(const struct conn *conn)
{
    return conn->mariadb;
}

bool conn_writable(const struct conn *conn)
{
    return conn->writable;
}

uint32_t conn_version(const struct conn *conn)
{
    return conn->version;
}

uint64_t conn_thread_id(const struct conn *conn)
{
    return conn->thread_id;
}

uint64_t conn_server(const struct conn *conn)
{
    return conn->server;
}

uint64_t conn_packet_max(const struct conn *conn)
{
    return conn->packet_max;
}

const char *conn_library_version(void)
{
    return mysql_get_client_info();
}
