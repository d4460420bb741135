/* SPDX-License-Identifier: MIT */
/* test_source: the source's contract on the Kafka adapter: on a real broker (IDEMD_TEST_KAFKA=host:port), with both
 * ways in which a group shares its partitions; with `mock` on librdkafka's own cluster, which refuses when told to, the
 * case that needs this. Each case has a topic and a group of its own. Exit 77 (skipped) without a broker. */
#include "source_cases.h"

#include "idem/adapter/kafka_source.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { TIMEOUT_MS = 30000, POLL_MS = 100, SKIPPED = 77 };

static const char *brokers;
static rd_kafka_t *producer;
static rd_kafka_mock_cluster_t *cluster;         /* NULL: the broker is real */
static char topic_name[64];
static int64_t produced[SOURCE_PARTITIONS];
static struct topic topics[1];
static struct property properties[2] = {
    {.name = {(const uint8_t *)"partition.assignment.strategy", 29}},
    {.name = {(const uint8_t *)"heartbeat.interval.ms", 21}, .value = {(const uint8_t *)"200", 3}},
};
static struct config config = {.topics = topics, .topic_count = 1};
static struct kafka_source *sources[SOURCE_MEMBERS];

static void give_up(const char *what, const char *why)
{
    fprintf(stderr, "the test's broker: %s: %s\n", what, why);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char text[512];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text))
        give_up(name, text);
}

static rd_kafka_t *handle(rd_kafka_type_t type, const char *group)
{
    char text[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", brokers);
    set(conf, "log_level", "2");
    if (group)
        set(conf, "group.id", group);
    else
        set(conf, "enable.idempotence", "true");         /* a retry must not change the order */
    rd_kafka_t *made = rd_kafka_new(type, conf, text, sizeof text);
    if (!made)
        give_up("handle", text);
    return made;
}

static void make_mock_topic(void)
{
    rd_kafka_resp_err_t code = rd_kafka_mock_topic_create(cluster, topic_name, SOURCE_PARTITIONS, 1);
    if (code)
        give_up("a topic", rd_kafka_err2str(code));
}

static void make_topic(void)
{
    char text[512];
    size_t count = 0;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(producer);
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic_name, SOURCE_PARTITIONS, 1, text, sizeof text);
    rd_kafka_CreateTopics(producer, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
    if (!event || rd_kafka_event_error(event))
        give_up("a topic", event ? rd_kafka_event_error_string(event) : "no answer");
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (count != 1 || rd_kafka_topic_result_error(results[0]))
        give_up("a topic", "refused");
    rd_kafka_event_destroy(event);
    rd_kafka_NewTopic_destroy(wanted);
    rd_kafka_queue_destroy(queue);
}

static void reset(void *context)
{
    static unsigned number;
    (void)context;
    snprintf(topic_name, sizeof topic_name, "contract-%ld-%u", (long)getpid(), number++);
    memset(produced, 0, sizeof produced);
    if (cluster)
        make_mock_topic();
    else
        make_topic();
    topics[0].name = bytes_text(topic_name);
    config.kafka.group = bytes_text(topic_name);
}

static void produce(void *context, int32_t partition, uint32_t count)
{
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        char value[24];
        int len = snprintf(value, sizeof value, "%lld", (long long)produced[partition]++);
        rd_kafka_resp_err_t code = rd_kafka_producev(
            producer, RD_KAFKA_V_TOPIC(topic_name), RD_KAFKA_V_PARTITION(partition),
            RD_KAFKA_V_VALUE(value, (size_t)len), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
        if (code)
            give_up("a record", rd_kafka_err2str(code));
    }
    if (rd_kafka_flush(producer, TIMEOUT_MS))
        give_up("records", "not delivered");
}

static const struct source_port *join(void *context, int slot, const struct source_events *events)
{
    struct err err;
    (void)context;
    sources[slot] = kafka_source_create(&config, events, &err);
    if (!sources[slot])
        give_up("a source", err.text);
    return kafka_source_port(sources[slot]);
}

static enum source_polled poll(void *context, int slot, struct record *ret_record)
{
    const struct source_port *port = kafka_source_port(sources[slot]);
    struct err err;
    (void)context;
    return port->ops->poll(port->self, POLL_MS, ret_record, &err);
}

static void leave(void *context, int slot)
{
    (void)context;
    kafka_source_destroy(sources[slot]);
    sources[slot] = NULL;
}

static int64_t committed(void *context, int32_t partition)
{
    rd_kafka_t *asker = handle(RD_KAFKA_CONSUMER, topic_name);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    (void)context;
    rd_kafka_topic_partition_list_add(list, topic_name, partition);
    rd_kafka_resp_err_t code = rd_kafka_committed(asker, list, TIMEOUT_MS);
    if (code || list->elems[0].err)
        give_up("the group's offset", rd_kafka_err2str(code ? code : list->elems[0].err));
    int64_t offset = list->elems[0].offset;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(asker);
    return offset >= 0 ? offset : SOURCE_OFFSET_NONE;
}

static void refuse_commit(void *context)
{
    enum { OFFSET_COMMIT = 8 };
    (void)context;
    rd_kafka_mock_push_request_errors(cluster, OFFSET_COMMIT, 1, RD_KAFKA_RESP_ERR_OFFSET_METADATA_TOO_LARGE);
}

static struct bytes topic(void *context)
{
    (void)context;
    return bytes_text(topic_name);
}

static void use(const char *address)
{
    brokers = address;
    producer = handle(RD_KAFKA_PRODUCER, NULL);
    config.kafka.brokers = bytes_text(brokers);
    config.kafka.properties = properties;
    config.kafka.property_count = sizeof properties / sizeof *properties;
}

int main(int argc, char **argv)
{
    static struct source_hooks hooks = {
        .reset = reset, .produce = produce, .join = join, .poll = poll, .leave = leave, .committed = committed,
        .topic = topic};
    const char *given = getenv("IDEMD_TEST_KAFKA");
    int failed = 0;
    properties[0].value = BYTES_LIT("range");
    if (argc > 1 && strcmp(argv[1], "mock") == 0) {
        brokers = "127.0.0.1:1";                         /* the cluster's host connects nowhere */
        rd_kafka_t *host = handle(RD_KAFKA_PRODUCER, NULL);
        cluster = rd_kafka_mock_cluster_new(host, 1);
        use(rd_kafka_mock_cluster_bootstraps(cluster));
        hooks.refuse_commit = refuse_commit;
        cmocka_set_test_filter("a_commit_that_was_refused*");
        failed = source_cases_run("source, mock", &hooks);
        rd_kafka_destroy(producer);
        rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
        return failed != 0;
    }
    if (!given || !*given) {
        puts("IDEMD_TEST_KAFKA is not set: no broker, nothing tested");
        return SKIPPED;
    }
    use(given);
    failed = source_cases_run("source, eager", &hooks);
    properties[0].value = BYTES_LIT("cooperative-sticky");
    failed += source_cases_run("source, cooperative", &hooks);
    rd_kafka_destroy(producer);
    return failed != 0;
}
