/* SPDX-License-Identifier: MIT */
/* column: whether a value can meet a column, and whether it is what stands there. Pure. */
#include "idem/core/column.h"

#include "idem/core/value.h"

/* Largest magnitudes by bytes: signed positive, signed negative, unsigned. */
static const struct {
    uint8_t bytes_count;
    const char *positive, *negative, *unsigned_max;
} integer_ranges[] = {
    {1, "127", "128", "255"},
    {2, "32767", "32768", "65535"},
    {3, "8388607", "8388608", "16777215"},
    {4, "2147483647", "2147483648", "4294967295"},
    {8, "9223372036854775807", "9223372036854775808", "18446744073709551615"},
};

static bool at_most(struct bytes digits, const char *limit)
{
    struct bytes most = bytes_text(limit);
    if (digits.len != most.len)
        return digits.len < most.len;
    return memcmp(digits.at, most.at, most.len) <= 0;
}

static bool integer_in_range(const struct column *column, struct bytes text)
{
    bool negative = text.at[0] == '-';
    struct bytes digits = {text.at + negative, text.len - negative};
    for (size_t i = 0; i < sizeof integer_ranges / sizeof *integer_ranges; i++) {
        if (integer_ranges[i].bytes_count != column->bytes_count)
            continue;
        if (column->is_unsigned)
            return !negative && at_most(digits, integer_ranges[i].unsigned_max);
        return at_most(digits, negative ? integer_ranges[i].negative : integer_ranges[i].positive);
    }
    return false;
}

/* A decimal value with nothing after its point is an integer too. */
static struct bytes without_zero_fraction(struct bytes text)
{
    const uint8_t *point = text.len ? memchr(text.at, '.', text.len) : NULL;
    if (!point)
        return text;
    for (const uint8_t *at = point + 1; at < text.at + text.len; at++)
        if (*at != '0')
            return text;
    return (struct bytes){text.at, (size_t)(point - text.at)};
}

static enum column_fit fit_integer(const struct column *column, const struct value *value)
{
    struct bytes text = value->tag == VALUE_DECIMAL ? without_zero_fraction(value->text) : value->text;
    if (!integer_is_canonical(text))
        return value->tag == VALUE_DECIMAL ? COLUMN_NO_MATCH : COLUMN_BAD_FORM;
    return integer_in_range(column, text) ? COLUMN_FIT : COLUMN_NO_MATCH;
}

static bool is_plain_decimal(struct bytes text)
{
    size_t i = text.len > 0 && text.at[0] == '-', digits = 0, points = 0;
    for (; i < text.len; i++) {
        if (text.at[i] == '.' && digits > 0 && i + 1 < text.len)
            points++;
        else if (text.at[i] >= '0' && text.at[i] <= '9')
            digits++;
        else
            return false;
    }
    return digits > 0 && points <= 1;
}

static enum column_fit fit_decimal(const struct column *column, const struct value *value)
{
    if (!is_plain_decimal(value->text))
        return COLUMN_NO_MATCH;
    if (column->is_unsigned && value->text.at[0] == '-')
        return COLUMN_NO_MATCH;
    return COLUMN_FIT;
}

enum column_fit column_fit(const struct column *column, const struct value *value)
{
    if (value->tag == VALUE_NOW || value->tag == VALUE_ABSENT || value->tag == VALUE_NULL)
        return COLUMN_FIT;
    switch (column->kind) {
    case COLUMN_UNREAD:
    case COLUMN_BINARY:
    case COLUMN_OTHER:
        return COLUMN_FIT;
    case COLUMN_TEXT:
        return column->utf8mb4 || bytes_is_ascii(value->text) ? COLUMN_FIT : COLUMN_NO_MATCH;
    case COLUMN_INTEGER:
        return fit_integer(column, value);
    case COLUMN_DECIMAL:
        return fit_decimal(column, value);
    case COLUMN_TIME:
        return value->tag == VALUE_TIME || bytes_is_ascii(value->text) ? COLUMN_FIT : COLUMN_NO_MATCH;
    }
    return COLUMN_NO_MATCH;
}

/* Both as digits of date and time, cut to the shorter: `2026-12-01 03:00:00.125` against
 * `2026-12-01T03:00:00.125000Z`. */
static bool time_equals(const struct column *column, struct bytes stored, struct bytes text)
{
    size_t len = column->is_date ? 10 : column->precision ? 20u + column->precision : 19;
    if (stored.len < len || text.len < len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (i != 10 && stored.at[i] != text.at[i])
            return false;
    return true;
}

bool column_equals(const struct column *column, struct bytes stored, const struct value *value)
{
    if (value->tag == VALUE_ABSENT || value->tag == VALUE_NULL || value->tag == VALUE_NOW ||
        value->tag == VALUE_OTHER)
        return false;
    switch (column->kind) {
    case COLUMN_INTEGER:
    case COLUMN_DECIMAL:
        return is_plain_decimal(value->text) && is_plain_decimal(stored) &&
               decimal_compare(stored, value->text) == 0;
    case COLUMN_TIME:
        return time_equals(column, stored, value->text);
    case COLUMN_UNREAD:
    case COLUMN_BINARY:
    case COLUMN_TEXT:
    case COLUMN_OTHER:
        break;
    }
    return bytes_equal(stored, value->text);
}
