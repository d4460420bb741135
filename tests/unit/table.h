/* SPDX-License-Identifier: MIT */
/* table: what the table tests share: cmocka's headers in their order, and comparing views. */
#ifndef IDEM_UNIT_TABLE_H
#define IDEM_UNIT_TABLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "idem/base/bytes.h"

#include <stdio.h>

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

/* Fails with both texts. */
static inline void check_text(struct bytes got, const char *wanted, const char *what)
{
    if (!bytes_equal(got, bytes_text(wanted)))
        fail_msg("%s: got \"%.*s\", wanted \"%s\"", what, (int)got.len, (const char *)got.at, wanted);
}

static inline void check_hex(const uint8_t *got, size_t len, const char *wanted, const char *what)
{
    char hex[129] = "";
    bytes_hex(bytes_of(got, len), hex);
    check_text(bytes_of(hex, 2 * len), wanted, what);
}

#endif
