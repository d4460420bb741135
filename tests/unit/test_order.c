/* SPDX-License-Identifier: MIT */
/* test_order: what keeps order and place: offsets, segments, waves, back-off. */
#include "table.h"

#include "idem/core/batch.h"
#include "idem/core/offsets.h"
#include "idem/core/retry.h"
#include "idem/core/segments.h"

#include <stdlib.h>

static const uint8_t no_hash[OFFSET_HASH_LEN];

static void the_commit_point_never_passes_unfinished_work(void **state)
{
    struct offset_slot ring[8], larger[16];
    struct offsets offsets;
    (void)state;
    offsets_init(&offsets, ring, 8, 10);
    static const int64_t delivered[] = {10, 11, 15, 16, 20};     /* gaps are normal */
    for (size_t i = 0; i < COUNT_OF(delivered); i++)
        assert_true(offsets_deliver(&offsets, delivered[i], no_hash, 0));
    assert_int_equal(offsets.next, 10);
    assert_false(offsets_finish(&offsets, 11));
    assert_int_equal(offsets.next, 10);
    assert_true(offsets_finish(&offsets, 10));
    assert_int_equal(offsets.next, 15);
    assert_false(offsets_finish(&offsets, 20));
    assert_true(offsets_finish(&offsets, 15));
    assert_int_equal(offsets.next, 16);
    offsets_grow(&offsets, larger, 16);
    assert_true(offsets_finish(&offsets, 16));
    assert_int_equal(offsets.next, 21);
    assert_int_equal(offsets.last_offset, 20);
    assert_true(offsets_idle(&offsets));
    assert_false(offsets_is_new(&offsets, 20));
    assert_true(offsets_is_new(&offsets, 21));
}

static void a_full_ring_says_so(void **state)
{
    struct offset_slot ring[2];
    struct offsets offsets;
    (void)state;
    offsets_init(&offsets, ring, 2, -1);
    assert_true(offsets_deliver(&offsets, 0, no_hash, 0));
    assert_true(offsets_deliver(&offsets, 1, no_hash, 0));
    assert_false(offsets_deliver(&offsets, 2, no_hash, 0));
    assert_true(offsets_finish(&offsets, 0));
    assert_true(offsets_deliver(&offsets, 2, no_hash, 0));
}

static void the_oldest_unfinished_record_has_an_age(void **state)
{
    struct offset_slot ring[4], larger[8];
    struct offsets offsets;
    (void)state;
    offsets_init(&offsets, ring, 4, -1);
    assert_int_equal(offsets_oldest_ms(&offsets, 5000000), 0);
    assert_int_equal(offsets_low(&offsets), -1);
    assert_true(offsets_deliver(&offsets, 3, no_hash, 1000000));
    assert_true(offsets_deliver(&offsets, 4, no_hash, 2000000));
    assert_int_equal(offsets_oldest_ms(&offsets, 5000000), 4000);
    assert_int_equal(offsets_low(&offsets), 3);
    offsets_finish(&offsets, 4);
    offsets_grow(&offsets, larger, 8);
    assert_int_equal(offsets_oldest_ms(&offsets, 5000000), 4000);
    assert_true(offsets_deliver(&offsets, 9, no_hash, 4999000));
    offsets_finish(&offsets, 3);
    assert_int_equal(offsets_low(&offsets), 9);
    assert_int_equal(offsets_oldest_ms(&offsets, 5000000), 1);
    /* A host that has been up for longer than 32 bits of milliseconds. */
    offsets_init(&offsets, ring, 4, -1);
    assert_true(offsets_deliver(&offsets, 1, no_hash, 4294967295000));
    assert_int_equal(offsets_oldest_ms(&offsets, 4294967296000 + 2000000), 2001);
}

/* Random deliveries and completions against the simplest model. */
static void offsets_agree_with_a_plain_model(void **state)
{
    struct offset_slot ring[64];
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        int64_t given[64];
        bool done[64] = {false};
        unsigned random = seed;
        struct offsets offsets;
        offsets_init(&offsets, ring, 64, 0);
        int64_t offset = 0;
        for (int i = 0; i < 64; i++) {
            offset += 1 + rand_r(&random) % 3;
            given[i] = offset;
            assert_true(offsets_deliver(&offsets, offset, no_hash, 0));
        }
        for (int left = 64; left > 0; left--) {
            int pick = rand_r(&random) % 64;
            while (done[pick])
                pick = (pick + 1) % 64;
            done[pick] = true;
            offsets_finish(&offsets, given[pick]);
            int first = 0;
            while (first < 64 && done[first])
                first++;
            int64_t wanted = first == 0 ? 0 : first == 64 ? given[63] + 1 : given[first];
            assert_int_equal(offsets.next, wanted);
        }
    }
}

