/* SPDX-License-Identifier: MIT */
/* redrive: see redrive.h. A letter is queued as a parked record of its partition: the owner judges it, behind nothing
 * and before everything that comes later for its number. One transaction a letter; what cannot be queued says why. */
#include "redrive.h"

#include "again.h"
#include "print.h"

#include "idem/base/sha256.h"
#include "idem/core/key.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

enum { SQL_MAX = 16384, RATE_MAX = 100000, IDS_MAX = 100000, WHY_MAX = 160 };

struct redriving {
    struct ctl *ctl;
    struct conn *conn;
    struct again *again;
    bool dry_run, force;
    uint64_t rate;                   /* letters a second, 0 = as fast as it goes */
    uint32_t queued, refused;
    char why[WHY_MAX];               /* of the letter at hand; empty = it may go */
};

/* Columns of read_letter(). */
enum { TOPIC, PARTITION, OFFSET, RECORD_TS, OUTCOME, STATE, RECORD_KEY, HEADERS, PAYLOAD, PAYLOAD_BYTES, ORIGIN,
       PARKED };

static const char letter_select[] =
    "SELECT l.topic,l.partition_id,l.kafka_offset,TIMESTAMPDIFF(MICROSECOND,'1970-01-01',l.record_ts) DIV 1000,"
    "l.outcome,l.state,l.record_key,l.headers,l.payload,l.payload_bytes,l.origin_hash,"
    "(SELECT COUNT(*) FROM idem_parked p WHERE p.biz_type=l.biz_type AND p.idem_key=l.idem_key) "
    "FROM idem_dead_letter l WHERE l.id=";

static int64_t number(const struct conn_cell *cell)
{
    char text[24] = "";
    if (cell->text.len < sizeof text && cell->text.len)
        memcpy(text, cell->text.at, cell->text.len);
    return strtoll(text, NULL, 10);
}

/* ---- may it go? -------------------------------------------------------------------------------------------------- */

static void refuse(struct redriving *redriving, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void refuse(struct redriving *redriving, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(redriving->why, sizeof redriving->why, format, arguments);
    va_end(arguments);
}

/* By what the letter itself says. */
static bool letter_stands(struct redriving *redriving, const struct conn_cell *cells)
{
    if (!bytes_equal(cells[STATE].text, BYTES_LIT("open")) && !redriving->force)
        refuse(redriving, "it is %.*s already (--force queues it all the same)", (int)cells[STATE].text.len,
               (const char *)cells[STATE].text.at);
    else if (cells[PAYLOAD].is_null || (int64_t)cells[PAYLOAD].text.len != number(&cells[PAYLOAD_BYTES]))
        refuse(redriving, "its payload was cut (dead_letter.payload_max): send the record again instead");
    else if (number(&cells[PARKED]) > 0)
        refuse(redriving, "its key is parked now");
    else
        return true;
    return false;
}

/* Today's rules have to make the same fact of it (details 1, "A changed rule"). */
static bool same_fact(const struct item *item, const struct conn_cell *cells)
{
    uint8_t origin[SHA256_LEN];
    const struct evaluation *eval = &item->eval;
    if (bytes_equal(cells[OUTCOME].text, BYTES_LIT("invalid")))
        return true;                 /* it had no fact yet */
    struct bytes hash = bytes_equal(cells[OUTCOME].text, BYTES_LIT("applied_by_other"))
                            ? bytes_of(eval->identity_hash, IDENTITY_HASH_LEN)
                            : bytes_of(eval->params_hash, PARAMS_HASH_LEN);
    origin_hash_key(eval->rule->biz_type, eval->key, hash, cells[OUTCOME].text, origin);
    return bytes_equal(bytes_of(origin, sizeof origin), cells[ORIGIN].text);
}

static const struct item *judge(struct redriving *redriving, const struct conn_cell *cells)
{
    bool known;
    struct record record = {
        .source = SOURCE_KAFKA, .topic = cells[TOPIC].text, .partition = (int32_t)number(&cells[PARTITION]),
        .offset = number(&cells[OFFSET]),
        .timestamp_ms = cells[RECORD_TS].is_null ? -1 : number(&cells[RECORD_TS]),
        .has_key = !cells[RECORD_KEY].is_null, .key = cells[RECORD_KEY].text, .headers = cells[HEADERS].text,
        .has_value = true, .value = cells[PAYLOAD].text};
    again_reset(redriving->again);
    const struct item *item = again_judge(redriving->again, &record, &known);
    if (!known)
        refuse(redriving, "its topic is not in the file");
    else if (!item)
        refuse(redriving, "out of memory");
    else if (item->eval.outcome == OUTCOME_IGNORED)
        refuse(redriving, "no rule wants it today");
    else if (item->eval.outcome != OUTCOME_NONE)
        refuse(redriving, "it is still %s: %s", outcome_name(item->eval.outcome), cause_name(item->eval.cause));
    else if (!same_fact(item, cells))
        refuse(redriving, "today's rules make another fact of it (key or fingerprint differ)");
    else
        return item;
    return NULL;
}

/* ---- one letter -------------------------------------------------------------------------------------------------- */

static void put_raw(struct buf *sql, struct bytes text)
{
    buf_text(sql, "_binary");
    sql_string(sql, text);
    buf_char(sql, ',');
}

/* A letter of a former redrive has no partition of its own: the first one's owner takes it. */
static enum err_class insert(struct redriving *redriving, uint64_t id, const struct item *item, struct err *err)
{
    char block[SQL_MAX];
    struct buf sql;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "INSERT INTO idem_parked(topic,partition_id,kafka_offset,record_ts,rule,biz_type,biz_no,idem_key,"
                   "reason,dead_letter_id,record_key,headers,payload,next_attempt_at,give_up_at) "
                   "SELECT topic,GREATEST(partition_id,0),kafka_offset,record_ts,");
    put_raw(&sql, item->eval.rule->name);
    put_raw(&sql, item->eval.rule->biz_type);
    put_raw(&sql, item->eval.biz_no);
    put_raw(&sql, item->eval.key);
    buf_text(&sql, "'redrive',id,record_key,headers,payload,UTC_TIMESTAMP(3),'9999-12-31 23:59:59.999' "
                   "FROM idem_dead_letter WHERE id=");
    buf_uint(&sql, id);
    return conn_run(redriving->conn, buf_view(&sql), "redrive", err);
}

