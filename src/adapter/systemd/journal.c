/* SPDX-License-Identifier: MIT */
/* journal: see idem/adapter/journal.h. Reads back the logfmt that base/log wrote, so that nothing else has to know of
 * two forms. Never waits for the journal longer than its socket does. */
#define SD_JOURNAL_SUPPRESS_LOCATION        /* this file's line says nothing about a record */
#include "idem/adapter/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

enum { FIELDS_MAX = 48, NAME_MAX_LEN = 40 };

bool journal_is_stderr(void)
{
    unsigned long long device, inode;
    struct stat stderr_stat;
    const char *stream = getenv("JOURNAL_STREAM");
    return stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &stderr_stat) == 0 &&
           stderr_stat.st_dev == device && stderr_stat.st_ino == inode;
}

/* ---- one line ---------------------------------------------------------------------------------------------------- */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* One escape of buf_json_string(); *at stands behind the backslash. */
static char unescape(struct bytes line, size_t *at)
{
    uint8_t c = line.at[(*at)++];
    switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    case 'u':
        if (*at + 4 > line.len)
            return '?';
        *at += 4;
        return (char)(hex_digit(line.at[*at - 2]) << 4 | hex_digit(line.at[*at - 1]));
    default: return (char)c;
    }
}

/* The value that begins at *at, plain or quoted, appended to buf. */
static void take_value(struct bytes line, size_t *at, struct buf *buf)
{
    if (*at == line.len || line.at[*at] != '"') {
        for (; *at < line.len && line.at[*at] != ' '; ++*at)
            buf_char(buf, (char)line.at[*at]);
        return;
    }
    ++*at;
    while (*at < line.len && line.at[*at] != '"') {
        uint8_t c = line.at[(*at)++];
        buf_char(buf, c == '\\' && *at < line.len ? unescape(line, at) : (char)c);
    }
    *at += *at < line.len;
}

/* IDEM_NAME= */
static void put_name(struct bytes name, struct buf *buf)
{
    buf_text(buf, "IDEM_");
    for (size_t i = 0; i < name.len && i < NAME_MAX_LEN; i++)
        buf_char(buf, (char)(name.at[i] >= 'a' && name.at[i] <= 'z' ? name.at[i] - 'a' + 'A' : name.at[i]));
    buf_char(buf, '=');
}

static const char *priority_of(struct bytes level)
{
    if (bytes_equal(level, BYTES_LIT("err")))
        return "PRIORITY=3";
    if (bytes_equal(level, BYTES_LIT("warning")))
        return "PRIORITY=4";
    return bytes_equal(level, BYTES_LIT("debug")) ? "PRIORITY=7" : "PRIORITY=6";
}

static struct iovec vector(const char *at, size_t len)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)at, .iov_len = len};
}

/* Fields of the line from `count` on; texts go into buf. Returns the new count. */
static int take_fields(struct bytes line, struct buf *buf, struct iovec *fields, int count, const char **ret_priority)
{
    for (size_t at = 0; at < line.len && count < FIELDS_MAX; at++) {
        size_t from = at, mark = buf->len;
        while (at < line.len && line.at[at] != '=')
            at++;
        struct bytes name = bytes_of(line.at + from, at - from);
        at += at < line.len;
        put_name(name, buf);
        size_t value = buf->len;
        take_value(line, &at, buf);
        if (bytes_equal(name, BYTES_LIT("level")))
            *ret_priority = priority_of(bytes_of(buf->at + value, buf->len - value));
        else if (!bytes_equal(name, BYTES_LIT("ts")) && !buf->overflow)
            fields[count++] = vector(buf->at + mark, buf->len - mark);
    }
    return count;
}

static bool send_line(struct bytes line)
{
    char block[2 * LOG_LINE_MAX + 1024], message[LOG_LINE_MAX + 16];
    struct iovec fields[FIELDS_MAX];
    struct buf buf, text;
    const char *priority = "PRIORITY=6";
    buf_init(&buf, block, sizeof block);
    buf_init(&text, message, sizeof message);
    buf_text(&text, "MESSAGE=");
    buf_bytes(&text, line);
    fields[0] = vector(text.at, text.len);
    fields[1] = vector("SYSLOG_IDENTIFIER=idemd", sizeof "SYSLOG_IDENTIFIER=idemd" - 1);
    int count = take_fields(line, &buf, fields, 3, &priority);
    fields[2] = vector(priority, strlen(priority));
    return !text.overflow && sd_journal_sendv(fields, count) == 0;
}

void journal_sink(void *context, struct bytes lines)
{
    for (size_t from = 0; from < lines.len;) {
        const uint8_t *end = memchr(lines.at + from, '\n', lines.len - from);
        size_t len = end ? (size_t)(end - (lines.at + from)) : lines.len - from;
        if (!send_line(bytes_of(lines.at + from, len)))
            log_to_stderr(context, bytes_of(lines.at + from, len + (end != NULL)));
        from += len + 1;
    }
}
