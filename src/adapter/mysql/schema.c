/* SPDX-License-Identifier: MIT */
/* schema: reads the live tables into the compiled rules, before workers start. Never changes a business table. */
#include "idem/adapter/mysql_schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SQL_MAX = 4096, NAME_BYTES = 130, INDEX_COLUMNS_MAX = 16 };

struct reader {
    struct conn *conn;
    struct config *config;
    schema_finding *sink;
    void *context;
    struct err *err;
    const struct rule *rule;     /* for paths */
    bool registers;
};

const char *severity_name(enum severity severity)
{
    switch (severity) {
    case SEVERITY_ERROR: return "error";
    case SEVERITY_WARNING: return "warning";
    case SEVERITY_INFO: return "info";
    }
    abort();
}

static void tell_list(schema_finding *sink, void *context, const struct rule *rule, enum severity severity,
                      const char *code, const char *format, va_list arguments)
{
    char path[400], message[512];
    snprintf(path, sizeof path, "topics.%.*s.rules.%.*s", (int)rule->topic.len, (const char *)rule->topic.at,
             (int)rule->name.len, (const char *)rule->name.at);
    vsnprintf(message, sizeof message, format, arguments);
    sink(context, severity, code, path, message);
}

void schema_tell(schema_finding *sink, void *context, const struct rule *rule, enum severity severity,
                 const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell_list(sink, context, rule, severity, code, format, arguments);
    va_end(arguments);
}

