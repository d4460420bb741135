/* SPDX-License-Identifier: MIT */
/* check: see idem/adapter/mysql_check.h. Every look is bounded: a check may run beside the daemon on a busy server. */
#include "idem/adapter/mysql_check.h"

#include <stdio.h>

enum { SQL_MAX = 8192, STATES_LOOKED_AT = 100000, DAY_S = 86400 };

struct checker {
    struct conn *conn;
    const struct config *config;
    schema_finding *sink;
    void *context;
    struct err *err;
};

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* The list's text as a value of the column's type, as the daemon's own statements do it. */
static void put_typed(struct buf *sql, const struct column *type, uint32_t number)
{
    switch (type->kind) {
    case COLUMN_INTEGER:
        buf_printf(sql, "CAST(v.c%u AS %s)", number, type->is_unsigned ? "UNSIGNED" : "SIGNED");
        return;
    case COLUMN_DECIMAL:
        buf_printf(sql, "CAST(v.c%u AS DECIMAL(65,%u))", number, type->scale);
        return;
    case COLUMN_TEXT:
        buf_printf(sql, "CONVERT(v.c%u USING %s) COLLATE %s", number, type->charset, type->collation);
        return;
    case COLUMN_BINARY:
        buf_printf(sql, "CAST(v.c%u AS BINARY)", number);
        return;
    case COLUMN_TIME:
        buf_printf(sql, "CAST(v.c%u AS DATETIME(6))", number);
        return;
    case COLUMN_UNREAD:
    case COLUMN_OTHER:
        break;
    }
    buf_printf(sql, "v.c%u", number);
}

static void put_plan_query(struct buf *sql, const struct transition *t)
{
    buf_text(sql, "EXPLAIN FORMAT=TRADITIONAL SELECT 1 FROM (");
    for (int row = 0; row < 3; row++) {
        buf_text(sql, row ? " UNION ALL SELECT " : "SELECT ");
        for (uint32_t i = 0; i < t->where_count; i++)
            buf_printf(sql, "%s'%d' AS c%u", i ? "," : "", row, i);
    }
    buf_text(sql, ") v STRAIGHT_JOIN ");
    sql_name(sql, t->table);
    buf_text(sql, " t FORCE INDEX (");
    sql_name(sql, t->index);
    buf_text(sql, ") ON ");
    for (uint32_t i = 0; i < t->where_count; i++) {
        buf_text(sql, i ? " AND t." : "t.");
        sql_name(sql, t->where[i].column);
        buf_char(sql, '=');
        put_typed(sql, &t->where[i].type, i);
    }
}

static bool is_one_row(struct bytes type)
{
    static const char *const good[] = {"eq_ref", "const", "ref", "range", "system"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (bytes_equal_nocase(type, bytes_text(good[i])))
            return true;
    return false;
}

static enum err_class check_plan(struct checker *checker, const struct rule *rule, const struct transition *t)
{
    char block[SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    bool seen = false;
    /* MySQL has a column `partitions` between table and type. */
    uint32_t at = conn_is_mariadb(checker->conn) ? 3 : 4;
    buf_init(&sql, block, sizeof block);
    put_plan_query(&sql, t);
    enum err_class class = conn_run(checker->conn, buf_view(&sql), "plan", checker->err);
    while (class == ERR_NONE && conn_next(checker->conn, &cells, &count)) {
        if (count <= at + 2 || !bytes_equal(cells[2].text, BYTES_LIT("t")))
            continue;
        seen = true;
        if (!is_one_row(cells[at].text) || !bytes_equal_nocase(cells[at + 2].text, t->index))
            schema_tell(checker->sink, checker->context, rule, SEVERITY_ERROR, "plan",
                        "table %.*s is read by %.*s, not row by row through %.*s", (int)t->table.len,
                        (const char *)t->table.at, (int)cells[at].text.len, (const char *)cells[at].text.at,
                        (int)t->index.len, (const char *)t->index.at);
    }
    conn_done(checker->conn);
    if (class == ERR_NONE && !seen)
        schema_tell(checker->sink, checker->context, rule, SEVERITY_INFO, "plan", "the server gave no plan for %.*s",
                    (int)t->table.len, (const char *)t->table.at);
    return class;
}

typedef enum err_class rule_check(struct checker *checker, const struct rule *rule);

static enum err_class each_rule(struct checker *checker, uint32_t database, rule_check *check)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < checker->config->topic_count && class == ERR_NONE; i++) {
        const struct topic *topic = &checker->config->topics[i];
        for (uint32_t k = 0; topic->database == database && k < topic->rule_count && class == ERR_NONE; k++)
            class = check(checker, &topic->rules[k]);
    }
    return class;
}

static enum err_class rule_plans(struct checker *checker, const struct rule *rule)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < rule->transition_count && class == ERR_NONE; i++)
        if (rule->transitions[i].index.len)
            class = check_plan(checker, rule, &rule->transitions[i]);
    return class;
}

enum err_class check_plans(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                           void *context, struct err *err)
{
    struct checker checker = {conn, config, sink, context, err};
    enum err_class class = conn_begin(conn, err);
    if (class == ERR_NONE)
        class = each_rule(&checker, database, rule_plans);
    conn_rollback(conn);
    return class;
}

/* ---- the server -------------------------------------------------------------------------------------------------- */

