/* SPDX-License-Identifier: MIT */
/* relays: see relays.h. A thread adds nothing but waiting. */
#include "relays.h"

#include "idem/adapter/json.h"
#include "idem/adapter/kafka_producer.h"
#include "idem/adapter/mysql_outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WAIT_MAX_MS = 100, HEADERS_BYTES = 1 << 20 };

struct relay_thread {
    struct relays *relays;
    uint32_t index;
    pthread_t id;
    bool started;
    struct mysql_outbox *outbox;
    struct kafka_producer *producer;
    struct json_parser *json;
    struct parser_port parser;
    struct report report;
    struct relay_counts counts;
    struct relay *relay;
};

static int64_t now_us(const struct relays *relays)
{
    return relays->env->mono_us(relays->env->self);
}

/* How long the next step may wait for delivery reports. */
static uint32_t wait_ms(const struct relays *relays, int64_t due_us)
{
    int64_t left_ms = (due_us - now_us(relays) + 999) / 1000;
    if (left_ms <= 0)
        return 0;
    return left_ms < WAIT_MAX_MS ? (uint32_t)left_ms : WAIT_MAX_MS;
}

static void *run_relay(void *argument)
{
    struct relay_thread *thread = argument;
    struct relays *relays = thread->relays;
    struct pulse *pulse = &relays->pulses[thread->index];
    int64_t due = 0;
    while (!atomic_load(&relays->stopping)) {
        atomic_store(&pulse->busy_since_us, now_us(relays));
        due = relay_step(thread->relay, wait_ms(relays, due));
        atomic_store(&pulse->busy_since_us, 0);
    }
    while (!relay_stop_step(thread->relay, WAIT_MAX_MS / 4, relays->deadline_us))
        continue;
    return NULL;
}

/* HOST/PID/random: two processes of one number on two hosts of one name are still two. */
static void owner_name(const struct env_port *env, char text[128])
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(text, 128, "%s/%ld/%08llx", host, (long)getpid(),
             (unsigned long long)env->random(env->self) & 0xffffffff);
}

static void count_topic(struct relay_counts *counts, struct bytes topic)
{
    for (uint32_t i = 0; i < counts->topic_count; i++)
        if (bytes_equal(counts->topics[i].topic, topic))
            return;
    if (topic.len && counts->topic_count + 1 < RELAY_TOPICS_COUNTED)
        counts->topics[counts->topic_count++].topic = topic;
}

/* Where the rules of the database send events to, and at last whatever else stands in the table. */
static void count_topics(struct relay_counts *counts, const struct config *config, uint32_t database)
{
    for (uint32_t i = 0; i < config->topic_count; i++)
        for (uint32_t k = 0; config->topics[i].database == database && k < config->topics[i].rule_count; k++) {
            const struct rule *rule = &config->topics[i].rules[k];
            for (uint32_t e = 0; e < rule->events.count; e++)
                count_topic(counts, rule->events.events[e].topic);
            for (int o = 0; o < OUTCOME_COUNT; o++)
                for (uint32_t e = 0; e < rule->on[o].count; e++)
                    count_topic(counts, rule->on[o].events[e].topic);
        }
    count_topic(counts, config->dead_letter.topic);
    counts->topics[counts->topic_count++].topic = BYTES_LIT("other");
}

static enum err_class make_thread(struct relay_thread *thread, const struct config *config, uint32_t database,
                                  struct meters *meters, log_sink *sink, struct err *err)
{
    char owner[128];
    const struct relays *relays = thread->relays;
    owner_name(relays->env, owner);
    thread->outbox = mysql_outbox_create(&config->databases[database], config->outbox.lease_ms, owner);
    /* What a lost relay still has queued must not come after the next one's. */
    thread->producer = kafka_producer_create(config, config->outbox.lease_ms / 2, err);
    if (!thread->producer)
        return err->class;
    thread->json = json_parser_create(HEADERS_BYTES);
    if (!thread->outbox || !thread->json ||
        !report_init(&thread->report, config, relays->env, meters, sink, NULL))
        return err_set(err, ERR_FATAL, 0, "start", "out of memory");
    thread->parser = json_parser_port(thread->json);
    struct relay_init init = {
        .database = config->databases[database].name,
        .lease_ms = config->outbox.lease_ms,
        .outbox = mysql_outbox_port(thread->outbox),
        .producer = kafka_producer_port(thread->producer),
        .parser = &thread->parser,
        .env = relays->env,
        .report = &thread->report.port,
        .counts = &thread->counts,
    };
    thread->relay = relay_create(&init);
    if (!thread->relay)
        return err_set(err, ERR_FATAL, 0, "start", "out of memory");
    thread->started = pthread_create(&thread->id, NULL, run_relay, thread) == 0;
    return thread->started ? ERR_NONE : err_set(err, ERR_FATAL, 0, "start", "no thread");
}

bool relays_init(struct relays *relays, const struct config *config, const struct env_port *env)
{
    *relays = (struct relays){.env = env, .config = config};
    if (!config->outbox.relay)
        return true;
    relays->list = calloc(config->database_count, sizeof *relays->list);
    relays->pulses = calloc(config->database_count, sizeof *relays->pulses);
    if (!relays->list || !relays->pulses)
        return false;
    relays->count = config->database_count;
    for (uint32_t i = 0; i < relays->count; i++) {
        relays->list[i].relays = relays;
        relays->list[i].index = i;
        count_topics(&relays->list[i].counts, config, i);
    }
    return true;
}

enum err_class relays_start(struct relays *relays, struct meters *meters, log_sink *sink, struct err *err)
{
    for (uint32_t i = 0; i < relays->count; i++)
        if (make_thread(&relays->list[i], relays->config, i, meters, sink, err) != ERR_NONE)
            return err->class;
    return ERR_NONE;
}

static void end_thread(struct relay_thread *thread)
{
    if (thread->started)
        pthread_join(thread->id, NULL);
    relay_destroy(thread->relay);
    kafka_producer_destroy(thread->producer);
    mysql_outbox_destroy(thread->outbox);
    json_parser_destroy(thread->json);
}

void relays_stop(struct relays *relays, int64_t deadline_us)
{
    relays->deadline_us = deadline_us;
    atomic_store(&relays->stopping, true);
    for (uint32_t i = 0; i < relays->count; i++)
        end_thread(&relays->list[i]);
}

void relays_finish(struct relays *relays)
{
    free(relays->list);
    free(relays->pulses);
    *relays = (struct relays){0};
}

bool relays_alive(const struct relays *relays, int64_t limit_us)
{
    return pulses_are_fresh(relays->pulses, relays->count, now_us(relays), limit_us);
}

const struct relay_counts *relays_counts(const struct relays *relays, uint32_t index)
{
    return index < relays->count ? &relays->list[index].counts : NULL;
}
