/* SPDX-License-Identifier: MIT */
/* conn_self: what the two files of the connection share: the session (conn.c) and its statements (conn_run.c). */
#ifndef IDEM_MYSQL_CONN_SELF_H
#define IDEM_MYSQL_CONN_SELF_H

#include "idem/adapter/mysql_conn.h"

#include "compat.h"

enum { CELLS_MAX = 128 };            /* columns of a result; more are an internal fault */

struct conn {
    const struct database_config *config;
    struct conn_options options;
    MYSQL *db;                   /* NULL: closed */
    MYSQL_RES *result;
    enum conn_state state;
    bool leftover;               /* statements were run outside a transaction */
    uint32_t host;               /* index of the host in use */
    conn_trace *trace;
    void *trace_context;
    uint64_t affected, insert_id;
    int64_t spoke_us;                /* of the last statement, CLOCK_MONOTONIC */
    bool mariadb, writable;
    uint32_t version;
    uint64_t thread_id, packet_max, server;
    struct conn_cell cells[CELLS_MAX];
};

#endif
