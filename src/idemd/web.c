/* SPDX-License-Identifier: MIT */
/* web: see web.h. Counters come from the meters; what is a state and no count is written here, each family by one
 * function. A part that is built later adds its function to families[]. */
#include "web.h"

#include "idem/adapter/http.h"
#include "idem/adapter/kafka_source.h"
#include "idem/adapter/mysql_conn.h"

#include <stdlib.h>

enum { REASONS_MAX = 16 << 10, METRICS_FIRST = 64 << 10, METRICS_MAX = 64 << 20 };

/* ---- metrics --------------------------------------------------------------------------------------------------- */

static struct metrics_label label(const char *name, struct bytes value)
{
    return (struct metrics_label){name, value};
}

/* One gauge of each partition that is ours. */
static void put_partitions(const struct web *web, struct buf *buf, const char *name, const char *help,
                           void (*put)(struct buf *buf, const char *name, const struct metrics_label *labels,
                                       const struct gauge *gauge))
{
    metrics_head(buf, name, help, METRICS_GAUGE);
    for (uint32_t i = 0; i < web->gauges->count; i++) {
        const struct gauge *gauge = &web->gauges->list[i];
        char number[24];
        struct buf text;
        buf_init(&text, number, sizeof number);
        buf_int(&text, gauge->number);
        struct metrics_label labels[] = {label("topic", gauge->topic->name), label("partition", buf_view(&text))};
        put(buf, name, labels, gauge);
    }
}

static void put_lag(struct buf *buf, const char *name, const struct metrics_label *labels, const struct gauge *gauge)
{
    metrics_line(buf, name, labels, 2, gauge->lag);
}

static void put_oldest(struct buf *buf, const char *name, const struct metrics_label *labels,
                       const struct gauge *gauge)
{
    metrics_line_scaled(buf, name, labels, 2, gauge->oldest_ms, 1000);
}

static void put_commit(struct buf *buf, const char *name, const struct metrics_label *labels,
                       const struct gauge *gauge)
{
    metrics_line(buf, name, labels, 2, gauge->commit);
}

static void partitions(const struct web *web, struct buf *buf)
{
    put_partitions(web, buf, "idem_lag", "Records behind the end of the log, as the last fetch told it.", put_lag);
    put_partitions(web, buf, "idem_oldest_unfinished_seconds",
                   "For how long the oldest record that is not finished has been here.", put_oldest);
    put_partitions(web, buf, "idem_commit_offset", "Everything below this offset is finished.", put_commit);
}

static void paused(const struct web *web, struct buf *buf)
{
    metrics_head(buf, "idem_paused", "1: the partition does not move, for this reason.", METRICS_GAUGE);
    for (uint32_t i = 0; i < web->gauges->count; i++) {
        const struct gauge *gauge = &web->gauges->list[i];
        uint32_t bits = health_halts(web->health, gauge);
        char number[24];
        struct buf text;
        buf_init(&text, number, sizeof number);
        buf_int(&text, gauge->number);
        for (int why = 0; why < HALT_WHY_COUNT; why++) {
            struct metrics_label labels[] = {label("topic", gauge->topic->name), label("partition", buf_view(&text)),
                                             label("why", bytes_text(halt_why_name((enum halt_why)why)))};
            metrics_line(buf, "idem_paused", labels, 3, bits >> why & 1);
        }
    }
}

static void inflight(const struct web *web, struct buf *buf)
{
    metrics_head(buf, "idem_inflight", "Records between poll and commit.", METRICS_GAUGE);
    for (uint32_t i = 0; i < web->config->topic_count; i++) {
        struct metrics_label topic = label("topic", web->config->topics[i].name);
        metrics_line(buf, "idem_inflight", &topic, 1, (int64_t)web->gauges->inflight[i]);
    }
}

static void dead_letters(const struct web *web, struct buf *buf)
{
    bool counted = atomic_load(&web->health->attached);
    metrics_head(buf, "idem_dead_letters_open", "Open dead letters in the database, counted every 30 s.",
                 METRICS_GAUGE);
    for (uint32_t i = 0; i < web->config->topic_count; i++)
        for (int o = OUTCOME_FIRST; o < OUTCOME_COUNT; o++) {
            const struct topic *topic = &web->config->topics[i];
            if (!outcome_row((enum outcome)o)->dead_letter)
                continue;
            struct metrics_label labels[] = {label("topic", topic->name),
                                             label("outcome", bytes_text(outcome_name((enum outcome)o)))};
            uint64_t open = counted ? tally_letters(&web->wire->tallies[topic->database], i, (enum outcome)o) : 0;
            metrics_line(buf, "idem_dead_letters_open", labels, 2, (int64_t)open);
        }
}