static void tell(struct reader *reader, enum severity severity, const char *code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void tell(struct reader *reader, enum severity severity, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    tell_list(reader->sink, reader->context, reader->rule, severity, code, format, arguments);
    va_end(arguments);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

static bool is(struct bytes text, const char *word)
{
    return bytes_equal_nocase(text, bytes_text(word));
}

static uint8_t small_number(struct bytes text)
{
    unsigned number = 0;
    for (size_t i = 0; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        number = number * 10 + (unsigned)(text.at[i] - '0');
    return number > 255 ? 255 : (uint8_t)number;
}

static void kind_of(struct bytes type, struct column *ret)
{
    static const struct {
        const char *name;
        enum column_kind kind;
        uint8_t bytes_count;
    } kinds[] = {
        {"tinyint", COLUMN_INTEGER, 1}, {"smallint", COLUMN_INTEGER, 2}, {"mediumint", COLUMN_INTEGER, 3},
        {"int", COLUMN_INTEGER, 4}, {"bigint", COLUMN_INTEGER, 8}, {"decimal", COLUMN_DECIMAL, 0},
        {"char", COLUMN_TEXT, 0}, {"varchar", COLUMN_TEXT, 0}, {"tinytext", COLUMN_TEXT, 0},
        {"text", COLUMN_TEXT, 0}, {"mediumtext", COLUMN_TEXT, 0}, {"longtext", COLUMN_TEXT, 0},
        {"enum", COLUMN_TEXT, 0}, {"set", COLUMN_TEXT, 0}, {"binary", COLUMN_BINARY, 0},
        {"varbinary", COLUMN_BINARY, 0}, {"tinyblob", COLUMN_BINARY, 0}, {"blob", COLUMN_BINARY, 0},
        {"mediumblob", COLUMN_BINARY, 0}, {"longblob", COLUMN_BINARY, 0}, {"date", COLUMN_TIME, 0},
        {"datetime", COLUMN_TIME, 0}, {"timestamp", COLUMN_TIME, 0},
    };
    ret->kind = COLUMN_OTHER;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (is(type, kinds[i].name)) {
            ret->kind = kinds[i].kind;
            ret->bytes_count = kinds[i].bytes_count;
        }
    ret->is_date = is(type, "date");
}

static void copy_word(char *target, size_t size, struct bytes text)
{
    size_t len = 0;
    for (; len < text.len && len + 1 < size; len++) {
        uint8_t c = text.at[len];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
            break;
        target[len] = (char)c;
    }
    target[len] = '\0';
}

/* data_type, column_type, is_nullable, precision, scale, datetime_precision, charset, collation */
static void column_from(const struct conn_cell *cells, struct column *ret)
{
    *ret = (struct column){0};
    kind_of(cells[0].text, ret);
    ret->is_unsigned = memmem(cells[1].text.at, cells[1].text.len, "unsigned", 8) != NULL;
    ret->nullable = is(cells[2].text, "YES");
    if (ret->kind == COLUMN_DECIMAL) {
        ret->precision = small_number(cells[3].text);
        ret->scale = small_number(cells[4].text);
    } else if (ret->kind == COLUMN_TIME) {
        ret->precision = small_number(cells[5].text);
    } else if (ret->kind == COLUMN_TEXT) {
        copy_word(ret->charset, sizeof ret->charset, cells[6].text);
        copy_word(ret->collation, sizeof ret->collation, cells[7].text);
        ret->utf8mb4 = is(cells[6].text, "utf8mb4");
    }
}

/* COLUMN_UNREAD and a finding if there is no such column. */
static enum err_class read_column(struct reader *reader, struct bytes table, struct bytes name, struct column *ret)
{
    char block[SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    *ret = (struct column){0};
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT data_type, column_type, is_nullable, COALESCE(numeric_precision,0),"
                   " COALESCE(numeric_scale,0), COALESCE(datetime_precision,0), COALESCE(character_set_name,''),"
                   " COALESCE(collation_name,'')"
                   " FROM information_schema.columns");
    sql_where_table(&sql, table, "table_schema", "table_name");
    buf_text(&sql, " AND column_name=");
    sql_string(&sql, name);
    enum err_class class = conn_run(reader->conn, buf_view(&sql), "schema", reader->err);
    if (class == ERR_NONE && conn_next(reader->conn, &cells, &count))
        column_from(cells, ret);
    conn_done(reader->conn);
    if (class == ERR_NONE && ret->kind == COLUMN_UNREAD)
        tell(reader, SEVERITY_ERROR, "column_type", "there is no column %.*s.%.*s (or it may not be used)",
             (int)table.len, (const char *)table.at, (int)name.len, (const char *)name.at);
    return class;
}

static bool is_moment(const struct rule *rule, const struct column_value *value)
{
    const struct expr *expr = value->expr == NO_EXPR ? NULL : &rule->exprs[value->expr];
    return expr && expr->source == EXPR_FIELD && rule->fields[expr->field].type == FIELD_TIME;
}

/* Compared in SQL and in memory: floats and JSON cannot be. A DATE has lost the moment: which day it was depends on
 * the zone, and near midnight a retry would be taken for a second payment. */
static void check_comparable(struct reader *reader, struct bytes table, const struct column_value *value)
{
    if (value->type.kind == COLUMN_TIME && value->type.is_date && is_moment(reader->rule, value))
        tell(reader, SEVERITY_ERROR, "column_type",
             "column %.*s.%.*s is a DATE: no time compares with it exactly (take a DATETIME, or the day as text)",
             (int)table.len, (const char *)table.at, (int)value->column.len, (const char *)value->column.at);
    if (value->type.kind == COLUMN_OTHER)
        tell(reader, SEVERITY_ERROR, "column_type", "column %.*s.%.*s has a type that cannot be compared exactly",
             (int)table.len, (const char *)table.at, (int)value->column.len, (const char *)value->column.at);
}

/* The configuration is ours alone until workers start; its arrays are const for everybody else. */
static enum err_class read_columns(struct reader *reader, struct bytes table, const struct column_value *list,
                                   uint32_t count, bool compared)
{
    enum err_class class = ERR_NONE;
    for (uint32_t i = 0; i < count && class == ERR_NONE; i++) {
        struct column_value *value = (struct column_value *)(uintptr_t)&list[i];
        class = read_column(reader, table, value->column, &value->type);
        if (compared)
            check_comparable(reader, table, value);
    }
    return class;
}

/* ---- indexes ----------------------------------------------------------------------------------------------------- */

struct index_shape {
    char name[NAME_BYTES];
    bool usable, covered, nullable;
    uint32_t columns;
};

static const struct column_value *where_column(const struct transition *transition, struct bytes name)
{
    for (uint32_t i = 0; i < transition->where_count; i++)
        if (bytes_equal_nocase(transition->where[i].column, name))
            return &transition->where[i];
    return NULL;
}

/* An index whose columns all stand in where and that nobody hid; rather one without NULL. */
static void index_ends(const struct index_shape *shape, struct index_shape *best)
{
    if (shape->columns == 0 || !shape->usable || !shape->covered)
        return;
    if (best->columns == 0 || (best->nullable && !shape->nullable))
        *best = *shape;
}

static void index_row(const struct transition *transition, const struct conn_cell *cells, struct index_shape *shape,
                      struct index_shape *best)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)cells[0].text.len, (const char *)cells[0].text.at);
    if (strcmp(name, shape->name) != 0) {
        index_ends(shape, best);
        *shape = (struct index_shape){.usable = true, .covered = true};
        memcpy(shape->name, name, sizeof name);
    }
    const struct column_value *column = where_column(transition, cells[1].text);
    shape->columns++;
    shape->covered = shape->covered && column && is(cells[4].text, "");
    shape->nullable = shape->nullable || is(cells[2].text, "YES");
    shape->usable = shape->usable && is(cells[3].text, "BTREE") && is(cells[5].text, "1");
}

