/* SPDX-License-Identifier: MIT */
/* retention: see kafka_retention.h. One question for all topics; each answers for itself. */
#include "idem/adapter/kafka_retention.h"

#include "tool.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the answer -------------------------------------------------------------------------------------------------- */

static struct kafka_retention *place_of(const struct config *config, const char *name, struct kafka_retention *list)
{
    for (uint32_t i = 0; i < config->topic_count; i++)
        if (bytes_equal(config->topics[i].name, bytes_text(name)))
            return &list[i];
    return NULL;
}

static void read_entries(const rd_kafka_ConfigResource_t *resource, struct kafka_retention *ret)
{
    size_t count;
    bool forever = false;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);
    for (size_t i = 0; i < count; i++) {
        const char *name = rd_kafka_ConfigEntry_name(entries[i]), *value = rd_kafka_ConfigEntry_value(entries[i]);
        if (value && strcmp(name, "retention.ms") == 0) {
            ret->ms = strtoll(value, NULL, 10);
            ret->known = true;
        } else if (value && strcmp(name, "cleanup.policy") == 0) {
            forever = strstr(value, "compact") && !strstr(value, "delete");
        }
    }
    if (forever || ret->ms < 0)
        ret->ms = RETENTION_FOREVER;
    if (!ret->known)
        snprintf(ret->why, sizeof ret->why, "the broker names no retention.ms");
}

static enum err_class read_answer(const struct config *config, rd_kafka_event_t *event, struct kafka_retention *list,
                                  struct err *err)
{
    size_t count;
    if (rd_kafka_event_error(event))
        return err_set(err, ERR_RECONNECT, (int)rd_kafka_event_error(event), "retention", "%s",
                       rd_kafka_event_error_string(event));
    const rd_kafka_DescribeConfigs_result_t *result = rd_kafka_event_DescribeConfigs_result(event);
    if (!result)
        return err_set(err, ERR_RECONNECT, 0, "retention", "the broker gave another answer");
    const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(result, &count);
    for (size_t i = 0; i < count; i++) {
        struct kafka_retention *ret = place_of(config, rd_kafka_ConfigResource_name(resources[i]), list);
        if (!ret)
            continue;
        if (rd_kafka_ConfigResource_error(resources[i]))
            snprintf(ret->why, sizeof ret->why, "%s", rd_kafka_err2str(rd_kafka_ConfigResource_error(resources[i])));
        else
            read_entries(resources[i], ret);
    }
    return ERR_NONE;
}

/* ---- the question ------------------------------------------------------------------------------------------------ */

static enum err_class ask(rd_kafka_t *client, const struct config *config, uint32_t timeout_ms,
                          rd_kafka_ConfigResource_t **resources, struct kafka_retention *list, struct err *err)
{
    char text[256];
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(client, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
    rd_kafka_AdminOptions_set_request_timeout(options, (int)timeout_ms, text, sizeof text);
    rd_kafka_DescribeConfigs(client, resources, config->topic_count, options, queue);
    /* The request ends by its own timeout; the margin is for that event. */
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, (int)timeout_ms + 1000);
    enum err_class class = event ? read_answer(config, event, list, err)
                                 : err_set(err, ERR_RECONNECT, 0, "retention", "Kafka did not answer in time");
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    return class;
}

static enum err_class make_resources(const struct config *config, rd_kafka_ConfigResource_t **resources,
                                     struct err *err)
{
    for (uint32_t i = 0; i < config->topic_count; i++) {
        char name[TOPIC_MAX + 1] = "";
        if (config->topics[i].name.len <= TOPIC_MAX)
            memcpy(name, config->topics[i].name.at, config->topics[i].name.len);
        resources[i] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, name);
        if (!resources[i])
            return err_set(err, ERR_CONFIG, 0, "retention", "\"%s\" is no topic name", name);
    }
    return ERR_NONE;
}

enum err_class kafka_retentions(const struct config *config, uint32_t timeout_ms, struct kafka_retention *list,
                                struct err *err)
{
    rd_kafka_ConfigResource_t **resources = calloc(config->topic_count + 1u, sizeof(rd_kafka_ConfigResource_t *));
    for (uint32_t i = 0; i < config->topic_count; i++)
        list[i] = (struct kafka_retention){0};
    if (!resources)
        return err_set(err, ERR_FATAL, 0, "retention", "out of memory");
    rd_kafka_t *client = tool_open(config, err);
    enum err_class class = client ? make_resources(config, resources, err) : err->class;
    if (class == ERR_NONE && config->topic_count > 0)
        class = ask(client, config, timeout_ms, resources, list, err);
    for (uint32_t i = 0; i < config->topic_count; i++)
        if (resources[i])
            rd_kafka_ConfigResource_destroy(resources[i]);
    free(resources);
    if (client)
        rd_kafka_destroy(client);
    return class;
}
