/* SPDX-License-Identifier: MIT */
/* decimal: numbers as digits. Nothing passes through a binary float. Pure. */
#include "idem/core/limits.h"
#include "idem/core/value.h"

bool integer_is_canonical(struct bytes text)
{
    size_t i = text.len > 0 && text.at[0] == '-';
    size_t digits = text.len - i;
    if (digits == 0 || (text.at[i] == '0' && (digits > 1 || i == 1)))
        return false;
    for (; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return true;
}

/* A number as it stands in a text: digits with an implied point. */
struct number {
    bool negative;
    struct bytes whole, fraction;    /* digits */
    int32_t exponent;                /* capped: what is far out of range stays far out of range */
};

enum { EXPONENT_CAP = 100000 };

static struct bytes take_digits(struct bytes text, size_t *at)
{
    size_t from = *at;
    while (*at < text.len && text.at[*at] >= '0' && text.at[*at] <= '9')
        (*at)++;
    return (struct bytes){text.at + from, *at - from};
}

static bool take_exponent(struct bytes text, size_t *at, int32_t *ret)
{
    bool negative = false;
    int32_t exponent = 0;
    if (*at < text.len && (text.at[*at] == '+' || text.at[*at] == '-'))
        negative = text.at[(*at)++] == '-';
    struct bytes digits = take_digits(text, at);
    for (size_t i = 0; i < digits.len; i++)
        if (exponent < EXPONENT_CAP)
            exponent = exponent * 10 + (digits.at[i] - '0');
    *ret = negative ? -exponent : exponent;
    return digits.len > 0;
}

/* JSON's number grammar (RFC 8259 section 6), which decimal texts have to follow too. */
static bool scan(struct bytes text, struct number *ret)
{
    size_t at = 0;
    *ret = (struct number){0};
    if (text.len > 0 && text.at[0] == '-') {
        ret->negative = true;
        at++;
    }
    ret->whole = take_digits(text, &at);
    if (ret->whole.len == 0 || (ret->whole.len > 1 && ret->whole.at[0] == '0'))
        return false;
    if (at < text.len && text.at[at] == '.') {
        at++;
        ret->fraction = take_digits(text, &at);
        if (ret->fraction.len == 0)
            return false;
    }
    if (at < text.len && (text.at[at] == 'e' || text.at[at] == 'E')) {
        at++;
        if (!take_exponent(text, &at, &ret->exponent))
            return false;
    }
    return at == text.len;
}

/* Digit number `place` of whole and fraction together; 0 outside of them. */
static uint8_t digit_at(const struct number *number, int64_t place)
{
    int64_t whole = (int64_t)number->whole.len, all = whole + (int64_t)number->fraction.len;
    if (place < 0 || place >= all)
        return '0';
    return place < whole ? number->whole.at[place] : number->fraction.at[place - whole];
}

enum cause decimal_parse(struct bytes text, unsigned scale, unsigned shift, struct arena *arena,
                         struct bytes *ret)
{
    struct number number;
    if (!scan(text, &number))
        return CAUSE_FIELD_TYPE;
    int64_t all = (int64_t)(number.whole.len + number.fraction.len), first = 0, last = all - 1;
    while (first < all && digit_at(&number, first) == '0')
        first++;
    while (last >= first && digit_at(&number, last) == '0')
        last--;
    /* The point stands before digit number `point`. */
    int64_t point = (int64_t)number.whole.len + number.exponent - (int64_t)shift;
    bool zero = first > last;
    if (zero) {
        point = 1;
        first = 1;
    }
    if (!zero && last - point + 1 > (int64_t)scale)
        return point - first > DECIMAL_DIGITS_MAX ? CAUSE_TOO_LONG : CAUSE_SCALE;
    int64_t whole_digits = point > first ? point - first : 0;
    if (whole_digits + (int64_t)scale > DECIMAL_DIGITS_MAX)
        return CAUSE_TOO_LONG;
    uint8_t *out = arena_alloc(arena, (size_t)whole_digits + scale + 4);
    if (!out)
        return CAUSE_TOO_LARGE;
    size_t len = 0;
    if (number.negative && !zero)
        out[len++] = '-';
    if (whole_digits == 0)
        out[len++] = '0';
    for (int64_t i = point - whole_digits; i < point; i++)
        out[len++] = zero ? '0' : digit_at(&number, i);
    if (scale > 0)
        out[len++] = '.';
    for (unsigned i = 0; i < scale; i++)
        out[len++] = zero ? '0' : digit_at(&number, point + i);
    *ret = (struct bytes){out, len};
    return CAUSE_NONE;
}

/* ---- comparing ------------------------------------------------------------------------------------------------- */

static struct number plain(struct bytes text)
{
    struct number number = {0};
    size_t at = text.len > 0 && (text.at[0] == '-' || text.at[0] == '+');
    number.negative = at == 1 && text.at[0] == '-';
    number.whole = take_digits(text, &at);
    while (number.whole.len > 0 && number.whole.at[0] == '0') {
        number.whole.at++;
        number.whole.len--;
    }
    if (at < text.len && text.at[at] == '.') {
        at++;
        number.fraction = take_digits(text, &at);
    }
    while (number.fraction.len > 0 && number.fraction.at[number.fraction.len - 1] == '0')
        number.fraction.len--;
    return number;
}

static int compare_size(const struct number *a, const struct number *b)
{
    if (a->whole.len != b->whole.len)
        return a->whole.len < b->whole.len ? -1 : 1;
    int order = a->whole.len ? memcmp(a->whole.at, b->whole.at, a->whole.len) : 0;
    return order ? order : bytes_compare(a->fraction, b->fraction);
}

int decimal_compare(struct bytes a, struct bytes b)
{
    struct number x = plain(a), y = plain(b);
    bool x_zero = x.whole.len == 0 && x.fraction.len == 0;
    bool y_zero = y.whole.len == 0 && y.fraction.len == 0;
    bool x_negative = x.negative && !x_zero, y_negative = y.negative && !y_zero;
    if (x_negative != y_negative)
        return x_negative ? -1 : 1;
    int order = compare_size(&x, &y);
    return x_negative ? -order : order;
}
