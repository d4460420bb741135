/* SPDX-License-Identifier: MIT */
/* time: civil texts and counts of seconds to canonical UTC text (RFC 3339; strptime(3) subset). Pure. */
#include "idem/core/timezone.h"
#include "idem/core/value.h"

struct moment {
    int year, month, day, hour, minute, second;
    uint32_t micros;
    bool has_offset;
    int32_t offset_s;
};

static bool digits(struct bytes text, size_t *at, size_t most, size_t least, int *ret)
{
    size_t from = *at;
    int number = 0;
    while (*at < text.len && *at - from < most && text.at[*at] >= '0' && text.at[*at] <= '9')
        number = number * 10 + (text.at[(*at)++] - '0');
    *ret = number;
    return *at - from >= least;
}

static bool literal(struct bytes text, size_t *at, char c)
{
    if (*at >= text.len || text.at[*at] != (uint8_t)c)
        return false;
    (*at)++;
    return true;
}

/* Digits after a point; beyond microseconds they are cut. */
static bool fraction(struct bytes text, size_t *at, uint32_t *ret_micros)
{
    uint32_t micros = 0, count = 0;
    for (; *at < text.len && text.at[*at] >= '0' && text.at[*at] <= '9'; (*at)++, count++)
        if (count < 6)
            micros = micros * 10 + (uint32_t)(text.at[*at] - '0');
    for (uint32_t i = count; i < 6; i++)
        micros *= 10;
    *ret_micros = micros;
    return count > 0;
}

static bool offset(struct bytes text, size_t *at, struct moment *moment)
{
    int hours, minutes;
    moment->has_offset = true;
    if (*at < text.len && (text.at[*at] == 'Z' || text.at[*at] == 'z')) {
        (*at)++;
        return true;
    }
    if (*at >= text.len || (text.at[*at] != '+' && text.at[*at] != '-'))
        return false;
    bool negative = text.at[(*at)++] == '-';
    if (!digits(text, at, 2, 2, &hours))
        return false;
    if (*at < text.len && text.at[*at] == ':')
        (*at)++;
    if (!digits(text, at, 2, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    moment->offset_s = (hours * 3600 + minutes * 60) * (negative ? -1 : 1);
    return true;
}

static bool rfc3339(struct bytes text, struct moment *ret)
{
    size_t at = 0;
    bool date = digits(text, &at, 4, 4, &ret->year) && literal(text, &at, '-') &&
                digits(text, &at, 2, 2, &ret->month) && literal(text, &at, '-') &&
                digits(text, &at, 2, 2, &ret->day);
    if (!date || at >= text.len || (text.at[at] != 'T' && text.at[at] != 't' && text.at[at] != ' '))
        return false;
    at++;
    if (!digits(text, &at, 2, 2, &ret->hour) || !literal(text, &at, ':') ||
        !digits(text, &at, 2, 2, &ret->minute) || !literal(text, &at, ':') ||
        !digits(text, &at, 2, 2, &ret->second))
        return false;
    if (literal(text, &at, '.') && !fraction(text, &at, &ret->micros))
        return false;
    return offset(text, &at, ret) && at == text.len;
}

static bool field(char directive, struct bytes text, size_t *at, struct moment *ret)
{
    switch (directive) {
    case 'Y': return digits(text, at, 4, 4, &ret->year);
    case 'm': return digits(text, at, 2, 1, &ret->month);
    case 'd': return digits(text, at, 2, 1, &ret->day);
    case 'H': return digits(text, at, 2, 1, &ret->hour);
    case 'M': return digits(text, at, 2, 1, &ret->minute);
    case 'S': return digits(text, at, 2, 1, &ret->second);
    case 'f': return fraction(text, at, &ret->micros);
    case 'z': return offset(text, at, ret);
    case 'T':
        return digits(text, at, 2, 2, &ret->hour) && literal(text, at, ':') &&
               digits(text, at, 2, 2, &ret->minute) && literal(text, at, ':') &&
               digits(text, at, 2, 2, &ret->second);
    case 'F':
        return digits(text, at, 4, 4, &ret->year) && literal(text, at, '-') &&
               digits(text, at, 2, 2, &ret->month) && literal(text, at, '-') &&
               digits(text, at, 2, 2, &ret->day);
    case '%': return literal(text, at, '%');
    default: return false;
    }
}

static bool by_pattern(struct bytes text, struct bytes pattern, struct moment *ret)
{
    size_t at = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.at[i] != '%') {
            if (!literal(text, &at, (char)pattern.at[i]))
                return false;
        } else if (++i >= pattern.len || !field((char)pattern.at[i], text, &at, ret)) {
            return false;
        }
    }
    return at == text.len;
}

