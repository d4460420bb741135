/* SPDX-License-Identifier: MIT */
/* rows_typed: values in SQL, typed by the column they meet (design 3 step 6), and value lists.
 * Otherwise MySQL would compare as DOUBLE or by collation and pay strangers. Every text is quoted
 * or checked to be digits: nothing of a record ever becomes syntax. Knows the column, never the
 * rule. */
#include "store_self.h"

/* ---- digits ---------------------------------------------------------------------------------------------------- */

static bool is_number(struct bytes text)
{
    size_t i = text.len && text.at[0] == '-', digits = 0, points = 0;
    for (; i < text.len; i++) {
        if (text.at[i] == '.')
            points++;
        else if (text.at[i] >= '0' && text.at[i] <= '9')
            digits++;
        else
            return false;
    }
    return digits > 0 && points <= 1 && text.at[text.len - 1] != '.';
}

/* No digit but 0 beyond the scale: CAST would round. */
static bool scale_holds(struct bytes text, unsigned scale)
{
    const uint8_t *point = text.len ? memchr(text.at, '.', text.len) : NULL;
    if (!point)
        return true;
    for (const uint8_t *at = point + 1 + scale; at < text.at + text.len; at++)
        if (*at != '0')
            return false;
    return true;
}

bool typed_fits(const struct column *column, const struct value *value)
{
    if (value->tag == VALUE_NOW)
        return true;
    if (value->tag == VALUE_ABSENT || value->tag == VALUE_NULL)
        return true;
    if (column_fit(column, value) != COLUMN_FIT)
        return false;
    if (column->kind == COLUMN_INTEGER)
        return is_number(value->text) && scale_holds(value->text, 0);
    if (column->kind == COLUMN_DECIMAL)
        return is_number(value->text) && scale_holds(value->text, column->scale);
    return true;
}

static bool is_null(const struct value *value)
{
    return value->tag == VALUE_ABSENT || value->tag == VALUE_NULL;
}

/* A negative number in brackets: `a -:b` must not become `a --1`. */
static void put_number(struct buf *sql, struct bytes text)
{
    bool negative = text.at[0] == '-';
    if (negative)
        buf_char(sql, '(');
    buf_bytes(sql, text);
    if (negative)
        buf_char(sql, ')');
}

/* ---- times ----------------------------------------------------------------------------------------------------- */

/* YYYY-MM-DDTHH:MM:SS.ffffffZ as the session's civil time, cut (never rounded) to the column's
 * precision. */
static void put_time(struct buf *sql, const struct column *column, struct bytes text)
{
    size_t len = column->is_date || column->precision == 0 ? 19 : 20u + column->precision;
    if (text.len != 27) {
        sql_string(sql, text);
        return;
    }
    buf_text(sql, column->is_date ? "DATE(CONVERT_TZ('" : "CONVERT_TZ('");
    buf_put(sql, text.at, 10);
    buf_char(sql, ' ');
    buf_put(sql, text.at + 11, len - 11);
    buf_text(sql, "','+00:00',@@session.time_zone)");
    if (column->is_date)
        buf_char(sql, ')');
}

static void put_now(struct buf *sql, const struct column *column)
{
    if (column->kind == COLUMN_TIME && column->is_date) {
        buf_text(sql, "CURDATE()");
        return;
    }
    buf_text(sql, "NOW(");
    buf_uint(sql, column->kind == COLUMN_TIME ? column->precision : 0);
    buf_char(sql, ')');
}

/* ---- one value ------------------------------------------------------------------------------------------------- */

void typed_literal(struct buf *sql, const struct column *column, const struct value *value)
{
    if (is_null(value))
        buf_text(sql, "NULL");
    else if (value->tag == VALUE_NOW)
        put_now(sql, column);
    else if ((column->kind == COLUMN_INTEGER || column->kind == COLUMN_DECIMAL) &&
             is_number(value->text))
        put_number(sql, value->text);
    else if (column->kind == COLUMN_TIME && value->tag == VALUE_TIME)
        put_time(sql, column, value->text);
    else
        sql_string(sql, value->text);
}

void typed_cell(struct buf *sql, const struct column *column, const struct value *value)
{
    if (is_null(value))
        buf_text(sql, "NULL");
    else if (value->tag == VALUE_NOW)
        put_now(sql, column);
    else if (column->kind == COLUMN_TIME && value->tag == VALUE_TIME)
        put_time(sql, column, value->text);
    else
        sql_string(sql, value->text);
}

