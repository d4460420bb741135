/* SPDX-License-Identifier: MIT */
/*
 * topic: makes or deletes one topic on a broker that exists, for the demo. It never touches a
 * topic that it was not named.
 *
 *     topic --brokers HOST:PORT[,...] create NAME PARTITIONS
 *     topic --brokers HOST:PORT[,...] delete NAME
 *
 * Exit codes: 0 done, 1 the broker refused, 64 usage, 69 no broker.
 */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 30000, PARTITIONS_MAX = 1000 };

static int usage(void)
{
    fputs("usage: topic --brokers HOST:PORT[,...] create NAME PARTITIONS | delete NAME\n", stderr);
    return 64;
}

static rd_kafka_t *handle_new(const char *brokers)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "3", NULL, 0);
    if (rd_kafka_conf_set(conf, "bootstrap.servers", brokers, text, sizeof(text))) {
        fprintf(stderr, "topic: %s\n", text);
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!handle) {
        fprintf(stderr, "topic: %s\n", text);
        rd_kafka_conf_destroy(conf);
    }
    return handle;
}

/* The broker's word on the one topic that was asked for. */
static int answer_read(rd_kafka_event_t *event)
{
    size_t count = 0;
    const rd_kafka_topic_result_t **results = NULL;
    if (!event) {
        fputs("topic: no broker answered\n", stderr);
        return 69;
    }
    if (rd_kafka_event_error(event)) {
        fprintf(stderr, "topic: %s\n", rd_kafka_event_error_string(event));
        return 69;
    }
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT)
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event),
                                                      &count);
    else
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event),
                                                      &count);
    for (size_t i = 0; i < count; i++) {
        if (!rd_kafka_topic_result_error(results[i]))
            continue;
        const char *why = rd_kafka_topic_result_error_string(results[i]);
        fprintf(stderr, "topic: %s: %s\n", rd_kafka_topic_result_name(results[i]),
                why ? why : rd_kafka_err2name(rd_kafka_topic_result_error(results[i])));
        return 1;
    }
    return 0;
}

/* Waits until every partition of a topic that was just made has a leader; others find it then. */
static int topic_wait(rd_kafka_t *handle, const char *name, int partitions)
{
    for (int waited = 0; waited < TIMEOUT_MS; waited += 100) {
        const struct rd_kafka_metadata *seen = NULL;
        rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, name, NULL);
        bool there = !rd_kafka_metadata(handle, 0, topic, &seen, TIMEOUT_MS) &&
                     seen->topic_cnt == 1 && seen->topics[0].partition_cnt == partitions;
        for (int i = 0; there && i < partitions; i++)
            there = seen->topics[0].partitions[i].leader >= 0;
        rd_kafka_metadata_destroy(seen);
        rd_kafka_topic_destroy(topic);
        if (there)
            return 0;
        rd_kafka_poll(handle, 100);
    }
    fprintf(stderr, "topic: %s: made, but has no leader\n", name);
    return 1;
}

static int topic_create(rd_kafka_t *handle, rd_kafka_queue_t *queue, const char *name,
                        int partitions)
{
    char text[512];
    /* -1: as many replicas as the brokers' own default. */
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(name, partitions, -1, text, sizeof(text));
    if (!wanted) {
        fprintf(stderr, "topic: %s\n", text);
        return 64;
    }
    rd_kafka_CreateTopics(handle, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
    int status = answer_read(event);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    return status ? status : topic_wait(handle, name, partitions);
}

static int topic_delete(rd_kafka_t *handle, rd_kafka_queue_t *queue, const char *name)
{
    rd_kafka_DeleteTopic_t *wanted = rd_kafka_DeleteTopic_new(name);
    rd_kafka_DeleteTopics(handle, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
    int status = answer_read(event);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(wanted);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 5 || strcmp(argv[1], "--brokers") != 0)
        return usage();
    bool create = argc == 6 && !strcmp(argv[3], "create");
    if (!create && (argc != 5 || strcmp(argv[3], "delete") != 0))
        return usage();
    long partitions = 0;
    if (create) {
        char *end = NULL;
        errno = 0;
        partitions = strtol(argv[5], &end, 10);
        if (errno || end == argv[5] || *end || partitions < 1 || partitions > PARTITIONS_MAX)
            return usage();
    }
    rd_kafka_t *handle = handle_new(argv[2]);
    if (!handle)
        return 64;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    int status = create ? topic_create(handle, queue, argv[4], (int)partitions)
                        : topic_delete(handle, queue, argv[4]);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(handle);
    return status;
}
