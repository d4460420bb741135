/* SPDX-License-Identifier: MIT */
/* test_flood: the share of dead letters within a minute. */
#include "table.h"

#include "idem/core/flood.h"

static void note(struct flood *flood, int64_t second, int records, int letters)
{
    for (int i = 0; i < records; i++)
        flood_note(flood, second, i < letters);
}

static void a_share_of_the_last_minute(void **state)
{
    static const struct {
        const char *name;
        int records, letters;
        uint32_t ppm;
        bool over;
    } rows[] = {{"nothing", 0, 0, 200000, false},       {"too few", 99, 99, 200000, false},
                {"exactly the share", 100, 20, 200000, false}, {"more", 100, 21, 200000, true},
                {"none allowed", 100, 1, 0, true},      {"none came", 100, 0, 0, false},
                {"off", 1000, 1000, 1000000, false},    {"many", 100000, 20001, 200000, true}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct flood flood = {0};
        note(&flood, 1000, rows[i].records, rows[i].letters);
        if (flood_is_over(&flood, 1000, rows[i].ppm) != rows[i].over)
            fail_msg("%s", rows[i].name);
    }
}

static void what_is_older_does_not_count(void **state)
{
    struct flood flood = {0};
    (void)state;
    note(&flood, 100, 100, 50);
    assert_true(flood_is_over(&flood, 159, 200000));
    assert_false(flood_is_over(&flood, 160, 200000));
    note(&flood, 160, 100, 0);
    assert_false(flood_is_over(&flood, 160, 200000));
    assert_int_equal(flood.records, 100);
    note(&flood, 100000, 100, 100);                  /* hours later */
    assert_int_equal(flood.records, 100);
    assert_true(flood_is_over(&flood, 100059, 200000));
    for (int64_t second = 200000; second < 200200; second++)     /* spread evenly */
        note(&flood, second, 10, 3);
    assert_int_equal(flood.records, 600);
    assert_int_equal(flood.letters, 180);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_of_the_last_minute), cmocka_unit_test(what_is_older_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
