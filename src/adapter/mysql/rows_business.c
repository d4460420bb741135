/* SPDX-License-Identifier: MIT */
/* rows_business: the business rows: the conditional UPDATE and the locking read, set-based, value
 * list first so that the plan is one unique-index look-up a row (design 3 steps 4d, 4e, 6). Values
 * that no row can have never reach SQL. */
#include "store_self.h"

static const struct value *value_of(const struct item *item, const struct column_value *cv)
{
    return &item->eval.values[cv->expr];
}

static bool all_fit(const struct item *item, const struct column_value *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct value *value = value_of(item, &list[i]);
        if (value->tag <= VALUE_NULL || !typed_fits(&list[i].type, value))
            return false;
    }
    return true;
}

/* The items that some row can match, in lock order, in store->sorted. */
static enum err_class list_matching(struct mysql_store *store, uint32_t index,
                                    struct item *const *items, uint32_t count, bool require,
                                    uint32_t *ret_count, struct err *err)
{
    uint32_t kept = 0;
    if (count > store->places)
        return err_set(err, ERR_TOO_LARGE, 0, "update", "more records than batch.max");
    for (uint32_t i = 0; i < count; i++) {
        const struct transition *t = &items[i]->eval.rule->transitions[index];
        if (all_fit(items[i], t->where, t->where_count) &&
            (!require || all_fit(items[i], t->require, t->require_count)))
            store->sorted[kept++] = items[i];
    }
    items_sort_by_row(store->sorted, kept, index);
    *ret_count = kept;
    return ERR_NONE;
}

static void put_index(struct buf *sql, const struct transition *t)
{
    if (!t->index.len)
        return;
    buf_text(sql, " FORCE INDEX (");
    sql_name(sql, t->index);
    buf_char(sql, ')');
}

/* ---- update ---------------------------------------------------------------------------------------------------- */

/* `set` entries that are the same for every record stay out of the value list. */
static bool is_constant(const struct rule *rule, const struct column_value *cv)
{
    enum expr_source source = rule->exprs[cv->expr].source;
    return source == EXPR_NOW || source == EXPR_LITERAL;
}

static enum err_class check_set(const struct transition *t, const struct item *item, struct err *err)
{
    for (uint32_t i = 0; i < t->set_count; i++)
        if (!typed_fits(&t->set[i].type, value_of(item, &t->set[i])))
            return err_set(err, ERR_DATA, 1366, "update", "column %.*s cannot hold the value",
                           (int)t->set[i].column.len, (const char *)t->set[i].column.at);
    return ERR_NONE;
}

static void put_set_name(struct buf *sql, struct bytes column)
{
    buf_text(sql, ",t.");
    sql_name(sql, column);
    buf_char(sql, '=');
}

static void put_state_change(struct buf *sql, const struct transition *t)
{
    buf_text(sql, " SET t.");
    sql_name(sql, t->column);
    buf_char(sql, '=');
    typed_state(sql, &t->column_type, t->to);
}

static void put_update_one(struct buf *sql, const struct transition *t, const struct item *item)
{
    buf_text(sql, "UPDATE ");
    sql_name(sql, t->table);
    buf_text(sql, " t");
    put_index(sql, t);
    put_state_change(sql, t);
    for (uint32_t i = 0; i < t->set_count; i++) {
        put_set_name(sql, t->set[i].column);
        typed_literal(sql, &t->set[i].type, value_of(item, &t->set[i]));
    }
    buf_text(sql, " WHERE ");
    for (uint32_t i = 0; i < t->where_count; i++) {
        buf_text(sql, i > 0 ? " AND " : "");
        typed_equals(sql, t->where[i].column, &t->where[i].type, value_of(item, &t->where[i]), true);
    }
    buf_text(sql, " AND ");
    typed_state_in(sql, t->column, &t->column_type, t->from, t->from_count);
    for (uint32_t i = 0; i < t->require_count; i++) {
        buf_text(sql, " AND ");
        typed_equals(sql, t->require[i].column, &t->require[i].type,
                     value_of(item, &t->require[i]), false);
    }
}

static void put_cells(struct buf *sql, const struct item *item, const struct column_value *list,
                      uint32_t count, bool skip_constant, uint32_t *at)
{
    for (uint32_t i = 0; i < count; i++) {
        if (skip_constant && is_constant(item->eval.rule, &list[i]))
            continue;
        if ((*at)++ > 0)
            buf_char(sql, ',');
        typed_cell(sql, &list[i].type, value_of(item, &list[i]));
    }
}