/* Character sets whose ASCII characters are their ASCII bytes; others are converted before bytes
 * are compared. */
static bool ascii_as_it_is(const struct column *column)
{
    static const char *const wide[] = {"ucs2", "utf16", "utf16le", "utf32", "swe7"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strcmp(column->charset, wide[i]) == 0)
            return false;
    return true;
}

static void put_column(struct buf *sql, struct bytes column)
{
    buf_text(sql, "t.");
    sql_name(sql, column);
}

/* The column's bytes in UTF-8 (or in a set whose ASCII is the same). */
static void put_column_bytes(struct buf *sql, struct bytes column, const struct column *type)
{
    bool convert = !ascii_as_it_is(type);
    buf_text(sql, convert ? "CAST(CONVERT(" : "CAST(");
    put_column(sql, column);
    buf_text(sql, convert ? " USING utf8mb4) AS BINARY)" : " AS BINARY)");
}

static void put_cast_open(struct buf *sql, const struct column *type)
{
    buf_text(sql, type->kind == COLUMN_TEXT ? "CONVERT(" : "CAST(");
}

static void put_cast_close(struct buf *sql, const struct column *type)
{
    switch (type->kind) {
    case COLUMN_INTEGER:
        buf_text(sql, type->is_unsigned ? " AS UNSIGNED)" : " AS SIGNED)");
        return;
    case COLUMN_DECIMAL:
        buf_text(sql, " AS DECIMAL(65,");
        buf_uint(sql, type->scale);
        buf_text(sql, "))");
        return;
    case COLUMN_TEXT:
        buf_text(sql, " USING ");
        buf_text(sql, type->charset);
        buf_text(sql, ") COLLATE ");
        buf_text(sql, type->collation);
        return;
    case COLUMN_TIME:
        if (type->is_date) {
            buf_text(sql, " AS DATE)");
            return;
        }
        buf_text(sql, " AS DATETIME(");
        buf_uint(sql, type->precision);
        buf_text(sql, "))");
        return;
    case COLUMN_BINARY:
    case COLUMN_OTHER:
    case COLUMN_UNREAD:
        buf_text(sql, " AS BINARY)");
        return;
    }
}

void typed_equals(struct buf *sql, struct bytes column, const struct column *type,
                  const struct value *value, bool index)
{
    bool text = type->kind == COLUMN_TEXT;
    if (!text || index) {
        put_column(sql, column);
        buf_char(sql, '=');
        if (type->kind == COLUMN_TIME) {
            put_cast_open(sql, type);
            typed_literal(sql, type, value);
            put_cast_close(sql, type);
        } else if (type->kind == COLUMN_BINARY) {
            buf_text(sql, "_binary");
            sql_string(sql, value->text);
        } else {
            typed_literal(sql, type, value);
        }
    }
    if (text) {
        buf_text(sql, index ? " AND " : "");
        put_column_bytes(sql, column, type);
        buf_text(sql, "=_binary");
        sql_string(sql, value->text);
    }
}

void typed_cell_name(struct buf *sql, uint32_t at)
{
    buf_text(sql, "v.`20010101");
    buf_uint(sql, 100000 + at);
    buf_char(sql, '`');
}

void typed_equals_cell(struct buf *sql, struct bytes column, const struct column *type, uint32_t at,
                       bool index)
{
    bool text = type->kind == COLUMN_TEXT;
    if (!text || index) {
        put_column(sql, column);
        buf_char(sql, '=');
        put_cast_open(sql, type);
        typed_cell_name(sql, at);
        put_cast_close(sql, type);
    }
    if (text) {
        buf_text(sql, index ? " AND " : "");
        put_column_bytes(sql, column, type);
        buf_text(sql, "=CAST(");
        typed_cell_name(sql, at);
        buf_text(sql, " AS BINARY)");
    }
}

void typed_set_cell(struct buf *sql, const struct column *type, uint32_t at)
{
    bool cast = type->kind == COLUMN_INTEGER || type->kind == COLUMN_DECIMAL;
    if (cast)
        put_cast_open(sql, type);
    typed_cell_name(sql, at);
    if (cast)
        put_cast_close(sql, type);
}

