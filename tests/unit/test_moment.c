/* SPDX-License-Identifier: MIT */
/* test_moment: points in time as operators type them, and what is refused. */
#include "table.h"

#include "idem/core/moment.h"

static const int64_t now_ms = INT64_C(1767225600000) + 3723004;       /* 2026-01-01 01:02:03.004 */

static void points_in_time_become_utc(void **state)
{
    static const struct {
        const char *text, *wanted;
    } rows[] = {
        {"2026-01-01T00:00:00.000Z", "2026-01-01 00:00:00.000000"},
        {"2026-01-01T00:00:00.123456Z", "2026-01-01 00:00:00.123456"},
        {"2026-01-01T00:00:00Z", "2026-01-01 00:00:00.000000"},
        {"2026-01-01T08:00:00+08:00", "2026-01-01 00:00:00.000000"},
        {"2025-12-31 19:00:00.5-05:00", "2026-01-01 00:00:00.500000"},
        {"2026-01-01 00:00:00", "2026-01-01 00:00:00.000000"},
        {"2026-01-01T00:00:00", "2026-01-01 00:00:00.000000"},
        {"2026-01-01 00:00:00.25", "2026-01-01 00:00:00.250000"},
        {"1h", "2026-01-01 00:02:03.004000"},
        {"2d", "2025-12-30 01:02:03.004000"},
        {"4ms", "2026-01-01 01:02:03.000000"},
        {"0s", "2026-01-01 01:02:03.004000"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[MOMENT_LEN + 1];
        if (!moment_parse(bytes_text(rows[i].text), now_ms, text))
            fail_msg("%s was refused", rows[i].text);
        check_text(bytes_text(text), rows[i].wanted, rows[i].text);
    }
}

static void anything_else_is_refused(void **state)
{
    static const char *const rows[] = {
        "", "yesterday", "2026-01-01", "2026-13-01 00:00:00", "2026-02-30T00:00:00Z", "2026-01-01 24:00:00",
        "2026-01-01 00:00", "2h ago", "-2h", "2 h", "2", "2w", "h", "1767225600", "2026-01-01T00:00:00.000Z ",
        "2026-01-01T00:00:00+8", "2026-01-01 00:00:00 OR 1=1", "2026-01-01T00:00:00ZZ", "99999999d",
        "18446744073709551615d", "2026-01-01T00:00:00.00000000000000000000000000000000000000000000000000000",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[MOMENT_LEN + 1];
        if (moment_parse(bytes_text(rows[i]), now_ms, text))
            fail_msg("\"%s\" was taken for %s", rows[i], text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_in_time_become_utc),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