static uint32_t cell_count(const struct rule *rule, const struct transition *t)
{
    uint32_t cells = t->where_count + t->require_count;
    for (uint32_t i = 0; i < t->set_count; i++)
        cells += !is_constant(rule, &t->set[i]);
    return cells;
}

/* ON: the index columns against the first cells of the list. */
static void put_join(struct buf *sql, const struct transition *t, uint32_t first_cell)
{
    buf_text(sql, " STRAIGHT_JOIN ");
    sql_name(sql, t->table);
    buf_text(sql, " t");
    put_index(sql, t);
    buf_text(sql, " ON ");
    for (uint32_t i = 0; i < t->where_count; i++) {
        buf_text(sql, i > 0 ? " AND " : "");
        typed_equals_cell(sql, t->where[i].column, &t->where[i].type, first_cell + i, true);
    }
}

static void put_update_list(struct buf *sql, const struct conn *conn, const struct rule *rule,
                            const struct transition *t, struct item *const *items, uint32_t count)
{
    uint32_t cells = cell_count(rule, t), cell = t->where_count + t->require_count;
    buf_text(sql, "UPDATE ");
    list_open(sql, conn, cells);
    for (uint32_t i = 0; i < count; i++) {
        const struct item *item = items[i];
        uint32_t at = 0;
        list_row_open(sql, conn, i == 0);
        put_cells(sql, item, t->where, t->where_count, false, &at);
        put_cells(sql, item, t->require, t->require_count, false, &at);
        put_cells(sql, item, t->set, t->set_count, true, &at);
        list_row_close(sql, conn);
    }
    list_close(sql, conn, cells);
    put_join(sql, t, 0);
    put_state_change(sql, t);
    for (uint32_t i = 0; i < t->set_count; i++) {
        put_set_name(sql, t->set[i].column);
        if (is_constant(rule, &t->set[i]))
            typed_literal(sql, &t->set[i].type, value_of(items[0], &t->set[i]));
        else
            typed_set_cell(sql, &t->set[i].type, cell++);
    }
    buf_text(sql, " WHERE ");
    typed_state_in(sql, t->column, &t->column_type, t->from, t->from_count);
    for (uint32_t i = 0; i < t->require_count; i++) {
        buf_text(sql, " AND ");
        typed_equals_cell(sql, t->require[i].column, &t->require[i].type, t->where_count + i, false);
    }
    list_condition(sql, conn);
}

void store_write_update(struct buf *sql, const struct conn *conn, const struct rule *rule, uint32_t index,
                        struct item *const *items, uint32_t count)
{
    if (count == 1)
        put_update_one(sql, &rule->transitions[index], items[0]);
    else
        put_update_list(sql, conn, rule, &rule->transitions[index], items, count);
}

enum err_class store_update(void *self, const struct rule *rule, uint32_t index,
                            struct item *const *items, uint32_t count, uint64_t *ret_affected,
                            struct err *err)
{
    struct mysql_store *store = self;
    const struct transition *t = &rule->transitions[index];
    uint32_t matching = 0;
    enum err_class class = list_matching(store, index, items, count, true, &matching, err);
    for (uint32_t i = 0; i < matching && !class; i++)
        class = check_set(t, store->sorted[i], err);
    if (class)
        return class;
    if (matching == 0) {
        *ret_affected = 0;
        return ERR_NONE;
    }
    store_write_update(store_sql(store), store->conn, rule, index, store->sorted, matching);
    class = store_run(store, "update", err);
    if (class)
        return class;
    uint64_t affected = conn_affected(store->conn);
    if (affected > matching)
        return err_set(err, ERR_FATAL, 0, "update", "%llu rows changed for %u records",
                       (unsigned long long)affected, (unsigned)matching);
    *ret_affected = affected;
    return ERR_NONE;
}

/* ---- locking read ---------------------------------------------------------------------------------------------- */

/* Cell 0 is the record's place in store->sorted. layout NULL: only that is read. */
static void put_select(struct mysql_store *store, const struct transition *t,
                       const struct row_layout *layout, uint32_t count, const char *suffix)
{
    struct buf *sql = store_sql(store);
    buf_text(sql, "SELECT ");
    typed_cell_name(sql, 0);
    for (uint32_t i = 0; layout && i < layout->count; i++) {
        buf_char(sql, ',');
        typed_read(sql, layout->names[i], layout->types[i]);
    }
    buf_text(sql, " FROM ");
    list_open(sql, store->conn, 1 + t->where_count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = 1;
        list_row_open(sql, store->conn, i == 0);
        buf_char(sql, '\'');
        buf_uint(sql, i);
        buf_char(sql, '\'');
        put_cells(sql, store->sorted[i], t->where, t->where_count, false, &at);
        list_row_close(sql, store->conn);
    }
    list_close(sql, store->conn, 1 + t->where_count);
    put_join(sql, t, 1);
    buf_text(sql, " WHERE 1=1");
    list_condition(sql, store->conn);
    buf_text(sql, suffix);
}