static bool to_utc(const struct moment *moment, const struct time_zone *zone, int64_t *ret_utc_s)
{
    int64_t days;
    /* A leap second is the second before it: MySQL has none. */
    int second = moment->second == 60 ? 59 : moment->second;
    if (!civil_to_days(moment->year, moment->month, moment->day, &days) || moment->hour > 23 ||
        moment->minute > 59 || second > 59)
        return false;
    int64_t local = days * 86400 + moment->hour * 3600 + moment->minute * 60 + second;
    if (moment->has_offset) {
        *ret_utc_s = local - moment->offset_s;
        return true;
    }
    if (!zone) {
        *ret_utc_s = local;
        return true;
    }
    return time_zone_to_utc(zone, local, ret_utc_s);
}

/* Whole seconds or milliseconds since 1970; unix takes a fraction too. */
static bool unix_count(struct bytes text, bool millis, int64_t *ret_s, uint32_t *ret_micros)
{
    size_t at = 0;
    bool negative = literal(text, &at, '-');
    int64_t number = 0;
    size_t from = at;
    for (; at < text.len && at - from < 15 && text.at[at] >= '0' && text.at[at] <= '9'; at++)
        number = number * 10 + (text.at[at] - '0');
    if (at == from)
        return false;
    *ret_micros = 0;
    if (!millis && at < text.len && text.at[at] == '.') {
        at++;
        if (!fraction(text, &at, ret_micros))
            return false;
    }
    if (at != text.len)
        return false;
    int64_t micros = millis ? number * 1000 : number * 1000000 + *ret_micros;
    if (negative)
        micros = -micros;
    *ret_s = micros >= 0 ? micros / 1000000 : -((-micros + 999999) / 1000000);
    *ret_micros = (uint32_t)(micros - *ret_s * 1000000);
    return true;
}

static void put(uint8_t *at, int number, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (uint8_t)('0' + number % 10);
        number /= 10;
    }
}

static enum cause canonical(int64_t utc_s, uint32_t micros, struct arena *arena, struct bytes *ret)
{
    enum { LEN = 27 };
    int year, month, day;
    int64_t days = utc_s >= 0 ? utc_s / 86400 : -((-utc_s + 86399) / 86400);
    int second = (int)(utc_s - days * 86400);
    if (days < -719162 || days > 2932896)        /* years 1..9999 */
        return CAUSE_FIELD_TYPE;
    days_to_civil(days, &year, &month, &day);
    uint8_t *text = arena_alloc(arena, LEN);
    if (!text)
        return CAUSE_TOO_LARGE;
    memcpy(text, "0000-00-00T00:00:00.000000Z", LEN);
    put(text, year, 4);
    put(text + 5, month, 2);
    put(text + 8, day, 2);
    put(text + 11, second / 3600, 2);
    put(text + 14, second / 60 % 60, 2);
    put(text + 17, second % 60, 2);
    put(text + 20, (int)micros, 6);
    *ret = (struct bytes){text, LEN};
    return CAUSE_NONE;
}

enum cause time_parse(struct bytes text, enum time_format format, struct bytes pattern,
                      const struct time_zone *zone, struct arena *arena, struct bytes *ret)
{
    struct moment moment = {.month = 1, .day = 1};
    int64_t utc = 0;
    bool good = false;
    switch (format) {
    case TIME_RFC3339:
        good = rfc3339(text, &moment) && to_utc(&moment, zone, &utc);
        break;
    case TIME_STRPTIME:
        good = by_pattern(text, pattern, &moment) && to_utc(&moment, zone, &utc);
        break;
    case TIME_UNIX:
    case TIME_UNIX_MS:
        good = unix_count(text, format == TIME_UNIX_MS, &utc, &moment.micros);
        break;
    }
    return good ? canonical(utc, moment.micros, arena, ret) : CAUSE_FIELD_TYPE;
}
