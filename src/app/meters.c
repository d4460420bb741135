/* SPDX-License-Identifier: MIT */
/* meters: see idem/app/meters.h. Each family is made by one function here and raised by one line below. */
#include "idem/app/meters.h"

#include <stdlib.h>

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

/* Which causes an outcome can have: details section 5, Causes. */
static const struct {
    enum outcome outcome;
    enum cause cause;
} pairs[] = {
    {OUTCOME_INVALID, CAUSE_KEY_MISSING}, {OUTCOME_INVALID, CAUSE_KEY_MALFORMED},
    {OUTCOME_INVALID, CAUSE_KEY_TOO_LONG}, {OUTCOME_INVALID, CAUSE_KEY_CONFLICT},
    {OUTCOME_INVALID, CAUSE_KEY_TIME}, {OUTCOME_INVALID, CAUSE_PAST_TTL},
    {OUTCOME_INVALID, CAUSE_FIELD_MISSING}, {OUTCOME_INVALID, CAUSE_FIELD_TYPE},
    {OUTCOME_INVALID, CAUSE_SCALE}, {OUTCOME_INVALID, CAUSE_BODY}, {OUTCOME_INVALID, CAUSE_UTF8},
    {OUTCOME_INVALID, CAUSE_DUPLICATE_NAME}, {OUTCOME_INVALID, CAUSE_TOO_LARGE},
    {OUTCOME_INVALID, CAUSE_TOO_DEEP}, {OUTCOME_INVALID, CAUSE_TOO_LONG}, {OUTCOME_INVALID, CAUSE_BATCH},
    {OUTCOME_INVALID, CAUSE_UNMATCHED}, {OUTCOME_IGNORED, CAUSE_UNMATCHED}, {OUTCOME_IGNORED, CAUSE_TOMBSTONE},
    {OUTCOME_KEY_REUSED, CAUSE_FINGERPRINT_MISMATCH}, {OUTCOME_KEY_REUSED, CAUSE_IDENTITY_MISMATCH},
    {OUTCOME_KEY_REUSED, CAUSE_BIZ_NO_MISMATCH}, {OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_MISMATCH},
    {OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_UNKNOWN}, {OUTCOME_ALREADY_APPLIED, CAUSE_SUPERSEDED},
    {OUTCOME_STATE_CONFLICT, CAUSE_STATE}, {OUTCOME_STATE_CONFLICT, CAUSE_EARLY},
    {OUTCOME_STATE_CONFLICT, CAUSE_UNKNOWN_STATE}, {OUTCOME_STATE_CONFLICT, CAUSE_AMOUNT_MISMATCH},
    {OUTCOME_STATE_CONFLICT, CAUSE_REQUIRE_MISMATCH}, {OUTCOME_STATE_CONFLICT, CAUSE_STATEMENT_COUNT},
    {OUTCOME_STATE_CONFLICT, CAUSE_HALF_APPLIED}, {OUTCOME_STATE_CONFLICT, CAUSE_GIVEN_UP},
    {OUTCOME_NOT_FOUND, CAUSE_ROW_MISSING}, {OUTCOME_NOT_FOUND, CAUSE_GIVEN_UP},
    {OUTCOME_REJECTED, CAUSE_DATABASE}, {OUTCOME_REJECTED, CAUSE_UNIQUE_CONFLICT},
    {OUTCOME_REJECTED, CAUSE_STATEMENT_COUNT}, {OUTCOME_PARKED, CAUSE_NOT_FOUND},
    {OUTCOME_PARKED, CAUSE_STATE}, {OUTCOME_PARKED, CAUSE_LOCKED}, {OUTCOME_PARKED, CAUSE_BEHIND},
    {OUTCOME_PARKED, CAUSE_REDRIVE},
};

/* What a record can come to before a rule was found for it. */
static const enum outcome ruleless[] = {OUTCOME_INVALID, OUTCOME_IGNORED};