static bool take_row(struct item *item, uint32_t index, const struct row_layout *layout,
                     const struct conn_cell *cells, struct arena *scratch)
{
    struct row_view *row = &item->rows[index];
    struct stored *columns = arena_calloc(scratch, layout->count, sizeof *columns);
    if (!columns)
        return false;
    for (uint32_t i = 0; i < layout->count; i++)
        columns[i] = (struct stored){arena_copy(scratch, cells[i + 1].text), cells[i + 1].is_null};
    *row = (struct row_view){.found = true, .columns = columns};
    return !scratch->exhausted;
}

static enum err_class take_rows(struct mysql_store *store, uint32_t index, uint32_t count,
                                const struct row_layout *layout, struct arena *scratch,
                                struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    while (conn_next(store->conn, &cells, &columns)) {
        uint64_t at = cell_number(&cells[0]);
        if (at >= count || store->sorted[at]->rows[index].found)
            return err_set(err, ERR_FATAL, 0, "lock", "more than one row for one record");
        if (!take_row(store->sorted[at], index, layout, cells, scratch))
            return err_set(err, ERR_TOO_LARGE, 0, "lock", "scratch memory is full");
    }
    conn_done(store->conn);
    return ERR_NONE;
}

/* Which rows exist, whoever holds them. */
static enum err_class see_rows(struct mysql_store *store, const struct transition *t, uint32_t count,
                               struct err *err)
{
    const struct conn_cell *cells;
    uint32_t columns;
    put_select(store, t, NULL, count, "");
    enum err_class class = store_run(store, "lock", err);
    if (class)
        return class;
    for (uint32_t i = 0; i < count; i++)
        store->seen[i] = false;
    while (conn_next(store->conn, &cells, &columns))
        if (cell_number(&cells[0]) < count)
            store->seen[cell_number(&cells[0])] = true;
    conn_done(store->conn);
    return ERR_NONE;
}

/* item->rows, made at the first read of any of its transitions. */
static enum err_class make_rows(struct item *item, uint32_t index, struct arena *scratch,
                                struct err *err)
{
    if (!item->rows)
        item->rows = arena_calloc(scratch, item->eval.rule->transition_count, sizeof *item->rows);
    if (!item->rows)
        return err_set(err, ERR_TOO_LARGE, 0, "lock", "scratch memory is full");
    item->rows[index] = (struct row_view){0};
    return ERR_NONE;
}

enum err_class store_lock(void *self, const struct rule *rule, uint32_t index,
                          struct item *const *items, uint32_t count, bool skip_locked,
                          struct arena *scratch, struct err *err)
{
    struct mysql_store *store = self;
    const struct transition *t = &rule->transitions[index];
    struct row_layout layout;
    uint32_t matching = 0;
    enum err_class class = list_matching(store, index, items, count, false, &matching, err);
    for (uint32_t i = 0; i < count && !class; i++)
        class = make_rows(items[i], index, scratch, err);
    if (class || matching == 0)
        return class;
    row_layout(rule, index, &layout);
    if (skip_locked)
        class = see_rows(store, t, matching, err);
    if (class)
        return class;
    put_select(store, t, &layout, matching, skip_locked ? " FOR UPDATE SKIP LOCKED" : " FOR UPDATE");
    class = store_run(store, "lock", err);
    if (!class)
        class = take_rows(store, index, matching, &layout, scratch, err);
    for (uint32_t i = 0; i < matching && !class && skip_locked; i++) {
        struct row_view *row = &store->sorted[i]->rows[index];
        if (store->seen[i] && !row->found)
            *row = (struct row_view){.found = true, .locked = true};
    }
    return class;
}

enum err_class store_look(void *self, struct item *item, struct arena *scratch, struct err *err)
{
    struct mysql_store *store = self;
    const struct rule *rule = item->eval.rule;
    struct row_layout layout;
    uint32_t matching = 0;
    if (rule->transition_count == 0)
        return ERR_NONE;
    enum err_class class = list_matching(store, 0, &item, 1, false, &matching, err);
    if (!class)
        class = make_rows(item, 0, scratch, err);
    if (class || matching == 0)
        return class;
    row_layout(rule, 0, &layout);
    put_select(store, &rule->transitions[0], &layout, 1, "");
    class = store_run(store, "look", err);
    return class ? class : take_rows(store, 0, 1, &layout, scratch, err);
}
