/* SPDX-License-Identifier: MIT */
/* conn: one session with one server, as a small state machine CLOSED / IDLE / IN_TX / BROKEN
 * (hazards M7, M8: after an error nothing the client library says about the transaction is
 * trusted). The only place that calls mysql_real_connect and mysql_real_query. Owned by one thread. */
#ifndef IDEM_ADAPTER_MYSQL_CONN_H
#define IDEM_ADAPTER_MYSQL_CONN_H

#include "idem/base/buf.h"
#include "idem/base/err.h"
#include "idem/core/config.h"

enum conn_state { CONN_CLOSED, CONN_IDLE, CONN_IN_TX, CONN_BROKEN };

struct conn;

/* Called with each statement before it is sent (explain, tests). */
typedef void conn_trace(void *context, struct bytes sql);

/* `config` is borrowed until conn_destroy. NULL if out of memory. Nothing is connected yet. */
struct conn *conn_create(const struct database_config *config);
void conn_destroy(struct conn *conn);                      /* NULL is fine; closes */
/* From now on every statement is told; NULL ends it. */
void conn_trace_set(struct conn *conn, conn_trace *trace, void *context);

/* Session settings that differ from the daemon's: lock wait in seconds (0 = config->lock_wait_ms),
 * user/password override (NULL = config) for the migrate user, read_only_allowed for tools that
 * only look. Before conn_open. A session that was idle for 60 % of silence_s is opened anew by conn_open. */
struct conn_options {
    uint32_t lock_wait_s;
    const char *user, *password;
    bool read_only_allowed;
    uint32_t silence_s;         /* the server ends the session after so long without a statement; 0 = 30 s */
};
/* Copied, texts borrowed while the connection lives. */
void conn_options_set(struct conn *conn, const struct conn_options *options);

/* Connects if CLOSED or BROKEN (next host of the list after ERR_WRONG_SERVER or a failed connect;
 * password file read each time), sets and verifies the session: autocommit=0, READ COMMITTED,
 * time_zone, strict sql_mode, utf8mb4, lock wait, no FOUND_ROWS, server writable. A no-op when
 * IDLE. ERR_RECONNECT, ERR_WRONG_SERVER, ERR_CONFIG. */
enum err_class conn_open(struct conn *conn, struct err *err);
/* Closes; the next conn_open connects anew. */
void conn_close(struct conn *conn);
/* This server is not the one that is wanted: the session is BROKEN, the next conn_open begins with the next host. */
void conn_leave(struct conn *conn);
/* What may be done next. */
enum conn_state conn_state(const struct conn *conn);

/* IDLE -> IN_TX. With autocommit off the transaction starts with its first statement: no round
 * trip. ERR_FATAL if not IDLE. */
enum err_class conn_begin(struct conn *conn, struct err *err);
/* IN_TX -> IDLE; ERR_IN_DOUBT if the answer is unknown (then BROKEN); other classes: surely not
 * committed. */
enum err_class conn_commit(struct conn *conn, struct err *err);
/* -> IDLE, or closed if ROLLBACK itself fails. Never fails. */
void conn_rollback(struct conn *conn);

/* Runs one statement. Result rows, if any, are stored and read by conn_next(). `where` = static
 * name of the step. */
enum err_class conn_run(struct conn *conn, struct bytes sql, const char *where, struct err *err);
/* The same for NUL-terminated text. */
enum err_class conn_run_text(struct conn *conn, const char *sql, const char *where, struct err *err);
/* Changed rows (never matched ones) of the last statement. */
uint64_t conn_affected(const struct conn *conn);
/* Of the last INSERT, 0 if it made none. */
uint64_t conn_insert_id(const struct conn *conn);

struct conn_cell {
    struct bytes text;      /* valid until the next conn_run or conn_done */
    bool is_null;
};
/* Next row of the last statement: *ret_cells (column_count of them) is valid until the next call.
 * false at the end. Lock errors that arrive with the result (hazards M9) were already reported by
 * conn_run. */
bool conn_next(struct conn *conn, const struct conn_cell **ret_cells, uint32_t *ret_count);
void conn_done(struct conn *conn);                         /* frees the stored result; a no-op without one */

/* Facts of the present session. */
bool conn_is_mariadb(const struct conn *conn);
bool conn_writable(const struct conn *conn);               /* not read_only, super_read_only, innodb_read_only */
uint32_t conn_version(const struct conn *conn);            /* 101119, 90704: major*10000 + minor*100 + patch */
uint64_t conn_thread_id(const struct conn *conn);
/* A number for the server and its present run, never 0: from @@server_uuid or @@server_uid, @@server_id (which differs
 * between members of a replication), host, port, and when it was started. */
uint64_t conn_server(const struct conn *conn);
uint64_t conn_packet_max(const struct conn *conn);         /* max_allowed_packet of the session, bytes */

/* Of the client library; static text. */
const char *conn_library_version(void);

/* MySQL error number -> class, details 1 "Error numbers". in_commit: client errors are
 * ERR_IN_DOUBT. */
enum err_class mysql_class(unsigned number, bool in_commit);

/* SQL text helpers: a string literal 'x' with escapes valid for any sql_mode with backslash escapes
 * on (the session checks that NO_BACKSLASH_ESCAPES is off), a hex literal, a backtick identifier
 * (schema.table is split at its dot). */
void sql_string(struct buf *buf, struct bytes text);
void sql_hex(struct buf *buf, struct bytes bytes);         /* x'..' */
void sql_name(struct buf *buf, struct bytes name);
/* ` WHERE schema_column=.. AND table_column=..` for information_schema; table: `schema.table` or `table`. */
void sql_where_table(struct buf *buf, struct bytes table, const char *schema_column, const char *table_column);

#endif
