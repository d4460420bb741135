/* SPDX-License-Identifier: MIT */
/* dead_letter: idemctl dead-letter list|show. The payload only where it is asked for. */
#include "print.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { SQL_MAX = 8192, LIMIT_DEFAULT = 100, LIMIT_MAX = 100000 };

static const struct print_column list_columns[] = {
    {"id", PRINT_NUMBER, 8}, {"outcome", PRINT_TEXT, 16}, {"cause", PRINT_TEXT, 20}, {"rule", PRINT_TEXT, 12},
    {"biz_type", PRINT_TEXT, 0}, {"idem_key", PRINT_TEXT, 32}, {"biz_no", PRINT_TEXT, 20}, {"topic", PRINT_TEXT, 0},
    {"partition", PRINT_NUMBER, 0}, {"offset", PRINT_NUMBER, 0}, {"attempts", PRINT_NUMBER, 8},
    {"state", PRINT_TEXT, 9}, {"created_at", PRINT_TIME, 27}};

static const struct print_column show_columns[] = {
    {"id", PRINT_NUMBER, 0}, {"outcome", PRINT_TEXT, 0}, {"cause", PRINT_TEXT, 0}, {"rule", PRINT_TEXT, 0},
    {"biz_type", PRINT_TEXT, 0}, {"idem_key", PRINT_TEXT, 0}, {"biz_no", PRINT_TEXT, 0}, {"topic", PRINT_TEXT, 0},
    {"partition", PRINT_NUMBER, 0}, {"offset", PRINT_NUMBER, 0}, {"attempts", PRINT_NUMBER, 0},
    {"state", PRINT_TEXT, 0}, {"created_at", PRINT_TIME, 0}, {"updated_at", PRINT_TIME, 0}, {"source", PRINT_TEXT, 0},
    {"record_ts", PRINT_TIME, 0}, {"request_id", PRINT_TEXT, 0}, {"error_no", PRINT_NUMBER, 0},
    {"error_text", PRINT_TEXT, 0}, {"row_state", PRINT_JSON, 0}, {"note", PRINT_TEXT, 0},
    {"payload_bytes", PRINT_NUMBER, 0}, {"payload_sha256", PRINT_HEX, 0}, {"record_key", PRINT_TEXT, 0},
    {"payload", PRINT_TEXT, 0}};

static const char list_select[] =
    "SELECT id, outcome, cause, rule, biz_type, idem_key, biz_no, topic, partition_id, kafka_offset, attempts, state, "
    "created_at FROM idem_dead_letter WHERE 1=1";

static const char show_select[] =
    "SELECT id, outcome, cause, rule, biz_type, idem_key, biz_no, topic, partition_id, kafka_offset, attempts, state, "
    "created_at, updated_at, source, record_ts, request_id, error_no, error_text, row_state, note, payload_bytes, "
    "payload_sha256, record_key, payload FROM idem_dead_letter WHERE id=";

static const struct {
    const char *option, *condition;
} filters[] = {
    {"--outcome", " AND outcome="}, {"--cause", " AND cause="}, {"--rule", " AND rule="},
    {"--biz-type", " AND biz_type="}, {"--biz-no", " AND biz_no="}, {"--topic", " AND topic="},
    {"--state", " AND state="}, {"--since", " AND created_at>="},
};

/* A session with the rows of sql, for query_ends; NULL: *ret_code says why (told). */
static struct conn *query(const struct ctl *ctl, const struct buf *sql, int *ret_code)
{
    struct err err = {0};
    struct conn *conn = ctl_connect(ctl, true, ret_code);
    if (!conn)
        return NULL;
    if (conn_begin(conn, &err) == ERR_NONE && conn_run(conn, buf_view(sql), "dead-letter", &err) == ERR_NONE)
        return conn;
    *ret_code = ctl_fail_err(&err);
    conn_rollback(conn);
    conn_destroy(conn);
    return NULL;
}

static void query_ends(struct conn *conn)
{
    conn_done(conn);
    conn_rollback(conn);
    conn_destroy(conn);
}

static int print_list(const struct ctl *ctl, struct conn *conn)
{
    const struct conn_cell *cells;
    uint32_t count, rows = 0;
    if (ctl->json)
        fputs("{\"dead_letters\":[", stdout);
    for (; conn_next(conn, &cells, &count); rows++) {
        if (ctl->json) {
            fputs(rows ? "," : "", stdout);
            print_json_row(list_columns, COUNT_OF(list_columns), cells, stdout);
            continue;
        }
        if (rows == 0)
            print_list_head(list_columns, COUNT_OF(list_columns));
        print_list_row(list_columns, COUNT_OF(list_columns), cells);
    }
    if (ctl->json)
        puts("]}");
    else if (rows == 0)
        puts("no dead letters");
    return CTL_GOOD;
}

static int list(struct ctl *ctl)
{
    char block[SQL_MAX];
    struct buf sql;
    uint64_t limit = LIMIT_DEFAULT;
    int code = CTL_GOOD;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, list_select);
    for (uint32_t i = 0; i < COUNT_OF(filters); i++) {
        const char *value = ctl_option(ctl, filters[i].option);
        if (!value)
            continue;
        buf_text(&sql, filters[i].condition);
        sql_string(&sql, bytes_text(value));
    }
    const char *limit_text = ctl_option(ctl, "--limit");
    if ((limit_text && !ctl_number(limit_text, LIMIT_MAX, &limit)) || !ctl_arguments(ctl, 0) || sql.overflow)
        return CTL_USAGE;
    buf_printf(&sql, " ORDER BY id LIMIT %llu", (unsigned long long)limit);
    struct conn *conn = query(ctl, &sql, &code);
    if (!conn)
        return code;
    code = print_list(ctl, conn);
    query_ends(conn);
    return code;
}

static int print_one(const struct ctl *ctl, struct conn *conn, const char *id, bool payload)
{
    const struct conn_cell *cells;
    uint32_t count;
    if (!conn_next(conn, &cells, &count))
        return ctl_fail(CTL_NOT_FOUND, "no dead letter %s", id);
    uint32_t columns = COUNT_OF(show_columns) - (payload ? 0 : 2);      /* record_key, payload */
    if (ctl->json) {
        print_json_row(show_columns, columns, cells, stdout);
        putchar('\n');
    } else {
        print_text_row(show_columns, columns, cells, 0);
    }
    return CTL_GOOD;
}

static int show(struct ctl *ctl)
{
    char block[SQL_MAX];
    struct buf sql;
    uint64_t id;
    int code = CTL_GOOD;
    bool payload = ctl_flag(ctl, "--payload");
    if (!ctl_arguments(ctl, 1) || !ctl_number(ctl->argv[0], UINT64_MAX, &id))
        return CTL_USAGE;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, show_select);
    buf_uint(&sql, id);
    struct conn *conn = query(ctl, &sql, &code);
    if (!conn)
        return code;
    code = print_one(ctl, conn, ctl->argv[0], payload);
    query_ends(conn);
    return code;
}

int command_dead_letter(struct ctl *ctl)
{
    if (ctl->argc == 0)
        return CTL_USAGE;
    const char *verb = ctl->argv[0];
    ctl->argc--;
    ctl->argv++;
    if (strcmp(verb, "list") == 0)
        return list(ctl);
    if (strcmp(verb, "show") == 0)
        return show(ctl);
    if (strcmp(verb, "redrive") == 0 || strcmp(verb, "discard") == 0)
        return ctl_fail(CTL_USAGE, "dead-letter %s: not supported yet", verb);
    return CTL_USAGE;
}
