/* SPDX-License-Identifier: MIT */
/* give_up: see give_up.h. Never decides by itself: the rows are judged in txn, as the daemon judges them. */
#include "give_up.h"

#include "again.h"

#include "idem/app/txn.h"

#include "idem/adapter/clock.h"
#include "idem/adapter/mysql_migrate.h"
#include "idem/adapter/mysql_store.h"

#include <stdlib.h>

enum { ROWS_AT_ONCE = 50, TRIES = 10, SQL_MAX = 4096, SCRATCH = 32 << 20 };

struct giving_up {
    const struct ctl *ctl;
    uint32_t database;
    struct again *again;
    struct mysql_store *store;
    struct txn txn;
    struct item *items[ROWS_AT_ONCE];
    uint32_t count;
};

static uint64_t number(const struct conn_cell *cell)
{
    uint64_t value = 0;
    for (size_t i = 0; i < cell->text.len && cell->text.at[i] != '-'; i++)
        value = value * 10 + (uint64_t)(cell->text.at[i] - '0');
    return value;
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

/* A rule that knows only names, for a record that today's rules judge as something else: enough for its end. */
static bool stand_in(struct again *again, struct item *item, const struct conn_cell *cells)
{
    struct arena *arena = again_arena(again);
    struct rule *rule = arena_calloc(arena, 1, sizeof *rule);
    if (!rule || cells[12].text.len != PARAMS_HASH_LEN || cells[13].text.len != IDENTITY_HASH_LEN)
        return false;
    *rule = (struct rule){.name = item->parked.rule, .biz_type = item->parked.biz_type, .topic = item->record.topic,
                          .fingerprint_version = (uint16_t)number(&cells[14]), .ttl_s = 30 * 86400};
    item->eval = (struct evaluation){.rule = rule, .key = item->parked.key, .biz_no = item->parked.biz_no};
    memcpy(item->eval.params_hash, cells[12].text.at, PARAMS_HASH_LEN);
    memcpy(item->eval.identity_hash, cells[13].text.at, IDENTITY_HASH_LEN);
    item->parked.orphaned = false;
    return true;
}

static struct item *bare_item(struct again *again, const struct record *record)
{
    struct arena *arena = again_arena(again);
    struct item *item = arena_calloc(arena, 1, sizeof *item);
    if (!item)
        return NULL;
    item->record = *record;
    item->record.topic = arena_copy(arena, record->topic);
    item->record.key = arena_copy(arena, record->key);
    item->record.value = arena_copy(arena, record->value);
    item->record.headers = arena_copy(arena, record->headers);
    item->partition = record->partition;
    item->eval.outcome = OUTCOME_IGNORED;
    return item;
}

/* Columns as read_rows() selects them. */
static bool take_row(struct giving_up *giving, const struct conn_cell *cells)
{
    bool known;
    struct record record = {
        .source = SOURCE_KAFKA, .topic = cells[2].text, .partition = (int32_t)number(&cells[3]),
        .offset = (int64_t)number(&cells[4]), .timestamp_ms = cells[5].is_null ? -1 : (int64_t)number(&cells[5]),
        .has_key = !cells[9].is_null, .key = cells[9].text, .has_value = true, .value = cells[11].text,
        .headers = cells[10].text};
    struct parked_row row = {.id = number(&cells[0]), .letter_id = number(&cells[1]), .rule = cells[6].text,
                             .biz_type = cells[7].text, .biz_no = cells[15].text, .key = cells[8].text};
    struct item *item = again_judge(giving->again, &record, &known);
    if (!known)
        item = bare_item(giving->again, &record);
    if (!item)
        return false;
    parked_row_bind(item, &row, again_arena(giving->again));
    item->parked.given_up = true;
    if (item->parked.orphaned && !stand_in(giving->again, item, cells))
        return false;
    giving->items[giving->count++] = item;
    return !again_arena(giving->again)->exhausted;
}

/* The oldest rows of the number, with what its dedupe rows say. */
static int read_rows(struct giving_up *giving, struct bytes biz_type, struct bytes biz_no)
{
    char block[SQL_MAX];
    struct buf sql;
    struct err err = {0};
    const struct conn_cell *cells;
    uint32_t columns;
    struct conn *conn = mysql_store_conn(giving->store);
    bool good = true;
    giving->count = 0;
    again_reset(giving->again);
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT p.id,p.dead_letter_id,p.topic,p.partition_id,p.kafka_offset,"
                   "TIMESTAMPDIFF(MICROSECOND,'1970-01-01',p.record_ts) DIV 1000,p.rule,p.biz_type,p.idem_key,"
                   "p.record_key,p.headers,p.payload,COALESCE(r.params_hash,REPEAT('\\0',32)),"
                   "COALESCE(r.identity_hash,REPEAT('\\0',16)),COALESCE(r.fingerprint_version,0),p.biz_no "
                   "FROM idem_parked p LEFT JOIN idem_record r ON r.bucket=0 AND r.biz_type=p.biz_type AND "
                   "r.idem_key=p.idem_key WHERE p.biz_type=_binary");
    sql_string(&sql, biz_type);
    buf_text(&sql, " AND p.biz_no=_binary");
    sql_string(&sql, biz_no);
    uint32_t most = giving->ctl->config->batch_max < ROWS_AT_ONCE ? giving->ctl->config->batch_max : ROWS_AT_ONCE;
    buf_printf(&sql, " ORDER BY p.id LIMIT %u", most);
    enum err_class class = conn_begin(conn, &err);
    if (class == ERR_NONE)
        class = conn_run(conn, buf_view(&sql), "give-up", &err);
    while (class == ERR_NONE && good && conn_next(conn, &cells, &columns))
        good = take_row(giving, cells);
    conn_done(conn);
    conn_rollback(conn);
    if (class != ERR_NONE)
        return ctl_fail_database(giving->ctl, giving->database, &err);
    return good ? CTL_GOOD : ctl_fail(CTL_INTERNAL, "out of memory, or a dedupe row of another form");
}

