/* SPDX-License-Identifier: MIT */
/* test_metrics: the registry and its text form to the byte, and what the meters of a configuration count. */
#include "table.h"

#include "idem/adapter/config_load.h"
#include "idem/app/meters.h"
#include "idem/base/metrics.h"

#include <pthread.h>
#include <stdlib.h>

static char text[1 << 20];

static const char *rendered(const struct metrics *metrics)
{
    struct buf buf;
    buf_init(&buf, text, sizeof text - 1);
    metrics_render(metrics, &buf);
    assert_false(buf.overflow);
    text[buf.len] = '\0';
    return text;
}

static const uint64_t bounds[] = {5, 2500};
static const struct metrics_buckets buckets = {bounds, 2, 1000};

static void the_text_form_is_exact(void **state)
{
    struct metrics *metrics = metrics_create();
    (void)state;
    struct metrics_label odd[] = {{"a", BYTES_LIT("x\\y\"z\n{},=")}, {"b", BYTES_LIT("\xff\xc3\xa9")}};
    struct metrics_label even[] = {{"a", BYTES_LIT("\xe8\xae\xa2")}, {"b", BYTES_LIT("")}};
    metrics_family(metrics, "t_one_total", "One.", METRICS_COUNTER, NULL);
    uint32_t first = metrics_series(metrics, odd, 2);
    assert_int_equal(metrics_series(metrics, even, 2), first + 1);
    metrics_family(metrics, "t_none", "Has no series.", METRICS_GAUGE, NULL);
    metrics_family(metrics, "t_seconds", "Times.", METRICS_HISTOGRAM, &buckets);
    uint32_t plain = metrics_series(metrics, NULL, 0), labelled = metrics_series(metrics, even, 1);
    assert_int_equal(labelled, plain + 4);
    assert_true(metrics_is_whole(metrics));
    metrics_cell *one = metrics_sheet(metrics), *two = metrics_sheet(metrics);
    assert_int_equal((uintptr_t)one % 64, 0);
    metrics_add(one, first, 40);
    metrics_add(two, first, 2);
    metrics_observe(one, labelled, &buckets, 5);
    metrics_observe(two, labelled, &buckets, 6);
    metrics_observe(two, labelled, &buckets, 2500);
    metrics_observe(two, labelled, &buckets, 99990);
    check_text(bytes_text(rendered(metrics)),
               "# HELP t_one_total One.\n# TYPE t_one_total counter\n"
               "t_one_total{a=\"x\\\\y\\\"z\\n{},=\",b=\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"} 42\n"
               "t_one_total{a=\"\xe8\xae\xa2\",b=\"\"} 0\n"
               "# HELP t_none Has no series.\n# TYPE t_none gauge\n"
               "# HELP t_seconds Times.\n# TYPE t_seconds histogram\n"
               "t_seconds_bucket{le=\"0.005\"} 0\nt_seconds_bucket{le=\"2.5\"} 0\nt_seconds_bucket{le=\"+Inf\"} 0\n"
               "t_seconds_sum 0\nt_seconds_count 0\n"
               "t_seconds_bucket{a=\"\xe8\xae\xa2\",le=\"0.005\"} 1\n"
               "t_seconds_bucket{a=\"\xe8\xae\xa2\",le=\"2.5\"} 3\n"
               "t_seconds_bucket{a=\"\xe8\xae\xa2\",le=\"+Inf\"} 4\n"
               "t_seconds_sum{a=\"\xe8\xae\xa2\"} 102.501\nt_seconds_count{a=\"\xe8\xae\xa2\"} 4\n",
               "text form");
    struct buf small;
    buf_init(&small, text, 100);
    metrics_render(metrics, &small);
    assert_true(small.overflow);
    metrics_destroy(metrics);
}

enum { THREADS = 4, ROUNDS = 200000 };

static void *count(void *sheet)
{
    for (int i = 0; i < ROUNDS; i++)
        metrics_add(sheet, 0, 1);
    return NULL;
}

/* A reader meanwhile sees sums that only grow; in the end nothing is missing. */
static void threads_lose_no_count(void **state)
{
    pthread_t threads[THREADS];
    struct metrics *metrics = metrics_create();
    long seen = 0;
    (void)state;
    metrics_family(metrics, "t", "T.", METRICS_COUNTER, NULL);
    metrics_series(metrics, NULL, 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, metrics_sheet(metrics)), 0);
    for (int i = 0; i < 100; i++) {
        long now = strtol(strstr(rendered(metrics), "\nt ") + 3, NULL, 10);
        assert_true(now >= seen);
        seen = now;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(strtol(strstr(rendered(metrics), "\nt ") + 3, NULL, 10), THREADS * ROUNDS);
    metrics_destroy(metrics);
}

