/* SPDX-License-Identifier: MIT */
/* parked: rows of idem_parked as the transaction meets them (port/store.h, store_park_ops). All times are the
 * database's own, in UTC. Never judges. */
#include "store_self.h"

#include "idem/core/limits.h"

#define END_OF_TIME "'9999-12-31 23:59:59.999'"

/* ---- own rows ---------------------------------------------------------------------------------------------------- */

static enum cause reason_of(struct bytes name)
{
    static const enum cause all[] = {CAUSE_NOT_FOUND, CAUSE_STATE, CAUSE_LOCKED, CAUSE_BEHIND, CAUSE_REDRIVE};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (bytes_equal(name, bytes_text(cause_name(all[i]))))
            return all[i];
    return CAUSE_NONE;
}

static void put_ids(struct buf *sql, struct item *const *items, uint32_t count)
{
    buf_text(sql, "(");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(sql, ',');
        buf_uint(sql, items[i]->parked.id);
    }
    buf_char(sql, ')');
}

static void take_own(struct item *const *items, uint32_t count, const struct conn_cell *cells)
{
    uint64_t id = cell_number(&cells[0]);
    for (uint32_t i = 0; i < count; i++) {
        struct parked_row *row = &items[i]->parked;
        if (row->id != id)
            continue;
        row->found = true;
        row->reason = reason_of(cells[1].text);
        row->attempts = (uint32_t)cell_number(&cells[2]);
        row->clock_runs = cell_number(&cells[3]) != 0;
        row->over = cell_number(&cells[4]) != 0;
    }
}

static enum err_class park_read(void *self, struct item *const *items, uint32_t count, struct err *err)
{
    struct mysql_store *store = self;
    const struct conn_cell *cells;
    uint32_t columns;
    struct buf *sql = store_sql(store);
    for (uint32_t i = 0; i < count; i++)
        items[i]->parked.found = false;
    buf_text(sql, "SELECT id,reason,attempts,give_up_at<'9999-01-01',give_up_at<=UTC_TIMESTAMP(3) "
                  "FROM idem_parked FORCE INDEX (PRIMARY) WHERE id IN ");
    put_ids(sql, items, count);
    buf_text(sql, " ORDER BY id FOR UPDATE");
    enum err_class class = store_run(store, "parked", err);
    if (class)
        return class;
    while (conn_next(store->conn, &cells, &columns))
        take_own(items, count, cells);
    conn_done(store->conn);
    return ERR_NONE;
}

/* ---- who else waits ---------------------------------------------------------------------------------------------- */

/* What the list is of: as column and as value of an item. */
enum listed { BY_NUMBER, BY_KEY };

/* ` WHERE biz_type=.. AND column IN (..)` of sorted[from..from + run), which share a biz_type. */
static void put_run(struct buf *sql, const struct mysql_store *store, uint32_t from, uint32_t run, enum listed by)
{
    buf_text(sql, " WHERE biz_type=_binary");
    sql_string(sql, store->sorted[from]->eval.rule->biz_type);
    buf_text(sql, by == BY_NUMBER ? " AND biz_no IN (" : " AND idem_key IN (");
    for (uint32_t i = from; i < from + run; i++) {
        const struct evaluation *eval = &store->sorted[i]->eval;
        buf_text(sql, i == from ? "_binary" : ",_binary");
        sql_string(sql, by == BY_NUMBER ? eval->biz_no : eval->key);
    }
    buf_char(sql, ')');
}

static bool same_place(const struct item *item, const struct conn_cell *cells)
{
    return item->partition == cell_integer(&cells[1]) && bytes_equal(item->record.topic, cells[0].text);
}

/* The heads of the numbers of sorted[from..from + run), which share a biz_type. */
static enum err_class read_heads(struct mysql_store *store, uint32_t from, uint32_t run, uint32_t *ret_found,
                                 struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    struct buf *sql = store_sql(store);
    buf_text(sql, "SELECT topic,partition_id,biz_no,MIN(id) FROM idem_parked FORCE INDEX (ix_biz)");
    put_run(sql, store, from, run, BY_NUMBER);
    buf_text(sql, " GROUP BY topic,partition_id,biz_no");
    enum err_class class = store_run(store, "parked", err);
    if (class)
        return class;
    while (conn_next(store->conn, &cells, &columns))
        for (uint32_t i = from; i < from + run; i++) {
            struct item *item = store->sorted[i];
            if (!same_place(item, cells) || !bytes_equal(item->eval.biz_no, cells[2].text))
                continue;
            item->queue.head = cell_number(&cells[3]);
            ++*ret_found;
        }
    conn_done(store->conn);
    return ERR_NONE;
}