/* Numbers that make a transaction run again (details 1, Error numbers), then those of lost connections. Whatever else
 * comes is `other`: a label's values are a closed list. */
static const int retry_numbers[] = {1020, 1205, 1213, 1317, 1412, 1615, 1969, 3024, 3572, 1021, 1030, 1040, 1114,
                                    1203, 1206, 1226, 1053, 1927, 2006, 2013, 2027, 2055, 4031};

static const char *const results[REPORT_TX_COUNT] = {
    [REPORT_TX_COMMITTED] = "committed", [REPORT_TX_ROLLED_BACK] = "rolled_back",
    [REPORT_TX_FENCED] = "fenced", [REPORT_TX_IN_DOUBT] = "in_doubt",
};

static const uint64_t apply_bounds[] = {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000,
                                        1800000, 7200000};
static const struct metrics_buckets apply_buckets = {apply_bounds, COUNT_OF(apply_bounds), 1000};
static const uint64_t tx_bounds[] = {1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000,
                                     5000000, 10000000, 30000000};
static const struct metrics_buckets tx_buckets = {tx_bounds, COUNT_OF(tx_bounds), 1000000};
static const uint64_t batch_bounds[] = {1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000};
static const struct metrics_buckets batch_buckets = {batch_bounds, COUNT_OF(batch_bounds), 1};

/* Cells of the first series of each family; those of one family stand one after the other. */
struct meters {
    struct metrics *metrics;
    const struct config *config;
    struct bytes *names;         /* of rules, each once; [0] is "", no rule */
    uint32_t *name_of;           /* by rule index: in names */
    uint32_t name_count;
    uint32_t *records;           /* by rule index: cell of OUTCOME_FIRST */
    uint32_t *records_ruleless;  /* by topic: cell of ruleless[0] */
    uint32_t causes, skipped, apply, tx_seconds, batch, tx, retries, bisect, fenced, rewound, reloads;
    uint8_t pair_of[OUTCOME_COUNT][CAUSE_COUNT];     /* 1 + index in pairs; 0: no such pair */
};

/* ---- making ---------------------------------------------------------------------------------------------------- */

static struct metrics_label label(const char *name, struct bytes value)
{
    return (struct metrics_label){name, value};
}

static void name_rules(struct meters *meters)
{
    const struct config *config = meters->config;
    meters->names[meters->name_count++] = BYTES_LIT("");
    for (uint32_t t = 0; t < config->topic_count; t++)
        for (uint32_t r = 0; r < config->topics[t].rule_count; r++) {
            const struct rule *rule = &config->topics[t].rules[r];
            uint32_t at = 0;
            while (at < meters->name_count && !bytes_equal(meters->names[at], rule->name))
                at++;
            if (at == meters->name_count)
                meters->names[meters->name_count++] = rule->name;
            meters->name_of[rule->index] = at;
        }
}

static uint32_t add_record(struct meters *meters, const struct topic *topic, struct bytes rule, enum outcome outcome)
{
    struct metrics_label labels[] = {label("topic", topic->name), label("rule", rule),
                                     label("outcome", bytes_text(outcome_name(outcome))),
                                     label("mode", BYTES_LIT("apply"))};
    return metrics_series(meters->metrics, labels, COUNT_OF(labels));
}

static void add_records(struct meters *meters)
{
    metrics_family(meters->metrics, "idem_records_total", "Records by what came of them; rule \"\": none was found.",
                   METRICS_COUNTER, NULL);
    for (uint32_t t = 0; t < meters->config->topic_count; t++) {
        const struct topic *topic = &meters->config->topics[t];
        for (uint32_t i = 0; i < COUNT_OF(ruleless); i++) {
            uint32_t cell = add_record(meters, topic, BYTES_LIT(""), ruleless[i]);
            if (i == 0)
                meters->records_ruleless[t] = cell;
        }
        for (uint32_t r = 0; r < topic->rule_count; r++)
            for (int o = OUTCOME_FIRST; o < OUTCOME_COUNT; o++) {
                uint32_t cell = add_record(meters, topic, topic->rules[r].name, (enum outcome)o);
                if (o == OUTCOME_FIRST)
                    meters->records[topic->rules[r].index] = cell;
            }
    }
}