static void parked(const struct web *web, struct buf *buf)
{
    static const enum cause reasons[] = {CAUSE_NOT_FOUND, CAUSE_STATE, CAUSE_LOCKED, CAUSE_BEHIND, CAUSE_REDRIVE};
    bool counted = atomic_load(&web->health->attached);
    metrics_head(buf, "idem_parked", "Records that wait in idem_parked, counted every 5 s.", METRICS_GAUGE);
    for (uint32_t i = 0; i < web->config->topic_count; i++)
        for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++) {
            const struct topic *topic = &web->config->topics[i];
            struct metrics_label labels[] = {label("topic", topic->name),
                                             label("reason", bytes_text(cause_name(reasons[r])))};
            uint64_t rows = counted ? tally_parked(&web->wire->tallies[topic->database], i, reasons[r]) : 0;
            metrics_line(buf, "idem_parked", labels, 2, (int64_t)rows);
        }
    metrics_head(buf, "idem_parked_oldest_seconds", "For how long the oldest of them has waited.", METRICS_GAUGE);
    for (uint32_t i = 0; i < web->config->topic_count; i++) {
        const struct topic *topic = &web->config->topics[i];
        struct metrics_label labels[] = {label("topic", topic->name)};
        uint64_t oldest = counted ? tally_parked_oldest_s(&web->wire->tallies[topic->database], i) : 0;
        metrics_line(buf, "idem_parked_oldest_seconds", labels, 1, (int64_t)oldest);
    }
}

static void build(const struct web *web, struct buf *buf)
{
    struct metrics_label labels[] = {label("version", BYTES_LIT(IDEM_VERSION)),
                                     label("librdkafka", bytes_text(kafka_library_version())),
                                     label("mysql_client", bytes_text(conn_library_version()))};
    (void)web;
    metrics_head(buf, "idem_build_info", "Always 1; what runs here.", METRICS_GAUGE);
    metrics_line(buf, "idem_build_info", labels, 3, 1);
}

/* Of this topic in all databases. result: 0 ok, 1 again, 2 refused. */
static uint64_t published(const struct web *web, struct bytes topic, int result)
{
    const struct relay_counts *counts;
    uint64_t sum = 0;
    for (uint32_t i = 0; (counts = relays_counts(web->relays, i)); i++)
        for (uint32_t k = 0; k < counts->topic_count; k++) {
            const struct relay_topic_count *count = &counts->topics[k];
            if (bytes_equal(count->topic, topic))
                sum += atomic_load(result == 0 ? &count->published : result == 1 ? &count->again : &count->refused);
        }
    return sum;
}

static bool is_first(const struct web *web, uint32_t database, struct bytes topic)
{
    for (uint32_t i = 0; i < database; i++) {
        const struct relay_counts *counts = relays_counts(web->relays, i);
        for (uint32_t k = 0; k < counts->topic_count; k++)
            if (bytes_equal(counts->topics[k].topic, topic))
                return false;
    }
    return true;
}

static void publications(const struct web *web, struct buf *buf)
{
    static const char *const results[] = {"ok", "again", "refused"};
    const struct relay_counts *counts;
    metrics_head(buf, "idem_outbox_published_total", "Delivery reports: ok, again (it will be sent again), refused.",
                 METRICS_COUNTER);
    for (uint32_t i = 0; (counts = relays_counts(web->relays, i)); i++)
        for (uint32_t k = 0; k < counts->topic_count; k++)
            for (int r = 0; r < 3 && is_first(web, i, counts->topics[k].topic); r++) {
                struct metrics_label labels[] = {label("topic", counts->topics[k].topic),
                                                 label("result", bytes_text(results[r]))};
                metrics_line(buf, "idem_outbox_published_total", labels, 2,
                             (int64_t)published(web, counts->topics[k].topic, r));
            }
}

