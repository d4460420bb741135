/* SPDX-License-Identifier: MIT */
/* test_health: what makes an instance not ready, when a thread counts as stuck, and the keeper's own look at its
 * database. A fake ledger and a clock that the test moves; no thread. */
#include "table.h"

#include "idem/adapter/config_load.h"
#include "idem/app/health.h"

#include <stdlib.h>

static const char file[] =
    "version: 1\n"
    "kafka: {brokers: \"k1:9093\", group: g}\n"
    "databases:\n"
    "  east: {host: 127.0.0.1, database: shop, user: idemd, password: x}\n"
    "  west: {host: 127.0.0.1, database: shop, user: idemd, password: x}\n"
    "topics:\n"
    "  a: {database: east, rules: [{name: paid, biz_type: p, action: pay, key: /no, biz_no: /no,\n"
    "      fingerprint: {version: 1, fields: [/no]}, ttl: forever, identity: none,\n"
    "      insert: [{table: t, columns: {no: /no}}]}]}\n"
    "  b: {database: west, rules: [{name: paid, biz_type: p, action: pay, key: /no, biz_no: /no,\n"
    "      fingerprint: {version: 1, fields: [/no]}, ttl: forever, identity: none,\n"
    "      insert: [{table: t, columns: {no: /no}}]}]}\n";

/* ---- the world ------------------------------------------------------------------------------------------------- */

static int64_t clock_us = 1000000;

static int64_t mono_us(void *self)
{
    (void)self;
    return clock_us;
}

static uint64_t random_bits(void *self)
{
    (void)self;
    return 7;
}

static const struct env_port env = {.mono_us = mono_us, .random = random_bits};

static struct {
    enum err_class answer;       /* of the server, whatever is asked */
    uint32_t pings, jobs, paused, resumed, counts[LEDGER_LIST_COUNT];
    const char *why;
} fake;

static enum err_class answer(struct err *err)
{
    return fake.answer ? err_set(err, fake.answer, 2003, "test", "as the test wants it") : ERR_NONE;
}

static enum err_class ledger_open(void *self, struct err *err)
{
    (void)self;
    return answer(err);
}

static void ledger_close(void *self)
{
    (void)self;
}

static enum err_class take_over(void *self, struct ledger_partition *partitions, uint32_t count, struct err *err)
{
    (void)self, (void)partitions, (void)count;
    fake.jobs++;
    return answer(err);
}

static enum err_class ping(void *self, struct err *err)
{
    (void)self;
    fake.pings++;
    return answer(err);
}

/* 2500 of one kind, and some that belong nowhere. */
static enum err_class count(void *self, enum ledger_list list, uint64_t *after, uint32_t limit,
                            void (*each)(void *context, const struct ledger_kind *kind), void *context, bool *ret_end,
                            struct err *err)
{
    uint64_t size = list == LEDGER_LETTERS ? 2500 : 3, left = size - *after, part = left < limit ? left : limit;
    struct bytes word = list == LEDGER_LETTERS ? BYTES_LIT("rejected") : BYTES_LIT("behind");
    struct ledger_kind kinds[] = {
        {BYTES_LIT("a"), word, part, 70}, {BYTES_LIT("b"), word, 9, 0} /* another database's */,
        {BYTES_LIT("gone"), word, 9, 0}, {BYTES_LIT("a"), BYTES_LIT("nonsense"), 9, 0}};
    (void)self;
    fake.counts[list]++;
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        each(context, &kinds[i]);
    *after += part;
    *ret_end = part < limit;
    return answer(err);
}

static uint64_t server_number(void *self)
{
    (void)self;
    return 5;
}

static const struct ledger_ops ledger_ops = {.open = ledger_open, .close = ledger_close, .server = server_number,
                                             .take_over = take_over, .progress = take_over, .ping = ping,
                                             .count = count};
static const struct ledger_port ledger = {NULL, &ledger_ops};

static void event(void *self, enum report_event number, const struct report_fields *fields)
{
    (void)self;
    fake.paused += number == EVENT_PAUSED;
    fake.resumed += number == EVENT_RESUMED;
    fake.why = fields->why;
}

static const struct report_port report = {.event = event};

static struct config *config;
static struct keeper keepers[2];
static struct tally tally;
static atomic_int down[2 * DOWN_WHY_COUNT];
static atomic_int topic_down[2];
static atomic_uint_fast64_t servers[2];
static struct shared shared = {.down = down, .topic_down = topic_down};
static struct gauges gauges;
static struct health health;

static int set_up(void **state)
{
    struct diagnostic list[8];
    struct diagnostics mistakes = {.list = list, .size = COUNT_OF(list)};
    (void)state;
    memset(&fake, 0, sizeof fake);
    for (size_t i = 0; i < COUNT_OF(down); i++)
        atomic_store(&down[i], 0);
    if (!config_text_load(bytes_text(file), "f.yaml", &config, &mistakes))
        return -1;
    for (uint32_t i = 0; i < 2; i++)
        keeper_init(&keepers[i], config->databases[i].name, &ledger, &env, &report, &servers[i]);
    keeper_watch(&keepers[0], 2000, NULL);
    keeper_watch(&keepers[1], 2000, NULL);
    health_init(&health, config, &gauges);
    return tally_init(&tally, config, 0) && gauges_init(&gauges, config) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        keeper_finish(&keepers[i]);
    gauges_finish(&gauges);
    tally_finish(&tally);
    config_free(config);
    return 0;
}