static void segments_run_in_delivery_order_however_they_are_split(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 200; seed++) {
        struct segments segments;
        unsigned random = seed;
        uint32_t next = 0, count = 1 + (unsigned)rand_r(&random) % 500;
        segments_init(&segments, count);
        for (const struct segment *top; (top = segments_top(&segments));) {
            assert_int_equal(top->from, next);
            uint32_t len = top->to - top->from;
            int choice = rand_r(&random) % 4;
            if (choice == 0 && len > 1) {
                segments_halve(&segments);
            } else if (choice == 2 && len > 1 && segments.count < SEGMENTS_MAX - 2) {
                segments_split(&segments, top->from + 1 + (uint32_t)rand_r(&random) % (len - 1));
            } else if (choice == 1 && len > 1 && segments.count < SEGMENTS_MAX - 2) {
                segments_cut(&segments, top->from + (uint32_t)rand_r(&random) % len);
            } else {
                next = top->to;
                segments_pop(&segments);
            }
        }
        assert_int_equal(next, count);
    }
}

static void a_removed_record_leaves_no_gap(void **state)
{
    struct segments segments;
    (void)state;
    segments_init(&segments, 10);
    segments_cut(&segments, 4);
    segments_remove(&segments, 4);
    segments_remove(&segments, 0);
    assert_int_equal(segments.count, 2);
    assert_int_equal(segments_top(&segments)->from, 0);
    assert_int_equal(segments_top(&segments)->to, 3);
    segments_pop(&segments);
    assert_int_equal(segments_top(&segments)->from, 3);
    assert_int_equal(segments_top(&segments)->to, 8);
}

/* ---- waves ------------------------------------------------------------------------------------------------------- */

static struct rule rule = {.biz_type = {(const uint8_t *)"payment", 7}};

static struct item *item_of(struct item *item, const char *key, const char *number)
{
    *item = (struct item){.eval = {.rule = &rule, .key = bytes_text(key), .biz_no = bytes_text(number)},
                          .number_hash = bytes_hash(bytes_text(number), 17)};
    return item;
}

static void waves_put_equal_keys_and_numbers_one_after_the_other(void **state)
{
    struct item items[6];
    struct item *pending[] = {item_of(&items[0], "k1", "A"), item_of(&items[1], "k2", "B"),
                              item_of(&items[2], "k1", "C"), item_of(&items[3], "k3", "A"),
                              item_of(&items[4], "k4", "C"), item_of(&items[5], "k5", "D")};
    struct item *wave[6];
    struct wave_set set;
    void *slots = malloc(wave_set_size(6));
    uint32_t rest = 0;
    (void)state;
    wave_set_init(&set, slots, 6);
    assert_int_equal(wave_pick(&set, pending, 6, wave, pending, &rest), 3);
    assert_ptr_equal(wave[0], &items[0]);
    assert_ptr_equal(wave[1], &items[1]);
    assert_ptr_equal(wave[2], &items[5]);        /* k4 waits: its number is that of a record that waits */
    assert_int_equal(rest, 3);
    assert_int_equal(wave_pick(&set, pending, rest, wave, pending, &rest), 2);
    assert_ptr_equal(wave[0], &items[2]);
    assert_ptr_equal(wave[1], &items[3]);
    assert_int_equal(wave_pick(&set, pending, rest, wave, pending, &rest), 1);
    assert_int_equal(rest, 0);
    free(slots);
}

static void a_prefix_wave_stops_at_the_first_conflict(void **state)
{
    struct item items[4];
    struct item *pending[] = {item_of(&items[0], "k1", "A"), item_of(&items[1], "k2", "B"),
                              item_of(&items[2], "k3", "A"), item_of(&items[3], "k4", "D")};
    struct item *wave[4];
    struct wave_set set;
    void *slots = malloc(wave_set_size(4));
    uint32_t rest = 0;
    (void)state;
    wave_set_init(&set, slots, 4);
    assert_int_equal(wave_prefix(&set, pending, 4, wave, pending, &rest), 2);
    assert_int_equal(rest, 2);
    assert_ptr_equal(pending[0], &items[2]);
    free(slots);
}

static void delays_double_up_to_their_cap_and_jitter_within_their_upper_half(void **state)
{
    (void)state;
    assert_true(retry_delay_ms(1, 5, 1000, 0) >= 2 && retry_delay_ms(1, 5, 1000, 0) <= 5);
    for (uint32_t attempt = 1; attempt < 40; attempt++)
        for (uint64_t random = 0; random < 50; random++) {
            uint32_t delay = retry_delay_ms(attempt, 5, 1000, random * 7919);
            assert_true(delay >= 2 && delay <= 1000);
            if (attempt > 10)
                assert_true(delay >= 500);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_commit_point_never_passes_unfinished_work),
        cmocka_unit_test(a_full_ring_says_so),
        cmocka_unit_test(the_oldest_unfinished_record_has_an_age),
        cmocka_unit_test(offsets_agree_with_a_plain_model),
        cmocka_unit_test(segments_run_in_delivery_order_however_they_are_split),
        cmocka_unit_test(a_removed_record_leaves_no_gap),
        cmocka_unit_test(waves_put_equal_keys_and_numbers_one_after_the_other),
        cmocka_unit_test(a_prefix_wave_stops_at_the_first_conflict),
        cmocka_unit_test(delays_double_up_to_their_cap_and_jitter_within_their_upper_half),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
