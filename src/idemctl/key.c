/* SPDX-License-Identifier: MIT */
/* key: idemctl key. One key as GET /v1/keys gives it, or one order's whole story as GET /v1/biz does. */
#include "print.h"
#include "sessions.h"

#include <stdlib.h>

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { SQL_MAX = 8192 };

static const struct print_column record_columns[] = {
    {"biz_type", PRINT_TEXT, 0}, {"key", PRINT_TEXT, 0}, {"biz_no", PRINT_TEXT, 0}, {"action", PRINT_TEXT, 0},
    {"status", PRINT_STATUS, 0}, {"outcome", PRINT_TEXT, 0}, {"response", PRINT_JSON, 0}, {"attempts", PRINT_NUMBER, 0},
    {"source", PRINT_TEXT, 0}, {"topic", PRINT_TEXT, 0}, {"partition", PRINT_NUMBER, 0}, {"offset", PRINT_NUMBER, 0},
    {"created_at", PRINT_TIME, 0}, {"updated_at", PRINT_TIME, 0}, {"expires_at", PRINT_TIME, 0}};

static const char record_select[] =
    "SELECT r.biz_type, r.idem_key, r.biz_no, d.action, r.status, r.outcome, r.response, r.attempts, r.source, "
    "d.topic, r.partition_id, r.kafka_offset, r.created_at, r.updated_at, r.expires_at FROM idem_record r "
    "JOIN idem_rule d ON d.id = r.rule_id ";

static const struct print_column parked_columns[] = {
    {"id", PRINT_NUMBER, 0}, {"topic", PRINT_TEXT, 0}, {"partition", PRINT_NUMBER, 0}, {"offset", PRINT_NUMBER, 0},
    {"rule", PRINT_TEXT, 0}, {"biz_type", PRINT_TEXT, 0}, {"biz_no", PRINT_TEXT, 0}, {"idem_key", PRINT_TEXT, 0},
    {"reason", PRINT_TEXT, 0}, {"attempts", PRINT_NUMBER, 0}, {"next_attempt_at", PRINT_TIME, 0},
    {"give_up_at", PRINT_TIME, 0}};

static const char parked_select[] =
    "SELECT id, topic, partition_id, kafka_offset, rule, biz_type, biz_no, idem_key, reason, attempts, "
    "next_attempt_at, give_up_at FROM idem_parked ";

static const struct print_column letter_columns[] = {
    {"id", PRINT_NUMBER, 0}, {"outcome", PRINT_TEXT, 0}, {"cause", PRINT_TEXT, 0}, {"rule", PRINT_TEXT, 0},
    {"biz_type", PRINT_TEXT, 0}, {"idem_key", PRINT_TEXT, 0}, {"biz_no", PRINT_TEXT, 0}, {"topic", PRINT_TEXT, 0},
    {"partition", PRINT_NUMBER, 0}, {"offset", PRINT_NUMBER, 0}, {"attempts", PRINT_NUMBER, 0},
    {"state", PRINT_TEXT, 0}, {"row_state", PRINT_JSON, 0}, {"created_at", PRINT_TIME, 0}, {"payload", PRINT_TEXT, 0}};

static const char letter_select[] =
    "SELECT id, outcome, cause, rule, biz_type, idem_key, biz_no, topic, partition_id, kafka_offset, attempts, state, "
    "row_state, created_at, payload FROM idem_dead_letter ";

static const struct print_column outbox_columns[] = {
    {"seq", PRINT_NUMBER, 0}, {"id", PRINT_TEXT, 0}, {"topic", PRINT_TEXT, 0}, {"aggregate", PRINT_TEXT, 0},
    {"key", PRINT_TEXT, 0}, {"type", PRINT_TEXT, 0}, {"created_at", PRINT_TIME, 0}, {"payload", PRINT_JSON, 0}};

static const char outbox_select[] =
    "SELECT seq, id, topic, aggregatetype, aggregateid, type, created_at, payload FROM idem_outbox ";

struct section {
    const char *name, *title, *select, *order, *table;
    const struct print_column *columns;
    uint32_t count;
    bool has_payload;            /* the last column: only with --payload */
    bool by_aggregate;           /* found by aggregateid, not by biz_type and biz_no */
};

static const struct section sections[] = {
    {"records", "record", record_select, " ORDER BY r.created_at, r.idem_key", "r.", record_columns,
     COUNT_OF(record_columns), false, false},
    {"parked", "parked", parked_select, " ORDER BY id", "", parked_columns, COUNT_OF(parked_columns), false, false},
    {"dead_letters", "dead letter", letter_select, " ORDER BY id", "", letter_columns, COUNT_OF(letter_columns),
     true, false},
    {"outbox", "outbox event", outbox_select, " ORDER BY seq", "", outbox_columns, COUNT_OF(outbox_columns), true,
     true},
};

/* table: "r." where two tables of the query have such columns. */
static void put_condition(struct buf *sql, const char *table, const char *biz_type, const char *column,
                          const char *value)
{
    buf_text(sql, "WHERE ");
    if (biz_type) {
        buf_printf(sql, "%sbiz_type=", table);
        sql_string(sql, bytes_text(biz_type));
        buf_text(sql, " AND ");
    }
    buf_text(sql, table);
    buf_text(sql, column);
    buf_char(sql, '=');
    sql_string(sql, bytes_text(value));
}