/* The index that proves rows of this transition: columns 0 if there is none. */
static enum err_class find_index(struct conn *conn, const struct transition *transition, struct index_shape *ret_best,
                                 struct err *err)
{
    char block[SQL_MAX];
    struct buf sql;
    const struct conn_cell *cells;
    uint32_t count;
    struct index_shape shape = {0};
    *ret_best = (struct index_shape){0};
    buf_init(&sql, block, sizeof block);
    buf_text(&sql, "SELECT index_name, column_name, nullable, index_type, COALESCE(sub_part,''), ");
    /* MariaDB 10.6 and MySQL 8 name the same thing differently. */
    buf_text(&sql, conn_is_mariadb(conn) ? "IF(ignored='NO',1,0)" : "IF(is_visible='YES',1,0)");
    buf_text(&sql, " FROM information_schema.statistics");
    sql_where_table(&sql, transition->table, "table_schema", "table_name");
    buf_text(&sql, " AND non_unique=0 ORDER BY index_name, seq_in_index");
    enum err_class class = conn_run(conn, buf_view(&sql), "schema", err);
    while (class == ERR_NONE && conn_next(conn, &cells, &count))
        index_row(transition, cells, &shape, ret_best);
    conn_done(conn);
    if (class == ERR_NONE)
        index_ends(&shape, ret_best);
    return class;
}

static enum err_class read_index(struct reader *reader, struct transition *transition, struct arena *names)
{
    struct index_shape best;
    enum err_class class = find_index(reader->conn, transition, &best, reader->err);
    if (class != ERR_NONE)
        return class;
    if (best.columns == 0) {
        tell(reader, SEVERITY_ERROR, "no_unique_index", "no usable unique index of %.*s covers the columns of where",
             (int)transition->table.len, (const char *)transition->table.at);
        return ERR_NONE;
    }
    transition->index = arena_copy(names, bytes_text(best.name));
    transition->set_based = !best.nullable;
    if (best.nullable)
        tell(reader, SEVERITY_WARNING, "no_unique_index",
             "unique index %s of %.*s allows NULL: rows are moved one by one", best.name, (int)transition->table.len,
             (const char *)transition->table.at);
    return ERR_NONE;
}

/* ---- rules ------------------------------------------------------------------------------------------------------- */

static enum err_class read_transition(struct reader *reader, const struct rule *rule, uint32_t index,
                                      struct arena *names)
{
    struct transition *t = (struct transition *)(uintptr_t)&rule->transitions[index];
    enum err_class class = read_column(reader, t->table, t->column, &t->column_type);
    if (class == ERR_NONE)
        class = read_columns(reader, t->table, t->where, t->where_count, true);
    if (class == ERR_NONE)
        class = read_columns(reader, t->table, t->require, t->require_count, true);
    if (class == ERR_NONE)
        class = read_columns(reader, t->table, t->set, t->set_count, false);
    if (class == ERR_NONE && index == 0)
        class = read_columns(reader, t->table, rule->identity, rule->identity_count, true);
    return class ? class : read_index(reader, t, names);
}

static enum err_class read_number(struct reader *reader, struct bytes sql, uint16_t *ret)
{
    const struct conn_cell *cells;
    uint32_t count;
    *ret = 0;
    enum err_class class = conn_run(reader->conn, sql, "rules", reader->err);
    if (class == ERR_NONE && conn_next(reader->conn, &cells, &count)) {
        unsigned number = 0;
        for (size_t i = 0; i < cells[0].text.len; i++)
            number = number * 10 + (unsigned)(cells[0].text.at[i] - '0');
        *ret = (uint16_t)number;
    }
    conn_done(reader->conn);
    return class;
}

