/* SPDX-License-Identifier: MIT */
/* check_grants: the rights that the daemon needs (details 4), asked for by statements that need them and find no row,
 * and a look at the shop's triggers. No table of the server's own is read. */
#include "check_self.h"

#include <stdio.h>

enum { STATEMENT_MAX = 65536 };

static const char *const select_verb = "SELECT", *const insert_verb = "INSERT", *const update_verb = "UPDATE",
                  *const delete_verb = "DELETE";

/* column: any that may be set to itself. */
static const struct own_table {
    const char *table, *column;
    bool insert, update, delete;
} own_tables[] = {
    {"idem_record", "attempts", true, true, true},
    {"idem_dead_letter", "attempts", true, true, true},
    {"idem_parked", "attempts", true, true, true},
    {"idem_outbox", "seq", true, false, true},
    {"idem_partition", "generation", true, true, false},
    {"idem_progress", "next_offset", true, true, false},
    {"idem_lease", "generation", true, true, false},
    {"idem_schema", "version", false, false, false},
    {"idem_rule", "id", true, false, false},
};

/* ---- idemd's own tables ------------------------------------------------------------------------------------------ */

/* A missing table is not a missing right: migrate_verify() tells it. */
static enum err_class ask(struct checker *checker, const struct own_table *own, const char *verb, const char *sql,
                          bool *ret_denied)
{
    enum err_class class = check_run(checker, bytes_text(sql), "grants", ret_denied);
    conn_done(checker->conn);
    if (class == ERR_SCHEMA && checker->err->number == 1146)
        return ERR_NONE;
    if (class == ERR_NONE && *ret_denied)
        check_tell_grant(checker, NULL, bytes_text(own->table), verb);
    return class;
}

static enum err_class ask_own(struct checker *checker, const struct own_table *own)
{
    char sql[256];
    bool denied, other;
    snprintf(sql, sizeof sql, "SELECT %s FROM %s WHERE 1=0", own->column, own->table);
    enum err_class class = ask(checker, own, select_verb, sql, &denied);
    if (class == ERR_NONE && own->delete) {
        snprintf(sql, sizeof sql, "DELETE FROM %s WHERE 1=0", own->table);
        class = ask(checker, own, delete_verb, sql, &other);
    }
    /* What follows reads the table as well: without SELECT it would only be said again. */
    if (class == ERR_NONE && own->insert && !denied) {
        snprintf(sql, sizeof sql, "INSERT INTO %s SELECT * FROM %s WHERE 1=0", own->table, own->table);
        class = ask(checker, own, insert_verb, sql, &other);
    }
    if (class == ERR_NONE && own->update && !denied) {
        snprintf(sql, sizeof sql, "UPDATE %s SET %s=%s WHERE 1=0", own->table, own->column, own->column);
        class = ask(checker, own, update_verb, sql, &other);
    }
    return class;
}

enum err_class check_own_grants(struct conn *conn, const struct config *config, uint32_t database,
                                schema_finding *sink, void *context, struct err *err)
{
    struct checker checker = {conn, config, database, sink, context, err};
    if (!conn_writable(conn)) {
        check_tell(&checker, SEVERITY_ERROR, "durability",
                   "the server is read-only (a replica?): idemd commits nothing here; plans and grants not looked at");
        return ERR_NONE;
    }
    enum err_class class = conn_begin(conn, err);
    for (size_t i = 0; i < sizeof own_tables / sizeof *own_tables && class == ERR_NONE; i++)
        class = ask_own(&checker, &own_tables[i]);
    conn_rollback(conn);
    return class;
}

/* ---- the shop's tables ------------------------------------------------------------------------------------------- */

static void put_column(struct buf *list, struct bytes name)
{
    buf_text(list, list->len ? "," : "");
    sql_name(list, name);
}

static void put_columns(struct buf *list, const struct column_value *columns, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        put_column(list, columns[i].column);
}

/* Missing tables and columns were told by schema_read(). */
static enum err_class ask_shop(struct checker *checker, const struct rule *rule, struct bytes table, const char *verb,
                               const struct buf *sql, bool *ret_denied)
{
    *ret_denied = false;
    if (sql->overflow)
        return err_set(checker->err, ERR_FATAL, 0, "grants", "the statement is too long");
    enum err_class class = check_run(checker, buf_view(sql), "grants", ret_denied);
    conn_done(checker->conn);
    if (class == ERR_SCHEMA && (checker->err->number == 1146 || checker->err->number == 1054))
        return ERR_NONE;
    if (class == ERR_DATA || class == ERR_UNKNOWN) {     /* a column without a default, a generated one, a view */
        schema_tell(checker->sink, checker->context, rule, SEVERITY_ERROR, "column_type", "%s of %.*s: %s", verb,
                    (int)table.len, (const char *)table.at, checker->err->text);
        return ERR_NONE;
    }
    if (class == ERR_NONE && *ret_denied)
        check_tell_grant(checker, rule, table, verb);
    return class;
}

