/* SPDX-License-Identifier: MIT */
/* log: logfmt lines (design section 7, Log) in a buffer that goes out with one write(2). A line is built field by
 * field; what is empty is left out. Where lines go is the sink's business: standard error, or the journal
 * (adapter/systemd). One log_batch a thread. Never allocates; a line that does not fit is cut at its last whole
 * field. */
#ifndef IDEM_BASE_LOG_H
#define IDEM_BASE_LOG_H

#include "idem/base/buf.h"

enum log_priority { LOG_PRIORITY_ERR = 3, LOG_PRIORITY_WARNING = 4, LOG_PRIORITY_INFO = 6, LOG_PRIORITY_DEBUG = 7 };

/* Takes whole lines, each ended by \n. Called with many at a time. */
typedef void log_sink(void *context, struct bytes lines);

enum { LOG_BATCH_SIZE = 64 << 10, LOG_LINE_MAX = 4096 };

struct log_batch {
    struct buf buf;
    size_t line;                 /* where the present line starts */
    log_sink *sink;
    void *context;
    int64_t second;              /* of the cached time text */
    char second_text[20];
    char block[LOG_BATCH_SIZE];
};

/* sink NULL: standard error. */
void log_init(struct log_batch *log, log_sink *sink, void *context);

/* Starts a line: ts (RFC 3339, UTC, milliseconds), level, event. Flushes first if a whole line might not fit. */
void log_begin(struct log_batch *log, int64_t wall_ms, enum log_priority priority, const char *event);

/* One field; quoted where logfmt needs it. Empty text is left out. */
void log_field(struct log_batch *log, const char *name, struct bytes value);
void log_text(struct log_batch *log, const char *name, const char *value);   /* NULL is left out */
void log_int(struct log_batch *log, const char *name, int64_t value);

/* Ends the line. */
void log_end(struct log_batch *log);

/* Hands everything to the sink. */
void log_flush(struct log_batch *log);

/* The default sink: writes all of it to standard error, however slow the reader is. */
void log_to_stderr(void *context, struct bytes lines);

#endif
