/* SPDX-License-Identifier: MIT */
/* test_producer: the producer port on librdkafka's own cluster, which refuses when told to: what each refusal means,
 * that a message alone is judged alone, and that a lost producer is replaced. */
#include "idem/adapter/kafka_producer.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Kafka's protocol, API keys. */
enum { PRODUCE = 0, INIT_PRODUCER_ID = 22 };
enum { TIMEOUT_MS = 20000, REPORTS_MAX = 64, POLLS_MAX = 600, POLL_MS = 100 };

static rd_kafka_t *host;
static rd_kafka_mock_cluster_t *cluster;
static struct config config;
static struct kafka_producer *producer;
static struct err err;
static struct {
    uint64_t seq[REPORTS_MAX];
    enum delivery delivery[REPORTS_MAX];
    int number[REPORTS_MAX];
    uint32_t count;
} told;

#define CALL(call, ...) kafka_producer_port(producer)->ops->call(kafka_producer_port(producer)->self, __VA_ARGS__)

static void take(void *context, const struct delivery_report *report)
{
    (void)context;
    assert_true(told.count < REPORTS_MAX);
    told.seq[told.count] = report->seq;
    told.delivery[told.count] = report->delivery;
    told.number[told.count++] = report->number;
}

/* Until so many reports came. */
static void wait_reports(uint32_t count)
{
    for (int i = 0; i < POLLS_MAX && told.count < count; i++)
        if (CALL(poll, POLL_MS, take, NULL, &err) != ERR_NONE)
            fail_msg("the producer is lost: %s", err.text);
    assert_int_equal(told.count, count);
}

static enum err_class try_send(uint64_t seq, bool alone)
{
    struct delivery_report report;
    struct message_header header = {BYTES_LIT("event_id"), BYTES_LIT("0001"), false};
    struct message message = {.seq = seq, .topic = BYTES_LIT("events"), .key = BYTES_LIT("A"), .value = BYTES_LIT("{}"),
                              .headers = &header, .header_count = 1, .alone = alone};
    enum err_class class = CALL(send, &message, &report, &err);
    if (class == ERR_DATA)
        take(NULL, &report);
    return class;
}

static void give(uint64_t seq, bool alone)
{
    if (try_send(seq, alone) != ERR_NONE)
        fail_msg("not sent: %s", err.text);
}

static int start(void **state)
{
    char text[512];
    (void)state;
    memset(&told, 0, sizeof told);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "2", NULL, 0);
    host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(host);
    cluster = rd_kafka_mock_cluster_new(host, 1);
    assert_non_null(cluster);
    rd_kafka_mock_topic_create(cluster, "events", 1, 1);
    config.kafka.brokers = bytes_text(rd_kafka_mock_cluster_bootstraps(cluster));
    producer = kafka_producer_create(&config, TIMEOUT_MS, &err);
    assert_non_null(producer);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    kafka_producer_destroy(producer);
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(host);
    return 0;
}

static void what_arrives_is_done(void **state)
{
    (void)state;
    give(1, false);
    give(2, true);
    wait_reports(2);
    assert_int_equal(told.delivery[0], DELIVERY_DONE);
    assert_int_equal(told.delivery[1], DELIVERY_DONE);
}