/* ---- one key ----------------------------------------------------------------------------------------------------- */

static void print_record(const struct ctl *ctl, const struct conn_cell *cells, struct bytes database)
{
    if (ctl->json) {
        print_json_row(record_columns, COUNT_OF(record_columns), cells, database, ctl->out);
        fputc('\n', ctl->out);
    } else {
        print_text_row(record_columns, COUNT_OF(record_columns), cells, database, 0, ctl->out);
    }
}

static int show_key(const struct ctl *ctl, const struct sessions *sessions, const char *biz_type, const char *key)
{
    char block[SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count, rows = 0;
    int code = CTL_GOOD;
    bool *found = calloc(sessions->count, sizeof *found);
    if (!found)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, record_select);
    put_condition(&sql, "r.", biz_type, "idem_key", key);
    for (uint32_t i = 0; i < sessions->count && code == CTL_GOOD; i++) {
        code = sessions_run(sessions, i, &sql, "key");
        found[i] = code == CTL_GOOD && conn_next(sessions->list[i], &cells, &count);
        if (found[i] && rows++ == 0)
            print_record(ctl, cells, sessions_name(ctl, sessions, i));
        conn_done(sessions->list[i]);
    }
    if (code == CTL_GOOD && rows > 1)
        code = sessions_ambiguous(ctl, sessions, found, "this key");
    free(found);
    if (code != CTL_GOOD || rows > 0)
        return code;
    if (ctl->json)
        fputs("{\"code\":\"UNKNOWN_KEY\"}\n", ctl->out);
    return ctl_fail(CTL_NOT_FOUND, "no key %s of %s", key, biz_type);
}

/* ---- one order --------------------------------------------------------------------------------------------------- */

static void put_section(struct buf *sql, const struct section *section, const char *biz_type, const char *number)
{
    buf_text(sql, section->select);
    if (section->by_aggregate)
        put_condition(sql, "", NULL, "aggregateid", number);
    else
        put_condition(sql, section->table, biz_type, "biz_no", number);
    buf_text(sql, section->order);
}

static uint32_t print_rows(const struct ctl *ctl, struct conn *conn, const struct section *section,
                           struct bytes database, bool payload, uint32_t before)
{
    const struct conn_cell *cells;
    uint32_t count, rows = before, columns = section->count - (section->has_payload && !payload);
    for (; conn_next(conn, &cells, &count); rows++) {
        if (ctl->json) {
            fputs(rows ? "," : "", ctl->out);
            print_json_row(section->columns, columns, cells, database, ctl->out);
        } else {
            fprintf(ctl->out, "%s\n", section->title);
            print_text_row(section->columns, columns, cells, database, 2, ctl->out);
        }
    }
    conn_done(conn);
    return rows;
}

static int show_section(const struct ctl *ctl, const struct sessions *sessions, const struct section *section,
                        const char *biz_type, const char *number, bool payload, uint32_t *ret_rows)
{
    char block[SQL_MAX];
    struct buf sql;
    uint32_t rows = 0;
    int code = CTL_GOOD;
    buf_init(&sql, block, sizeof block);
    put_section(&sql, section, biz_type, number);
    for (uint32_t i = 0; i < sessions->count && code == CTL_GOOD; i++) {
        code = sessions_run(sessions, i, &sql, "key");
        if (code == CTL_GOOD)
            rows = print_rows(ctl, sessions->list[i], section, sessions_name(ctl, sessions, i), payload, rows);
    }
    *ret_rows += rows;
    return code;
}

static int show_number(const struct ctl *ctl, const struct sessions *sessions, const char *biz_type,
                       const char *number, bool payload)
{
    uint32_t rows = 0;
    int code = CTL_GOOD;
    for (uint32_t i = 0; i < COUNT_OF(sections) && code == CTL_GOOD; i++) {
        if (ctl->json)
            fprintf(ctl->out, "%s\"%s\":[", i ? "," : "{", sections[i].name);
        code = show_section(ctl, sessions, &sections[i], biz_type, number, payload, &rows);
        if (ctl->json)
            fputs(i + 1 == COUNT_OF(sections) ? "]}\n" : "]", ctl->out);
    }
    if (code == CTL_GOOD && rows == 0)
        return ctl_fail(CTL_NOT_FOUND, "nothing is known of %s %s", biz_type, number);
    return code;
}

int command_key(struct ctl *ctl)
{
    struct sessions sessions;
    bool payload = ctl_flag(ctl, "--payload"), by_number = ctl_flag(ctl, "--biz-no");
    if (!ctl_arguments(ctl, 2) || (payload && !by_number))
        return CTL_USAGE;
    int code = sessions_open(ctl, &sessions);
    if (code != CTL_GOOD)
        return code;
    if (by_number)
        code = show_number(ctl, &sessions, ctl->argv[0], ctl->argv[1], payload);
    else
        code = show_key(ctl, &sessions, ctl->argv[0], ctl->argv[1]);
    sessions_close(&sessions);
    return code;
}