/* CTL_GOOD: queued or refused (then redriving->why says so). CTL_NOT_FOUND: no such letter. */
static int queue_letter(struct redriving *redriving, uint64_t id)
{
    char block[SQL_MAX];
    struct buf sql;
    struct err err = {0};
    const struct conn_cell *cells;
    uint32_t columns;
    bool found = false;
    redriving->why[0] = '\0';
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, letter_select);
    buf_printf(&sql, "%llu FOR UPDATE", (unsigned long long)id);
    enum err_class class = conn_begin(redriving->conn, &err);
    if (class == ERR_NONE)
        class = conn_run(redriving->conn, buf_view(&sql), "redrive", &err);
    const struct item *item = NULL;
    if (class == ERR_NONE && (found = conn_next(redriving->conn, &cells, &columns)) &&
        letter_stands(redriving, cells))
        item = judge(redriving, cells);
    conn_done(redriving->conn);
    if (class == ERR_NONE && item && !redriving->dry_run) {
        class = insert(redriving, id, item, &err);
        if (class == ERR_UNIQUE) {
            class = ERR_NONE;
            refuse(redriving, "its key is parked now");
        } else if (class == ERR_NONE) {
            class = conn_commit(redriving->conn, &err);
        }
    }
    conn_rollback(redriving->conn);
    if (class != ERR_NONE)
        return ctl_fail_err(&err);
    return found ? CTL_GOOD : CTL_NOT_FOUND;
}

static void tell(struct redriving *redriving, uint64_t id)
{
    FILE *to = redriving->ctl->out;
    bool refused = redriving->why[0] != '\0';
    bool first = redriving->queued + redriving->refused == 0;
    redriving->queued += !refused;
    redriving->refused += refused;
    if (redriving->ctl->json) {
        fprintf(to, "%s{\"id\":%llu,\"queued\":%s,\"why\":", first ? "" : ",", (unsigned long long)id,
                refused ? "false" : "true");
        if (refused)
            print_string(bytes_text(redriving->why), to);
        else
            fputs("null", to);
        fputc('}', to);
    } else {
        fprintf(to, "%llu %s%s\n", (unsigned long long)id,
                refused ? "refused: " : redriving->dry_run ? "would be queued" : "queued", redriving->why);
    }
}

/* The contract's rate: so many a second, evenly. */
static void pace(const struct redriving *redriving)
{
    if (redriving->rate == 0 || redriving->dry_run)
        return;
    uint64_t ns = UINT64_C(1000000000) / redriving->rate;
    nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)}, NULL);
}

static int queue_all(struct redriving *redriving, const uint64_t *ids, uint32_t count)
{
    if (redriving->ctl->json)
        fputs("{\"letters\":[", redriving->ctl->out);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            pace(redriving);
        int code = queue_letter(redriving, ids[i]);
        if (code == CTL_NOT_FOUND)
            return ctl_fail(code, "no dead letter %llu (%u queued before it)", (unsigned long long)ids[i],
                            redriving->queued);
        if (code != CTL_GOOD)
            return code;
        tell(redriving, ids[i]);
    }
    if (redriving->ctl->json)
        fprintf(redriving->ctl->out, "],\"queued\":%u,\"refused\":%u}\n", redriving->queued, redriving->refused);
    else if (count > 1 || count == 0)
        fprintf(redriving->ctl->out, "%u %s, %u refused\n", redriving->queued,
                redriving->dry_run ? "would be queued" : "queued", redriving->refused);
    if (redriving->refused == 0)
        return CTL_GOOD;
    return redriving->queued > 0 ? CTL_FINDINGS : CTL_REFUSED;
}

