/* SPDX-License-Identifier: MIT */
/* log: see idem/base/log.h. The time text of a second is kept, since a busy daemon writes thousands of lines in it. */
#include "idem/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

void log_init(struct log_batch *log, log_sink *sink, void *context)
{
    buf_init(&log->buf, log->block, sizeof log->block);
    log->line = 0;
    log->sink = sink ? sink : log_to_stderr;
    log->context = context;
    log->second = -1;
}

static const char *level_name(enum log_priority priority)
{
    switch (priority) {
    case LOG_PRIORITY_ERR: return "err";
    case LOG_PRIORITY_WARNING: return "warning";
    case LOG_PRIORITY_INFO: return "info";
    case LOG_PRIORITY_DEBUG: return "debug";
    }
    return "info";
}

static void put_time(struct log_batch *log, int64_t wall_ms)
{
    int64_t second = wall_ms / 1000;
    int ms = (int)(wall_ms % 1000);
    if (second != log->second) {
        struct tm civil;
        time_t at = (time_t)second;
        gmtime_r(&at, &civil);
        strftime(log->second_text, sizeof log->second_text, "%Y-%m-%dT%H:%M:%S", &civil);
        log->second = second;
    }
    buf_put(&log->buf, "ts=", 3);
    buf_put(&log->buf, log->second_text, 19);
    char fraction[5] = {'.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z'};
    buf_put(&log->buf, fraction, sizeof fraction);
}

void log_begin(struct log_batch *log, int64_t wall_ms, enum log_priority priority, const char *event)
{
    if (log->buf.size - log->buf.len < LOG_LINE_MAX)
        log_flush(log);
    log->line = log->buf.len;
    put_time(log, wall_ms);
    log_text(log, "level", level_name(priority));
    log_text(log, "event", event);
}

/* Plain: visible ASCII without quote, backslash and equals sign, or UTF-8 beyond it. */
static bool is_plain(struct bytes value)
{
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = value.at[i];
        if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7f)
            return false;
    }
    return true;
}

static void put_quoted(struct buf *buf, struct bytes value)
{
    if (bytes_is_utf8(value)) {
        buf_json_string(buf, value);
        return;
    }
    buf_char(buf, '"');          /* no text at all: its bytes in hex, told by the prefix */
    buf_text(buf, "hex:");
    buf_hex(buf, value);
    buf_char(buf, '"');
}

void log_field(struct log_batch *log, const char *name, struct bytes value)
{
    size_t before = log->buf.len;
    if (value.len == 0)
        return;
    if (value.len > LOG_LINE_MAX / 2)
        value.len = LOG_LINE_MAX / 2;
    buf_char(&log->buf, ' ');
    buf_text(&log->buf, name);
    buf_char(&log->buf, '=');
    if (is_plain(value) && bytes_is_utf8(value))
        buf_bytes(&log->buf, value);
    else
        put_quoted(&log->buf, value);
    if (log->buf.len - log->line > LOG_LINE_MAX - 16)
        log->buf.len = before;
}

void log_text(struct log_batch *log, const char *name, const char *value)
{
    if (value)
        log_field(log, name, bytes_text(value));
}

void log_int(struct log_batch *log, const char *name, int64_t value)
{
    if (log->buf.len - log->line > LOG_LINE_MAX - 128)
        return;
    buf_char(&log->buf, ' ');
    buf_text(&log->buf, name);
    buf_char(&log->buf, '=');
    buf_int(&log->buf, value);
}

void log_end(struct log_batch *log)
{
    buf_char(&log->buf, '\n');
}

void log_flush(struct log_batch *log)
{
    if (log->buf.len > 0)
        log->sink(log->context, buf_view(&log->buf));
    buf_reset(&log->buf);
    log->line = 0;
}

void log_to_stderr(void *context, struct bytes lines)
{
    /* A pipe takes more than PIPE_BUF in pieces: two threads' lines would be torn into each other. */
    static pthread_mutex_t whole = PTHREAD_MUTEX_INITIALIZER;
    (void)context;
    pthread_mutex_lock(&whole);
    while (lines.len > 0) {
        ssize_t written = write(STDERR_FILENO, lines.at, lines.len);
        if (written > 0) {
            lines.at += written;
            lines.len -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            break;               /* nobody reads any more */
        }
    }
    pthread_mutex_unlock(&whole);
}
