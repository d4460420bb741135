/* SPDX-License-Identifier: MIT */
/* source_cases: see source_cases.h. A member keeps what it was told and what it was given; waits poll until what they
 * wait for is there, so many times at most. */
#include "source_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POLLS_MAX = 600, QUIET_POLLS = 8, SEEN_MAX = 64, COMMIT_MS = 10000 };

/* Where a member starts a partition. */
enum answer { ANSWER_TOLD, ANSWER_HOLD };

struct member {
    int slot;
    const struct source_port *port;
    enum answer answer;
    uint32_t joined, revoked, lost;
    bool has[SOURCE_PARTITIONS];
    int64_t told[SOURCE_PARTITIONS];             /* the group's offset at the assignment */
    int64_t commit_when_revoked;                 /* of partition 0; 0: nothing */
    uint32_t seen_count[SOURCE_PARTITIONS];
    int64_t seen[SOURCE_PARTITIONS][SEEN_MAX];
};

static const struct source_hooks *hooks;
static struct member members[SOURCE_MEMBERS];
static struct err err;

/* ---- what a member hears --------------------------------------------------------------------------------------- */

static void assigned(void *context, struct source_partition *partitions, uint32_t count)
{
    struct member *member = context;
    for (uint32_t i = 0; i < count; i++) {
        struct source_partition *one = &partitions[i];
        assert_true(bytes_equal(one->topic, hooks->topic(hooks->context)));
        assert_true(one->partition >= 0 && one->partition < SOURCE_PARTITIONS);
        assert_false(member->has[one->partition]);
        member->has[one->partition] = true;
        member->told[one->partition] = one->offset;
        if (member->answer == ANSWER_HOLD)
            one->offset = SOURCE_OFFSET_NONE;
        else if (one->offset == SOURCE_OFFSET_NONE)
            one->offset = SOURCE_OFFSET_BEGINNING;
    }
}

static struct source_partition at(int32_t partition, int64_t offset)
{
    return (struct source_partition){hooks->topic(hooks->context), partition, offset};
}

static void commit(struct member *member, int32_t partition, int64_t offset)
{
    struct source_partition one = at(partition, offset);
    assert_int_equal(member->port->ops->commit(member->port->self, &one, 1, true, COMMIT_MS, &err), ERR_NONE);
}

static void revoked(void *context, const struct source_partition *partitions, uint32_t count, bool lost)
{
    struct member *member = context;
    member->revoked++;
    member->lost += lost;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(member->has[partitions[i].partition]);
        member->has[partitions[i].partition] = false;
        if (partitions[i].partition == 0 && member->commit_when_revoked > 0)
            commit(member, 0, member->commit_when_revoked);
    }
}

static void joined(void *context)
{
    struct member *member = context;
    member->joined++;
}

