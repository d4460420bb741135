/* SPDX-License-Identifier: MIT */
/* time_zone: offsets from UTC, a fixed one or the transitions of a named zone. The table is read at start by the
 * configuration loader (TZif, RFC 9636); here it is only looked up. Seconds since 1970 UTC. */
#ifndef IDEM_CORE_TIMEZONE_H
#define IDEM_CORE_TIMEZONE_H

#include "idem/base/bytes.h"

struct time_zone_transition {
    int64_t at_s;        /* from this moment on */
    int32_t offset_s;    /* east of Greenwich */
};

struct time_zone {
    int32_t first_offset_s;                       /* before the first transition */
    const struct time_zone_transition *transitions;  /* ascending; NULL for a fixed offset */
    size_t count;
};

/* "+08:00", "-05:30", "UTC", "Z"; false if it is none of these. */
bool time_zone_fixed(struct bytes text, struct time_zone *ret_zone);

/* Seconds east of Greenwich at that moment. */
int32_t time_zone_offset_at(const struct time_zone *zone, int64_t utc_s);

/* Local civil seconds (as if they were UTC) to UTC. false in a daylight-saving gap; the earlier instant in an
 * overlap (details 1, Local times). */
bool time_zone_to_utc(const struct time_zone *zone, int64_t local_s, int64_t *ret_utc_s);

/* Proleptic Gregorian. days since 1970-01-01; false if the date does not exist. Years 1..9999. */
bool civil_to_days(int year, int month, int day, int64_t *ret_days);
void days_to_civil(int64_t days, int *ret_year, int *ret_month, int *ret_day);

#endif
