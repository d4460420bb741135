/* SPDX-License-Identifier: MIT */
/* check_rule: one rule against what stands in the shop's tables: states in no list, identity that is never NULL,
 * inserts that no index guards, rules that would wait for each other. */
#include "check_self.h"

#include <stdio.h>

enum { STATES_LOOKED_AT = 100000, STATES_TOLD = 50, DAY_S = 86400 };

/* ---- states ------------------------------------------------------------------------------------------------------ */

static enum err_class check_states(struct checker *checker, const struct rule *rule, const struct transition *t)
{
    char block[CHECK_SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    bool denied;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT DISTINCT s FROM (SELECT ");
    sql_name(&sql, t->column);
    buf_text(&sql, " AS s FROM ");
    sql_name(&sql, t->table);
    buf_printf(&sql, " LIMIT %d) x LIMIT %d", STATES_LOOKED_AT, STATES_TOLD);
    enum err_class class = check_run(checker, buf_view(&sql), "states", &denied);
    while (class == ERR_NONE && !denied && conn_next(checker->conn, &cells, &count))
        if (transition_class(t, cells[0].text, cells[0].is_null) == STATE_UNKNOWN)
            schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "unknown_state",
                        "table %.*s has rows in state %.*s, which is in no list", (int)t->table.len,
                        (const char *)t->table.at, cells[0].is_null ? 4 : (int)cells[0].text.len,
                        cells[0].is_null ? "NULL" : (const char *)cells[0].text.at);
    conn_done(checker->conn);
    return class;
}

/* ---- identity ---------------------------------------------------------------------------------------------------- */

static bool is_in(struct bytes column, const struct column_value *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (bytes_equal_nocase(list[i].column, column))
            return true;
    return false;
}

/* A row that was paid by hand must be told from one that another payment moved: NULL says it. */
static void check_identity(struct checker *checker, const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->identity_count && rule->transition_count > 0; i++) {
        const struct column_value *identity = &rule->identity[i];
        const struct transition *t = &rule->transitions[0];
        if (identity->type.kind == COLUMN_UNREAD || identity->type.nullable ||
            is_in(identity->column, t->where, t->where_count))
            continue;
        schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "identity",
                    "column %.*s.%.*s cannot be NULL: a row that was moved by hand looks as if another payment had "
                    "moved it, and its events go out", (int)t->table.len, (const char *)t->table.at,
                    (int)identity->column.len, (const char *)identity->column.at);
    }
}

/* ---- inserts ----------------------------------------------------------------------------------------------------- */

static bool is_unique_column(const struct insert *insert, struct bytes column)
{
    for (uint32_t i = 0; i < insert->unique_count; i++)
        if (bytes_equal_nocase(insert->columns[insert->unique[i]].column, column))
            return true;
    return false;
}

/* Rows are index_name, column_name, in the order of the index. */
static bool some_index_covers(struct checker *checker, const struct insert *insert)
{
    const struct conn_cell *cells;
    uint32_t count;
    char name[130] = "";
    bool covered = false, found = false;
    while (conn_next(checker->conn, &cells, &count)) {
        if (!bytes_equal(cells[0].text, bytes_text(name))) {
            found = found || covered;
            snprintf(name, sizeof name, "%.*s", (int)cells[0].text.len, (const char *)cells[0].text.at);
            covered = true;
        }
        covered = covered && is_unique_column(insert, cells[1].text);
    }
    conn_done(checker->conn);
    return found || covered;
}

static enum err_class check_insert(struct checker *checker, const struct rule *rule, const struct insert *insert)
{
    char block[CHECK_SQL_MAX];
    struct buf sql;
    if (insert->unique_count == 0)
        return ERR_NONE;
    buf_init(&sql, block, sizeof block);
    /* A hidden index refuses twins all the same. */
    buf_text(&sql, "SELECT index_name, column_name FROM information_schema.statistics");
    sql_where_table(&sql, insert->table, "table_schema", "table_name");
    buf_text(&sql, " AND non_unique=0 ORDER BY index_name, seq_in_index");
    enum err_class class = conn_run(checker->conn, buf_view(&sql), "indexes", checker->err);
    if (class != ERR_NONE || some_index_covers(checker, insert))
        return class;
    schema_tell(checker->sink, checker->context, rule, SEVERITY_ERROR, "no_unique_index",
                "no unique index of %.*s lies within the columns of `unique`: the same event could be inserted twice",
                (int)insert->table.len, (const char *)insert->table.at);
    return ERR_NONE;
}

/* ---- rules side by side ------------------------------------------------------------------------------------------ */

static bool shares_state(const struct transition *early, const struct transition *from, struct bytes *ret_state)
{
    for (uint32_t i = 0; i < early->early_count; i++)
        for (uint32_t k = 0; k < from->from_count; k++)
            if (bytes_equal(early->early[i], from->from[k])) {
                *ret_state = early->early[i];
                return true;
            }
    return false;
}

static void check_pair(struct checker *checker, const struct rule *rule, const struct rule *other)
{
    struct bytes state;
    for (uint32_t i = 0; i < rule->transition_count; i++)
        for (uint32_t k = 0; k < other->transition_count; k++)
            if (bytes_equal(rule->transitions[i].table, other->transitions[k].table) &&
                shares_state(&rule->transitions[i], &other->transitions[k], &state))
                schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "unknown_state",
                            "state %.*s is early here and `from` of rule %.*s of the same biz_type: a record that "
                            "waits for it holds back the one that would bring it on", (int)state.len,
                            (const char *)state.at, (int)other->name.len, (const char *)other->name.at);
}

static void check_others(struct checker *checker, const struct rule *rule)
{
    if (rule->park.for_ms == 0)          /* nothing waits */
        return;
    for (uint32_t i = 0; i < checker->config->topic_count; i++) {
        const struct topic *topic = &checker->config->topics[i];
        for (uint32_t k = 0; topic->database == checker->database && k < topic->rule_count; k++)
            if (&topic->rules[k] != rule && bytes_equal(topic->rules[k].biz_type, rule->biz_type))
                check_pair(checker, rule, &topic->rules[k]);
    }
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

bool check_is_guarded(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->insert_count; i++)
        if (rule->inserts[i].unique_count > 0)
            return true;
    for (uint32_t i = 0; i < rule->transition_count; i++)
        if (!rule->transitions[i].self)
            return true;
    /* `else: ignored`: its own WHERE tells what came late (a running total). */
    for (uint32_t i = 0; i < rule->statement_count; i++)
        if (rule->statements[i].otherwise == OUTCOME_IGNORED)
            return true;
    return false;
}

static void check_ttl(struct checker *checker, const struct rule *rule)
{
    if (rule->ttl_s >= 0 && !check_is_guarded(rule))
        schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "ttl",
                    "nothing but its dedupe row guards this rule: it needs ttl: forever");
    else if (rule->ttl_s >= 0 && rule->ttl_s < DAY_S)
        schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "ttl",
                    "ttl is shorter than a day: most channels send again for longer");
}

static enum err_class check_rule(struct checker *checker, const struct rule *rule)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < rule->transition_count && class == ERR_NONE; i++)
        if (rule->transitions[i].column_type.kind != COLUMN_UNREAD)
            class = check_states(checker, rule, &rule->transitions[i]);
    for (uint32_t i = 0; i < rule->insert_count && class == ERR_NONE; i++)
        class = check_insert(checker, rule, &rule->inserts[i]);
    check_identity(checker, rule);
    check_others(checker, rule);
    check_ttl(checker, rule);
    return class;
}

enum err_class check_rules(struct checker *checker)
{
    return check_each_rule(checker, check_rule);
}
