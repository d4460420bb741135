/* SPDX-License-Identifier: MIT */
/* retention: asks Kafka hourly and says what is too short, on a thread of its own; see retention.h. */
#include "retention.h"

#include "idem/adapter/kafka_retention.h"
#include "idem/adapter/mysql_check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ASK_MS = 3000, EVERY_S = 3600 };

struct retention_watch {
    const struct config *config;
    struct report *report;
    struct kafka_retention *now, *told;      /* by topic; told.known: something was told, about this ms */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;                  /* CLOCK_MONOTONIC */
    bool stopping;
};

static void say(struct retention_watch *watch, enum log_priority priority, const char *path, const char *message)
{
    struct log_batch *log = report_line(watch->report, priority, "check");
    log_text(log, "code", "ttl");
    log_text(log, "path", path);
    log_text(log, "message", message);
    report_line_end(watch->report);
}

static void compare(struct retention_watch *watch, const struct rule *rule, int64_t kept_ms)
{
    char path[400], message[400] = "";
    struct buf sum;
    buf_init(&sum, message, sizeof message - 1);
    if (!retention_is_short(rule, kept_ms, check_is_guarded(rule), &sum))
        return;
    snprintf(path, sizeof path, "topics.%.*s.rules.%.*s", (int)rule->topic.len, (const char *)rule->topic.at,
             (int)rule->name.len, (const char *)rule->name.at);
    say(watch, LOG_PRIORITY_WARNING, path, message);
}

static void look(struct retention_watch *watch)
{
    struct err err = {0};
    if (kafka_retentions(watch->config, ASK_MS, watch->now, &err) != ERR_NONE) {
        say(watch, LOG_PRIORITY_INFO, "kafka", "retention: not looked at, the broker did not answer");
        return;
    }
    for (uint32_t i = 0; i < watch->config->topic_count; i++) {
        const struct topic *topic = &watch->config->topics[i];
        struct kafka_retention *told = &watch->told[i];
        if (!watch->now[i].known || (told->known && told->ms == watch->now[i].ms))
            continue;
        *told = watch->now[i];
        for (uint32_t k = 0; k < topic->rule_count; k++)
            compare(watch, &topic->rules[k], told->ms);
    }
}

/* An hour, or until the process stops. false: it stops. */
static bool wait_an_hour(struct retention_watch *watch)
{
    struct timespec until;
    int timed_out = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += EVERY_S;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stopping && !timed_out)
        timed_out = pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
    bool goes_on = !watch->stopping;
    pthread_mutex_unlock(&watch->lock);
    return goes_on;
}

static void *run(void *argument)
{
    struct retention_watch *watch = argument;
    do
        look(watch);
    while (wait_an_hour(watch));
    return NULL;
}

static void destroy(struct retention_watch *watch)
{
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    free(watch->now);
    free(watch->told);
    free(watch);
}

struct retention_watch *retention_start(const struct config *config, struct report *report)
{
    pthread_condattr_t attributes;
    struct retention_watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return NULL;
    *watch = (struct retention_watch){.config = config, .report = report};
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    watch->now = calloc(config->topic_count + 1u, sizeof *watch->now);
    watch->told = calloc(config->topic_count + 1u, sizeof *watch->told);
    if (!watch->now || !watch->told || pthread_create(&watch->thread, NULL, run, watch)) {
        destroy(watch);
        return NULL;
    }
    return watch;
}

void retention_stop(struct retention_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->lock);
    watch->stopping = true;
    pthread_mutex_unlock(&watch->lock);
    pthread_cond_broadcast(&watch->changed);
    pthread_join(watch->thread, NULL);
    destroy(watch);
}