/* Those of the run whose very key waits. */
static enum err_class read_keys(struct mysql_store *store, uint32_t from, uint32_t run, struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    struct buf *sql = store_sql(store);
    buf_text(sql, "SELECT idem_key FROM idem_parked FORCE INDEX (uk_key)");
    put_run(sql, store, from, run, BY_KEY);
    enum err_class class = store_run(store, "parked", err);
    if (class)
        return class;
    while (conn_next(store->conn, &cells, &columns))
        for (uint32_t i = from; i < from + run; i++)
            if (bytes_equal(store->sorted[i]->eval.key, cells[0].text))
                store->sorted[i]->queue.same_key = true;
    conn_done(store->conn);
    return ERR_NONE;
}

static enum err_class park_queue(void *self, struct item *const *items, uint32_t count, struct err *err)
{
    struct mysql_store *store = self;
    enum err_class class = store_list(store, items, count, "parked", err);
    if (class)
        return class;
    for (uint32_t i = 0; i < count; i++)
        items[i]->queue = (struct parked_queue){0};
    items_sort_by_key(store->sorted, count);
    for (uint32_t from = 0, run; from < count && !class; from += run) {
        uint32_t found = 0;
        run = same_type_run(store->sorted + from, count - from);
        class = read_heads(store, from, run, &found, err);
        if (!class && found > 0)
            class = read_keys(store, from, run, err);
    }
    return class;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

static void put_from_now(struct buf *sql, uint64_t ms)
{
    buf_text(sql, "UTC_TIMESTAMP(3)+INTERVAL ");
    buf_uint(sql, ms * 1000);
    buf_text(sql, " MICROSECOND");
}

/* give_up_at of a new row, or of one that stands. */
static void put_give_up(struct buf *sql, const struct park_step *step)
{
    switch (step->clock) {
    case PARK_CLOCK_STOPPED:
        buf_text(sql, END_OF_TIME);
        return;
    case PARK_CLOCK_STARTED:
        put_from_now(sql, step->for_ms);
        return;
    case PARK_CLOCK_SHIFTED:
        buf_text(sql, "give_up_at+INTERVAL ");
        buf_uint(sql, step->delay_ms * 1000);
        buf_text(sql, " MICROSECOND");
        return;
    case PARK_CLOCK_KEPT:
        buf_text(sql, "give_up_at");
    }
}

static void put_next(struct buf *sql, const struct park_step *step)
{
    if (step->delay_ms == PARK_UNTIL_WOKEN)
        buf_text(sql, END_OF_TIME);
    else
        put_from_now(sql, step->delay_ms);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_parked(struct buf *sql, const struct item *item, const struct park_step *step)
{
    const struct record *record = &item->record;
    const struct rule *rule = item->eval.rule;
    buf_text(sql, "(_binary");
    sql_string(sql, record->topic);
    buf_char(sql, ',');
    buf_int(sql, record->partition);
    buf_char(sql, ',');
    buf_int(sql, record->offset);
    put_record_time(sql, record->timestamp_ms);
    put_raw(sql, rule->name);
    put_raw(sql, rule->biz_type);
    put_raw(sql, item->eval.biz_no);
    put_raw(sql, item->eval.key);
    buf_text(sql, ",'");
    buf_text(sql, cause_name(step->reason));
    buf_char(sql, '\'');
    put_raw_or_null(sql, cut(record->key, RECORD_KEY_MAX), record->has_key);
    put_raw_or_null(sql, record->headers, record->headers.len > 0);
    put_raw(sql, record->value);
    buf_char(sql, ',');
    put_next(sql, step);
    buf_char(sql, ',');
    put_give_up(sql, step);
    buf_char(sql, ')');
}

static enum err_class park_insert(void *self, struct item *const *items, const struct park_step *steps,
                                  uint32_t count, struct err *err)
{
    struct mysql_store *store = self;
    struct buf *sql = store_sql(store);
    buf_text(sql, "INSERT INTO idem_parked(topic,partition_id,kafka_offset,record_ts,rule,biz_type,biz_no,idem_key,"
                  "reason,record_key,headers,payload,next_attempt_at,give_up_at) VALUES ");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(sql, ',');
        put_parked(sql, items[i], &steps[i]);
    }
    enum err_class class = store_run(store, "park", err);
    if (class == ERR_UNIQUE && err)                  /* a redrive of this key was queued between our look and this */
        err->class = ERR_RETRY;
    return class == ERR_UNIQUE ? ERR_RETRY : class;
}

static enum err_class park_keep(void *self, const struct item *item, const struct park_step *step, struct err *err)
{
    struct mysql_store *store = self;
    struct buf *sql = store_sql(store);
    buf_text(sql, "UPDATE idem_parked FORCE INDEX (PRIMARY) SET reason='");
    buf_text(sql, cause_name(step->reason));
    buf_text(sql, "',attempts=");
    buf_uint(sql, step->attempts);
    buf_text(sql, ",give_up_at=");
    put_give_up(sql, step);
    buf_text(sql, ",next_attempt_at=");
    if (step->until_give_up)         /* give_up_at has its new value here: SET goes from left to right */
        buf_text(sql, "GREATEST(UTC_TIMESTAMP(3),LEAST(give_up_at,");
    put_next(sql, step);
    if (step->until_give_up)
        buf_text(sql, "))");
    buf_text(sql, " WHERE id=");
    buf_uint(sql, item->parked.id);
    return store_run(store, "parked", err);
}

/* ---- leaving ----------------------------------------------------------------------------------------------------- */

static bool same_queue(const struct item *a, const struct item *b)
{
    return a->partition == b->partition && bytes_equal(a->record.topic, b->record.topic) &&
           bytes_equal(a->parked.biz_type, b->parked.biz_type);
}

/* The whole number is due: its worker takes it oldest first and stops where one has to wait again. */
static enum err_class wake(struct mysql_store *store, struct item *const *items, uint32_t count, uint32_t first,
                           struct err *err)
{
    const struct item *item = items[first];
    struct buf *sql = store_sql(store);
    buf_text(sql, "UPDATE idem_parked FORCE INDEX (ix_biz) SET next_attempt_at=UTC_TIMESTAMP(3) "
                  "WHERE biz_type=_binary");
    sql_string(sql, item->parked.biz_type);
    for (uint32_t i = first; i < count; i++) {
        if (!same_queue(items[i], item))
            continue;
        store->seen[i] = true;
        buf_text(sql, i == first ? " AND biz_no IN (_binary" : ",_binary");
        sql_string(sql, items[i]->parked.biz_no);
    }
    buf_text(sql, ") AND topic=_binary");
    sql_string(sql, item->record.topic);
    buf_text(sql, " AND partition_id=");
    buf_int(sql, item->partition);
    return store_run(store, "parked", err);
}

static bool applies(enum outcome outcome)
{
    return outcome == OUTCOME_FIRST || outcome == OUTCOME_ALREADY_APPLIED || outcome == OUTCOME_DUPLICATE;
}

static enum err_class resolve(struct mysql_store *store, struct item *const *items, uint32_t count, struct err *err)
{
    struct buf *sql = store_sql(store);
    bool any = false;
    buf_text(sql, "UPDATE idem_dead_letter FORCE INDEX (PRIMARY) SET state='resolved',"
                  "updated_at=UTC_TIMESTAMP(6) WHERE id IN (");
    for (uint32_t i = 0; i < count; i++) {
        if (!items[i]->parked.letter_id || !applies(items[i]->outcome))
            continue;
        if (any)
            buf_char(sql, ',');
        buf_uint(sql, items[i]->parked.letter_id);
        any = true;
    }
    buf_text(sql, ") AND state='open'");
    return any ? store_run(store, "parked", err) : ERR_NONE;
}

static enum err_class park_leave(void *self, struct item *const *items, uint32_t count, struct err *err)
{
    struct mysql_store *store = self;
    struct buf *sql = store_sql(store);
    if (count > store->places)
        return err_set(err, ERR_TOO_LARGE, 0, "parked", "more records than batch.max");
    buf_text(sql, "DELETE FROM idem_parked WHERE id IN ");
    put_ids(sql, items, count);
    enum err_class class = store_run(store, "parked", err);
    for (uint32_t i = 0; i < count; i++)
        store->seen[i] = false;
    for (uint32_t i = 0; i < count && !class; i++)
        if (!store->seen[i])
            class = wake(store, items, count, i, err);
    return class ? class : resolve(store, items, count, err);
}

const struct store_park_ops store_park_table = {
    .read = park_read, .queue = park_queue, .insert = park_insert, .keep = park_keep, .leave = park_leave,
};