/* ---- the transaction --------------------------------------------------------------------------------------------- */

/* A deadlock with the daemon is run again; a lock that it holds is waited for. */
static int run(struct giving_up *giving, uint64_t *total)
{
    struct txn_mode mode = {.lock_first = true, .skip_locked = true};
    const struct store_port *port = mysql_store_port(giving->store);
    struct err err = {0};
    uint32_t culprit;
    for (int i = 0; i < TRIES; i++) {
        if (port->tx->open(port->self, &err))
            break;
        enum txn_end end = txn_attempt(&giving->txn, giving->items, giving->count, mode, &culprit, &err);
        if (end == TXN_COMMITTED) {
            for (uint32_t k = 0; k < giving->count; k++)
                *total += !giving->items[k]->silent;
            return CTL_GOOD;
        }
        if (end == TXN_ERROR && err.class != ERR_RETRY && err.class != ERR_LOCKED)
            break;
    }
    return ctl_fail_database(giving->ctl, giving->database, &err);
}

static int open_store(struct giving_up *giving)
{
    bool newer;
    struct err err = {0};
    giving->store = mysql_store_create(&giving->ctl->config->databases[giving->database], giving->ctl->config);
    if (!giving->store)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    const struct store_port *port = mysql_store_port(giving->store);
    if (port->tx->open(port->self, &err) || migrate_verify(mysql_store_conn(giving->store), &newer, &err))
        return ctl_fail_database(giving->ctl, giving->database, &err);
    if (!txn_init(&giving->txn, port, &clock_env, giving->ctl->config->batch_max, SCRATCH))
        return ctl_fail(CTL_INTERNAL, "out of memory");
    return CTL_GOOD;
}

int give_up_number(const struct ctl *ctl, uint32_t database, struct bytes biz_type, struct bytes biz_no,
                   uint64_t *total)
{
    int code = CTL_GOOD;
    struct giving_up giving = {.ctl = ctl, .database = database};
    giving.again = again_open(ctl, database, &code);
    if (code == CTL_GOOD)
        code = open_store(&giving);
    do {
        if (code == CTL_GOOD)
            code = read_rows(&giving, biz_type, biz_no);
        if (code == CTL_GOOD && giving.count > 0)
            code = run(&giving, total);
    } while (code == CTL_GOOD && giving.count > 0);
    txn_finish(&giving.txn);
    mysql_store_destroy(giving.store);
    again_close(giving.again);
    return code;
}
