/* SPDX-License-Identifier: MIT */
/* list: see list.h. The databases one after the other, --limit rows in all. Never changes a row. */
#include "list.h"

#include "sessions.h"

enum { SQL_MAX = 8192, LIMIT_DEFAULT = 100, LIMIT_MAX = 100000 };

static uint32_t print_rows(const struct ctl *ctl, const struct list *list, struct conn *conn, struct bytes database,
                           uint32_t before)
{
    const struct conn_cell *cells;
    uint32_t count, rows = before;
    for (; conn_next(conn, &cells, &count); rows++) {
        if (ctl->json) {
            fputs(rows ? "," : "", ctl->out);
            print_json_row(list->columns, list->column_count, cells, database, ctl->out);
            continue;
        }
        if (rows == 0)
            print_list_head(list->columns, list->column_count, database.len > 0, ctl->out);
        print_list_row(list->columns, list->column_count, cells, database, ctl->out);
    }
    conn_done(conn);
    return rows;
}

static int print_all(const struct ctl *ctl, const struct list *list, const struct sessions *sessions, struct buf *sql,
                     uint64_t limit)
{
    uint32_t rows = 0;
    int code = CTL_GOOD;
    size_t mark = sql->len;
    if (ctl->json)
        fprintf(ctl->out, "{\"%s\":[", list->member);
    for (uint32_t i = 0; i < sessions->count && code == CTL_GOOD && rows < limit; i++) {
        sql->len = mark;
        buf_printf(sql, " ORDER BY %s LIMIT %llu", list->order, (unsigned long long)(limit - rows));
        code = sessions_run(sessions, i, sql, list->member);
        if (code == CTL_GOOD)
            rows = print_rows(ctl, list, sessions->list[i], sessions_name(ctl, sessions, i), rows);
    }
    if (ctl->json)
        fputs("]}\n", ctl->out);
    else if (rows == 0 && code == CTL_GOOD)
        fprintf(ctl->out, "%s\n", list->empty);
    return code;
}

int list_run(struct ctl *ctl, const struct list *list)
{
    char block[SQL_MAX];
    struct buf sql;
    struct sessions sessions;
    uint64_t limit;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, list->select);
    int code = filter_take(ctl, list->filters, list->filter_count, &sql);
    if (code == CTL_GOOD)
        code = filter_take_limit(ctl, LIMIT_DEFAULT, LIMIT_MAX, &limit);
    if (code != CTL_GOOD || !ctl_arguments(ctl, 0))
        return CTL_USAGE;
    code = sessions_open(ctl, &sessions);
    if (code != CTL_GOOD)
        return code;
    code = print_all(ctl, list, &sessions, &sql, limit);
    sessions_close(&sessions);
    return code;
}