/* All databases: one outbox each. Rows are known only where our relay holds the lease. */
static void outbox(const struct web *web, struct buf *buf)
{
    const struct relay_counts *counts;
    uint64_t rows = 0, oldest_ms = 0;
    for (uint32_t i = 0; (counts = relays_counts(web->relays, i)); i++) {
        rows += atomic_load(&counts->rows);
        if (atomic_load(&counts->oldest_ms) > oldest_ms)
            oldest_ms = atomic_load(&counts->oldest_ms);
    }
    metrics_head(buf, "idem_outbox_rows", "Rows of the outbox, counted every 5 s by the relay that publishes it.",
                 METRICS_GAUGE);
    metrics_line(buf, "idem_outbox_rows", NULL, 0, (int64_t)rows);
    metrics_head(buf, "idem_outbox_oldest_seconds", "For how long the oldest of them has waited.", METRICS_GAUGE);
    metrics_line_scaled(buf, "idem_outbox_oldest_seconds", NULL, 0, oldest_ms, 1000);
    publications(web, buf);
}

static void (*const families[])(const struct web *web, struct buf *buf) = {
    partitions, paused, inflight, parked, dead_letters, outbox, build,
};

static bool is_ready(const struct web *web)
{
    char text[REASONS_MAX];
    struct buf buf;
    buf_init(&buf, text, sizeof text);
    return health_reasons(web->health, &buf) == 0;
}

static void put_metrics(const struct web *web, struct buf *buf)
{
    meters_render(web->meters, buf);
    metrics_head(buf, "idem_ready", "1: /readyz says 200.", METRICS_GAUGE);
    metrics_line(buf, "idem_ready", NULL, 0, is_ready(web));
    gauges_hold(web->gauges);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        families[i](web, buf);
    gauges_release(web->gauges);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

static void give_text(struct http_answer *ret, unsigned status, const char *type, const char *text)
{
    *ret = (struct http_answer){.status = status, .type = type, .body = strdup(text), .len = strlen(text)};
    if (!ret->body)
        *ret = (struct http_answer){.status = 503};
}

static void give_metrics(const struct web *web, struct http_answer *ret)
{
    struct buf buf;
    *ret = (struct http_answer){.status = 503};
    for (size_t size = METRICS_FIRST; size <= METRICS_MAX; size *= 2) {
        char *block = malloc(size);
        if (!block)
            return;
        buf_init(&buf, block, size);
        put_metrics(web, &buf);
        if (!buf.overflow) {
            *ret = (struct http_answer){.status = 200, .type = "text/plain; version=0.0.4; charset=utf-8",
                                        .body = block, .len = buf.len};
            return;
        }
        free(block);
    }
}

static void give_ready(const struct web *web, struct http_answer *ret)
{
    char *block = malloc(REASONS_MAX);
    struct buf buf;
    *ret = (struct http_answer){.status = 503};
    if (!block)
        return;
    buf_init(&buf, block, REASONS_MAX);
    buf_text(&buf, "{\"ready\":false,\"reasons\":");
    uint32_t reasons = health_reasons(web->health, &buf);
    if (reasons == 0)
        buf_reset(&buf);
    buf_text(&buf, reasons == 0 ? "{\"ready\":true}" : "}");
    if (buf.overflow) {          /* more partitions than anybody reads the names of */
        buf_reset(&buf);
        buf_text(&buf, "{\"ready\":false,\"reasons\":[\"many\"]}");
    }
    *ret = (struct http_answer){.status = reasons == 0 ? 200 : 503, .type = "application/json", .body = block,
                                .len = buf.len};
}

void web_answer(void *context, struct bytes path, struct http_answer *ret)
{
    const struct web *web = context;
    if (bytes_equal(path, BYTES_LIT("/healthz"))) {
        bool alive = web->alive(web->context);
        give_text(ret, alive ? 200 : 503, "application/json", alive ? "{\"alive\":true}" : "{\"alive\":false}");
    } else if (bytes_equal(path, BYTES_LIT("/readyz"))) {
        give_ready(web, ret);
    } else if (bytes_equal(path, BYTES_LIT("/metrics"))) {
        give_metrics(web, ret);
    } else {
        give_text(ret, 404, "application/json", "{\"code\":\"NOT_FOUND\"}");
    }
}