static void expect_reasons(const char *wanted)
{
    char text[2048];
    struct buf buf;
    buf_init(&buf, text, sizeof text);
    uint32_t count = health_reasons(&health, &buf);
    check_text(buf_view(&buf), wanted, "reasons");
    assert_int_equal(count == 0, strcmp(wanted, "[]") == 0);
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static void reasons_name_what_is_missing(void **state)
{
    (void)state;
    expect_reasons("[\"starting\"]");
    health_attach(&health, &shared, keepers);
    expect_reasons("[\"not_joined\"]");
    atomic_store(&health.joined, true);
    expect_reasons("[]");
    atomic_store(&down[0 * DOWN_WHY_COUNT + DOWN_UNREACHABLE], 2);
    atomic_store(&down[1 * DOWN_WHY_COUNT + DOWN_CONFIG], 1);
    expect_reasons("[\"unreachable:east\",\"config:west\"]");
    atomic_store(&down[0 * DOWN_WHY_COUNT + DOWN_UNREACHABLE], 0);
    atomic_store(&down[1 * DOWN_WHY_COUNT + DOWN_CONFIG], 0);
    atomic_store(&topic_down[1], 1);
    expect_reasons("[\"config:b\"]");
    assert_int_equal(health_halts(&health, &(struct gauge){.topic = &config->topics[1]}), 1 << HALT_CONFIG);
    atomic_store(&topic_down[1], 0);
    struct gauge list[] = {
        {.topic = &config->topics[0], .number = 3, .halts = 1 << HALT_OFFSET_GONE},
        {.topic = &config->topics[1], .number = 0, .halts = 1 << HALT_FULL | 1 << HALT_OPERATOR},
        {.topic = &config->topics[1], .number = 11, .halts = 1 << HALT_FLOOD},
        {.topic = &config->topics[1], .number = 12, .halts = 1 << HALT_FLOOD | 1 << HALT_RECREATED},
    };
    gauges.list = list;
    gauges.count = COUNT_OF(list);
    expect_reasons("[\"offset_gone:a/3\",\"flood:b\",\"recreated:b/12\"]");
    atomic_store(&health.stopping, true);
    atomic_store(&health.joined, false);
    expect_reasons("[\"stopping\",\"not_joined\",\"offset_gone:a/3\",\"flood:b\",\"recreated:b/12\"]");
    atomic_store(&down[1 * DOWN_WHY_COUNT + DOWN_UNREACHABLE], 1);
    assert_int_equal(health_halts(&health, &list[0]), 1 << HALT_OFFSET_GONE);
    assert_int_equal(health_halts(&health, &list[1]), 1 << HALT_FULL | 1 << HALT_OPERATOR | 1 << HALT_UNREACHABLE);
    gauges.list = NULL;
    gauges.count = 0;
}

static void an_idle_database_that_goes_is_noticed(void **state)
{
    (void)state;
    health_attach(&health, &shared, keepers);
    atomic_store(&health.joined, true);
    int64_t due = keeper_step(&keepers[0]);
    assert_int_equal(fake.pings, 0);             /* the start has just looked */
    assert_int_equal(due, clock_us + 2000000);
    clock_us = due;
    assert_int_equal(keeper_step(&keepers[0]), clock_us + 2000000);
    assert_int_equal(fake.pings, 1);
    atomic_store(&keepers[1].answered_us, clock_us);
    fake.answer = ERR_RECONNECT;
    clock_us += 2000000;
    due = keeper_step(&keepers[0]);
    assert_int_equal(fake.paused, 0);            /* once may be a stale connection */
    expect_reasons("[]");
    clock_us = due;
    due = keeper_step(&keepers[0]);
    assert_int_equal(fake.paused, 1);
    assert_string_equal(fake.why, "unreachable");
    expect_reasons("[\"unreachable:east\"]");
    fake.answer = ERR_CONFIG;                    /* it is back, with another password */
    clock_us = due;
    due = keeper_step(&keepers[0]);
    assert_int_equal(fake.paused, 2);
    assert_string_equal(fake.why, "config");
    expect_reasons("[\"config:east\"]");
    fake.answer = ERR_NONE;
    clock_us = due;
    keeper_step(&keepers[0]);
    assert_int_equal(fake.resumed, 2);
    assert_string_equal(fake.why, "config");
    atomic_store(&keepers[1].answered_us, clock_us);
    expect_reasons("[]");
}

/* A keeper that hangs in its call says nothing at all. */
static void silence_is_unreachable(void **state)
{
    (void)state;
    health_attach(&health, &shared, keepers);
    atomic_store(&health.joined, true);
    clock_us += 8000000;                         /* 5 s and the lock wait of 3 s */
    expect_reasons("[]");
    atomic_store(&keepers[0].answered_us, clock_us);
    clock_us += 1;
    expect_reasons("[\"unreachable:west\"]");
}

static void a_job_counts_as_an_answer_and_is_never_kept_waiting_by_a_look(void **state)
{
    struct keeper_job *job = keeper_job_create(KEEPER_PROGRESS, 1);
    (void)state;
    clock_us += 2000000;
    keeper_post(&keepers[0], job);
    assert_int_equal(keeper_step(&keepers[0]), 0);
    assert_int_equal(fake.jobs, 1);
    assert_int_equal(fake.pings, 0);
    keeper_job_free(keeper_fetch(&keepers[0]));
    assert_int_equal(keeper_step(&keepers[0]), clock_us + 2000000);
    assert_false(keepers[0].backing_off);        /* a job that is posted ends this wait */
    fake.answer = ERR_RECONNECT;
    clock_us += 2000000;
    keeper_step(&keepers[0]);
    assert_true(keepers[0].backing_off);
}

static void lists_are_counted_in_parts(void **state)
{
    (void)state;
    keeper_watch(&keepers[0], 2000, &tally);
    int64_t began = clock_us;
    for (int part = 0; part < 3; part++) {
        assert_int_equal(tally_letters(&tally, 0, OUTCOME_REJECTED), 0);
        clock_us = keeper_step(&keepers[0]);
    }
    assert_int_equal(fake.counts[LEDGER_LETTERS], 3);
    assert_int_equal(tally_letters(&tally, 0, OUTCOME_REJECTED), 2500);
    assert_int_equal(tally_letters(&tally, 1, OUTCOME_REJECTED), 0);
    while (fake.counts[LEDGER_LETTERS] == 3)
        clock_us = keeper_step(&keepers[0]);
    assert_true(clock_us - began > 30000000);
    assert_true(fake.counts[LEDGER_PARKED] >= 5 && fake.counts[LEDGER_PARKED] <= 7);
    assert_int_equal(tally_parked(&tally, 0, CAUSE_BEHIND), 3);
    assert_int_equal(tally_parked(&tally, 0, CAUSE_LOCKED), 0);
    assert_int_equal(tally_parked_oldest_s(&tally, 0), 70);
    assert_int_equal(tally_letters(&tally, 0, OUTCOME_REJECTED), 2500);
    fake.answer = ERR_RECONNECT;                 /* the last whole count stands */
    clock_us = keeper_step(&keepers[0]);
    assert_int_equal(tally_letters(&tally, 0, OUTCOME_REJECTED), 2500);
    fake.answer = ERR_NONE;
    for (int i = 0; i < 60; i++)
        clock_us = keeper_step(&keepers[0]);
    assert_int_equal(tally_letters(&tally, 0, OUTCOME_REJECTED), 2500);
    assert_int_equal(tally_parked(&tally, 0, CAUSE_BEHIND), 3);
}

static void a_pulse_that_stands_is_stuck_and_a_waiting_one_never(void **state)
{
    struct pulse pulses[3] = {0};
    (void)state;
    assert_true(pulses_are_fresh(pulses, 3, INT64_MAX / 2, 0));      /* all wait, for however long */
    atomic_store(&pulses[1].busy_since_us, 5000000);
    assert_true(pulses_are_fresh(pulses, 3, 5000000 + 120000000, 120000000));
    assert_false(pulses_are_fresh(pulses, 3, 5000001 + 120000000, 120000000));
    assert_true(pulses_are_fresh(pulses, 1, 5000001 + 120000000, 120000000));
    atomic_store(&pulses[1].busy_since_us, 0);
    assert_true(pulses_are_fresh(pulses, 3, 5000001 + 120000000, 120000000));
}

/* Waiting for a server that hangs is no stall, however long the lock wait makes it. */
static void a_hanging_server_makes_nobody_stuck(void **state)
{
    struct database_config databases[] = {{.lock_wait_ms = 3000}, {.lock_wait_ms = 3000}};
    struct config two = {.databases = databases, .database_count = 2};
    (void)state;
    assert_int_equal(pulse_limit_us(&two), 120000000);
    databases[1].lock_wait_ms = 60000;
    assert_true(pulse_limit_us(&two) > (2 * 60 + 30) * 1000000ll);
}

static void every_why_has_its_name(void **state)
{
    (void)state;
    for (int why = 0; why < HALT_WHY_COUNT; why++)
        assert_int_equal(halt_why_parse(halt_why_name((enum halt_why)why)), why);
    assert_int_equal(halt_why_parse("something"), HALT_FAULT);
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    static const struct CMUnitTest tests[] = {
        WITH_WORLD(reasons_name_what_is_missing),
        WITH_WORLD(an_idle_database_that_goes_is_noticed),
        WITH_WORLD(silence_is_unreachable),
        WITH_WORLD(a_job_counts_as_an_answer_and_is_never_kept_waiting_by_a_look),
        WITH_WORLD(lists_are_counted_in_parts),
        cmocka_unit_test(a_pulse_that_stands_is_stuck_and_a_waiting_one_never),
        cmocka_unit_test(a_hanging_server_makes_nobody_stuck),
        cmocka_unit_test(every_why_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
