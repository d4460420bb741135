/* SPDX-License-Identifier: MIT */
/* effects: what a record writes beside its business row: the rule's inserts and statements, and
 * outbox rows (port/store.h, store_effect_ops). Parameters become typed literals, never syntax. */
#include "store_self.h"

#include "idem/core/key.h"

/* ---- the rule's inserts ---------------------------------------------------------------------------------------- */

static enum err_class put_insert_row(struct buf *sql, const struct insert *insert,
                                     const struct item *item, struct err *err)
{
    for (uint32_t i = 0; i < insert->column_count; i++) {
        const struct column_value *cv = &insert->columns[i];
        const struct value *value = &item->eval.values[cv->expr];
        if (!typed_fits(&cv->type, value))
            return err_set(err, ERR_DATA, 1366, "insert", "column %.*s cannot hold the value",
                           (int)cv->column.len, (const char *)cv->column.at);
        buf_char(sql, i > 0 ? ',' : '(');
        typed_literal(sql, &cv->type, value);
    }
    buf_char(sql, ')');
    return ERR_NONE;
}

enum err_class store_insert(void *self, const struct rule *rule, uint32_t index,
                            struct item *const *items, uint32_t count, struct err *err)
{
    struct mysql_store *store = self;
    const struct insert *insert = &rule->inserts[index];
    struct buf *sql = store_sql(store);
    if (count == 0)
        return ERR_NONE;
    buf_text(sql, "INSERT INTO ");
    sql_name(sql, insert->table);
    for (uint32_t i = 0; i < insert->column_count; i++) {
        buf_char(sql, i > 0 ? ',' : '(');
        sql_name(sql, insert->columns[i].column);
    }
    buf_text(sql, ") VALUES ");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(sql, ',');
        enum err_class class = put_insert_row(sql, insert, items[i], err);
        if (class)
            return class;
    }
    return store_run(store, "insert", err);
}

/* Two exprs that read the same thing: one expr, one text, or a field and its source. */
static bool same_source(const struct rule *rule, uint16_t a, uint16_t b)
{
    const struct expr *x = &rule->exprs[a], *y = &rule->exprs[b];
    if (a == b || (x->source == y->source && bytes_equal(x->text, y->text)))
        return true;
    if (x->source == EXPR_FIELD && rule->fields[x->field].at == b)
        return true;
    return y->source == EXPR_FIELD && rule->fields[y->field].at == a;
}

static bool feeds_identity(const struct rule *rule, uint16_t expr)
{
    for (uint32_t i = 0; i < rule->identity_count; i++)
        if (same_source(rule, expr, rule->identity[i].expr))
            return true;
    return false;
}

/* details 1, "1062 on the rule's insert": the columns that say whether it is this very event. */
static bool tells(const struct rule *rule, uint16_t expr)
{
    return feeds_identity(rule, expr) || rule->exprs[expr].source == EXPR_FIELD ||
           same_source(rule, expr, rule->biz_no);
}

static bool same_cell(const struct column *type, const struct conn_cell *cell,
                      const struct value *value)
{
    bool null = value->tag == VALUE_ABSENT || value->tag == VALUE_NULL;
    if (null || cell->is_null)
        return null && cell->is_null;
    return column_equals(type, cell->text, value);
}

/* false if no row can match. */
static bool put_known_select(struct buf *sql, const struct insert *insert, const struct item *item)
{
    buf_text(sql, "SELECT ");
    for (uint32_t i = 0; i < insert->column_count; i++) {
        buf_text(sql, i > 0 ? "," : "");
        typed_read(sql, insert->columns[i].column, &insert->columns[i].type);
    }
    buf_text(sql, " FROM ");
    sql_name(sql, insert->table);
    buf_text(sql, " t WHERE ");
    for (uint32_t i = 0; i < insert->unique_count; i++) {
        const struct column_value *cv = &insert->columns[insert->unique[i]];
        const struct value *value = &item->eval.values[cv->expr];
        if (value->tag <= VALUE_NULL || !typed_fits(&cv->type, value))
            return false;
        buf_text(sql, i > 0 ? " AND " : "");
        typed_equals(sql, cv->column, &cv->type, value, true);
    }
    buf_text(sql, " LOCK IN SHARE MODE");
    return true;
}

