/* SPDX-License-Identifier: MIT */
/* moment: durations of the configuration file, and points in time as an operator types them. Pure: the present is
 * given. */
#ifndef IDEM_CORE_MOMENT_H
#define IDEM_CORE_MOMENT_H

#include "idem/base/bytes.h"

enum { MOMENT_LEN = 26 };        /* characters of YYYY-MM-DD HH:MM:SS.ffffff */

/* Digits and one of ms s m h d; false if it is none, or does not fit. */
bool duration_parse(struct bytes text, uint64_t *ret_ms);

/* A point in time: RFC 3339 with its offset, as idemctl itself prints it (2026-01-01T00:00:00.000Z); the same without
 * an offset, with T or a blank, which is UTC; or a duration (2h), which is so long before now_ms (milliseconds since
 * 1970 UTC). false: none of these. ret: UTC as MySQL writes a DATETIME(6), NUL-terminated; digits beyond
 * microseconds are cut. */
bool moment_parse(struct bytes text, int64_t now_ms, char ret[MOMENT_LEN + 1]);

#endif
