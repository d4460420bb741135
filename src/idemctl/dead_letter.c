/* SPDX-License-Identifier: MIT */
/* dead_letter: idemctl dead-letter list|show. The payload only where it is asked for. */
#include "list.h"
#include "print.h"
#include "redrive.h"
#include "sessions.h"

#include <stdlib.h>

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { SQL_MAX = 8192 };

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

/* What the closed list of the contract has letters for, and the states of a letter. */
static const char *const outcomes[] = {"applied_by_other", "key_reused", "state_conflict", "not_found", "rejected",
                                       "invalid", NULL};
static const char *const states[] = {"open", "resolved", "discarded", NULL};

static const struct filter filters[] = {
    {"--outcome", "outcome", FILTER_WORD, outcomes}, {"--cause", "cause", FILTER_TEXT, NULL},
    {"--rule", "rule", FILTER_TEXT, NULL}, {"--biz-type", "biz_type", FILTER_TEXT, NULL},
    {"--biz-no", "biz_no", FILTER_TEXT, NULL}, {"--topic", "topic", FILTER_TEXT, NULL},
    {"--state", "state", FILTER_WORD, states}, {"--since", "created_at", FILTER_SINCE, NULL},
    {"--until", "created_at", FILTER_UNTIL, NULL},
};

/* ---- list -------------------------------------------------------------------------------------------------------- */

static const struct list lists = {
    .member = "dead_letters", .empty = "no dead letters", .select = list_select, .order = "id",
    .columns = list_columns, .column_count = COUNT_OF(list_columns), .filters = filters,
    .filter_count = COUNT_OF(filters)};

/* ---- show -------------------------------------------------------------------------------------------------------- */

static void print_one(const struct ctl *ctl, const struct conn_cell *cells, struct bytes database, bool payload)
{
    uint32_t columns = COUNT_OF(show_columns) - (payload ? 0 : 2);      /* record_key, payload */
    if (ctl->json) {
        print_json_row(show_columns, columns, cells, database, ctl->out);
        fputc('\n', ctl->out);
    } else {
        print_text_row(show_columns, columns, cells, database, 0, ctl->out);
    }
}

/* Each database numbers its own letters. Printed as found: two make the call ambiguous, and then nothing comes out. */
static int show_all(const struct ctl *ctl, const struct sessions *sessions, const struct buf *sql, bool payload)
{
    const struct conn_cell *cells;
    uint32_t count, rows = 0;
    int code = CTL_GOOD;
    bool *found = calloc(sessions->count, sizeof *found);
    if (!found)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    for (uint32_t i = 0; i < sessions->count && code == CTL_GOOD; i++) {
        code = sessions_run(sessions, i, sql, "dead-letter");
        found[i] = code == CTL_GOOD && conn_next(sessions->list[i], &cells, &count);
        if (found[i] && rows++ == 0)
            print_one(ctl, cells, sessions_name(ctl, sessions, i), payload);
        conn_done(sessions->list[i]);
    }
    if (code == CTL_GOOD && rows > 1)
        code = sessions_ambiguous(ctl, sessions, found, "this id");
    free(found);
    if (code == CTL_GOOD && rows == 0)
        return ctl_fail(CTL_NOT_FOUND, "no dead letter %s", ctl->argv[0]);
    return code;
}

static int show(struct ctl *ctl)
{
    char block[SQL_MAX];
    struct buf sql;
    struct sessions sessions;
    uint64_t id;
    bool payload = ctl_flag(ctl, "--payload");
    if (!ctl_arguments(ctl, 1) || !ctl_number(ctl->argv[0], UINT64_MAX, &id))
        return CTL_USAGE;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, show_select);
    buf_uint(&sql, id);
    int code = sessions_open(ctl, &sessions);
    if (code != CTL_GOOD)
        return code;
    code = show_all(ctl, &sessions, &sql, payload);
    sessions_close(&sessions);
    return code;
}

int command_dead_letter(struct ctl *ctl)
{
    const char *verb = ctl_word(ctl);
    if (strcmp(verb, "list") == 0)
        return list_run(ctl, &lists);
    if (strcmp(verb, "show") == 0)
        return show(ctl);
    if (strcmp(verb, "redrive") == 0)
        return redrive(ctl, filters, COUNT_OF(filters));
    if (strcmp(verb, "discard") == 0)
        return discard(ctl);
    return CTL_USAGE;
}
