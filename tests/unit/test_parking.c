/* SPDX-License-Identifier: MIT */
/* test_parking: when a parked record is tried again, and when it is given up. */
#include "table.h"

#include "idem/core/parking.h"

static const struct park_config park = {.for_ms = 600000, .attempts = 8, .backoff_base_ms = 1000,
                                        .backoff_cap_ms = 60000, .locked_after_ms = 30000};

static void the_first_time(void **state)
{
    (void)state;
    struct park_step missing = park_first(&park, CAUSE_NOT_FOUND), early = park_first(&park, CAUSE_STATE);
    struct park_step locked = park_first(&park, CAUSE_LOCKED), behind = park_first(&park, CAUSE_BEHIND);
    assert_int_equal(missing.delay_ms, 1000);
    assert_int_equal(missing.clock, PARK_CLOCK_STARTED);
    assert_int_equal(missing.for_ms, 600000);
    assert_int_equal(early.clock, PARK_CLOCK_STARTED);
    assert_int_equal(locked.delay_ms, 1000);
    assert_int_equal(locked.clock, PARK_CLOCK_STOPPED);
    assert_int_equal(behind.delay_ms, PARK_UNTIL_WOKEN);
    assert_int_equal(behind.clock, PARK_CLOCK_STOPPED);
}

static void the_waits_double_up_to_the_longest(void **state)
{
    static const uint64_t delays[] = {2000, 4000, 8000, 16000, 32000, 60000, 60000};
    struct parked_row row = {.id = 1, .clock_runs = true};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(delays); i++) {
        struct park_step step = park_again(&park, &row, CAUSE_STATE);
        assert_int_equal(step.delay_ms, delays[i]);
        assert_int_equal(step.attempts, i + 1);
        assert_int_equal(step.until_give_up, i + 2 >= park.attempts);    /* the next one may be the last */
        row.attempts = step.attempts;
    }
    row.attempts = UINT32_MAX - 1;                   /* doubling does not overflow */
    assert_int_equal(park_again(&park, &row, CAUSE_STATE).delay_ms, 60000);
}

/* Over time *and* attempts used. */
static void giving_up(void **state)
{
    static const struct {
        uint32_t attempts;
        bool over, given_up;
    } rows[] = {{0, false, false}, {0, true, false}, {6, true, false}, {7, false, false}, {7, true, true},
                {100, true, true}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct parked_row row = {.id = 1, .clock_runs = true, .attempts = rows[i].attempts, .over = rows[i].over};
        assert_int_equal(park_again(&park, &row, CAUSE_NOT_FOUND).give_up, rows[i].given_up);
        assert_false(park_again(&park, &row, CAUSE_LOCKED).give_up);
        assert_false(park_again(&park, &row, CAUSE_BEHIND).give_up);
    }
}

static void what_is_not_counted(void **state)
{
    (void)state;
    struct parked_row never = {.id = 1, .reason = CAUSE_BEHIND}, counted = {.id = 1, .attempts = 3, .clock_runs = true};
    struct park_step step = park_again(&park, &counted, CAUSE_LOCKED);
    assert_int_equal(step.attempts, 3);
    assert_int_equal(step.clock, PARK_CLOCK_SHIFTED);
    assert_int_equal(step.delay_ms, 1000);
    assert_int_equal(park_again(&park, &never, CAUSE_LOCKED).clock, PARK_CLOCK_KEPT);
    /* Its time begins when it is the head and is judged. */
    step = park_again(&park, &never, CAUSE_NOT_FOUND);
    assert_int_equal(step.clock, PARK_CLOCK_STARTED);
    assert_int_equal(step.attempts, 1);
    step = park_again(&park, &counted, CAUSE_BEHIND);
    assert_int_equal(step.clock, PARK_CLOCK_KEPT);
    assert_int_equal(step.attempts, 3);
    assert_int_equal(step.delay_ms, PARK_UNTIL_WOKEN);
}

static void the_end_by_its_last_reason(void **state)
{
    static const struct {
        enum cause reason;
        enum outcome outcome;
        enum cause cause;
    } rows[] = {{CAUSE_NOT_FOUND, OUTCOME_NOT_FOUND, CAUSE_GIVEN_UP},
                {CAUSE_STATE, OUTCOME_STATE_CONFLICT, CAUSE_EARLY},
                {CAUSE_LOCKED, OUTCOME_STATE_CONFLICT, CAUSE_GIVEN_UP},
                {CAUSE_BEHIND, OUTCOME_STATE_CONFLICT, CAUSE_GIVEN_UP},
                {CAUSE_REDRIVE, OUTCOME_STATE_CONFLICT, CAUSE_GIVEN_UP}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum cause cause;
        assert_int_equal(park_given_up(rows[i].reason, &cause), rows[i].outcome);
        assert_int_equal(cause, rows[i].cause);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_time), cmocka_unit_test(the_waits_double_up_to_the_longest),
        cmocka_unit_test(giving_up), cmocka_unit_test(what_is_not_counted),
        cmocka_unit_test(the_end_by_its_last_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