static void stopped(void *context, const struct source_partition *partition, const char *why)
{
    (void)context;
    fail_msg("partition %d stopped: %s", partition->partition, why);
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static struct member *join(int slot, enum answer answer)
{
    struct member *member = &members[slot];
    *member = (struct member){.slot = slot, .answer = answer};
    const struct source_events events = {member, assigned, revoked, joined, stopped};
    member->port = hooks->join(hooks->context, slot, &events);
    return member;
}

static void poll_once(struct member *member)
{
    struct record record;
    enum source_polled polled = hooks->poll(hooks->context, member->slot, &record);
    assert_int_not_equal(polled, SOURCE_FATAL);
    if (polled != SOURCE_RECORD)
        return;
    char value[24] = "";
    assert_true(member->has[record.partition]);          /* never of a partition that was given up */
    assert_true(bytes_equal(record.topic, hooks->topic(hooks->context)));
    assert_true(record.value.len > 0 && record.value.len < sizeof value);
    memcpy(value, record.value.at, record.value.len);
    assert_int_equal(strtoll(value, NULL, 10), record.offset);
    assert_true(member->seen_count[record.partition] < SEEN_MAX);
    member->seen[record.partition][member->seen_count[record.partition]++] = record.offset;
}

#define UNTIL(member, condition)                                                                    \
    do {                                                                                            \
        for (int polls = 0; polls < POLLS_MAX && !(condition); polls++)                             \
            poll_once(member);                                                                      \
        if (!(condition))                                                                           \
            fail_msg("never came: %s", #condition);                                                 \
    } while (0)

static void poll_quietly(struct member *member)
{
    for (int i = 0; i < QUIET_POLLS; i++)
        poll_once(member);
}

static void start_at(struct member *member, int32_t partition, int64_t offset)
{
    struct source_partition one = at(partition, offset);
    assert_int_equal(member->port->ops->start(member->port->self, &one, 1, &err), ERR_NONE);
}

static void pause_one(struct member *member, int32_t partition, bool paused)
{
    struct source_partition one = at(partition, SOURCE_OFFSET_NONE);
    assert_int_equal(member->port->ops->pause(member->port->self, &one, 1, paused, &err), ERR_NONE);
}

/* What it was given from the from-th on is first, first + 1, ... */
static void in_order(const struct member *member, int32_t partition, uint32_t from, int64_t first)
{
    for (uint32_t i = from; i < member->seen_count[partition]; i++)
        assert_int_equal(member->seen[partition][i], first + (int64_t)(i - from));
}

static void close_member(struct member *member)
{
    assert_int_equal(member->port->ops->close(member->port->self, COMMIT_MS, &err), ERR_NONE);
    assert_false(member->has[0] || member->has[1]);      /* revoked() came first */
    hooks->leave(hooks->context, member->slot);
}

static struct member *alone(enum answer answer)
{
    struct member *member = join(0, answer);
    UNTIL(member, member->has[0] && member->has[1]);
    return member;
}

/* ---- cases ------------------------------------------------------------------------------------------------------ */

static void a_new_group_has_no_offsets(void **state)
{
    (void)state;
    hooks->produce(hooks->context, 0, 3);
    hooks->produce(hooks->context, 1, 2);
    struct member *member = alone(ANSWER_TOLD);
    assert_true(member->joined >= 1);
    assert_int_equal(member->told[0], SOURCE_OFFSET_NONE);
    assert_int_equal(member->told[1], SOURCE_OFFSET_NONE);
    UNTIL(member, member->seen_count[0] == 3 && member->seen_count[1] == 2);
    in_order(member, 0, 0, 0);
    in_order(member, 1, 0, 0);
    hooks->produce(hooks->context, 0, 1);
    UNTIL(member, member->seen_count[0] == 4);
    in_order(member, 0, 0, 0);
    close_member(member);
    assert_int_equal(member->lost, 0);
}

static void what_is_held_back_waits_for_start(void **state)
{
    (void)state;
    hooks->produce(hooks->context, 0, 4);
    hooks->produce(hooks->context, 1, 4);
    struct member *member = alone(ANSWER_HOLD);
    poll_quietly(member);
    assert_int_equal(member->seen_count[0] + member->seen_count[1], 0);
    start_at(member, 0, 1);
    UNTIL(member, member->seen_count[0] == 3);
    in_order(member, 0, 0, 1);
    start_at(member, 0, SOURCE_OFFSET_BEGINNING);        /* a running one is moved */
    UNTIL(member, member->seen_count[0] == 7);
    in_order(member, 0, 3, 0);
    assert_int_equal(member->seen_count[1], 0);
    start_at(member, 1, 3);
    UNTIL(member, member->seen_count[1] == 1);
    in_order(member, 1, 0, 3);
    assert_int_equal(member->seen_count[0], 7);          /* starting one does not move the other */
    close_member(member);
}

static void the_next_member_is_told_what_was_committed(void **state)
{
    (void)state;
    hooks->produce(hooks->context, 0, 4);
    struct member *member = alone(ANSWER_TOLD);
    UNTIL(member, member->seen_count[0] == 4);
    commit(member, 0, 3);
    commit(member, 0, 2);                                /* never back */
    assert_int_equal(hooks->committed(hooks->context, 0), 3);
    assert_int_equal(hooks->committed(hooks->context, 1), SOURCE_OFFSET_NONE);
    close_member(member);
    struct member *next = alone(ANSWER_TOLD);
    assert_int_equal(next->told[0], 3);
    assert_int_equal(next->told[1], SOURCE_OFFSET_NONE);
    UNTIL(next, next->seen_count[0] == 1);
    in_order(next, 0, 0, 3);
    close_member(next);
}

static void a_commit_that_was_refused_can_be_repeated(void **state)
{
    struct source_partition one;
    (void)state;
    hooks->produce(hooks->context, 0, 4);
    struct member *member = alone(ANSWER_TOLD);
    UNTIL(member, member->seen_count[0] == 4);
    one = at(0, 4);
    hooks->refuse_commit(hooks->context);
    assert_int_equal(member->port->ops->commit(member->port->self, &one, 1, true, COMMIT_MS, &err), ERR_RECONNECT);
    assert_int_equal(hooks->committed(hooks->context, 0), SOURCE_OFFSET_NONE);
    commit(member, 0, 4);
    assert_int_equal(hooks->committed(hooks->context, 0), 4);
    close_member(member);
}

/* Nothing newer comes that would take it along: the port's owner was told that all is well. */
static void a_commit_that_was_refused_unseen_is_repeated(void **state)
{
    struct source_partition one;
    (void)state;
    hooks->produce(hooks->context, 0, 4);
    struct member *member = alone(ANSWER_TOLD);
    UNTIL(member, member->seen_count[0] == 4);
    one = at(0, 4);
    hooks->refuse_commit(hooks->context);
    assert_int_equal(member->port->ops->commit(member->port->self, &one, 1, false, COMMIT_MS, &err), ERR_NONE);
    UNTIL(member, hooks->committed(hooks->context, 0) == 4);
    close_member(member);
}

static void a_handler_may_commit_what_it_gives_up(void **state)
{
    (void)state;
    hooks->produce(hooks->context, 0, 4);
    struct member *member = alone(ANSWER_TOLD);
    UNTIL(member, member->seen_count[0] == 4);
    member->commit_when_revoked = 4;
    close_member(member);
    assert_int_equal(member->revoked, 1);
    assert_int_equal(hooks->committed(hooks->context, 0), 4);
}

static void paused_gives_nothing_and_goes_on_where_it_was(void **state)
{
    (void)state;
    struct member *member = alone(ANSWER_TOLD);
    hooks->produce(hooks->context, 0, 3);
    UNTIL(member, member->seen_count[0] == 3);
    pause_one(member, 0, true);
    pause_one(member, 0, true);
    hooks->produce(hooks->context, 0, 5);
    hooks->produce(hooks->context, 1, 2);
    UNTIL(member, member->seen_count[1] == 2);           /* the other goes on */
    poll_quietly(member);
    assert_int_equal(member->seen_count[0], 3);
    pause_one(member, 0, false);
    pause_one(member, 0, false);
    UNTIL(member, member->seen_count[0] == 8);
    poll_quietly(member);
    assert_int_equal(member->seen_count[0], 8);
    in_order(member, 0, 0, 0);                           /* nothing twice, nothing left out */
    in_order(member, 1, 0, 0);
    close_member(member);
}

static void starting_ends_the_pause_of_its_own_partition(void **state)
{
    (void)state;
    struct member *member = alone(ANSWER_HOLD);
    pause_one(member, 1, true);                          /* not started: passed over */
    hooks->produce(hooks->context, 0, 2);
    hooks->produce(hooks->context, 1, 2);
    start_at(member, 0, 0);
    UNTIL(member, member->seen_count[0] == 2);
    pause_one(member, 0, true);
    hooks->produce(hooks->context, 0, 2);
    start_at(member, 1, 0);
    UNTIL(member, member->seen_count[1] == 2);
    poll_quietly(member);
    assert_int_equal(member->seen_count[0], 2);          /* still paused */
    pause_one(member, 0, false);
    UNTIL(member, member->seen_count[0] == 4);
    in_order(member, 0, 0, 0);
    pause_one(member, 0, true);
    start_at(member, 0, 1);
    UNTIL(member, member->seen_count[0] == 7);
    in_order(member, 0, 4, 1);
    close_member(member);
}

static bool shared(const struct member *a, const struct member *b)
{
    return a->has[0] + a->has[1] == 1 && b->has[0] + b->has[1] == 1;
}

static struct member *share_with(struct member *a)
{
    struct member *b = join(1, ANSWER_TOLD);
    for (int i = 0; i < POLLS_MAX && !shared(a, b); i++) {
        poll_once(a);
        poll_once(b);
    }
    assert_true(shared(a, b));
    return b;
}

static void what_was_paused_and_comes_back_is_not_paused(void **state)
{
    (void)state;
    hooks->produce(hooks->context, 0, 2);
    hooks->produce(hooks->context, 1, 2);
    struct member *a = alone(ANSWER_TOLD);
    UNTIL(a, a->seen_count[0] == 2 && a->seen_count[1] == 2);
    commit(a, 0, 2);
    commit(a, 1, 2);
    pause_one(a, 0, true);
    pause_one(a, 1, true);
    struct member *b = share_with(a);
    int32_t given = b->has[0] ? 0 : 1;
    close_member(b);
    UNTIL(a, a->has[0] && a->has[1]);
    hooks->produce(hooks->context, given, 2);
    UNTIL(a, a->seen_count[given] == 4);
    in_order(a, given, 0, 0);
    close_member(a);
}

static void the_range_is_what_the_log_holds(void **state)
{
    struct source_partition first, second;
    int64_t low = -9, high = -9;
    (void)state;
    struct member *member = alone(ANSWER_TOLD);
    hooks->produce(hooks->context, 0, 3);
    first = at(0, SOURCE_OFFSET_NONE);
    second = at(1, SOURCE_OFFSET_NONE);
    assert_int_equal(member->port->ops->range(member->port->self, &first, &low, &high, &err), ERR_NONE);
    assert_int_equal(low, 0);
    assert_int_equal(high, 3);
    assert_int_equal(member->port->ops->range(member->port->self, &second, &low, &high, &err), ERR_NONE);
    assert_int_equal(low, 0);
    assert_int_equal(high, 0);
    close_member(member);
}

static void the_end_is_told_by_what_was_fetched(void **state)
{
    struct source_partition first = at(0, SOURCE_OFFSET_NONE), unknown = at(77, SOURCE_OFFSET_NONE);
    (void)state;
    hooks->produce(hooks->context, 0, 3);
    struct member *member = alone(ANSWER_TOLD);
    UNTIL(member, member->seen_count[0] == 3);
    assert_int_equal(member->port->ops->end(member->port->self, &first), 3);
    assert_int_equal(member->port->ops->end(member->port->self, &unknown), -1);
    hooks->produce(hooks->context, 0, 2);
    UNTIL(member, member->seen_count[0] == 5);
    assert_int_equal(member->port->ops->end(member->port->self, &first), 5);
    close_member(member);
}

static void two_members_have_one_partition_each(void **state)
{
    (void)state;
    hooks->produce(hooks->context, 0, 2);
    hooks->produce(hooks->context, 1, 2);
    struct member *a = alone(ANSWER_TOLD), *b;
    UNTIL(a, a->seen_count[0] == 2 && a->seen_count[1] == 2);
    commit(a, 0, 2);
    commit(a, 1, 2);
    b = share_with(a);
    assert_true(a->revoked >= 1 && a->lost == 0);
    int32_t given = b->has[0] ? 0 : 1, kept = 1 - given;
    assert_true(a->has[kept] && !a->has[given]);
    assert_int_equal(b->told[given], 2);
    hooks->produce(hooks->context, given, 1);
    hooks->produce(hooks->context, kept, 1);
    UNTIL(b, b->seen_count[given] == 1);
    in_order(b, given, 0, 2);
    UNTIL(a, a->seen_count[kept] == 3);
    in_order(a, kept, 0, 0);
    commit(a, given, 3);                                 /* not its own any more: left out */
    assert_int_equal(hooks->committed(hooks->context, given), 2);
    close_member(a);
    UNTIL(b, b->has[0] && b->has[1]);
    assert_int_equal(b->told[kept], 2);
    UNTIL(b, b->seen_count[kept] == 1);                  /* what a had not committed */
    in_order(b, kept, 0, 2);
    close_member(b);
}

/* ---- running ---------------------------------------------------------------------------------------------------- */

static int start(void **state)
{
    (void)state;
    hooks->reset(hooks->context);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    for (int i = 0; i < SOURCE_MEMBERS; i++)
        hooks->leave(hooks->context, i);
    return 0;
}

#define CASE(name) {#name, name, start, finish, NULL}

int source_cases_run(const char *name, const struct source_hooks *given)
{
    static const struct CMUnitTest cases[] = {
        CASE(a_new_group_has_no_offsets),
        CASE(what_is_held_back_waits_for_start),
        CASE(the_next_member_is_told_what_was_committed),
        CASE(a_handler_may_commit_what_it_gives_up),
        CASE(paused_gives_nothing_and_goes_on_where_it_was),
        CASE(starting_ends_the_pause_of_its_own_partition),
        CASE(what_was_paused_and_comes_back_is_not_paused),
        CASE(the_range_is_what_the_log_holds),
        CASE(the_end_is_told_by_what_was_fetched),
        CASE(two_members_have_one_partition_each),
        CASE(a_commit_that_was_refused_can_be_repeated),         /* the last two, left out where nobody refuses */
        CASE(a_commit_that_was_refused_unseen_is_repeated),
    };
    hooks = given;
    size_t count = sizeof cases / sizeof *cases - (given->refuse_commit ? 0 : 2);
    return _cmocka_run_group_tests(name, cases, count, NULL, NULL);
}
