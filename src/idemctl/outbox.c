/* SPDX-License-Identifier: MIT */
/* outbox: idemctl outbox list|discard. What waits to be published, and taking out what never can be. A discarded row is
 * printed whole: it is kept nowhere else. */
#include "list.h"
#include "print.h"
#include "sessions.h"

#include <stdlib.h>

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { SQL_MAX = 8192, ID_LEN = 32 };

static const struct print_column columns[] = {
    {"seq", PRINT_NUMBER, 10}, {"id", PRINT_TEXT, 32}, {"topic", PRINT_TEXT, 20}, {"aggregate", PRINT_TEXT, 0},
    {"aggregate_id", PRINT_TEXT, 24}, {"type", PRINT_TEXT, 16}, {"bytes", PRINT_NUMBER, 8},
    {"created_at", PRINT_TIME, 27}, {"headers", PRINT_JSON, 0}, {"payload", PRINT_JSON, 0}};

enum { LIST_COLUMNS = 8 };

static const char row_select[] =
    "SELECT seq, id, topic, aggregatetype, aggregateid, type, LENGTH(payload), created_at, headers, payload "
    "FROM idem_outbox WHERE 1=1";

static const struct filter filters[] = {
    {"--topic", "topic", FILTER_TEXT, NULL}, {"--aggregate-id", "aggregateid", FILTER_TEXT, NULL},
    {"--since", "created_at", FILTER_SINCE, NULL}, {"--until", "created_at", FILTER_UNTIL, NULL},
};

/* ---- list -------------------------------------------------------------------------------------------------------- */

static const struct list lists = {
    .member = "outbox", .empty = "the outbox is empty", .select = row_select, .order = "seq",
    .columns = columns, .column_count = LIST_COLUMNS, .filters = filters, .filter_count = COUNT_OF(filters)};

/* ---- discard ----------------------------------------------------------------------------------------------------- */

/* By number, or by the event's id. */
static bool put_where(struct buf *sql, const char *name)
{
    uint64_t seq;
    if (strlen(name) == ID_LEN) {
        buf_text(sql, " AND id=");
        sql_string(sql, bytes_text(name));
        return true;
    }
    if (!ctl_number(name, UINT64_MAX, &seq))
        return false;
    buf_text(sql, " AND seq=");
    buf_uint(sql, seq);
    return true;
}

static void print_discarded(const struct ctl *ctl, const struct conn_cell *cells, const char *note)
{
    struct bytes none = {0};
    if (ctl->json) {
        fputs("{\"note\":", ctl->out);
        print_string(bytes_text(note), ctl->out);
        fputs(",\"discarded\":", ctl->out);
        print_json_row(columns, COUNT_OF(columns), cells, none, ctl->out);
        fputs("}\n", ctl->out);
        return;
    }
    fprintf(ctl->out, "discarded: %s\n", note);
    print_text_row(columns, COUNT_OF(columns), cells, none, 2, ctl->out);
}

static int discard_row(const struct ctl *ctl, struct conn *conn, const char *name, const char *note)
{
    char block[SQL_MAX];
    struct buf sql;
    struct err err = {0};
    const struct conn_cell *cells;
    uint32_t count;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, row_select);
    put_where(&sql, name);
    buf_text(&sql, " FOR UPDATE");
    if (conn_begin(conn, &err) || conn_run(conn, buf_view(&sql), "outbox", &err))
        return ctl_fail_err(&err);
    if (!conn_next(conn, &cells, &count)) {
        conn_done(conn);
        return ctl_fail(CTL_NOT_FOUND, "no row %s in the outbox: it may have been published", name);
    }
    print_discarded(ctl, cells, note);
    conn_done(conn);
    buf_reset(&sql);
    buf_text(&sql, "DELETE FROM idem_outbox WHERE 1=1");
    put_where(&sql, name);
    if (conn_run(conn, buf_view(&sql), "outbox", &err) || conn_commit(conn, &err))
        return ctl_fail_err(&err);
    return CTL_GOOD;
}

static int discard_outbox(struct ctl *ctl)
{
    char block[SQL_MAX];
    struct buf probe;
    int code = CTL_GOOD;
    bool yes = ctl_flag(ctl, "--yes");
    const char *note = ctl_option(ctl, "--note");
    buf_init(&probe, block, sizeof block);
    if (!note || !*note || !ctl_arguments(ctl, 1) || !put_where(&probe, ctl->argv[0]))
        return CTL_USAGE;
    if (ctl->count > 1)
        return ctl_fail(CTL_USAGE, "each database numbers its own rows: choose one by --database");
    if (!yes)
        return ctl_fail(CTL_REFUSED, "nobody will ever hear of this event: say --yes");
    struct conn *conn = ctl_connect(ctl, ctl->first, false, &code);
    if (!conn)
        return code;
    code = discard_row(ctl, conn, ctl->argv[0], note);
    conn_rollback(conn);
    conn_destroy(conn);
    return code;
}

int command_outbox(struct ctl *ctl)
{
    const char *what = ctl_word(ctl);
    if (strcmp(what, "list") == 0)
        return list_run(ctl, &lists);
    if (strcmp(what, "discard") == 0)
        return discard_outbox(ctl);
    return CTL_USAGE;
}