/* ---- meters ---------------------------------------------------------------------------------------------------- */

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
    "      fingerprint: {version: 1, fields: [/no]}, ttl: forever, identity: none, when: {/x: 1},\n"
    "      insert: [{table: t, columns: {no: /no}}]},\n"
    "      {name: other, biz_type: p, action: pay, key: /no, biz_no: /no,\n"
    "      fingerprint: {version: 1, fields: [/no]}, ttl: forever, identity: none,\n"
    "      insert: [{table: t, columns: {no: /no}}]}]}\n";

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Splits the text in place; fails if a series stands there twice. Returns how many there are. */
static uint32_t distinct_series(char *all)
{
    static char *lines[20000];
    uint32_t count = 0;
    for (char *line = all, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        if (*line == '#')
            continue;
        *strrchr(line, ' ') = '\0';
        lines[count++] = line;
    }
    qsort(lines, count, sizeof *lines, compare);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(lines[i - 1], lines[i]) == 0)
            fail_msg("twice: %s", lines[i]);
    return count;
}

static char *meters_text(const struct meters *meters)
{
    struct buf buf;
    buf_init(&buf, text, sizeof text - 1);
    meters_render(meters, &buf);
    assert_false(buf.overflow);
    text[buf.len] = '\0';
    return text;
}

static void expect(const struct meters *meters, const char *line)
{
    if (!strstr(meters_text(meters), line))
        fail_msg("not there: %s", line);
}

