/* SPDX-License-Identifier: MIT */
/* section: the sections of the file besides topics, each by its table. A new option is one row here. */
#include "binder.h"

enum { KIB = 1024, MIB = 1024 * 1024, SECOND = 1000, HOUR = 3600 * 1000 };

#define COUNT_OF(list) ((uint32_t)(sizeof(list) / sizeof((list)[0])))

struct top {
    uint32_t version;
    const struct yaml_node *kafka, *databases, *batch, *topics, *limits, *outbox, *dead_letter, *purge, *http,
        *redis, *log, *control;
};

static const struct option top_options[] = {
    {.name = "version", .kind = OPTION_NUMBER, .width = 4, .offset = offsetof(struct top, version), .min = 1,
     .max = 1, .required = true},
    {.name = "mode", .kind = OPTION_LATER, .accepted = {"apply"}},
    {.name = "kafka", .kind = OPTION_NODE, .offset = offsetof(struct top, kafka), .required = true},
    {.name = "databases", .kind = OPTION_NODE, .offset = offsetof(struct top, databases), .required = true},
    {.name = "batch", .kind = OPTION_NODE, .offset = offsetof(struct top, batch)},
    {.name = "topics", .kind = OPTION_NODE, .offset = offsetof(struct top, topics), .required = true},
    {.name = "limits", .kind = OPTION_NODE, .offset = offsetof(struct top, limits)},
    {.name = "outbox", .kind = OPTION_NODE, .offset = offsetof(struct top, outbox)},
    {.name = "dead_letter", .kind = OPTION_NODE, .offset = offsetof(struct top, dead_letter)},
    {.name = "purge", .kind = OPTION_NODE, .offset = offsetof(struct top, purge)},
    {.name = "http", .kind = OPTION_NODE, .offset = offsetof(struct top, http)},
    {.name = "redis", .kind = OPTION_NODE, .offset = offsetof(struct top, redis)},
    {.name = "log", .kind = OPTION_NODE, .offset = offsetof(struct top, log)},
    {.name = "control", .kind = OPTION_NODE, .offset = offsetof(struct top, control)},
    {.name = "shards", .kind = OPTION_LATER},
};

/* These stand beside the sections but live in struct config. */
static const struct option timeout_options[] = {
    {.name = "start_timeout", .kind = OPTION_DURATION, .width = 4,
     .offset = offsetof(struct config, start_timeout_ms), .min = SECOND, .max = HOUR, .fallback = "60s"},
    {.name = "stop_timeout", .kind = OPTION_DURATION, .width = 4,
     .offset = offsetof(struct config, stop_timeout_ms), .min = SECOND, .max = HOUR, .fallback = "30s"},
};

static const struct option batch_options[] = {
    {.name = "max", .kind = OPTION_NUMBER, .width = 4, .offset = offsetof(struct config, batch_max), .min = 1,
     .max = BATCH_RECORDS_MAX, .fallback = "500"},
    {.name = "bytes", .kind = OPTION_SIZE, .width = 8, .offset = offsetof(struct config, batch_bytes),
     .min = 64 * KIB, .max = 64 * MIB, .fallback = "4MiB"},
};

static const struct option limits_options[] = {
    {.name = "rate", .kind = OPTION_LATER, .accepted = {"0"}},
    {.name = "inflight", .kind = OPTION_NUMBER, .width = 4, .offset = offsetof(struct limits_config, inflight),
     .min = 1, .max = 1000000, .fallback = "10000"},
    {.name = "inflight_bytes", .kind = OPTION_SIZE, .width = 8,
     .offset = offsetof(struct limits_config, inflight_bytes), .min = MIB, .max = 4096ull * MIB,
     .fallback = "64MiB"},
    {.name = "parked_max", .kind = OPTION_NUMBER, .width = 4, .offset = offsetof(struct limits_config, parked_max),
     .min = 1, .max = 100000000, .fallback = "100000"},
    {.name = "dead_letter_share", .kind = OPTION_TEXT, .offset = offsetof(struct limits_config, dead_letter_share),
     .nonempty = true, .fallback = "0.2"},
};

static const struct option outbox_options[] = {
    {.name = "relay", .kind = OPTION_BOOL, .offset = offsetof(struct outbox_config, relay)},
    {.name = "lease", .kind = OPTION_DURATION, .width = 4, .offset = offsetof(struct outbox_config, lease_ms),
     .min = 2000, .max = 600000, .fallback = "30s"},
};

