/* SPDX-License-Identifier: MIT */
/* health: see idem/app/health.h. */
#include "idem/app/health.h"

enum {
    SILENCE_MS = 5000,               /* beyond the lock wait: a keeper that hangs so long hangs on its server */
    STALL_MS = 120000,               /* at least */
    ANSWER_MS = 30000,               /* sessions wait so long, and two lock waits, for an answer (mysql/conn.c) */
    SLACK_MS = 60000                 /* what a step may have done before that */
};

/* A partition that stands still for one of these needs somebody. The others pass, somebody wanted them, or they are
 * told of the database or the topic. */
enum {
    STOPPED = 1 << HALT_OFFSET_GONE | 1 << HALT_RECREATED | 1 << HALT_FAULT
};

bool pulses_are_fresh(const struct pulse *pulses, uint32_t count, int64_t now_us, int64_t limit_us)
{
    for (uint32_t i = 0; i < count; i++) {
        int64_t since = atomic_load(&pulses[i].busy_since_us);
        if (since > 0 && now_us - since > limit_us)
            return false;
    }
    return true;
}

int64_t pulse_limit_us(const struct config *config)
{
    int64_t limit_ms = STALL_MS;
    for (uint32_t i = 0; i < config->database_count; i++) {
        int64_t answer_ms = 2 * (int64_t)config->databases[i].lock_wait_ms + ANSWER_MS + SLACK_MS;
        if (answer_ms > limit_ms)
            limit_ms = answer_ms;
    }
    return limit_ms * 1000;
}

void health_init(struct health *health, const struct config *config, struct gauges *gauges)
{
    *health = (struct health){.config = config, .gauges = gauges};
}

void health_attach(struct health *health, const struct shared *shared, struct keeper *keepers)
{
    health->shared = shared;
    health->keepers = keepers;
    atomic_store(&health->attached, true);
}

int health_database_down(const struct health *health, uint32_t database)
{
    if (!atomic_load(&health->attached))
        return -1;
    for (int why = 0; why < DOWN_WHY_COUNT; why++)
        if (atomic_load(&health->shared->down[database * DOWN_WHY_COUNT + (uint32_t)why]) > 0)
            return why;
    int64_t silence_ms = SILENCE_MS + (int64_t)health->config->databases[database].lock_wait_ms;
    return keeper_database_down(&health->keepers[database], silence_ms * 1000);
}

static bool topic_is_down(const struct health *health, uint32_t topic)
{
    return atomic_load(&health->attached) && atomic_load(&health->shared->topic_down[topic]) > 0;
}

uint32_t health_halts(const struct health *health, const struct gauge *gauge)
{
    uint32_t halts = gauge->halts;
    int down = health_database_down(health, gauge->topic->database);
    if (down >= 0)
        halts |= 1u << (down == DOWN_CONFIG ? HALT_CONFIG : HALT_UNREACHABLE);
    return topic_is_down(health, gauge->topic->index) ? halts | 1u << HALT_CONFIG : halts;
}

/* ,"why:what" */
static uint32_t put_reason(struct buf *buf, uint32_t count, const char *why, struct bytes what, int64_t partition)
{
    char text[2 * TOPIC_MAX];
    struct buf reason;
    buf_init(&reason, text, sizeof text);
    buf_text(&reason, why);
    if (what.len > 0)
        buf_char(&reason, ':');
    buf_bytes(&reason, what);
    if (partition >= 0) {
        buf_char(&reason, '/');
        buf_int(&reason, partition);
    }
    if (count > 0)
        buf_char(buf, ',');
    buf_json_string(buf, buf_view(&reason));
    return count + 1;
}

/* A flood is its topic's: told once, by the first of its partitions. */
static bool is_told(const struct gauges *gauges, uint32_t at)
{
    for (uint32_t i = 0; i < at; i++)
        if (gauges->list[i].topic == gauges->list[at].topic && gauges->list[i].halts & 1 << HALT_FLOOD)
            return true;
    return false;
}

static uint32_t put_partitions(const struct gauges *gauges, struct buf *buf, uint32_t count)
{
    for (uint32_t i = 0; i < gauges->count; i++) {
        const struct gauge *gauge = &gauges->list[i];
        if (gauge->halts & 1 << HALT_FLOOD && !is_told(gauges, i))
            count = put_reason(buf, count, halt_why_name(HALT_FLOOD), gauge->topic->name, -1);
        for (int why = 0; why < HALT_WHY_COUNT; why++)
            if (gauge->halts & STOPPED & 1u << why)
                count = put_reason(buf, count, halt_why_name((enum halt_why)why), gauge->topic->name, gauge->number);
    }
    return count;
}

uint32_t health_reasons(const struct health *health, struct buf *buf)
{
    uint32_t count = 0;
    bool attached = atomic_load(&health->attached);
    buf_char(buf, '[');
    if (atomic_load(&health->stopping))
        count = put_reason(buf, count, "stopping", (struct bytes){0}, -1);
    if (!attached)
        count = put_reason(buf, count, "starting", (struct bytes){0}, -1);
    else if (!atomic_load(&health->joined))
        count = put_reason(buf, count, "not_joined", (struct bytes){0}, -1);
    for (uint32_t i = 0; i < health->config->database_count; i++) {
        int down = health_database_down(health, i);
        if (down >= 0)
            count = put_reason(buf, count, halt_why_name(down == DOWN_CONFIG ? HALT_CONFIG : HALT_UNREACHABLE),
                               health->config->databases[i].name, -1);
    }
    for (uint32_t i = 0; i < health->config->topic_count; i++)
        if (topic_is_down(health, i))
            count = put_reason(buf, count, halt_why_name(HALT_CONFIG), health->config->topics[i].name, -1);
    gauges_hold(health->gauges);
    count = put_partitions(health->gauges, buf, count);
    gauges_release(health->gauges);
    buf_char(buf, ']');
    return count;
}
