/* SPDX-License-Identifier: MIT */
/* test_retention: a rule's ttl against how long its record may come again. */
#include "table.h"

#include "idem/core/retention.h"

enum { DAY_S = 86400 };
#define DAY_MS INT64_C(86400000)

static void the_sum_in_words(void **state)
{
    static const struct {
        const char *name;
        int64_t ttl_s, kept_ms;
        uint64_t park_ms, attempts;
        bool guarded;
        const char *sum;         /* its beginning; NULL: the ttl suffices */
    } rows[] = {
        {"for ever", -1, RETENTION_FOREVER, 600000, 0, false, NULL},
        {"exactly", 7 * DAY_S + 600, 7 * DAY_MS, 600000, 0, true, NULL},
        {"a second less", 7 * DAY_S + 599, 7 * DAY_MS, 600000, 0, true,
         "ttl 7d9m59s < retention.ms 7d + longest park 10m = 7d10m: what comes again in between is judged by"},
        {"nothing parks", DAY_S, 2 * DAY_MS, 0, 50, true, "ttl 1d < retention.ms 2d + longest park 0s = 2d: "},
        {"attempts last longer", DAY_S, DAY_MS, 1000, 60, true,
         "ttl 1d < retention.ms 1d + longest park 1h = 1d1h: "},
        {"kept for ever", 3650 * DAY_S, RETENTION_FOREVER, 0, 0, true, "ttl 3650d, and Kafka keeps the topic for ever"},
        {"letters come back", 30 * DAY_S, 7 * DAY_MS, 600000, 0, false,
         "ttl 30d < retention.ms 7d + longest park 10m + dead_letter.keep 90d = 97d10m: what comes again in between is "
         "applied again"},
        {"and are guarded", 30 * DAY_S, 7 * DAY_MS, 600000, 0, true, NULL},
        {"long enough for them", 98 * DAY_S, 7 * DAY_MS, 600000, 0, false, NULL},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[300] = "";
        struct buf buf;
        struct rule rule = {.ttl_s = rows[i].ttl_s};
        rule.park.for_ms = rows[i].park_ms;
        rule.park.attempts = (uint32_t)rows[i].attempts;
        rule.park.backoff_cap_ms = 60000;
        buf_init(&buf, text, sizeof text - 1);
        bool is_short = retention_is_short(&rule, rows[i].kept_ms, rows[i].guarded, &buf);
        if (is_short != (rows[i].sum != NULL) || (rows[i].sum && strncmp(text, rows[i].sum, strlen(rows[i].sum)) != 0))
            fail_msg("%s: %s", rows[i].name, text);
        if (!is_short && buf.len > 0)
            fail_msg("%s: %s", rows[i].name, text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_sum_in_words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
