/* SPDX-License-Identifier: MIT */
/* sql: literals and names as SQL text, for everything in this adapter. Written straight into the
 * statement's buffer; what does not fit sets its overflow flag. */
#include "idem/adapter/mysql_conn.h"

/* What must not stand in a string literal as it is. */
static const char escape[256] = {
    [0] = '0', ['\''] = '\'', ['\\'] = '\\', ['\n'] = 'n', ['\r'] = 'r', [26] = 'Z'};

void sql_string(struct buf *buf, struct bytes text)
{
    if (text.len > (buf->size - buf->len) / 2 || buf->size - buf->len < 2 * text.len + 2) {
        buf->overflow = true;
        return;
    }
    char *to = buf->at + buf->len;
    *to++ = '\'';
    for (size_t i = 0; i < text.len; i++) {
        char special = escape[text.at[i]];
        if (special) {
            *to++ = '\\';
            *to++ = special;
        } else {
            *to++ = (char)text.at[i];
        }
    }
    *to++ = '\'';
    buf->len = (size_t)(to - buf->at);
}

void sql_hex(struct buf *buf, struct bytes bytes)
{
    buf_put(buf, "x'", 2);
    buf_hex(buf, bytes);
    buf_char(buf, '\'');
}

static void put_quoted(struct buf *buf, struct bytes name)
{
    buf_char(buf, '`');
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] == '`')
            buf_char(buf, '`');
        buf_char(buf, (char)name.at[i]);
    }
    buf_char(buf, '`');
}

void sql_name(struct buf *buf, struct bytes name)
{
    const uint8_t *dot = name.len ? memchr(name.at, '.', name.len) : NULL;
    if (dot) {
        size_t len = (size_t)(dot - name.at);
        put_quoted(buf, bytes_of(name.at, len));
        buf_char(buf, '.');
        name = bytes_of(dot + 1, name.len - len - 1);
    }
    put_quoted(buf, name);
}

void sql_where_table(struct buf *buf, struct bytes table, const char *schema_column, const char *table_column)
{
    const uint8_t *point = memchr(table.at, '.', table.len);
    buf_printf(buf, " WHERE %s=", schema_column);
    if (point) {
        sql_string(buf, bytes_of(table.at, (size_t)(point - table.at)));
        table = bytes_of(point + 1, table.len - (size_t)(point - table.at) - 1);
    } else {
        buf_text(buf, "DATABASE()");
    }
    buf_printf(buf, " AND %s=", table_column);
    sql_string(buf, table);
}