static enum err_class ask_select(struct checker *checker, const struct rule *rule, struct bytes table,
                                 const struct buf *columns, bool *ret_denied)
{
    char block[CHECK_SQL_MAX];
    struct buf sql;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT ");
    buf_bytes(&sql, buf_view(columns));
    buf_text(&sql, " FROM ");
    sql_name(&sql, table);
    buf_text(&sql, " WHERE 1=0");
    return ask_shop(checker, rule, table, select_verb, &sql, ret_denied);
}

static void put_itself(struct buf *sql, struct bytes column)
{
    sql_name(sql, column);
    buf_char(sql, '=');
    sql_name(sql, column);
}

static enum err_class ask_transition(struct checker *checker, const struct rule *rule, uint32_t index)
{
    const struct transition *t = &rule->transitions[index];
    char block[CHECK_SQL_MAX], list_block[CHECK_SQL_MAX / 2];
    struct buf sql, list;
    bool denied;
    buf_init(&list, list_block, sizeof list_block);
    put_column(&list, t->column);
    put_columns(&list, t->where, t->where_count);
    put_columns(&list, t->require, t->require_count);
    if (index == 0)
        put_columns(&list, rule->identity, rule->identity_count);
    enum err_class class = ask_select(checker, rule, t->table, &list, &denied);
    if (class != ERR_NONE || denied)
        return class;
    /* Of a value that is only written nothing is read: state and identity stand for it. */
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "UPDATE ");
    sql_name(&sql, t->table);
    buf_text(&sql, " SET ");
    put_itself(&sql, t->column);
    for (uint32_t i = 0; i < t->set_count; i++) {
        buf_char(&sql, ',');
        sql_name(&sql, t->set[i].column);
        buf_text(&sql, "=NULL");
    }
    buf_text(&sql, " WHERE 1=0");
    return ask_shop(checker, rule, t->table, update_verb, &sql, &denied);
}

static enum err_class ask_insert(struct checker *checker, const struct rule *rule, const struct insert *insert)
{
    char block[CHECK_SQL_MAX], list_block[CHECK_SQL_MAX / 4];
    struct buf sql, list;
    bool denied;
    buf_init(&list, list_block, sizeof list_block);
    put_columns(&list, insert->columns, insert->column_count);
    enum err_class class = ask_select(checker, rule, insert->table, &list, &denied);
    if (class != ERR_NONE || denied)
        return class;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "INSERT INTO ");
    sql_name(&sql, insert->table);
    buf_text(&sql, " (");
    buf_bytes(&sql, buf_view(&list));
    buf_text(&sql, ") SELECT ");
    buf_bytes(&sql, buf_view(&list));
    buf_text(&sql, " FROM ");
    sql_name(&sql, insert->table);
    buf_text(&sql, " WHERE 1=0");
    return ask_shop(checker, rule, insert->table, insert_verb, &sql, &denied);
}

/* ---- statements -------------------------------------------------------------------------------------------------- */

static void put_prepare(struct buf *sql, const struct statement *statement)
{
    char block[STATEMENT_MAX / 2];
    struct buf text;
    buf_init(&text, block, sizeof block);
    for (uint32_t i = 0; i <= statement->param_count; i++) {
        buf_text(&text, i ? "?" : "");
        buf_bytes(&text, statement->text[i]);
    }
    buf_text(sql, "PREPARE idemctl_check FROM ");
    sql_string(sql, buf_view(&text));
    sql->overflow = sql->overflow || text.overflow;
}

static void tell_statement(struct checker *checker, const struct rule *rule, uint32_t index, bool denied)
{
    char name[32], verb[16] = "";
    struct bytes text = rule->statements[index].sql;
    bool schema = checker->err->number == 1146 || checker->err->number == 1054;
    snprintf(name, sizeof name, "statements.%u", index);
    for (size_t at = 0, len = 0; at < text.len && len + 1 < sizeof verb && (len == 0 || text.at[at] > ' '); at++)
        if (text.at[at] > ' ')
            verb[len++] = (char)text.at[at];
    if (denied)
        check_tell_grant(checker, rule, bytes_text(name), verb);
    else
        schema_tell(checker->sink, checker->context, rule, SEVERITY_ERROR, schema ? "column_type" : "plan",
                    "statement %u cannot be prepared: %s", index, checker->err->text);
}

