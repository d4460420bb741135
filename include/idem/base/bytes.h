/* SPDX-License-Identifier: MIT */
/* bytes: a borrowed view of octets. Never owns, never NUL-terminated by promise. `at` may be NULL
 * only if `len` is 0. Nothing here allocates. */
#ifndef IDEM_BASE_BYTES_H
#define IDEM_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at;
    size_t len;
};

/* View of a string literal, without its NUL. */
#define BYTES_LIT(text) ((struct bytes){(const uint8_t *)("" text), sizeof(text) - 1})

/* View of a NUL-terminated string; NULL gives the empty view. */
static inline struct bytes bytes_text(const char *text)
{
    return (struct bytes){(const uint8_t *)text, text ? strlen(text) : 0};
}

static inline struct bytes bytes_of(const void *at, size_t len)
{
    return (struct bytes){at, len};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Bytewise order, shorter first on a common prefix: <0, 0, >0. */
int bytes_compare(struct bytes a, struct bytes b);

/* ASCII case-insensitive equality (header names, RFC 9110 section 5.1). */
bool bytes_equal_nocase(struct bytes a, struct bytes b);

/* All octets < 0x80. */
bool bytes_is_ascii(struct bytes a);

/* Well-formed UTF-8 (RFC 3629: no surrogates, no overlongs, at most U+10FFFF). */
bool bytes_is_utf8(struct bytes a);

/* 64-bit hash for routing and tables, seeded; not for security. FNV-1a with a final mix. */
uint64_t bytes_hash(struct bytes a, uint64_t seed);

/* Writes 2 * a.len lower-case hex digits to ret_hex (no NUL). */
void bytes_hex(struct bytes a, char *ret_hex);

#endif
