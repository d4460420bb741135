/* SPDX-License-Identifier: MIT */
/* buf: append-only text in a block that the caller gives (SQL, JSON, log lines). It never grows:
 * what does not fit sets `overflow` and is dropped, so the writer checks once at the end. */
#ifndef IDEM_BASE_BUF_H
#define IDEM_BASE_BUF_H

#include "idem/base/bytes.h"

struct buf {
    char *at;
    size_t size;    /* bytes */
    size_t len;     /* bytes written */
    bool overflow;
};

/* `block` is borrowed until the buf is no longer used. */
void buf_init(struct buf *buf, void *block, size_t size);

/* Each appends, or sets overflow. */
void buf_put(struct buf *buf, const void *bytes, size_t len);
void buf_text(struct buf *buf, const char *text);                /* NUL-terminated */
void buf_bytes(struct buf *buf, struct bytes bytes);              /* a view */
void buf_char(struct buf *buf, char c);                          /* one octet */
void buf_int(struct buf *buf, int64_t number);                   /* decimal digits */
void buf_uint(struct buf *buf, uint64_t number);                 /* decimal digits */
void buf_hex(struct buf *buf, struct bytes bytes);               /* lower-case hex digits */
/* printf(3); at most 1 023 bytes at a time. */
void buf_printf(struct buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A JSON string with its quotes (RFC 8259 section 7): only `"`, `\` and U+0000-U+001F are escaped
 * (short forms \b \f \n \r \t, else \u00XX); everything else as it is. `bytes` must be UTF-8. */
void buf_json_string(struct buf *buf, struct bytes bytes);

static inline struct bytes buf_view(const struct buf *buf)
{
    return (struct bytes){(const uint8_t *)buf->at, buf->len};
}

static inline void buf_reset(struct buf *buf)
{
    buf->len = 0;
    buf->overflow = false;
}

#endif