static const struct option dead_letter_options[] = {
    {.name = "payload_max", .kind = OPTION_SIZE, .width = 4,
     .offset = offsetof(struct dead_letter_config, payload_max), .min = 0, .max = 15 * MIB, .fallback = "1MiB"},
    {.name = "keep", .kind = OPTION_LATER, .accepted = {"90d"}},
    {.name = "topic", .kind = OPTION_TEXT, .offset = offsetof(struct dead_letter_config, topic), .fallback = ""},
};

static const struct option purge_options[] = {
    {.name = "every", .kind = OPTION_LATER, .accepted = {"10s"}},
    {.name = "rows", .kind = OPTION_LATER, .accepted = {"500"}},
    {.name = "window", .kind = OPTION_LATER, .accepted = {""}},
    {.name = "replica_lag_max", .kind = OPTION_LATER, .accepted = {"10s"}},
};

static const struct option redis_options[] = {
    {.name = "enabled", .kind = OPTION_LATER, .accepted = {"false"}},
    {.name = "url", .kind = OPTION_LATER, .accepted = {"redis://127.0.0.1:6379", ""}},
};

static const struct option control_options[] = {
    {.name = "socket", .kind = OPTION_LATER, .accepted = {"/run/idemd/control.sock", ""}},
};

static const struct word log_formats[] = {{"logfmt", LOG_LOGFMT}, {NULL, 0}};
static const struct word log_levels[] = {
    {"error", LOG_ERROR}, {"warning", LOG_WARNING}, {"info", LOG_INFO}, {"debug", LOG_DEBUG}, {NULL, 0}};

struct log_target {
    struct log_config log;
    const struct yaml_node *records;
};

static const struct option log_options[] = {
    {.name = "format", .kind = OPTION_WORD, .offset = offsetof(struct log_target, log.format),
     .words = log_formats, .fallback = "logfmt"},
    {.name = "level", .kind = OPTION_WORD, .offset = offsetof(struct log_target, log.level), .words = log_levels,
     .fallback = "info"},
    {.name = "records", .kind = OPTION_NODE, .offset = offsetof(struct log_target, records)},
};

static void log_bind(struct binder *b, const struct yaml_node *node)
{
    struct log_target target = {.log.records = 1};
    struct bytes text;
    uint64_t number;
    section_bind(b, node, log_options, COUNT_OF(log_options), &target);
    size_t mark = path_enter(b, "records");
    if (target.records && scalar_text(b, target.records, false, &text)) {
        if (bytes_equal(text, BYTES_LIT("changes")))
            target.log.records = 0;
        else if (number_parse(text, &number) && number >= 1 && number <= 1000000)
            target.log.records = (uint32_t)number;
        else if (!bytes_equal(text, BYTES_LIT("all")))
            mistake(b, target.records, "\"%s\" is none of all, changes, 1..1000000 (default all)",
                    quote(target.records->text).text);
    }
    path_leave(b, mark);
    b->config->log = target.log;
}

static void part_bind(struct binder *b, const char *name, const struct yaml_node *node,
                      const struct option *options, uint32_t count, void *target)
{
    size_t mark = path_enter(b, name);
    section_bind(b, node, options, count, target);
    path_leave(b, mark);
}

/* 0, 1, or 0.d up to six digits. */
static bool share_parse(struct bytes text, uint32_t *ret_ppm)
{
    uint32_t ppm = 0, digit = 100000;
    if (bytes_equal(text, BYTES_LIT("1")) || bytes_equal(text, BYTES_LIT("0"))) {
        *ret_ppm = text.at[0] == '1' ? 1000000 : 0;
        return true;
    }
    if (text.len < 3 || text.len > 8 || text.at[0] != '0' || text.at[1] != '.')
        return false;
    for (size_t i = 2; i < text.len; i++, digit /= 10) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
        ppm += (uint32_t)(text.at[i] - '0') * digit;
    }
    *ret_ppm = ppm;
    return true;
}