/* Moments come back in UTC, as values are: the session's zone is the shop's. A DATE has no moment. */
void typed_read(struct buf *sql, struct bytes column, const struct column *type)
{
    bool convert = type->kind == COLUMN_TIME && !type->is_date;
    buf_text(sql, convert ? "CONVERT_TZ(" : "");
    put_column(sql, column);
    buf_text(sql, convert ? ",@@session.time_zone,'+00:00')" : "");
}

/* ---- states ---------------------------------------------------------------------------------------------------- */

void typed_state(struct buf *sql, const struct column *type, struct bytes name)
{
    if ((type->kind == COLUMN_INTEGER || type->kind == COLUMN_DECIMAL) && is_number(name))
        put_number(sql, name);
    else
        sql_string(sql, name);
}

void typed_state_in(struct buf *sql, struct bytes column, const struct column *type,
                    const struct bytes *names, uint32_t count)
{
    /* CHAR of an integer is its digits, so this holds for every kind. */
    bool text = type->kind == COLUMN_TEXT || type->kind == COLUMN_BINARY;
    if (text) {
        put_column_bytes(sql, column, type);
    } else {
        buf_text(sql, "CAST(CAST(");
        put_column(sql, column);
        buf_text(sql, " AS CHAR) AS BINARY)");
    }
    buf_text(sql, " IN (");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(sql, ',');
        buf_text(sql, "_binary");
        sql_string(sql, names[i]);
    }
    buf_char(sql, ')');
}

/* ---- value lists ----------------------------------------------------------------------------------------------- */

/* Three dialects. MySQL >= 8.0.19 has VALUES ROW(..) with a list of names. MariaDB names the
 * columns of VALUES (..) by its first row, and older MySQL has only UNION ALL: both get a heading
 * row, kept out by its first cell. Its other cells are moments (and so numbers, too): a cast of
 * them can never fail. */
enum dialect { LIST_ROW, LIST_VALUES, LIST_UNION };

static enum dialect dialect(const struct conn *conn)
{
    if (conn_is_mariadb(conn))
        return LIST_VALUES;
    return conn_version(conn) >= 80019 ? LIST_ROW : LIST_UNION;
}

static void put_heading(struct buf *sql, uint32_t columns, bool as)
{
    buf_text(sql, as ? "'h' AS `h`" : "'h'");
    for (uint32_t i = 0; i < columns; i++) {
        buf_text(sql, ",'20010101");
        buf_uint(sql, 100000 + i);
        buf_char(sql, '\'');
        if (as) {
            buf_text(sql, " AS `20010101");
            buf_uint(sql, 100000 + i);
            buf_char(sql, '`');
        }
    }
}

void list_open(struct buf *sql, const struct conn *conn, uint32_t columns)
{
    switch (dialect(conn)) {
    case LIST_ROW:
        buf_text(sql, "(VALUES ");
        return;
    case LIST_VALUES:
        buf_text(sql, "(VALUES (");
        put_heading(sql, columns, false);
        buf_char(sql, ')');
        return;
    case LIST_UNION:
        buf_text(sql, "(SELECT ");
        put_heading(sql, columns, true);
        return;
    }
}

void list_row_open(struct buf *sql, const struct conn *conn, bool first)
{
    switch (dialect(conn)) {
    case LIST_ROW:
        buf_text(sql, first ? "ROW('r'," : ",ROW('r',");
        return;
    case LIST_VALUES:
        buf_text(sql, ",('r',");
        return;
    case LIST_UNION:
        buf_text(sql, " UNION ALL SELECT 'r',");
        return;
    }
}

void list_row_close(struct buf *sql, const struct conn *conn)
{
    if (dialect(conn) != LIST_UNION)
        buf_char(sql, ')');
}

void list_close(struct buf *sql, const struct conn *conn, uint32_t columns)
{
    if (dialect(conn) != LIST_ROW) {
        buf_text(sql, ") v");
        return;
    }
    buf_text(sql, ") AS v(`h`");
    for (uint32_t i = 0; i < columns; i++) {
        buf_text(sql, ",`20010101");
        buf_uint(sql, 100000 + i);
        buf_char(sql, '`');
    }
    buf_char(sql, ')');
}

void list_condition(struct buf *sql, const struct conn *conn)
{
    if (dialect(conn) != LIST_ROW)
        buf_text(sql, " AND v.`h`='r'");
}