static void every_series_is_there_at_0(const struct meters *meters)
{
    static const char *const lines[] = {
        "\nidem_records_total{topic=\"a\",rule=\"paid\",outcome=\"first\",mode=\"apply\"} 0\n",
        "\nidem_records_total{topic=\"b\",rule=\"other\",outcome=\"ignored\",mode=\"apply\"} 0\n",
        "\nidem_records_total{topic=\"b\",rule=\"\",outcome=\"invalid\",mode=\"apply\"} 0\n",
        "\nidem_cause_total{rule=\"paid\",outcome=\"state_conflict\",cause=\"amount_mismatch\"} 0\n",
        "\nidem_cause_total{rule=\"\",outcome=\"invalid\",cause=\"body\"} 0\n",
        "\nidem_apply_seconds_count{topic=\"b\"} 0\n",
        "\nidem_tx_seconds_bucket{database=\"west\",le=\"0.0025\"} 0\n",
        "\nidem_batch_records_bucket{database=\"east\",le=\"500\"} 0\n",
        "\nidem_tx_total{database=\"east\",result=\"committed\"} 0\n",
        "\nidem_tx_retries_total{database=\"west\",errno=\"1213\"} 0\n",
        "\nidem_tx_retries_total{database=\"west\",errno=\"other\"} 0\n",
        "\nidem_bisect_total{database=\"west\"} 0\n",
        "\nidem_fingerprint_skipped_total{rule=\"other\"} 0\n",
        "\nidem_fenced_total 0\n",
        "\nidem_rewound_total 0\n",
        "\nidem_config_reloads_total{result=\"refused\"} 0\n",
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        expect(meters, lines[i]);
    for (const char *at = meters_text(meters); (at = strchr(at, '\n')) && at[1]; at++)
        if (at[1] != '#') {
            const char *end = strchr(at + 1, '\n');
            if (end[-1] != '0' || end[-2] != ' ')
                fail_msg("not 0: %.*s", (int)(end - at - 1), at + 1);
        }
    /* 43 pairs of outcome and cause (details 5), for two names of rules and for none. */
    uint32_t causes = 0;
    for (const char *at = text; (at = strstr(at, "\nidem_cause_total{")); at++)
        causes++;
    assert_int_equal(causes, 3 * 43);
    assert_true(distinct_series(meters_text(meters)) > 300);
}

static void what_happens_is_counted(struct meters *meters, const struct config *config)
{
    struct meter one, two;
    struct item item = {.topic = &config->topics[1], .outcome = OUTCOME_FIRST,
                        .record = {.timestamp_ms = 1000}, .eval = {.rule = &config->topics[1].rules[0]}};
    assert_true(meter_init(&one, meters) && meter_init(&two, meters));
    meter_outcome(&one, &item, 1400);
    item.record.timestamp_ms = 9000;             /* a producer whose clock is ahead */
    meter_outcome(&two, &item, 1400);
    item.outcome = OUTCOME_DUPLICATE;
    item.fingerprint_skipped = true;
    item.record.timestamp_ms = -1;
    meter_outcome(&two, &item, 1400);
    item.fingerprint_skipped = false;
    item.outcome = OUTCOME_STATE_CONFLICT;
    item.cause = CAUSE_AMOUNT_MISMATCH;
    meter_outcome(&one, &item, 1400);
    item.eval.rule = NULL;
    item.topic = &config->topics[0];
    item.outcome = OUTCOME_IGNORED;
    item.cause = CAUSE_TOMBSTONE;
    meter_outcome(&one, &item, 1400);
    expect(meters, "\nidem_records_total{topic=\"b\",rule=\"paid\",outcome=\"first\",mode=\"apply\"} 2\n");
    expect(meters, "\nidem_records_total{topic=\"b\",rule=\"paid\",outcome=\"duplicate\",mode=\"apply\"} 1\n");
    expect(meters, "\nidem_records_total{topic=\"a\",rule=\"\",outcome=\"ignored\",mode=\"apply\"} 1\n");
    expect(meters, "\nidem_cause_total{rule=\"paid\",outcome=\"state_conflict\",cause=\"amount_mismatch\"} 1\n");
    expect(meters, "\nidem_cause_total{rule=\"\",outcome=\"ignored\",cause=\"tombstone\"} 1\n");
    expect(meters, "\nidem_fingerprint_skipped_total{rule=\"paid\"} 1\n");
    expect(meters, "\nidem_apply_seconds_sum{topic=\"b\"} 0.4\nidem_apply_seconds_count{topic=\"b\"} 2\n");
    expect(meters, "\nidem_apply_seconds_count{topic=\"a\"} 0\n");
    meter_transaction(&one, 1, REPORT_TX_COMMITTED, 40, 12345);
    meter_transaction(&one, 1, REPORT_TX_IN_DOUBT, 7, 1000000);
    expect(meters, "\nidem_tx_total{database=\"west\",result=\"in_doubt\"} 1\n");
    expect(meters, "\nidem_batch_records_sum{database=\"west\"} 40\nidem_batch_records_count{database=\"west\"} 1\n");
    expect(meters, "\nidem_tx_seconds_sum{database=\"west\"} 1.012345\nidem_tx_seconds_count{database=\"west\"} 2\n");
    struct err err = {.number = 1213};
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.database = BYTES_LIT("west");
    fields.err = &err;
    meter_event(&two, EVENT_TX_RETRY, &fields);
    err.number = 4711;
    meter_event(&two, EVENT_TX_RETRY, &fields);
    meter_event(&two, EVENT_BISECT, &fields);
    fields.count = 12;
    meter_event(&two, EVENT_FENCED, &fields);
    fields.count = -1;
    meter_event(&two, EVENT_FENCED, &fields);    /* progress that was refused: no record was dropped */
    meter_event(&two, EVENT_REWOUND, &fields);
    meter_reload(&one, false);
    expect(meters, "\nidem_tx_retries_total{database=\"west\",errno=\"1213\"} 1\n");
    expect(meters, "\nidem_tx_retries_total{database=\"west\",errno=\"other\"} 1\n");
    expect(meters, "\nidem_bisect_total{database=\"west\"} 1\n");
    expect(meters, "\nidem_fenced_total 12\n");
    expect(meters, "\nidem_rewound_total 1\n");
    expect(meters, "\nidem_config_reloads_total{result=\"ok\"} 0\nidem_config_reloads_total{result=\"refused\"} 1\n");
}

static void meters_follow_the_configuration(void **state)
{
    struct diagnostic list[8];
    struct diagnostics mistakes = {.list = list, .size = COUNT_OF(list)};
    struct config *config = NULL;
    (void)state;
    if (!config_text_load(bytes_text(file), "f.yaml", &config, &mistakes))
        fail_msg("%u:%u %s: %s", list[0].line, list[0].column, list[0].path, list[0].message);
    struct meters *meters = meters_create(config);
    assert_non_null(meters);
    every_series_is_there_at_0(meters);
    what_happens_is_counted(meters, config);
    meters_destroy(meters);
    config_free(config);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_form_is_exact),
        cmocka_unit_test(threads_lose_no_count),
        cmocka_unit_test(meters_follow_the_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