static void what_passes_is_sent_again_by_itself(void **state)
{
    (void)state;
    rd_kafka_mock_push_request_errors(cluster, PRODUCE, 2, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
                                      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    give(1, false);
    wait_reports(1);
    assert_int_equal(told.delivery[0], DELIVERY_DONE);
}

static void a_batch_is_refused_as_a_whole_and_one_alone_by_itself(void **state)
{
    (void)state;
    rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    for (uint64_t seq = 1; seq <= 3; seq++)
        give(seq, false);
    wait_reports(3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(told.delivery[i], DELIVERY_REFUSED);
    rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    for (uint64_t seq = 4; seq <= 6; seq++)
        give(seq, true);
    wait_reports(6);
    uint32_t refused = 0;
    for (int i = 3; i < 6; i++)
        refused += told.delivery[i] == DELIVERY_REFUSED;
    assert_int_equal(refused, 1);
}

/* The library keeps it in mind until it asks for the topic again. */
static void a_topic_that_may_not_be_written_may_be_later(void **state)
{
    (void)state;
    rd_kafka_mock_push_request_errors(cluster, PRODUCE, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    give(1, false);
    wait_reports(1);
    assert_int_equal(told.delivery[0], DELIVERY_NO_TOPIC);
    for (int i = 0; i < POLLS_MAX && told.delivery[0] != DELIVERY_DONE; i++) {
        told.count = 0;
        try_send(2, false);
        for (int k = 0; k < POLLS_MAX && told.count == 0; k++)
            assert_int_equal(CALL(poll, POLL_MS, take, NULL, &err), ERR_NONE);
        if (told.delivery[0] != DELIVERY_DONE)
            assert_int_equal(CALL(poll, POLL_MS, take, NULL, &err), ERR_NONE);
    }
    assert_int_equal(told.delivery[0], DELIVERY_DONE);
}

static void what_is_purged_is_to_be_sent_again(void **state)
{
    (void)state;
    rd_kafka_mock_broker_set_down(cluster, 1);
    give(1, false);
    give(2, true);
    kafka_producer_port(producer)->ops->purge(kafka_producer_port(producer)->self);
    wait_reports(2);
    assert_int_equal(told.delivery[0], DELIVERY_AGAIN);
    assert_int_equal(told.delivery[1], DELIVERY_AGAIN);
    rd_kafka_mock_broker_set_up(cluster, 1);
    give(3, false);
    wait_reports(3);
    assert_int_equal(told.delivery[2], DELIVERY_DONE);
}

/* Fatal for an idempotent producer: it says so at the next call, and is replaced. */
static void a_lost_producer_is_replaced(void **state)
{
    enum err_class class = ERR_NONE;
    (void)state;
    rd_kafka_mock_push_request_errors(cluster, INIT_PRODUCER_ID, 4, RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
                                      RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
                                      RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
                                      RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
    kafka_producer_destroy(producer);
    producer = kafka_producer_create(&config, TIMEOUT_MS, &err);
    assert_non_null(producer);
    class = try_send(1, false);                      /* taken, unless it is lost already */
    for (int i = 0; i < POLLS_MAX && class == ERR_NONE; i++)
        class = CALL(poll, POLL_MS, take, NULL, &err);
    assert_int_equal(class, ERR_RECONNECT);
    rd_kafka_mock_clear_request_errors(cluster, INIT_PRODUCER_ID);
    told.count = 0;
    assert_int_equal(CALL(renew, &err), ERR_NONE);
    give(2, false);
    give(3, true);
    wait_reports(2);
    assert_int_equal(told.delivery[0], DELIVERY_DONE);
    assert_int_equal(told.delivery[1], DELIVERY_DONE);
}

static void a_name_that_is_no_topic_is_told_at_once(void **state)
{
    uint8_t name[300];
    struct delivery_report report = {0};
    (void)state;
    memset(name, 'x', sizeof name);
    struct message message = {.seq = 9, .topic = bytes_of(name, sizeof name)};
    assert_int_equal(CALL(send, &message, &report, &err), ERR_DATA);
    assert_int_equal(report.seq, 9);
    assert_int_equal(report.delivery, DELIVERY_NO_TOPIC);
}

static void properties_that_it_stands_on_are_refused(void **state)
{
    struct property property = {.name = BYTES_LIT("acks"), .value = BYTES_LIT("1")};
    struct config other = config;
    (void)state;
    other.kafka.properties = &property;
    other.kafka.property_count = 1;
    assert_null(kafka_producer_create(&other, TIMEOUT_MS, &err));
    assert_int_equal(err.class, ERR_CONFIG);
}

#define CASE(name) {#name, name, start, finish, NULL}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(what_arrives_is_done),
        CASE(what_passes_is_sent_again_by_itself),
        CASE(a_batch_is_refused_as_a_whole_and_one_alone_by_itself),
        CASE(a_topic_that_may_not_be_written_may_be_later),
        CASE(what_is_purged_is_to_be_sent_again),
        CASE(a_lost_producer_is_replaced),
        CASE(a_name_that_is_no_topic_is_told_at_once),
        CASE(properties_that_it_stands_on_are_refused),
    };
    return cmocka_run_group_tests_name("producer", tests, NULL, NULL);
}
