/* SPDX-License-Identifier: MIT */
/* check: see idem/adapter/mysql_check.h; here the server and the tables as a whole. Every
 * look is bounded: a check may run beside the daemon on a busy server. */
#include "check_self.h"


/* ---- the server -------------------------------------------------------------------------------------------------- */

struct settings {
    bool flush_lazy, binlog, sync_lazy, binlog_statement, lax, serializable;
};

static bool is(struct bytes text, const char *word)
{
    return bytes_equal_nocase(text, bytes_text(word));
}

static bool has(struct bytes text, const char *word)
{
    return memmem(text.at, text.len, word, strlen(word)) != NULL;
}

static void take_setting(struct settings *settings, struct bytes name, struct bytes value)
{
    if (is(name, "innodb_flush_log_at_trx_commit"))
        settings->flush_lazy = !is(value, "1");
    else if (is(name, "log_bin"))
        settings->binlog = is(value, "ON") || is(value, "1");
    else if (is(name, "sync_binlog"))
        settings->sync_lazy = !is(value, "1");
    else if (is(name, "binlog_format"))
        settings->binlog_statement = is(value, "STATEMENT");
    else if (is(name, "sql_mode"))
        settings->lax = !has(value, "STRICT_ALL_TABLES") && !has(value, "STRICT_TRANS_TABLES");
    else if (is(name, "tx_isolation") || is(name, "transaction_isolation"))
        settings->serializable = is(value, "SERIALIZABLE");
}

static enum err_class read_settings(struct checker *checker, struct settings *ret)
{
    const struct conn_cell *cells;
    uint32_t count;
    *ret = (struct settings){0};
    enum err_class class = conn_run_text(
        checker->conn,
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_flush_log_at_trx_commit','log_bin','sync_binlog',"
        "'binlog_format','sql_mode','tx_isolation','transaction_isolation')",
        "settings", checker->err);
    while (class == ERR_NONE && conn_next(checker->conn, &cells, &count))
        take_setting(ret, cells[0].text, cells[1].text);
    conn_done(checker->conn);
    return class;
}

enum err_class check_settings(struct checker *checker)
{
    struct settings settings;
    enum err_class class = read_settings(checker, &settings);
    if (class != ERR_NONE)
        return class;
    if (settings.flush_lazy)
        check_tell(checker, SEVERITY_WARNING, "durability",
                   "innodb_flush_log_at_trx_commit is not 1: a crash of the host loses confirmed payments");
    if (settings.binlog && settings.sync_lazy)
        check_tell(checker, SEVERITY_WARNING, "durability",
                   "sync_binlog is not 1: a crash of the host loses confirmed payments");
    if (settings.lax)
        check_tell(checker, SEVERITY_WARNING, "sql_mode",
                   "the server's default sql_mode is lax: idemd sets a strict one, the shop's own sessions may not");
    if (settings.binlog && settings.binlog_statement)
        check_tell(checker, SEVERITY_ERROR, "isolation",
                   "binlog_format is STATEMENT: InnoDB refuses to write at READ COMMITTED then, so idemd cannot work");
    if (settings.serializable)
        check_tell(checker, SEVERITY_WARNING, "isolation",
                   "the server's default is SERIALIZABLE: idemd uses READ COMMITTED, but the shop's reads lock rows");
    return ERR_NONE;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static enum err_class table_engine(struct checker *checker, const struct rule *rule, struct bytes table)
{
    char block[CHECK_SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT t.engine, COALESCE(e.transactions,'') FROM information_schema.tables t "
                   "LEFT JOIN information_schema.engines e ON e.engine=t.engine");
    sql_where_table(&sql, table, "t.table_schema", "t.table_name");
    enum err_class class = conn_run(checker->conn, buf_view(&sql), "tables", checker->err);
    if (class == ERR_NONE && conn_next(checker->conn, &cells, &count) && !cells[0].is_null &&
        !is(cells[1].text, "YES"))
        schema_tell(checker->sink, checker->context, rule, SEVERITY_ERROR, "isolation",
                    "table %.*s is of engine %.*s, which knows no transactions: what is written there stays when the "
                    "rest is rolled back", (int)table.len, (const char *)table.at, (int)cells[0].text.len,
                    (const char *)cells[0].text.at);
    conn_done(checker->conn);
    return class;
}

enum err_class check_tables(struct checker *checker)
{
    return check_each_table(checker, table_engine);
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

enum err_class check_all(struct conn *conn, const struct config *config, uint32_t database, schema_finding *sink,
                         void *context, struct err *err)
{
    struct checker checker = {conn, config, database, sink, context, err};
    enum err_class class = conn_begin(conn, err);
    if (class == ERR_NONE)
        class = check_settings(&checker);
    if (class == ERR_NONE)
        class = check_tables(&checker);
    if (class == ERR_NONE)
        class = check_rules(&checker);
    if (class == ERR_NONE)
        class = check_grants(&checker);
    if (class == ERR_NONE)
        class = check_triggers(&checker);
    conn_rollback(conn);
    return class;
}
