/* SPDX-License-Identifier: MIT */
/* test_value: decimals, integers, times and columns, cell by cell. */
#include "table.h"

#include "idem/core/column.h"
#include "idem/core/timezone.h"
#include "idem/core/value.h"

static uint8_t block[4096];

static void decimals_keep_their_digits(void **state)
{
    static const struct {
        const char *text;
        unsigned scale, shift;
        enum cause cause;
        const char *result;
    } rows[] = {
        {"100", 2, 0, CAUSE_NONE, "100.00"}, {"100.0", 2, 0, CAUSE_NONE, "100.00"}, {"1e2", 2, 0, CAUSE_NONE, "100.00"},
        {"1E+2", 0, 0, CAUSE_NONE, "100"}, {"100.000", 2, 0, CAUSE_NONE, "100.00"},
        {"100.001", 2, 0, CAUSE_SCALE, NULL},
        {"-0", 2, 0, CAUSE_NONE, "0.00"}, {"-0.00", 0, 0, CAUSE_NONE, "0"}, {"0e400", 2, 0, CAUSE_NONE, "0.00"},
        {"-12.5", 2, 0, CAUSE_NONE, "-12.50"}, {"1999", 2, 2, CAUSE_NONE, "19.99"}, {"5", 2, 2, CAUSE_NONE, "0.05"},
        {"6540.0", 2, 2, CAUSE_NONE, "65.40"}, {"1", 2, 3, CAUSE_SCALE, NULL}, {"1e400", 2, 0, CAUSE_TOO_LONG, NULL},
        {"1e-400", 2, 0, CAUSE_SCALE, NULL}, {"", 2, 0, CAUSE_FIELD_TYPE, NULL}, {"+1", 2, 0, CAUSE_FIELD_TYPE, NULL},
        {"01", 2, 0, CAUSE_FIELD_TYPE, NULL}, {"1.", 2, 0, CAUSE_FIELD_TYPE, NULL},
        {".5", 2, 0, CAUSE_FIELD_TYPE, NULL},
        {"1e", 2, 0, CAUSE_FIELD_TYPE, NULL}, {"0x10", 2, 0, CAUSE_FIELD_TYPE, NULL},
        {" 1", 2, 0, CAUSE_FIELD_TYPE, NULL},
        {"1 ", 2, 0, CAUSE_FIELD_TYPE, NULL}, {"NaN", 2, 0, CAUSE_FIELD_TYPE, NULL},
        {"99999999999999999999999999999999999999999999999999999999999999999", 0, 0, CAUSE_NONE,
         "99999999999999999999999999999999999999999999999999999999999999999"},
        {"999999999999999999999999999999999999999999999999999999999999999999", 0, 0, CAUSE_TOO_LONG, NULL},
        {"1e99999999999999999999", 0, 0, CAUSE_TOO_LONG, NULL}, {"123456789012345678.90", 2, 0, CAUSE_NONE,
         "123456789012345678.90"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena arena;
        struct bytes result = {0};
        arena_init(&arena, block, sizeof block);
        enum cause cause = decimal_parse(bytes_text(rows[i].text), rows[i].scale, rows[i].shift, &arena, &result);
        if (cause != rows[i].cause)
            fail_msg("%s: cause %s", rows[i].text, cause_name(cause));
        if (cause == CAUSE_NONE)
            check_text(result, rows[i].result, rows[i].text);
    }
}

static void integers_have_one_form(void **state)
{
    static const char *const good[] = {"0", "1", "-1", "1000000000000000005", "99999999999999999999999"};
    static const char *const bad[] = {"", "-", "-0", "00", "01", "-01", "+1", "1.0", "1e2", "1 ", "0x1", "a"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(integer_is_canonical(bytes_text(good[i])));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_false(integer_is_canonical(bytes_text(bad[i])));
}

static void numbers_compare_by_value(void **state)
{
    static const struct {
        const char *a, *b;
        int order;
    } rows[] = {{"1", "1.00", 0}, {"01", "1", 0}, {"-0", "0.0", 0}, {"2", "10", -1}, {"-2", "-10", 1},
    {"1.5", "1.45", 1},
                {"9007199254740993", "9007199254740992", 1}, {"-1", "1", -1}, {"0.1", "0.10", 0}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        int order = decimal_compare(bytes_text(rows[i].a), bytes_text(rows[i].b));
        if ((order > 0) - (order < 0) != rows[i].order)
            fail_msg("%s against %s", rows[i].a, rows[i].b);
    }
}

static void times_become_utc_microseconds(void **state)
{
    static const struct {
        const char *text;
        enum time_format format;
        const char *pattern, *result;
    } rows[] = {
        {"2026-12-01T03:00:00.125+08:00", TIME_RFC3339, "", "2026-11-30T19:00:00.125000Z"},
        {"2026-12-01T03:00:00Z", TIME_RFC3339, "", "2026-12-01T03:00:00.000000Z"},
        {"2026-12-01T03:00:00.1234567Z", TIME_RFC3339, "", "2026-12-01T03:00:00.123456Z"},
        {"2024-02-29T00:00:00Z", TIME_RFC3339, "", "2024-02-29T00:00:00.000000Z"},
        {"2026-02-29T00:00:00Z", TIME_RFC3339, "", NULL}, {"2026-12-01", TIME_RFC3339, "", NULL},
        {"2026-12-01T24:00:00Z", TIME_RFC3339, "", NULL}, {"2026-12-01T03:00:00", TIME_RFC3339, "", NULL},
        {"1796094000", TIME_UNIX, "", "2026-12-01T03:00:00.000000Z"},
        {"-1", TIME_UNIX, "", "1969-12-31T23:59:59.000000Z"},
        {"1796094000123", TIME_UNIX_MS, "", "2026-12-01T03:00:00.123000Z"}, {"x", TIME_UNIX, "", NULL},
        {"20261201030405", TIME_STRPTIME, "%Y%m%d%H%M%S", "2026-11-30T19:04:05.000000Z"},
        {"2026/12/01 03:04:05", TIME_STRPTIME, "%Y/%m/%d %T", "2026-11-30T19:04:05.000000Z"},
        {"2026/12/01", TIME_STRPTIME, "%Y/%m/%d %T", NULL},
    };
    struct time_zone zone;
    (void)state;
    assert_true(time_zone_fixed(bytes_text("+08:00"), &zone));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct arena arena;
        struct bytes result = {0};
        arena_init(&arena, block, sizeof block);
        enum cause cause = time_parse(bytes_text(rows[i].text), rows[i].format, bytes_text(rows[i].pattern), &zone,
        &arena,
                                      &result);
        if (!rows[i].result) {
            if (cause != CAUSE_FIELD_TYPE)
                fail_msg("%s was taken", rows[i].text);
            continue;
        }
        assert_int_equal(cause, CAUSE_NONE);
        check_text(result, rows[i].result, rows[i].text);
    }
}

/* Central Europe, 2026: +1 until March 29 01:00 UTC, +2 until October 25 01:00 UTC. */
static void gaps_are_refused_and_overlaps_take_the_earlier_instant(void **state)
{
    static const struct time_zone_transition changes[] = {{1774746000, 7200}, {1792890000, 3600}};
    const struct time_zone zone = {3600, changes, 2};
    int64_t utc = 0;
    (void)state;
    assert_false(time_zone_to_utc(&zone, 1774746000 + 3600 + 1800, &utc));       /* 02:30 on March 29 */
    assert_true(time_zone_to_utc(&zone, 1774746000 + 3600 - 1, &utc));
    assert_int_equal(utc, 1774746000 - 1);
    assert_true(time_zone_to_utc(&zone, 1792890000 + 3600 + 1800, &utc));        /* 02:30 on October 25, twice */
    assert_int_equal(utc, 1792890000 - 1800);
}

static void columns_take_what_they_can_hold(void **state)
{
    const struct column bigint = {.kind = COLUMN_INTEGER, .bytes_count = 8};
    const struct column tiny = {.kind = COLUMN_INTEGER, .bytes_count = 1, .is_unsigned = true};
    const struct column latin = {.kind = COLUMN_TEXT, .charset = "latin1"};
    const struct column wide = {.kind = COLUMN_TEXT, .utf8mb4 = true};
    const struct column money = {.kind = COLUMN_DECIMAL, .precision = 20, .scale = 2};
    static const struct {
        int column;
        enum value_tag tag;
        const char *text;
        enum column_fit fit;
    } rows[] = {
        {0, VALUE_TEXT, "9223372036854775807", COLUMN_FIT}, {0, VALUE_TEXT, "9223372036854775808", COLUMN_NO_MATCH},
        {0, VALUE_TEXT, "-9223372036854775808", COLUMN_FIT}, {0, VALUE_TEXT, "12abc", COLUMN_BAD_FORM},
        {0, VALUE_TEXT, "1e2", COLUMN_BAD_FORM}, {0, VALUE_DECIMAL, "12.00", COLUMN_FIT},
        {0, VALUE_DECIMAL, "12.50", COLUMN_NO_MATCH}, {1, VALUE_TEXT, "255", COLUMN_FIT},
        {1, VALUE_TEXT, "256", COLUMN_NO_MATCH}, {1, VALUE_TEXT, "-1", COLUMN_NO_MATCH},
        {2, VALUE_TEXT, "plain", COLUMN_FIT}, {2, VALUE_TEXT, "订单1", COLUMN_NO_MATCH},
        {3, VALUE_TEXT, "订单1", COLUMN_FIT}, {4, VALUE_DECIMAL, "1.00", COLUMN_FIT},
        {4, VALUE_TEXT, "x", COLUMN_NO_MATCH},
        {0, VALUE_NULL, "", COLUMN_FIT},
    };
    const struct column *columns[] = {&bigint, &tiny, &latin, &wide, &money};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct value value = {.tag = rows[i].tag, .text = bytes_text(rows[i].text)};
        if (column_fit(columns[rows[i].column], &value) != rows[i].fit)
            fail_msg("row %zu: %s", i, rows[i].text);
    }
    struct value amount = {.tag = VALUE_DECIMAL, .text = bytes_text("100.00")};
    assert_true(column_equals(&money, bytes_text("100.00"), &amount));
    assert_true(column_equals(&money, bytes_text("100"), &amount));
    assert_false(column_equals(&money, bytes_text("100.01"), &amount));
    struct value text = {.tag = VALUE_TEXT, .text = bytes_text("T1")};
    assert_true(column_equals(&wide, bytes_text("T1"), &text));
    assert_false(column_equals(&wide, bytes_text("t1"), &text));
    assert_false(column_equals(&wide, bytes_text("T1 "), &text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals_keep_their_digits),
        cmocka_unit_test(integers_have_one_form),
        cmocka_unit_test(numbers_compare_by_value),
        cmocka_unit_test(times_become_utc_microseconds),
        cmocka_unit_test(gaps_are_refused_and_overlaps_take_the_earlier_instant),
        cmocka_unit_test(columns_take_what_they_can_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