/* The first cell of the family's series. */
static uint32_t first_of(uint32_t first, uint32_t cell, uint32_t i)
{
    return i == 0 ? cell : first;
}

static void add_causes(struct meters *meters)
{
    metrics_family(meters->metrics, "idem_cause_total", "Records that were not simply applied, by cause.",
                   METRICS_COUNTER, NULL);
    for (uint32_t i = 0; i < COUNT_OF(pairs); i++)
        meters->pair_of[pairs[i].outcome][pairs[i].cause] = (uint8_t)(i + 1);
    for (uint32_t n = 0; n < meters->name_count; n++)
        for (uint32_t i = 0; i < COUNT_OF(pairs); i++) {
            struct metrics_label labels[] = {label("rule", meters->names[n]),
                                             label("outcome", bytes_text(outcome_name(pairs[i].outcome))),
                                             label("cause", bytes_text(cause_name(pairs[i].cause)))};
            uint32_t cell = metrics_series(meters->metrics, labels, COUNT_OF(labels));
            meters->causes = first_of(meters->causes, cell, n + i);
        }
    metrics_family(meters->metrics, "idem_fingerprint_skipped_total",
                   "Known keys whose fingerprint is of another version and was not compared.", METRICS_COUNTER, NULL);
    for (uint32_t n = 1; n < meters->name_count; n++) {
        struct metrics_label rule = label("rule", meters->names[n]);
        meters->skipped = first_of(meters->skipped, metrics_series(meters->metrics, &rule, 1), n - 1);
    }
}

static uint32_t add_by_topic(struct meters *meters, const char *name, const char *help,
                             const struct metrics_buckets *buckets)
{
    uint32_t first = 0;
    metrics_family(meters->metrics, name, help, buckets ? METRICS_HISTOGRAM : METRICS_COUNTER, buckets);
    for (uint32_t t = 0; t < meters->config->topic_count; t++) {
        struct metrics_label topic = label("topic", meters->config->topics[t].name);
        first = first_of(first, metrics_series(meters->metrics, &topic, 1), t);
    }
    return first;
}

/* values NULL: one series a database. */
static uint32_t add_by_database(struct meters *meters, const char *name, const char *help,
                                const struct metrics_buckets *buckets, const char *value_name,
                                const char *const *values, uint32_t value_count)
{
    uint32_t first = 0;
    metrics_family(meters->metrics, name, help, buckets ? METRICS_HISTOGRAM : METRICS_COUNTER, buckets);
    for (uint32_t d = 0; d < meters->config->database_count; d++)
        for (uint32_t v = 0; v < value_count; v++) {
            struct metrics_label labels[2] = {label("database", meters->config->databases[d].name)};
            if (values)
                labels[1] = label(value_name, bytes_text(values[v]));
            first = first_of(first, metrics_series(meters->metrics, labels, values ? 2 : 1), d + v);
        }
    return first;
}

static uint32_t add_plain(struct meters *meters, const char *name, const char *help)
{
    metrics_family(meters->metrics, name, help, METRICS_COUNTER, NULL);
    return metrics_series(meters->metrics, NULL, 0);
}

static void add_retries(struct meters *meters)
{
    char texts[COUNT_OF(retry_numbers)][8];
    const char *values[COUNT_OF(retry_numbers) + 1];
    for (uint32_t i = 0; i < COUNT_OF(retry_numbers); i++) {
        struct buf buf;
        buf_init(&buf, texts[i], sizeof texts[i]);
        buf_int(&buf, retry_numbers[i]);
        buf_char(&buf, '\0');
        values[i] = texts[i];
    }
    values[COUNT_OF(retry_numbers)] = "other";
    meters->retries = add_by_database(meters, "idem_tx_retries_total", "Transactions that run again, by error number.",
                                      NULL, "errno", values, COUNT_OF(values));
}