/* A letter that is consumed again would be a letter again. */
static void letter_topic_check(struct binder *b, const struct top *top)
{
    struct bytes topic = b->config->dead_letter.topic;
    const struct yaml_node *node = top->dead_letter ? map_find(top->dead_letter, "topic") : NULL;
    size_t mark = path_enter(b, "dead_letter.topic");
    if (topic.len && !topic_name_is_valid(topic))
        mistake(b, node, "is not the name of a topic");
    for (uint32_t i = 0; topic.len && top->topics && top->topics->kind == YAML_MAPPING && i + 1 < top->topics->count;
         i += 2)
        if (bytes_equal(top->topics->children[i]->text, topic))
            mistake(b, node, "\"%s\" is consumed here: letters would come round again", quote(topic).text);
    path_leave(b, mark);
}

static void share_check(struct binder *b, const struct yaml_node *limits)
{
    struct limits_config *config = &b->config->limits;
    const struct yaml_node *node = limits ? map_find(limits, "dead_letter_share") : NULL;
    size_t mark = path_enter(b, "limits.dead_letter_share");
    if (config->dead_letter_share.len && !share_parse(config->dead_letter_share, &config->letter_ppm))
        mistake(b, node, "\"%s\" is not a share (0..1, like 0.2; 1 = no limit; default 0.2)",
                quote(config->dead_letter_share).text);
    path_leave(b, mark);
}

static void combined_check(struct binder *b, const struct top *top)
{
    const struct config *config = b->config;
    const struct yaml_node *max = top->batch ? map_find(top->batch, "max") : NULL;
    const struct yaml_node *bytes = top->batch ? map_find(top->batch, "bytes") : NULL;
    size_t mark = path_enter(b, "batch.max");
    if (config->batch_max > config->limits.inflight)
        mistake(b, max ? max : top->limits, "%u is more than limits.inflight (%u)", (unsigned)config->batch_max,
                (unsigned)config->limits.inflight);
    path_leave(b, mark);
    mark = path_enter(b, "batch.bytes");
    if (config->batch_bytes > config->limits.inflight_bytes)
        mistake(b, bytes ? bytes : top->limits, "is more than limits.inflight_bytes");
    path_leave(b, mark);
}

/* The top-level table: sections, and the two timeouts that stand between them. */
static void top_bind(struct binder *b, const struct yaml_node *root, struct top *top)
{
    struct {
        struct top top;
        struct config config;
    } target = {0};
    struct option options[COUNT_OF(top_options) + COUNT_OF(timeout_options)];
    memcpy(options, top_options, sizeof(top_options));
    memcpy(options + COUNT_OF(top_options), timeout_options, sizeof(timeout_options));
    for (uint32_t i = COUNT_OF(top_options); i < COUNT_OF(options); i++)
        options[i].offset += (size_t)((uint8_t *)&target.config - (uint8_t *)&target);
    section_bind(b, root, options, COUNT_OF(options), &target);
    *top = target.top;
    b->config->start_timeout_ms = target.config.start_timeout_ms;
    b->config->stop_timeout_ms = target.config.stop_timeout_ms;
}

void sections_bind(struct binder *b, const struct yaml_node *root, const struct yaml_node **ret_topics)
{
    struct top top;
    struct config *config = b->config;

    top_bind(b, root, &top);
    config->limits = (struct limits_config){.parked_max = 100000, .letter_ppm = 200000};
    if (top.kafka)
        kafka_bind(b, top.kafka);
    if (top.databases)
        databases_bind(b, top.databases);
    part_bind(b, "batch", top.batch, batch_options, COUNT_OF(batch_options), config);
    part_bind(b, "limits", top.limits, limits_options, COUNT_OF(limits_options), &config->limits);
    config->outbox.relay = true;
    part_bind(b, "outbox", top.outbox, outbox_options, COUNT_OF(outbox_options), &config->outbox);
    part_bind(b, "dead_letter", top.dead_letter, dead_letter_options, COUNT_OF(dead_letter_options),
              &config->dead_letter);
    part_bind(b, "purge", top.purge, purge_options, COUNT_OF(purge_options), config);
    http_bind(b, top.http);
    part_bind(b, "redis", top.redis, redis_options, COUNT_OF(redis_options), config);
    part_bind(b, "control", top.control, control_options, COUNT_OF(control_options), config);
    size_t mark = path_enter(b, "log");
    log_bind(b, top.log);
    path_leave(b, mark);
    combined_check(b, &top);
    share_check(b, top.limits);
    letter_topic_check(b, &top);
    *ret_topics = top.topics;
}