static enum err_class read_variable(struct checker *checker, const char *sql, char ret[256])
{
    const struct conn_cell *cells;
    uint32_t count;
    ret[0] = '\0';
    enum err_class class = conn_run_text(checker->conn, sql, "settings", checker->err);
    if (class == ERR_NONE && conn_next(checker->conn, &cells, &count) && !cells[0].is_null)
        snprintf(ret, 256, "%.*s", (int)cells[0].text.len, (const char *)cells[0].text.at);
    conn_done(checker->conn);
    return class;
}

static enum err_class check_settings(struct checker *checker)
{
    char flush[256], binlog[256], sync[256], mode[256];
    enum err_class class = read_variable(checker, "SELECT @@innodb_flush_log_at_trx_commit", flush);
    if (class == ERR_NONE)
        class = read_variable(checker, "SELECT @@log_bin", binlog);
    if (class == ERR_NONE)
        class = read_variable(checker, "SELECT @@sync_binlog", sync);
    if (class == ERR_NONE)
        class = read_variable(checker, "SELECT @@GLOBAL.sql_mode", mode);
    if (class != ERR_NONE)
        return class;
    if (strcmp(flush, "1") != 0)
        checker->sink(checker->context, SEVERITY_WARNING, "durability", "databases",
                      "innodb_flush_log_at_trx_commit is not 1: a crash of the host loses confirmed payments");
    if (strcmp(binlog, "1") == 0 && strcmp(sync, "1") != 0)
        checker->sink(checker->context, SEVERITY_WARNING, "durability", "databases",
                      "sync_binlog is not 1: a crash of the host loses confirmed payments");
    if (!strstr(mode, "STRICT_ALL_TABLES") && !strstr(mode, "STRICT_TRANS_TABLES"))
        checker->sink(checker->context, SEVERITY_WARNING, "sql_mode", "databases",
                      "the server's default sql_mode is lax: idemd sets a strict one, the shop's own sessions may not");
    return ERR_NONE;
}

/* What the daemon does to its own tables, with nothing to do: only the right to do it is asked for. */
static const char *const needed[] = {
    "INSERT INTO idem_record (biz_type,idem_key,biz_no,rule_id,params_hash,identity_hash,fingerprint_version,outcome,"
    "claim,source,partition_id,kafka_offset,expires_at) SELECT biz_type,idem_key,biz_no,rule_id,params_hash,"
    "identity_hash,fingerprint_version,outcome,claim,source,partition_id,kafka_offset,expires_at "
    "FROM idem_record WHERE 1=0",
    "UPDATE idem_record SET attempts=attempts WHERE 1=0",
    "UPDATE idem_dead_letter SET attempts=attempts WHERE 1=0",
    "DELETE FROM idem_outbox WHERE 1=0",
    "UPDATE idem_partition SET generation=generation WHERE 1=0",
    "UPDATE idem_progress SET next_offset=next_offset WHERE 1=0",
    "UPDATE idem_lease SET generation=generation WHERE 1=0",
};

static enum err_class check_grants(struct checker *checker)
{
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        enum err_class class = conn_run_text(checker->conn, needed[i], "grants", checker->err);
        if (class == ERR_SCHEMA && (checker->err->number == 1142 || checker->err->number == 1143))
            checker->sink(checker->context, SEVERITY_ERROR, "grants", "databases", checker->err->text);
        else if (class != ERR_NONE)
            return class;
    }
    checker->sink(checker->context, SEVERITY_INFO, "grants", "databases", "triggers: not looked at");
    return ERR_NONE;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static enum err_class check_states(struct checker *checker, const struct rule *rule, const struct transition *t)
{
    char block[SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT DISTINCT s FROM (SELECT ");
    sql_name(&sql, t->column);
    buf_text(&sql, " AS s FROM ");
    sql_name(&sql, t->table);
    buf_printf(&sql, " LIMIT %d) x LIMIT 50", STATES_LOOKED_AT);
    enum err_class class = conn_run(checker->conn, buf_view(&sql), "states", checker->err);
    while (class == ERR_NONE && conn_next(checker->conn, &cells, &count))
        if (transition_class(t, cells[0].text, cells[0].is_null) == STATE_UNKNOWN)
            schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "unknown_state",
                        "table %.*s has rows in state %.*s, which is in no list", (int)t->table.len,
                        (const char *)t->table.at, cells[0].is_null ? 4 : (int)cells[0].text.len,
                        cells[0].is_null ? "NULL" : (const char *)cells[0].text.at);
    conn_done(checker->conn);
    return class;
}

static bool is_guarded(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->insert_count; i++)
        if (rule->inserts[i].unique_count > 0)
            return true;
    return rule->transition_count > 0;
}

static enum err_class check_rule(struct checker *checker, const struct rule *rule)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < rule->transition_count && class == ERR_NONE; i++)
        if (rule->transitions[i].column_type.kind != COLUMN_UNREAD)
            class = check_states(checker, rule, &rule->transitions[i]);
    if (rule->ttl_s >= 0 && !is_guarded(rule))
        schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "ttl",
                    "nothing but its dedupe row guards this rule: it needs ttl: forever");
    else if (rule->ttl_s >= 0 && rule->ttl_s < DAY_S)
        schema_tell(checker->sink, checker->context, rule, SEVERITY_WARNING, "ttl",
                    "ttl is shorter than a day: most channels send again for longer");
    return class;
}

enum err_class check_all(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                         void *context, struct err *err)
{
    struct checker checker = {conn, config, sink, context, err};
    enum err_class class = conn_begin(conn, err);
    if (class == ERR_NONE)
        class = check_settings(&checker);
    if (class == ERR_NONE)
        class = each_rule(&checker, database, check_rule);
    if (class == ERR_NONE)
        class = check_grants(&checker);
    conn_rollback(conn);
    return class;
}