static void add_rest(struct meters *meters)
{
    static const char *const reloads[] = {"ok", "refused"};
    meters->apply = add_by_topic(meters, "idem_apply_seconds", "From a record's timestamp to its commit.",
                                 &apply_buckets);
    meters->tx_seconds = add_by_database(meters, "idem_tx_seconds", "How long an attempt of a transaction took.",
                                         &tx_buckets, NULL, NULL, 1);
    meters->batch = add_by_database(meters, "idem_batch_records", "Records of a committed transaction.",
                                    &batch_buckets, NULL, NULL, 1);
    meters->tx = add_by_database(meters, "idem_tx_total", "Attempts of transactions by how they ended.", NULL,
                                 "result", results, REPORT_TX_COUNT);
    add_retries(meters);
    meters->bisect = add_by_database(meters, "idem_bisect_total", "Batches that were halved to find a bad record.",
                                     NULL, NULL, NULL, 1);
    meters->fenced = add_plain(meters, "idem_fenced_total", "Records dropped because another instance owns them.");
    meters->rewound = add_plain(meters, "idem_rewound_total", "Partitions found behind Kafka's offset in MySQL.");
    metrics_family(meters->metrics, "idem_config_reloads_total", "Reloads of the configuration.", METRICS_COUNTER,
                   NULL);
    for (uint32_t i = 0; i < COUNT_OF(reloads); i++) {
        struct metrics_label result = label("result", bytes_text(reloads[i]));
        meters->reloads = first_of(meters->reloads, metrics_series(meters->metrics, &result, 1), i);
    }
}

struct meters *meters_create(const struct config *config)
{
    struct meters *meters = calloc(1, sizeof *meters);
    if (!meters)
        return NULL;
    meters->config = config;
    meters->metrics = metrics_create();
    meters->names = calloc(config->rule_count + 1, sizeof *meters->names);
    meters->name_of = calloc(config->rule_count + 1, sizeof *meters->name_of);
    meters->records = calloc(config->rule_count + 1, sizeof *meters->records);
    meters->records_ruleless = calloc(config->topic_count + 1, sizeof *meters->records_ruleless);
    if (!meters->metrics || !meters->names || !meters->name_of || !meters->records || !meters->records_ruleless) {
        meters_destroy(meters);
        return NULL;
    }
    name_rules(meters);
    add_records(meters);
    add_causes(meters);
    add_rest(meters);
    if (!metrics_is_whole(meters->metrics)) {
        meters_destroy(meters);
        return NULL;
    }
    return meters;
}

void meters_destroy(struct meters *meters)
{
    if (!meters)
        return;
    metrics_destroy(meters->metrics);
    free(meters->names);
    free(meters->name_of);
    free(meters->records);
    free(meters->records_ruleless);
    free(meters);
}

void meters_render(const struct meters *meters, struct buf *buf)
{
    metrics_render(meters->metrics, buf);
}

bool meter_init(struct meter *meter, struct meters *meters)
{
    *meter = (struct meter){meters, metrics_sheet(meters->metrics)};
    return meter->cells != NULL;
}

/* ---- counting -------------------------------------------------------------------------------------------------- */

static void count_cause(struct meter *meter, const struct item *item)
{
    const struct meters *meters = meter->meters;
    const struct rule *rule = item->eval.rule;
    uint32_t pair = meters->pair_of[item->outcome][item->cause];
    uint32_t name = rule ? meters->name_of[rule->index] : 0;
    if (pair > 0)
        metrics_add(meter->cells, meters->causes + name * COUNT_OF(pairs) + pair - 1, 1);
}

