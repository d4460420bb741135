/* SPDX-License-Identifier: MIT */
/* test_gaps: numbers that are committed in any order, against a list of all of them. */
#include "table.h"

#include "idem/core/gaps.h"

static bool is_in(const struct gaps *gaps, uint64_t number)
{
    for (uint32_t i = 0; i < gaps->count; i++)
        if (gaps->list[i].from <= number && number <= gaps->list[i].to)
            return true;
    return false;
}

static void check(const struct gaps *gaps, const bool *seen, uint64_t count)
{
    for (uint32_t i = 0; i < gaps->count; i++) {
        assert_true(gaps->list[i].from <= gaps->list[i].to);
        if (i > 0)
            assert_true(gaps->list[i - 1].to < gaps->list[i].from);
    }
    for (uint64_t n = 1; n < count; n++)
        if (!seen[n] && n < gaps->high)
            assert_true(is_in(gaps, n));
}

static void a_number_that_is_missing_is_a_gap_until_it_comes(void **state)
{
    struct gaps gaps;
    (void)state;
    gaps_init(&gaps);
    gaps_see(&gaps, 3, 10);                          /* 1-2 */
    gaps_see(&gaps, 4, 20);
    gaps_see(&gaps, 10, 30);                         /* 5-9 */
    assert_int_equal(gaps.count, 2);
    assert_int_equal(gaps.list[1].from, 5);
    assert_int_equal(gaps.list[1].to, 9);
    gaps_see(&gaps, 7, 40);
    assert_int_equal(gaps.count, 3);
    assert_int_equal(gaps.list[2].since_us, 30);     /* as old as what it was part of */
    gaps_see(&gaps, 5, 40);
    gaps_see(&gaps, 6, 40);
    gaps_see(&gaps, 9, 40);
    gaps_see(&gaps, 8, 40);
    gaps_see(&gaps, 8, 40);
    assert_int_equal(gaps.count, 1);
    gaps_drop(&gaps, 0);
    assert_int_equal(gaps.count, 0);
    assert_int_equal(gaps.high, 10);
}

static void numbers_that_rise_by_a_step_leave_no_gaps(void **state)
{
    struct gaps gaps;
    (void)state;
    gaps_init(&gaps);
    gaps.step = 3;
    for (uint64_t n = 2; n < 1000; n += 3)
        gaps_see(&gaps, n, 1);
    assert_int_equal(gaps.count, 0);
    gaps_see(&gaps, 1007, 1);                        /* 1001 and 1004 */
    assert_int_equal(gaps.count, 1);
}

/* More gaps than places: they are joined, and none is lost. */
static void many_gaps_are_joined(void **state)
{
    enum { NUMBERS = 4000 };
    static bool seen[NUMBERS];
    struct gaps gaps;
    uint64_t random = 42;
    (void)state;
    for (int round = 0; round < 20; round++) {
        memset(seen, 0, sizeof seen);
        gaps_init(&gaps);
        for (int i = 0; i < NUMBERS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t n = (random >> 33) % NUMBERS;
            uint64_t number = n == 0 ? 1 : n;
            /* Mostly near the highest, as rows are written. */
            if (i % 4 && gaps.high + 3 < NUMBERS)
                number = gaps.high + 1 + (random >> 60) % 3;
            seen[number] = true;
            gaps_see(&gaps, number, i);
            assert_true(gaps.count <= GAPS_MAX);
        }
        check(&gaps, seen, NUMBERS);
    }
}

static void everything_is_looked_at_again_in_parts(void **state)
{
    struct gaps gaps;
    (void)state;
    gaps_init(&gaps);
    for (uint64_t n = 1; n <= 100; n++)
        gaps_see(&gaps, n, 1);
    gaps_look_again(&gaps);
    assert_int_equal(gaps.again, 0);
    assert_int_equal(gaps.again_end, 100);
    gaps_read_to(&gaps, 40, false);
    assert_int_equal(gaps.again, 40);
    gaps_read_to(&gaps, 0, false);                   /* stopped before the first row */
    assert_int_equal(gaps.again, 40);
    gaps_see(&gaps, 101, 1);
    gaps_read_to(&gaps, 101, false);
    assert_int_equal(gaps.again, gaps.again_end);
    gaps_look_again(&gaps);
    gaps_read_to(&gaps, 0, true);                    /* there was nothing */
    assert_int_equal(gaps.again, gaps.again_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_that_is_missing_is_a_gap_until_it_comes),
        cmocka_unit_test(numbers_that_rise_by_a_step_leave_no_gaps),
        cmocka_unit_test(many_gaps_are_joined),
        cmocka_unit_test(everything_is_looked_at_again_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