/* Rights, tables and columns are looked at when a statement is prepared; it is never run. */
static enum err_class ask_statement(struct checker *checker, const struct rule *rule, uint32_t index)
{
    char block[STATEMENT_MAX];
    struct buf sql;
    bool denied;
    buf_init(&sql, block, sizeof block);
    put_prepare(&sql, &rule->statements[index]);
    if (sql.overflow)
        return ERR_NONE;                 /* longer than any right's name matters: the server takes it or not */
    enum err_class class = check_run(checker, buf_view(&sql), "grants", &denied);
    if (class == ERR_NONE && !denied)
        return conn_run_text(checker->conn, "DEALLOCATE PREPARE idemctl_check", "grants", checker->err);
    if (class == ERR_NONE || class == ERR_SCHEMA || class == ERR_UNKNOWN || class == ERR_DATA) {
        tell_statement(checker, rule, index, denied);
        return ERR_NONE;
    }
    return class;
}

static enum err_class rule_grants(struct checker *checker, const struct rule *rule)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < rule->transition_count && class == ERR_NONE; i++)
        class = ask_transition(checker, rule, i);
    for (uint32_t i = 0; i < rule->insert_count && class == ERR_NONE; i++)
        class = ask_insert(checker, rule, &rule->inserts[i]);
    for (uint32_t i = 0; i < rule->statement_count && class == ERR_NONE; i++)
        class = ask_statement(checker, rule, i);
    return class;
}

enum err_class check_grants(struct checker *checker)
{
    return conn_writable(checker->conn) ? check_each_rule(checker, rule_grants) : ERR_NONE;
}

/* ---- triggers ---------------------------------------------------------------------------------------------------- */

static enum err_class may_see_triggers(struct checker *checker, struct bytes table, bool *ret_may)
{
    /* 'user'@'host' of CURRENT_USER(), which has no quotes. */
    static const char grantee[] =
        "grantee=CONCAT(CHAR(39 USING utf8mb4),SUBSTRING(CURRENT_USER(),1,CHAR_LENGTH(CURRENT_USER())-1-"
        "CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(),'@',-1))),CHAR(39,64,39 USING utf8mb4),"
        "SUBSTRING_INDEX(CURRENT_USER(),'@',-1),CHAR(39 USING utf8mb4))";
    char block[CHECK_SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    buf_init(&sql, block, sizeof block);
    buf_printf(&sql, "SELECT EXISTS(SELECT 1 FROM information_schema.user_privileges WHERE privilege_type='TRIGGER' "
               "AND %s) OR EXISTS(SELECT 1 FROM information_schema.schema_privileges WHERE privilege_type='TRIGGER' "
               "AND %s AND DATABASE() LIKE table_schema)", grantee, grantee);
    buf_text(&sql, " OR EXISTS(SELECT 1 FROM information_schema.table_privileges");
    sql_where_table(&sql, table, "table_schema", "table_name");
    buf_printf(&sql, " AND privilege_type='TRIGGER' AND %s)", grantee);
    enum err_class class = conn_run(checker->conn, buf_view(&sql), "triggers", checker->err);
    *ret_may = class == ERR_NONE && conn_next(checker->conn, &cells, &count) &&
               bytes_equal(cells[0].text, BYTES_LIT("1"));
    conn_done(checker->conn);
    return class;
}

static enum err_class table_triggers(struct checker *checker, const struct rule *rule, struct bytes table)
{
    char block[CHECK_SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    bool may = true, seen = false;
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT trigger_name, action_timing, event_manipulation FROM information_schema.triggers");
    sql_where_table(&sql, table, "event_object_schema", "event_object_table");
    buf_text(&sql, " ORDER BY trigger_name LIMIT 20");
    enum err_class class = conn_run(checker->conn, buf_view(&sql), "triggers", checker->err);
    while (class == ERR_NONE && conn_next(checker->conn, &cells, &count)) {
        seen = true;
        schema_tell(checker->sink, checker->context, rule, SEVERITY_INFO, "grants",
                    "table %.*s has trigger %.*s (%.*s %.*s): it runs in idemd's transactions, and what it refuses "
                    "is rejected", (int)table.len, (const char *)table.at, (int)cells[0].text.len,
                    (const char *)cells[0].text.at, (int)cells[1].text.len, (const char *)cells[1].text.at,
                    (int)cells[2].text.len, (const char *)cells[2].text.at);
    }
    conn_done(checker->conn);
    if (class == ERR_NONE && !seen)
        class = may_see_triggers(checker, table, &may);
    if (class == ERR_NONE && !may)
        schema_tell(checker->sink, checker->context, rule, SEVERITY_INFO, "grants",
                    "triggers of table %.*s: not looked at (this account lacks TRIGGER, which idemd does not need)",
                    (int)table.len, (const char *)table.at);
    return class;
}

enum err_class check_triggers(struct checker *checker)
{
    return check_each_table(checker, table_triggers);
}
