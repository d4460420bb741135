/* SPDX-License-Identifier: MIT */
/* check_plan: the server's plan for the very UPDATE that the store writes. Values are made up: no plan depends on them,
 * and no row is touched by an EXPLAIN. */
#include "check_self.h"

#include "store_self.h"

#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 3, TEXT_MAX = 32 };

/* Records of one rule with a value for everything that its UPDATE reads. */
struct sample {
    struct item items[RECORDS];
    struct item *list[RECORDS];
    struct value values[RECORDS][EXPRS_MAX];
    char texts[RECORDS][2][TEXT_MAX];        /* a number, a moment */
};

static void fill(struct sample *sample, const struct rule *rule, const struct column_value *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct expr *expr = &rule->exprs[list[i].expr];
        bool moment = list[i].type.kind == COLUMN_TIME;
        for (int row = 0; row < RECORDS; row++) {
            struct value *value = &sample->values[row][list[i].expr];
            if (expr->source == EXPR_NOW)
                value->tag = VALUE_NOW;
            else if (expr->source == EXPR_LITERAL)
                *value = expr->literal;
            else
                *value = (struct value){.tag = moment ? VALUE_TIME : VALUE_TEXT,
                                        .text = bytes_text(sample->texts[row][moment])};
        }
    }
}

static void fill_sample(struct sample *sample, const struct rule *rule, const struct transition *t)
{
    for (int row = 0; row < RECORDS; row++) {
        snprintf(sample->texts[row][0], TEXT_MAX, "%d", row + 1);
        snprintf(sample->texts[row][1], TEXT_MAX, "2001-01-0%dT00:00:00.000000Z", row + 1);
        sample->items[row].eval.rule = rule;
        sample->items[row].eval.values = sample->values[row];
        sample->list[row] = &sample->items[row];
    }
    fill(sample, rule, t->where, t->where_count);
    fill(sample, rule, t->require, t->require_count);
    fill(sample, rule, t->set, t->set_count);
}

/* `ref` is what an index that allows NULL gives, and such rows are moved one by one. */
static bool is_one_row(const struct transition *t, struct bytes type)
{
    return bytes_equal_nocase(type, BYTES_LIT("eq_ref")) || bytes_equal_nocase(type, BYTES_LIT("const")) ||
           bytes_equal_nocase(type, BYTES_LIT("range")) ||
           (!t->set_based && bytes_equal_nocase(type, BYTES_LIT("ref")));
}

static void judge_row(struct checker *checker, const struct rule *rule, const struct transition *t, uint32_t records,
                      struct bytes type, struct bytes key)
{
    if (is_one_row(t, type) && bytes_equal_nocase(key, t->index))
        return;
    schema_tell(checker->sink, checker->context, rule, SEVERITY_ERROR, "plan",
                "UPDATE of table %.*s for %u record(s) reads it by %.*s through %.*s, not row by row through %.*s",
                (int)t->table.len, (const char *)t->table.at, records, (int)type.len, (const char *)type.at,
                key.len ? (int)key.len : 8, key.len ? (const char *)key.at : "no index", (int)t->index.len,
                (const char *)t->index.at);
}

static enum err_class explain(struct checker *checker, const struct rule *rule, uint32_t index,
                              struct sample *sample, uint32_t records, struct buf *sql)
{
    const struct transition *t = &rule->transitions[index];
    const struct conn_cell *cells;
    uint32_t count;
    bool seen = false, denied;
    /* MySQL has a column `partitions` between table and type. */
    uint32_t at = conn_is_mariadb(checker->conn) ? 3 : 4;
    buf_reset(sql);
    buf_text(sql, "EXPLAIN FORMAT=TRADITIONAL ");
    store_write_update(sql, checker->conn, rule, index, sample->list, records);
    if (sql->overflow)
        return err_set(checker->err, ERR_FATAL, 0, "plan", "the statement is too long");
    enum err_class class = check_run(checker, buf_view(sql), "plan", &denied);
    if (class == ERR_NONE && denied) {
        check_tell_grant(checker, rule, t->table, "UPDATE");
        return ERR_NONE;
    }
    while (class == ERR_NONE && conn_next(checker->conn, &cells, &count)) {
        if (count <= at + 2 || cells[at].is_null || !bytes_equal(cells[2].text, BYTES_LIT("t")))
            continue;
        seen = true;
        judge_row(checker, rule, t, records, cells[at].text, cells[at + 2].text);
    }
    conn_done(checker->conn);
    if (class == ERR_NONE && !seen)
        schema_tell(checker->sink, checker->context, rule, SEVERITY_INFO, "plan", "the server gave no plan for %.*s",
                    (int)t->table.len, (const char *)t->table.at);
    return class;
}

static enum err_class check_plan(struct checker *checker, const struct rule *rule, uint32_t index)
{
    struct sample *sample = calloc(1, sizeof *sample);
    char *block = malloc(CHECK_SQL_MAX);
    struct buf sql;
    enum err_class class = ERR_NONE;
    if (!sample || !block) {
        class = err_set(checker->err, ERR_FATAL, 0, "plan", "out of memory");
    } else {
        buf_init(&sql, block, CHECK_SQL_MAX);
        fill_sample(sample, rule, &rule->transitions[index]);
        class = explain(checker, rule, index, sample, 1, &sql);
        if (class == ERR_NONE && rule->transitions[index].set_based)
            class = explain(checker, rule, index, sample, RECORDS, &sql);
    }
    free(sample);
    free(block);
    return class;
}

/* Without types there is no UPDATE to write: schema_read() has said so. */
static bool types_are_read(const struct transition *t)
{
    bool read = t->index.len > 0 && t->column_type.kind != COLUMN_UNREAD;
    for (uint32_t i = 0; i < t->require_count; i++)
        read = read && t->require[i].type.kind != COLUMN_UNREAD;
    for (uint32_t i = 0; i < t->set_count; i++)
        read = read && t->set[i].type.kind != COLUMN_UNREAD;
    return read;
}

static enum err_class rule_plans(struct checker *checker, const struct rule *rule)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < rule->transition_count && class == ERR_NONE; i++)
        if (types_are_read(&rule->transitions[i]))
            class = check_plan(checker, rule, i);
    return class;
}

enum err_class check_plans(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                           void *context, struct err *err)
{
    struct checker checker = {conn, config, database, sink, context, err};
    if (!conn_writable(conn))            /* the server refuses to plan an UPDATE there */
        return ERR_NONE;
    enum err_class class = conn_begin(conn, err);
    if (class == ERR_NONE)
        class = check_each_rule(&checker, rule_plans);
    conn_rollback(conn);
    return class;
}
