/* SPDX-License-Identifier: MIT */
/* buf: see idem/base/buf.h. */
#include "idem/base/buf.h"

#include <stdarg.h>
#include <stdio.h>

void buf_init(struct buf *buf, void *block, size_t size)
{
    *buf = (struct buf){.at = block, .size = size};
}

void buf_put(struct buf *buf, const void *bytes, size_t len)
{
    if (len > buf->size - buf->len) {
        buf->overflow = true;
        return;
    }
    if (len)
        memcpy(buf->at + buf->len, bytes, len);
    buf->len += len;
}

void buf_text(struct buf *buf, const char *text)
{
    buf_put(buf, text, strlen(text));
}

void buf_bytes(struct buf *buf, struct bytes bytes)
{
    buf_put(buf, bytes.at, bytes.len);
}

void buf_char(struct buf *buf, char c)
{
    buf_put(buf, &c, 1);
}

void buf_uint(struct buf *buf, uint64_t number)
{
    char digits[20], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + number % 10);
    while (number /= 10);
    buf_put(buf, at, (size_t)(digits + sizeof digits - at));
}

void buf_int(struct buf *buf, int64_t number)
{
    if (number < 0)
        buf_char(buf, '-');
    buf_uint(buf, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

void buf_hex(struct buf *buf, struct bytes bytes)
{
    if (bytes.len > (buf->size - buf->len) / 2) {
        buf->overflow = true;
        return;
    }
    bytes_hex(bytes, buf->at + buf->len);
    buf->len += 2 * bytes.len;
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    char text[1024];
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= sizeof text)
        buf->overflow = true;
    else
        buf_put(buf, text, (size_t)len);
}

static void put_escaped(struct buf *buf, uint8_t c)
{
    static const char digit[] = "0123456789abcdef";
    switch (c) {
    case '"': buf_text(buf, "\\\""); break;
    case '\\': buf_text(buf, "\\\\"); break;
    case '\b': buf_text(buf, "\\b"); break;
    case '\f': buf_text(buf, "\\f"); break;
    case '\n': buf_text(buf, "\\n"); break;
    case '\r': buf_text(buf, "\\r"); break;
    case '\t': buf_text(buf, "\\t"); break;
    default:
        buf_text(buf, "\\u00");
        buf_char(buf, digit[c >> 4]);
        buf_char(buf, digit[c & 15]);
    }
}

void buf_json_string(struct buf *buf, struct bytes bytes)
{
    size_t from = 0;
    buf_char(buf, '"');
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t c = bytes.at[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        buf_put(buf, bytes.at + from, i - from);
        put_escaped(buf, c);
        from = i + 1;
    }
    if (bytes.len)
        buf_put(buf, bytes.at + from, bytes.len - from);
    buf_char(buf, '"');
}