static void put_rule(struct buf *sql, const struct rule *rule, const char *between)
{
    static const char *const names[] = {"topic", "rule", "biz_type", "action"};
    const struct bytes values[] = {rule->topic, rule->name, rule->biz_type, rule->action};
    for (int i = 0; i < 4; i++) {
        if (i > 0)
            buf_text(sql, between);
        if (between[0] == ' ') {
            buf_text(sql, names[i]);
            buf_char(sql, '=');
        }
        sql_string(sql, values[i]);
    }
}

/* rule.id: looked up, or made. A lost race makes it once all the same: the index decides. Its refusal is answer enough:
 * ON DUPLICATE KEY UPDATE would ask for a right that the daemon does not have (details 4). */
static enum err_class register_rule(struct reader *reader, struct rule *rule)
{
    char block[SQL_MAX], insert_block[SQL_MAX];
    struct buf select, insert;
    buf_init(&select, block, sizeof block);
    buf_text(&select, "SELECT id FROM idem_rule WHERE ");
    put_rule(&select, rule, " AND ");
    enum err_class class = read_number(reader, buf_view(&select), &rule->id);
    if (class != ERR_NONE || rule->id > 0 || !reader->registers)
        return class;
    buf_init(&insert, insert_block, sizeof insert_block);
    buf_text(&insert, "INSERT INTO idem_rule (topic, rule, biz_type, action) VALUES (");
    put_rule(&insert, rule, ", ");
    buf_char(&insert, ')');
    class = conn_run(reader->conn, buf_view(&insert), "rules", reader->err);
    if (class == ERR_NONE || class == ERR_UNIQUE)
        class = read_number(reader, buf_view(&select), &rule->id);
    return class;
}

static enum err_class read_rule(struct reader *reader, struct rule *rule, struct arena *names)
{
    enum err_class class = ERR_NONE;
    reader->rule = rule;
    for (uint32_t i = 0; i < rule->transition_count && class == ERR_NONE; i++)
        class = read_transition(reader, rule, i, names);
    for (uint32_t i = 0; i < rule->insert_count && class == ERR_NONE; i++)
        class = read_columns(reader, rule->inserts[i].table, rule->inserts[i].columns, rule->inserts[i].column_count,
                             false);
    return class ? class : register_rule(reader, rule);
}

static enum err_class index_stands(struct conn *conn, const struct transition *transition, struct err *err)
{
    struct index_shape best;
    if (transition->index.len == 0)
        return ERR_NONE;
    enum err_class class = find_index(conn, transition, &best, err);
    if (class != ERR_NONE)
        return class;
    if (best.columns > 0 && bytes_equal(bytes_text(best.name), transition->index) &&
        best.nullable != transition->set_based)
        return ERR_NONE;
    return err_set(err, ERR_SCHEMA, 0, "index", "unique index %.*s of %.*s is gone: nothing proves a row any more",
                   (int)transition->index.len, (const char *)transition->index.at, (int)transition->table.len,
                   (const char *)transition->table.at);
}

enum err_class schema_indexes_stand(struct conn *conn, const struct topic *topic, struct err *err)
{
    enum err_class class = conn_begin(conn, err);
    for (uint32_t i = 0; i < topic->rule_count; i++)
        for (uint32_t t = 0; t < topic->rules[i].transition_count && class == ERR_NONE; t++)
            class = index_stands(conn, &topic->rules[i].transitions[t], err);
    conn_rollback(conn);
    return class;
}

enum err_class schema_read(struct conn *conn, struct config *config, uint32_t database, bool registers,
                           schema_finding *sink, void *context, struct err *err)
{
    struct reader reader = {.conn = conn, .config = config, .sink = sink, .context = context, .err = err,
                            .registers = registers};
    /* Names of indexes live as long as the process: read once, before threads start. */
    static uint8_t names_block[128 << 10];
    static struct arena names;
    if (!names.base)
        arena_init(&names, names_block, sizeof names_block);
    enum err_class class = conn_begin(conn, err);
    for (uint32_t i = 0; i < config->topic_count && class == ERR_NONE; i++)
        for (uint32_t k = 0; k < config->topics[i].rule_count && class == ERR_NONE; k++)
            if (config->topics[i].database == database)
                class = read_rule(&reader, &config->topics[i].rules[k], &names);
    if (class == ERR_NONE && names.exhausted)
        class = err_set(err, ERR_FATAL, 0, "schema", "too many index names");
    if (class == ERR_NONE)
        return conn_commit(conn, err);
    conn_rollback(conn);
    return class;
}
