/* SPDX-License-Identifier: MIT */
/* bytes: comparing, checking and hashing views. Pure; for everybody. */
#include "idem/base/bytes.h"

int bytes_compare(struct bytes a, struct bytes b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.at, b.at, common) : 0;
    if (order)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

bool bytes_equal_nocase(struct bytes a, struct bytes b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.at[i]) != lower(b.at[i]))
            return false;
    return true;
}

bool bytes_is_ascii(struct bytes a)
{
    for (size_t i = 0; i < a.len; i++)
        if (a.at[i] & 0x80)
            return false;
    return true;
}

/* Octets of the character that starts with `lead`, 0 if none may. */
static size_t utf8_length(uint8_t lead)
{
    if (lead < 0x80)
        return 1;
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef)
        return 3;
    if (lead >= 0xf0 && lead <= 0xf4)
        return 4;
    return 0;
}

/* The second octet's range depends on the first: RFC 3629 section 4. */
static bool utf8_second_fits(uint8_t lead, uint8_t second)
{
    switch (lead) {
    case 0xe0: return second >= 0xa0 && second <= 0xbf;
    case 0xed: return second >= 0x80 && second <= 0x9f;
    case 0xf0: return second >= 0x90 && second <= 0xbf;
    case 0xf4: return second >= 0x80 && second <= 0x8f;
    default: return second >= 0x80 && second <= 0xbf;
    }
}

bool bytes_is_utf8(struct bytes a)
{
    for (size_t i = 0; i < a.len;) {
        size_t len = utf8_length(a.at[i]);
        if (len == 0 || len > a.len - i)
            return false;
        if (len > 1 && !utf8_second_fits(a.at[i], a.at[i + 1]))
            return false;
        for (size_t k = 2; k < len; k++)
            if ((a.at[i + k] & 0xc0) != 0x80)
                return false;
        i += len;
    }
    return true;
}

uint64_t bytes_hash(struct bytes a, uint64_t seed)
{
    uint64_t hash = 14695981039346656037u ^ seed;
    for (size_t i = 0; i < a.len; i++)
        hash = (hash ^ a.at[i]) * 1099511628211u;
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 33);
}

void bytes_hex(struct bytes a, char *ret_hex)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < a.len; i++) {
        ret_hex[2 * i] = digit[a.at[i] >> 4];
        ret_hex[2 * i + 1] = digit[a.at[i] & 15];
    }
}
