/* SPDX-License-Identifier: MIT */
/* timezone: see idem/core/timezone.h. Civil dates after Howard Hinnant's published day-count algorithm. Pure. */
#include "idem/core/timezone.h"

static bool two_digits(struct bytes text, size_t at, int *ret)
{
    if (at + 2 > text.len || text.at[at] < '0' || text.at[at] > '9' || text.at[at + 1] < '0' ||
        text.at[at + 1] > '9')
        return false;
    *ret = (text.at[at] - '0') * 10 + (text.at[at + 1] - '0');
    return true;
}

bool time_zone_fixed(struct bytes text, struct time_zone *ret_zone)
{
    int hours = 0, minutes = 0;
    bool utc = bytes_equal(text, BYTES_LIT("UTC")) || bytes_equal(text, BYTES_LIT("Z"));
    if (!utc) {
        if (text.len != 6 || (text.at[0] != '+' && text.at[0] != '-') || text.at[3] != ':' ||
            !two_digits(text, 1, &hours) || !two_digits(text, 4, &minutes) || hours > 14 || minutes > 59)
            return false;
    }
    int32_t offset = hours * 3600 + minutes * 60;
    *ret_zone = (struct time_zone){.first_offset_s = !utc && text.at[0] == '-' ? -offset : offset};
    return true;
}

int32_t time_zone_offset_at(const struct time_zone *zone, int64_t utc_s)
{
    size_t low = 0, high = zone->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->transitions[middle].at_s <= utc_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? zone->first_offset_s : zone->transitions[low - 1].offset_s;
}

bool time_zone_to_utc(const struct time_zone *zone, int64_t local_s, int64_t *ret_utc_s)
{
    /* Offsets are less than a day: the two around the moment are all that can apply. The greater offset gives the
     * earlier
     * instant. */
    int32_t before = time_zone_offset_at(zone, local_s - 86400), after = time_zone_offset_at(zone, local_s + 86400);
    int32_t tries[2] = {before > after ? before : after, before > after ? after : before};
    for (int i = 0; i < 2; i++) {
        int64_t utc = local_s - tries[i];
        if (time_zone_offset_at(zone, utc) == tries[i]) {
            *ret_utc_s = utc;
            return true;
        }
    }
    return false;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month == 2 && leap ? 29 : days[month - 1];
}

bool civil_to_days(int year, int month, int day, int64_t *ret_days)
{
    if (year < 1 || year > 9999 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    int64_t y = year - (month <= 2);
    int64_t era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    *ret_days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
    return true;
}

void days_to_civil(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;
    *ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = (int)(year + era * 400 + (*ret_month <= 2));
}