static void count_ruleless(struct meter *meter, const struct item *item)
{
    for (uint32_t i = 0; i < COUNT_OF(ruleless); i++)
        if (item->outcome == ruleless[i])
            metrics_add(meter->cells, meter->meters->records_ruleless[item->topic->index] + i, 1);
}

void meter_outcome(struct meter *meter, const struct item *item, int64_t wall_ms)
{
    const struct meters *meters = meter->meters;
    const struct rule *rule = item->eval.rule;
    if (rule)
        metrics_add(meter->cells, meters->records[rule->index] + (uint32_t)(item->outcome - OUTCOME_FIRST), 1);
    else
        count_ruleless(meter, item);
    if (item->cause != CAUSE_NONE)
        count_cause(meter, item);
    if (item->fingerprint_skipped && rule)
        metrics_add(meter->cells, meters->skipped + meters->name_of[rule->index] - 1, 1);
    if (item->record.timestamp_ms < 0 || item->outcome == OUTCOME_IGNORED)       /* nothing was committed for it */
        return;
    int64_t took = wall_ms - item->record.timestamp_ms;      /* producers' clocks may be ahead */
    metrics_observe(meter->cells, meters->apply + item->topic->index * (apply_buckets.count + 2), &apply_buckets,
                    took > 0 ? (uint64_t)took : 0);
}

void meter_transaction(struct meter *meter, uint32_t database, enum report_tx result, uint32_t records,
                       int64_t took_us)
{
    const struct meters *meters = meter->meters;
    metrics_add(meter->cells, meters->tx + database * REPORT_TX_COUNT + result, 1);
    metrics_observe(meter->cells, meters->tx_seconds + database * (tx_buckets.count + 2), &tx_buckets,
                    took_us > 0 ? (uint64_t)took_us : 0);
    if (result == REPORT_TX_COMMITTED)
        metrics_observe(meter->cells, meters->batch + database * (batch_buckets.count + 2), &batch_buckets, records);
}

static uint32_t database_of(const struct config *config, struct bytes name)
{
    uint32_t at = 0;
    while (at + 1 < config->database_count && !bytes_equal(config->databases[at].name, name))
        at++;
    return at;
}

static void count_retry(struct meter *meter, uint32_t database, const struct err *err)
{
    uint32_t at = 0;
    while (at < COUNT_OF(retry_numbers) && (!err || retry_numbers[at] != err->number))
        at++;
    metrics_add(meter->cells, meter->meters->retries + database * (COUNT_OF(retry_numbers) + 1) + at, 1);
}

void meter_event(struct meter *meter, enum report_event event, const struct report_fields *fields)
{
    const struct meters *meters = meter->meters;
    switch (event) {
    case EVENT_FENCED:
        metrics_add(meter->cells, meters->fenced, fields->count > 0 ? (uint64_t)fields->count : 0);
        break;
    case EVENT_REWOUND:
        metrics_add(meter->cells, meters->rewound, 1);
        break;
    case EVENT_TX_RETRY:
        count_retry(meter, database_of(meters->config, fields->database), fields->err);
        break;
    case EVENT_BISECT:
        metrics_add(meter->cells, meters->bisect + database_of(meters->config, fields->database), 1);
        break;
    case EVENT_ASSIGN:
    case EVENT_REVOKE:
    case EVENT_TX_IN_DOUBT:
    case EVENT_TX_SETTLED:
    case EVENT_SET_ASIDE:
    case EVENT_PAUSED:
    case EVENT_RESUMED:
    case EVENT_DRAIN:
    case EVENT_RECREATED:
    case EVENT_ORPHANED:
    case EVENT_RELAY_LEASE:
    case EVENT_RELAY_REFUSED:
    case EVENT_DEAD_LETTER_FLOOD:
    case EVENT_COUNT:
        break;
    }
}

void meter_reload(struct meter *meter, bool taken)
{
    metrics_add(meter->cells, meter->meters->reloads + !taken, 1);
}