enum err_class store_insert_known(void *self, const struct rule *rule, uint32_t index,
                                  struct item *item, bool *ret_same, struct err *err)
{
    struct mysql_store *store = self;
    const struct insert *insert = &rule->inserts[index];
    const struct conn_cell *cells;
    uint32_t columns;
    bool identity = false, same;
    for (uint32_t i = 0; i < insert->column_count; i++)
        identity = identity || feeds_identity(rule, insert->columns[i].expr);
    *ret_same = false;
    if (!identity || insert->unique_count == 0 || !put_known_select(store_sql(store), insert, item))
        return ERR_NONE;
    enum err_class class = store_run(store, "insert_known", err);
    if (class)
        return class;
    same = conn_next(store->conn, &cells, &columns);     /* none: another index refused it */
    for (uint32_t i = 0; same && i < insert->column_count; i++) {
        const struct column_value *cv = &insert->columns[i];
        if (tells(rule, cv->expr))
            same = same_cell(&cv->type, &cells[i], &item->eval.values[cv->expr]);
    }
    conn_done(store->conn);
    *ret_same = same;
    return ERR_NONE;
}

/* ---- statements ------------------------------------------------------------------------------------------------ */

static void put_parameter(struct buf *sql, const struct value *value)
{
    static const struct column number = {.kind = COLUMN_DECIMAL}, text = {.kind = COLUMN_TEXT},
                               moment = {.kind = COLUMN_TIME, .precision = 6};
    switch (value->tag) {
    case VALUE_INTEGER:
    case VALUE_DECIMAL:
        typed_literal(sql, &number, value);
        return;
    case VALUE_TIME:
        typed_literal(sql, &moment, value);
        return;
    case VALUE_ABSENT:
    case VALUE_NULL:
    case VALUE_TEXT:
    case VALUE_BOOL:
    case VALUE_OTHER:
    case VALUE_NOW:
        typed_literal(sql, &text, value);
        return;
    }
}

static enum err_class store_statement(void *self, const struct rule *rule, uint32_t index,
                                      struct item *item, uint64_t *ret_affected, struct err *err)
{
    struct mysql_store *store = self;
    const struct statement *statement = &rule->statements[index];
    struct buf *sql = store_sql(store);
    for (uint32_t i = 0; i < statement->param_count; i++) {
        buf_bytes(sql, statement->text[i]);
        put_parameter(sql, &item->eval.values[statement->params[i]]);
    }
    buf_bytes(sql, statement->text[statement->param_count]);
    enum err_class class = store_run(store, "statement", err);
    if (class)
        return class;
    *ret_affected = conn_affected(store->conn);
    conn_done(store->conn);
    return ERR_NONE;
}

/* ---- outbox ---------------------------------------------------------------------------------------------------- */

static void put_template(struct mysql_store *store, const struct template *template,
                         const struct item *item, struct bytes now)
{
    buf_reset(&store->text);
    template_write(template, item->eval.rule, item->eval.values, now, &store->text);
    store->sql.overflow = store->sql.overflow || store->text.overflow;
    sql_string(&store->sql, buf_view(&store->text));
}

static void put_event(struct mysql_store *store, const struct outbox_row *row, struct bytes now)
{
    const struct item *item = row->item;
    const struct event *event = row->event;
    const struct value *key = &item->eval.values[event->key];
    char id[EVENT_ID_LEN];
    struct buf *sql = &store->sql;
    event_id(item->eval.rule->biz_type, item->eval.key, item->eval.identity_hash,
             bytes_text(outcome_name(row->outcome)), row->index, id);
    buf_text(sql, "('");
    buf_put(sql, id, EVENT_ID_LEN);
    buf_text(sql, "',");
    sql_string(sql, event->topic);
    buf_char(sql, ',');
    sql_string(sql, event->aggregate);
    buf_text(sql, ",_binary");
    sql_string(sql, key->tag == VALUE_NOW ? now : key->text);
    buf_char(sql, ',');
    sql_string(sql, event->type);
    buf_char(sql, ',');
    put_template(store, &event->payload, item, now);
    buf_char(sql, ',');
    if (event->headers.count)
        put_template(store, &event->headers, item, now);
    else
        buf_text(sql, "NULL");
    buf_char(sql, ')');
}

static enum err_class store_events(void *self, const struct outbox_row *rows, uint32_t count,
                                   struct bytes now, struct err *err)
{
    struct mysql_store *store = self;
    struct buf *sql = store_sql(store);
    if (count == 0)
        return ERR_NONE;
    buf_text(sql, "INSERT INTO idem_outbox(id,topic,aggregatetype,aggregateid,type,payload,headers) "
                  "VALUES ");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(sql, ',');
        put_event(store, &rows[i], now);
    }
    enum err_class class = store_run(store, "outbox", err);
    /* 1062: the outbox has no unique key but its own number. */
    return class == ERR_UNIQUE ? err_set(err, ERR_FATAL, 1062, "outbox", "idem_outbox refused a row")
                               : class;
}

const struct store_effect_ops store_effect_table = {
    .insert = store_insert, .insert_known = store_insert_known, .statement = store_statement,
    .events = store_events, .letter = store_letter, .records = store_records,
};
