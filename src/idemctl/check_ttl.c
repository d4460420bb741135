/* SPDX-License-Identifier: MIT */
/* check_ttl: how long a key is known against how long its record may come again (core/retention.h). Prints the sum;
 * asks no database. */
#include "check.h"

#include "idem/adapter/kafka_retention.h"
#include "idem/core/retention.h"

#include <stdlib.h>

enum { ASK_MS = 5000 };

/* A rule that its business row guards survives a late record: it is told as a note. One that nothing guards was told
 * by check_all() whatever Kafka keeps, and here with the sum. */
static void compare(struct findings *findings, const struct rule *rule, const struct kafka_retention *retention)
{
    char path[400], message[400] = "";
    struct buf sum;
    bool guarded = check_is_guarded(rule);
    buf_init(&sum, message, sizeof message - 1);
    if (!retention_is_short(rule, retention->ms, guarded, &sum))
        return;
    snprintf(path, sizeof path, "topics.%.*s.rules.%.*s", (int)rule->topic.len, (const char *)rule->topic.at,
             (int)rule->name.len, (const char *)rule->name.at);
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