/* ---- which letters ----------------------------------------------------------------------------------------------- */

static int ids_of_arguments(const struct ctl *ctl, uint64_t *ids, uint32_t *ret_count)
{
    for (int i = 0; i < ctl->argc; i++)
        if (i >= IDS_MAX || !ctl_number(ctl->argv[i], UINT64_MAX, &ids[(*ret_count)++]))
            return ctl_fail(CTL_USAGE, "%s: no id of a dead letter", ctl->argv[i]);
    return CTL_GOOD;
}

/* Open letters only, oldest first, unless --state says otherwise. */
static int ids_of_filter(const struct redriving *redriving, struct buf *sql, bool any_state, uint64_t *ids,
                         uint32_t *ret_count)
{
    struct err err = {0};
    const struct conn_cell *cells;
    uint32_t columns;
    if (!any_state)
        buf_text(sql, " AND state='open'");
    buf_printf(sql, " ORDER BY id LIMIT %d", IDS_MAX);
    enum err_class class = conn_begin(redriving->conn, &err);
    if (class == ERR_NONE)
        class = conn_run(redriving->conn, buf_view(sql), "redrive", &err);
    while (class == ERR_NONE && conn_next(redriving->conn, &cells, &columns))
        ids[(*ret_count)++] = (uint64_t)number(&cells[0]);
    conn_done(redriving->conn);
    conn_rollback(redriving->conn);
    return class == ERR_NONE ? CTL_GOOD : ctl_fail_err(&err);
}

/* `--filter NAME=VALUE` is `--NAME VALUE`. Rewrites the arguments in place. */
static bool unfold_filters(struct ctl *ctl, char *names, size_t size)
{
    for (int i = 0; i + 1 < ctl->argc; i++) {
        char *equals = strchr(ctl->argv[i + 1], '=');
        if (strcmp(ctl->argv[i], "--filter") != 0)
            continue;
        size_t len = equals ? (size_t)(equals - ctl->argv[i + 1]) : 0;
        if (len == 0 || len + 3 > size)
            return false;
        memcpy(names, "--", 2);
        memcpy(names + 2, ctl->argv[i + 1], len);
        names[len + 2] = '\0';
        ctl->argv[i] = names;
        ctl->argv[i + 1] = equals + 1;
        names += len + 3;
        size -= len + 3;
    }
    return true;
}

static int open_all(struct redriving *redriving)
{
    int code = CTL_GOOD;
    if (redriving->ctl->count > 1)
        return ctl_fail(CTL_USAGE, "each database numbers its own letters: choose one by --database");
    redriving->conn = ctl_connect(redriving->ctl, redriving->ctl->first, false, &code);
    if (redriving->conn)
        redriving->again = again_open(redriving->ctl, redriving->ctl->first, &code);
    return code;
}

int redrive(struct ctl *ctl, const struct filter *filters, uint32_t filter_count)
{
    char block[SQL_MAX], names[1024];
    struct buf sql;
    struct redriving redriving = {.ctl = ctl, .dry_run = ctl_flag(ctl, "--dry-run"), .force = ctl_flag(ctl, "--force")};
    const char *rate = ctl_option(ctl, "--rate");
    if ((rate && !ctl_number(rate, RATE_MAX, &redriving.rate)) || !unfold_filters(ctl, names, sizeof names))
        return CTL_USAGE;
    bool any_state = false;
    for (int i = 0; i < ctl->argc; i++)
        any_state = any_state || strcmp(ctl->argv[i], "--state") == 0;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT id FROM idem_dead_letter WHERE 1=1");
    size_t bare = sql.len;
    int code = filter_take(ctl, filters, filter_count, &sql);
    bool filtered = sql.len > bare;
    if (code != CTL_GOOD || !ctl_arguments(ctl, ctl->argc) || filtered == (ctl->argc > 0))
        return CTL_USAGE;
    uint32_t count = 0;
    uint64_t *ids = calloc(IDS_MAX, sizeof *ids);
    code = ids ? open_all(&redriving) : ctl_fail(CTL_INTERNAL, "out of memory");
    if (code == CTL_GOOD)
        code = filtered ? ids_of_filter(&redriving, &sql, any_state, ids, &count)
                        : ids_of_arguments(ctl, ids, &count);
    if (code == CTL_GOOD)
        code = queue_all(&redriving, ids, count);
    again_close(redriving.again);
    conn_destroy(redriving.conn);
    free(ids);
    return code;
}
