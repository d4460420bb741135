/* SPDX-License-Identifier: MIT */
/* column: what the live schema says of one column, as far as typing a value for it needs (design 3 step 6). */
#ifndef IDEM_CORE_COLUMN_H
#define IDEM_CORE_COLUMN_H

#include "idem/base/arena.h"
#include "idem/base/bytes.h"

struct value;

enum column_kind {
    COLUMN_UNREAD = 0,
    COLUMN_BINARY,      /* BINARY, VARBINARY, BLOB: bytes compare as they are */
    COLUMN_TEXT,        /* CHAR, VARCHAR, TEXT, ENUM, SET: collated */
    COLUMN_INTEGER,
    COLUMN_DECIMAL,
    COLUMN_TIME,        /* DATE, DATETIME, TIMESTAMP */
    COLUMN_OTHER        /* FLOAT, DOUBLE, JSON, BIT, ...: may be written, never in where, identity, require */
};

struct column {
    enum column_kind kind;
    bool nullable;
    bool is_unsigned;           /* COLUMN_INTEGER, COLUMN_DECIMAL */
    bool is_date;               /* COLUMN_TIME: DATE */
    uint8_t bytes_count;        /* COLUMN_INTEGER: 1, 2, 3, 4, 8 */
    uint8_t scale;              /* COLUMN_DECIMAL */
    uint8_t precision;          /* COLUMN_DECIMAL: digits; COLUMN_TIME: fractional digits 0..6 */
    bool utf8mb4;               /* COLUMN_TEXT: holds any character */
    char charset[32];           /* COLUMN_TEXT, NUL-terminated, [a-z0-9_] checked */
    char collation[64];
};

enum column_fit {
    COLUMN_FIT,          /* may be compared and written */
    COLUMN_NO_MATCH,     /* equals no row of this column (`where`: missing row; written: `rejected`): text that is
                            no canonical number for a number column, an integer out of its range, non-ASCII for a
                            charset that is not utf8mb4 (details 1, Charsets) */
    COLUMN_BAD_FORM      /* text for an integer column that is not -?(0|[1-9][0-9]*): `invalid`, field_type */
};

enum column_fit column_fit(const struct column *column, const struct value *value);

/* Whether the text that the database gave for this column is the record's value: bytes for text and binary,
 * numbers by value, times by instant cut to the column's precision. NULL columns are the caller's business. */
bool column_equals(const struct column *column, struct bytes stored, const struct value *value);

#endif
