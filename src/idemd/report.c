/* SPDX-License-Identifier: MIT */
/* report: see report.h. Field names and their order: design section 7, Log. One look at the clock serves the outcomes
 * of a batch: they became true at one moment, its COMMIT. */
#include "report.h"

#include <stdlib.h>

static const char *const event_names[EVENT_COUNT] = {
    [EVENT_ASSIGN] = "assign",         [EVENT_REVOKE] = "revoke",
    [EVENT_FENCED] = "fenced",         [EVENT_TX_RETRY] = "tx_retry",
    [EVENT_TX_IN_DOUBT] = "tx_in_doubt", [EVENT_TX_SETTLED] = "tx_settled",
    [EVENT_BISECT] = "bisect",         [EVENT_SET_ASIDE] = "set_aside",
    [EVENT_PAUSED] = "paused",         [EVENT_RESUMED] = "resumed",
    [EVENT_REWOUND] = "rewound",       [EVENT_DRAIN] = "drain",
    [EVENT_RECREATED] = "recreated",
    [EVENT_ORPHANED] = "orphaned",     [EVENT_DEAD_LETTER_FLOOD] = "dead_letter_flood",
    [EVENT_RELAY_LEASE] = "relay_lease", [EVENT_RELAY_REFUSED] = "relay_refused",
};

static enum log_priority priority_of(enum outcome_level level)
{
    switch (level) {
    case LEVEL_ERR: return LOG_PRIORITY_ERR;
    case LEVEL_WARNING: return LOG_PRIORITY_WARNING;
    case LEVEL_INFO: return LOG_PRIORITY_INFO;
    }
    abort();
}

static bool is_wanted(const struct report *report, enum log_priority priority)
{
    switch (report->config->log.level) {
    case LOG_ERROR: return priority <= LOG_PRIORITY_ERR;
    case LOG_WARNING: return priority <= LOG_PRIORITY_WARNING;
    case LOG_INFO: return priority <= LOG_PRIORITY_INFO;
    case LOG_DEBUG: return true;
    }
    abort();
}

/* log.records: 0 = changes only, 1 = all, N = one in N of `first` and `duplicate`. */
static bool is_sampled(struct report *report, enum outcome outcome)
{
    uint32_t records = report->config->log.records;
    if (records == 1)
        return true;
    if (records == 0)
        return outcome != OUTCOME_DUPLICATE && outcome != OUTCOME_IGNORED && outcome != OUTCOME_PROCESSING;
    if (outcome != OUTCOME_FIRST && outcome != OUTCOME_DUPLICATE)
        return true;
    return report->skipped++ % records == 0;
}

static void put_request_id(struct log_batch *log, const struct item *item)
{
    char text[TOPIC_MAX + 40];
    struct buf buf;
    if (item->eval.request_id.len) {
        log_field(log, "request_id", item->eval.request_id);
        return;
    }
    buf_init(&buf, text, sizeof text);
    buf_bytes(&buf, item->record.topic);
    buf_char(&buf, '/');
    buf_int(&buf, item->record.partition);
    buf_char(&buf, '/');
    buf_int(&buf, item->record.offset);
    log_field(log, "request_id", buf_view(&buf));
}

static void put_rule(struct log_batch *log, const struct item *item)
{
    const struct rule *rule = item->eval.rule;
    if (rule) {
        log_field(log, "rule", rule->name);
        log_field(log, "biz_type", rule->biz_type);
    }
    log_field(log, "key", item->eval.key);
    log_field(log, "biz_no", item->eval.biz_no);
    if (rule)
        log_field(log, "action", rule->action);
}

static void outcome(void *self, const struct item *item, int64_t took_us, uint32_t worker)
{
    struct report *report = self;
    struct log_batch *log = &report->log;
    enum log_priority priority = priority_of(outcome_row(item->outcome)->level);
    if (report->wall_ms == 0)
        report->wall_ms = report->env->wall_ms(report->env->self);
    meter_outcome(&report->meter, item, report->wall_ms);
    if (!is_wanted(report, priority) || !is_sampled(report, item->outcome))
        return;
    log_begin(log, report->wall_ms, priority, "outcome");
    log_text(log, "outcome", outcome_name(item->outcome));
    if (item->outcome == OUTCOME_DUPLICATE)
        log_text(log, "first_outcome", outcome_name(item->first_outcome));
    log_text(log, "cause", cause_name(item->cause));
    put_rule(log, item);
    put_request_id(log, item);
    log_text(log, "source", source_name(item->record.source));
    log_field(log, "topic", item->record.topic);
    log_int(log, "partition", item->record.partition);
    log_int(log, "offset", item->record.offset);
    if (item->record.timestamp_ms >= 0)
        log_int(log, "record_ts", item->record.timestamp_ms);
    log_int(log, "attempt", item->attempts ? item->attempts : 1);
    if (item->error_number)
        log_int(log, "errno", item->error_number);
    log_int(log, "took_us", took_us);
    log_int(log, "worker", worker);
    log_int(log, "generation", (int64_t)item->generation);
    log_end(log);
}

static void put_error(struct log_batch *log, const struct err *err)
{
    if (!err)
        return;
    log_text(log, "class", err_class_name(err->class));
    if (err->number)
        log_int(log, "errno", err->number);
    log_text(log, "step", err->where);
    log_text(log, "error", err->text);
}

static void put_positive(struct log_batch *log, const char *name, int64_t value)
{
    if (value >= 0)
        log_int(log, name, value);
}

static void event(void *self, enum report_event number, const struct report_fields *fields)
{
    struct report *report = self;
    struct log_batch *log = &report->log;
    enum log_priority priority = priority_of(fields->level);
    meter_event(&report->meter, number, fields);
    if (!is_wanted(report, priority))
        return;
    log_begin(log, report->env->wall_ms(report->env->self), priority, event_names[number]);
    log_text(log, "why", fields->why);
    log_field(log, "database", fields->database);
    log_field(log, "key", fields->key);
    log_field(log, "topic", fields->topic);
    put_positive(log, "partition", fields->partition);
    put_positive(log, "offset", fields->offset);
    put_positive(log, "generation", fields->generation);
    put_positive(log, "records", fields->count);
    put_positive(log, "attempt", fields->attempt);
    put_positive(log, "delay_ms", fields->delay_ms);
    put_error(log, fields->err);
    log_end(log);
    log_flush(log);
}

static void transaction(void *self, uint32_t database, enum report_tx result, uint32_t records, int64_t took_us)
{
    struct report *report = self;
    meter_transaction(&report->meter, database, result, records, took_us);
}

static void flush(void *self)
{
    struct report *report = self;
    report->wall_ms = 0;
    log_flush(&report->log);
}

bool report_init(struct report *report, const struct config *config, const struct env_port *env,
                 struct meters *meters, log_sink *sink, void *context)
{
    report->port = (struct report_port){.self = report, .outcome = outcome, .event = event,
                                        .transaction = transaction, .flush = flush};
    report->config = config;
    report->env = env;
    report->skipped = 0;
    report->wall_ms = 0;
    log_init(&report->log, sink, context);
    return meter_init(&report->meter, meters);
}

struct log_batch *report_line(struct report *report, enum log_priority priority, const char *event_name)
{
    log_begin(&report->log, report->env->wall_ms(report->env->self), priority, event_name);
    return &report->log;
}

void report_line_end(struct report *report)
{
    log_end(&report->log);
    log_flush(&report->log);
}
