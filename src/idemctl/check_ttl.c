/* SPDX-License-Identifier: MIT */
/* check_ttl: how long a key is known against how long its record may come again (design section 5, Purge): as long as
 * Kafka keeps it, and as long as it may be parked. Prints the sum; asks no database. */
#include "check.h"

#include "idem/adapter/kafka_retention.h"

#include <stdlib.h>

enum { ASK_MS = 5000, TEXT_MAX = 48 };

/* 604800000 -> 7d; as a person would write it. */
static const char *duration(uint64_t ms, char text[TEXT_MAX])
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    struct buf buf;
    buf_init(&buf, text, TEXT_MAX - 1);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms / units[i].ms > 0)
            buf_printf(&buf, "%llu%s", (unsigned long long)(ms / units[i].ms), units[i].name);
        ms %= units[i].ms;
    }
    if (buf.len == 0)
        buf_text(&buf, "0s");
    text[buf.len] = '\0';
    return text;
}

/* It is given up when `for` is over and all attempts are used. */
static uint64_t longest_park_ms(const struct rule *rule)
{
    uint64_t retries = rule->park.attempts * rule->park.backoff_cap_ms;
    if (rule->park.for_ms == 0)
        return 0;
    return retries > rule->park.for_ms ? retries : rule->park.for_ms;
}

/* A rule that its business row guards survives a late record: it is told as a note. One that nothing guards was told
 * by check_all() whatever Kafka keeps, and here with the sum. */
static void compare(struct findings *findings, const struct rule *rule, const struct kafka_retention *retention)
{
    char path[400], message[400], ttl[TEXT_MAX], kept[TEXT_MAX], park[TEXT_MAX], sum[TEXT_MAX];
    uint64_t ttl_ms = (uint64_t)rule->ttl_s * 1000, park_ms = longest_park_ms(rule);
    bool forever = retention->ms == KAFKA_KEPT_FOREVER;
    uint64_t wanted = forever ? UINT64_MAX : (uint64_t)retention->ms + park_ms;
    if (rule->ttl_s < 0 || ttl_ms >= wanted)
        return;
    bool guarded = check_is_guarded(rule);
    snprintf(path, sizeof path, "topics.%.*s.rules.%.*s", (int)rule->topic.len, (const char *)rule->topic.at,
             (int)rule->name.len, (const char *)rule->name.at);
    if (forever)
        snprintf(message, sizeof message, "ttl %s, and Kafka keeps the topic for ever (retention.ms=-1, compacted): %s",
                 duration(ttl_ms, ttl), guarded ? "what is read again later is judged by its business row alone"
                                                : "what is read again later is applied again");
    else
        snprintf(message, sizeof message, "ttl %s < retention.ms %s + longest park %s = %s: %s", duration(ttl_ms, ttl),
                 duration((uint64_t)retention->ms, kept), duration(park_ms, park), duration(wanted, sum),
                 guarded ? "what is read again in between is judged by its business row alone"
                         : "what is read again in between is applied again");
    check_finding(findings, guarded ? SEVERITY_INFO : SEVERITY_WARNING, "ttl", path, message);
}

static void compare_topic(struct findings *findings, const struct topic *topic, const struct kafka_retention *retention)
{
    char path[300], message[300];
    if (retention->known) {
        for (uint32_t i = 0; i < topic->rule_count; i++)
            compare(findings, &topic->rules[i], retention);
        return;
    }
    snprintf(path, sizeof path, "topics.%.*s", (int)topic->name.len, (const char *)topic->name.at);
    snprintf(message, sizeof message, "retention: not looked at (%s)", retention->why);
    check_finding(findings, SEVERITY_INFO, "ttl", path, message);
}

int check_retention(const struct ctl *ctl, struct findings *findings)
{
    struct err err = {0};
    char message[600];
    struct kafka_retention *list = calloc(ctl->config->topic_count + 1u, sizeof *list);
    if (!list)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    enum err_class class = kafka_retentions(ctl->config, ASK_MS, list, &err);
    if (class == ERR_RECONNECT) {
        snprintf(message, sizeof message, "retention: not looked at (%s)", err.text);
        check_finding(findings, SEVERITY_INFO, "ttl", "kafka", message);
    }
    for (uint32_t i = 0; class == ERR_NONE && i < ctl->config->topic_count; i++) {
        const struct topic *topic = &ctl->config->topics[i];
        if (topic->database >= ctl->first && topic->database < ctl->first + ctl->count)
            compare_topic(findings, topic, &list[i]);
    }
    free(list);
    return class == ERR_NONE || class == ERR_RECONNECT ? CTL_GOOD : ctl_fail_err(&err);
}
