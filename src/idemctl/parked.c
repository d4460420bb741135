/* SPDX-License-Identifier: MIT */
/* parked: idemctl parked list|retry|give-up. What waits, trying it now, and ending it. Giving up runs the daemon's own
 * transaction under the same row locks, so it needs no daemon and disturbs none. */
#include "list.h"
#include "print.h"
#include "sessions.h"

#include "give_up.h"

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

enum { SQL_MAX = 8192 };

static const struct print_column columns[] = {
    {"id", PRINT_NUMBER, 8}, {"topic", PRINT_TEXT, 0}, {"partition", PRINT_NUMBER, 0}, {"offset", PRINT_NUMBER, 0},
    {"rule", PRINT_TEXT, 12}, {"biz_type", PRINT_TEXT, 12}, {"biz_no", PRINT_TEXT, 20}, {"idem_key", PRINT_TEXT, 32},
    {"reason", PRINT_TEXT, 10}, {"attempts", PRINT_NUMBER, 8}, {"next_attempt_at", PRINT_TIME, 24},
    {"give_up_at", PRINT_TIME, 24}};

static const char list_select[] =
    "SELECT id, topic, partition_id, kafka_offset, rule, biz_type, biz_no, idem_key, reason, attempts, "
    "next_attempt_at, give_up_at FROM idem_parked WHERE 1=1";

static const char *const reasons[] = {"not_found", "state", "locked", "behind", "redrive", NULL};

static const struct filter filters[] = {
    {"--topic", "topic", FILTER_TEXT, NULL}, {"--rule", "rule", FILTER_TEXT, NULL},
    {"--biz-type", "biz_type", FILTER_TEXT, NULL}, {"--biz-no", "biz_no", FILTER_TEXT, NULL},
    {"--reason", "reason", FILTER_WORD, reasons}, {"--since", "created_at", FILTER_SINCE, NULL},
    {"--until", "created_at", FILTER_UNTIL, NULL},
};

/* ---- list -------------------------------------------------------------------------------------------------------- */

static const struct list lists = {
    .member = "parked", .empty = "nothing is parked", .select = list_select, .order = "id",
    .columns = columns, .column_count = COUNT_OF(columns), .filters = filters, .filter_count = COUNT_OF(filters)};

/* ---- retry ------------------------------------------------------------------------------------------------------- */

/* All of the number: its worker takes them oldest first. Returns how many are due now; -1: told. */
static int64_t make_due(const struct ctl *ctl, uint32_t database, int *ret_code)
{
    char block[SQL_MAX];
    struct buf sql;
    struct err err = {0};
    int64_t rows = -1;
    struct conn *conn = ctl_connect(ctl, database, false, ret_code);
    if (!conn)
        return -1;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "UPDATE idem_parked FORCE INDEX (ix_biz) SET next_attempt_at=UTC_TIMESTAMP(3) "
                   "WHERE biz_type=_binary");
    sql_string(&sql, bytes_text(ctl->argv[0]));
    buf_text(&sql, " AND biz_no=_binary");
    sql_string(&sql, bytes_text(ctl->argv[1]));
    enum err_class class = conn_begin(conn, &err);
    if (class == ERR_NONE)
        class = conn_run(conn, buf_view(&sql), "parked", &err);
    if (class == ERR_NONE) {
        rows = (int64_t)conn_affected(conn);
        class = conn_commit(conn, &err);
    }
    if (class != ERR_NONE) {
        *ret_code = ctl_fail_database(ctl, database, &err);
        rows = -1;
    }
    conn_destroy(conn);
    return rows;
}

static int retry(struct ctl *ctl)
{
    int64_t total = 0;
    int code = CTL_GOOD;
    if (!ctl_arguments(ctl, 2))
        return CTL_USAGE;
    for (uint32_t i = 0; i < ctl->count; i++) {
        int64_t rows = make_due(ctl, ctl->first + i, &code);
        if (rows < 0)
            return code;
        total += rows;
    }
    if (total == 0)
        return ctl_fail(CTL_NOT_FOUND, "nothing is parked for %s %s", ctl->argv[0], ctl->argv[1]);
    if (ctl->json)
        fprintf(ctl->out, "{\"due\":%lld}\n", (long long)total);
    else
        fprintf(ctl->out, "%lld due now: the owner of the partition tries them within a second or two\n",
                (long long)total);
    return CTL_GOOD;
}

/* ---- give up ----------------------------------------------------------------------------------------------------- */

static int give_up(struct ctl *ctl)
{
    uint64_t total = 0;
    bool yes = ctl_flag(ctl, "--yes");
    if (!ctl_arguments(ctl, 2))
        return CTL_USAGE;
    if (!yes)
        return ctl_fail(CTL_REFUSED, "gives up all that waits for %s %s: say --yes", ctl->argv[0], ctl->argv[1]);
    for (uint32_t i = 0; i < ctl->count; i++) {
        int code = give_up_number(ctl, ctl->first + i, bytes_text(ctl->argv[0]), bytes_text(ctl->argv[1]), &total);
        if (code != CTL_GOOD)
            return code;
    }
    if (total == 0)
        return ctl_fail(CTL_NOT_FOUND, "nothing is parked for %s %s", ctl->argv[0], ctl->argv[1]);
    if (ctl->json)
        fprintf(ctl->out, "{\"given_up\":%llu}\n", (unsigned long long)total);
    else
        fprintf(ctl->out, "%llu given up, each with a dead letter\n", (unsigned long long)total);
    return CTL_GOOD;
}

int command_parked(struct ctl *ctl)
{
    const char *what = ctl_word(ctl);
    if (strcmp(what, "list") == 0)
        return list_run(ctl, &lists);
    if (strcmp(what, "retry") == 0)
        return retry(ctl);
    if (strcmp(what, "give-up") == 0)
        return give_up(ctl);
    return CTL_USAGE;
}
