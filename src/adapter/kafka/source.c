/* SPDX-License-Identifier: MIT */
/* source: see source.h. Polls one record at a time; which partitions are ours is in rebalance.c, their offsets in
 * commits.c. */
#include "source_self.h"

#include "message.h"
#include "properties.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { WAKE_EVERY = 1000, RANGE_TIMEOUT_MS = 5000 };

/* ---- polling --------------------------------------------------------------------------------------------------- */

/* Before librdkafka 2.2 a full prefetch queue is looked at again only when something wakes the broker's thread, or
 * after a whole second. No call is meant for that, but setting the (here: absent) SASL credentials does it without
 * any traffic. */
static void wake_fetcher(struct kafka_source *source)
{
    source->polls = 0;
    if (source->wakes)
        rd_kafka_error_destroy(rd_kafka_sasl_set_credentials(source->consumer, "", ""));
}

static enum source_polled give_record(struct kafka_source *source, struct record *ret, struct err *err)
{
    const rd_kafka_message_t *message = source->held;
    const char *topic = rd_kafka_topic_name(message->rkt);
    struct assigned *partition = assigned_find(source, topic, message->partition);
    if (!partition || !partition->started)
        return SOURCE_NOTHING;           /* of a former assignment */
    *ret = message_record(message);
    if (!headers_store(message, &source->headers, &source->headers_size, &ret->headers)) {
        err_set(err, ERR_FATAL, 0, "poll", "out of memory");
        return SOURCE_FATAL;
    }
    partition->next = message->offset + 1;
    return SOURCE_RECORD;
}

static void stop_partition(struct kafka_source *source, const rd_kafka_message_t *message)
{
    const char *topic = message->rkt ? rd_kafka_topic_name(message->rkt) : "";
    struct assigned *partition = assigned_find(source, topic, message->partition);
    if (!partition)
        return;
    struct source_partition gone = {bytes_text(topic), message->partition, partition->next};
    partition->started = false;
    source->events.stopped(source->events.context, &gone, "offset_gone");
}

static enum source_polled take_error(struct kafka_source *source, const rd_kafka_message_t *message,
                                     struct err *err)
{
    char text[512];
    switch ((int)message->err) {
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
        stop_partition(source, message);
        return SOURCE_NOTHING;
    case RD_KAFKA_RESP_ERR__FATAL: {
        rd_kafka_resp_err_t code = rd_kafka_fatal_error(source->consumer, text, sizeof text);
        err_set(err, ERR_RECONNECT, (int)code, "poll", "%s", text);
        return SOURCE_FATAL;
    }
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        err_set(err, ERR_CONFIG, (int)message->err, "poll", "%s", rd_kafka_message_errstr(message));
        return SOURCE_NOTHING;
    default:
        /* Passes by itself (brokers away, topic not there yet, poll interval exceeded: a rebalance follows). */
        return SOURCE_NOTHING;
    }
}

static bool subscribe(struct kafka_source *source)
{
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new((int)source->config->topic_count);
    for (uint32_t i = 0; i < source->config->topic_count; i++) {
        char name[TOPIC_MAX + 1] = "";
        struct bytes topic = source->config->topics[i].name;
        memcpy(name, topic.at, topic.len < TOPIC_MAX ? topic.len : TOPIC_MAX);
        rd_kafka_topic_partition_list_add(topics, name, RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t code = rd_kafka_subscribe(source->consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static enum source_polled poll(void *self, uint32_t timeout_ms, struct record *ret_record, struct err *err)
{
    struct kafka_source *source = self;
    if (source->held)
        rd_kafka_message_destroy(source->held);
    if (source->resubscribe) {
        source->resubscribe = false;
        subscribe(source);
    }
    commits_again(source, false);
    source->held = rd_kafka_consumer_poll(source->consumer, (int)timeout_ms);
    if (!source->held || ++source->polls >= WAKE_EVERY)
        wake_fetcher(source);
    if (!source->held)
        return SOURCE_NOTHING;
    if (source->held->err)
        return take_error(source, source->held, err);
    return give_record(source, ret_record, err);
}

/* ---- starting, pausing ----------------------------------------------------------------------------------------- */

static enum err_class start(void *self, const struct source_partition *partitions, uint32_t count, struct err *err)
{
    struct kafka_source *source = self;
    for (uint32_t i = 0; i < count; i++) {
        char topic[TOPIC_MAX + 1] = "";
        memcpy(topic, partitions[i].topic.at, partitions[i].topic.len);
        struct assigned *partition = assigned_find(source, topic, partitions[i].partition);
        if (!partition)
            continue;            /* revoked meanwhile */
        unpause(source, partition);
        partition->started = true;
        partition->next = partitions[i].offset;
    }
    rd_kafka_resp_err_t code = fetch_started(source, partitions, count);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return err_set(err, ERR_RECONNECT, (int)code, "start", "%s", rd_kafka_err2str(code));
    return ERR_NONE;
}

static enum err_class pause_some(void *self, const struct source_partition *partitions, uint32_t count, bool paused,
                                 struct err *err)
{
    struct kafka_source *source = self;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
    for (uint32_t i = 0; i < count; i++) {
        char topic[TOPIC_MAX + 1] = "";
        memcpy(topic, partitions[i].topic.at, partitions[i].topic.len);
        struct assigned *partition = assigned_find(source, topic, partitions[i].partition);
        if (partition && partition->started && partition->paused != paused)
            rd_kafka_topic_partition_list_add(list, partition->topic, partition->number);
    }
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    if (list->cnt > 0)
        code = paused ? rd_kafka_pause_partitions(source->consumer, list)
                      : rd_kafka_resume_partitions(source->consumer, list);
    for (int i = 0; i < list->cnt && code == RD_KAFKA_RESP_ERR_NO_ERROR; i++)
        assigned_find(source, list->elems[i].topic, list->elems[i].partition)->paused = paused;
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return err_set(err, ERR_RECONNECT, (int)code, "pause", "%s", rd_kafka_err2str(code));
    return ERR_NONE;
}

/* ---- the log --------------------------------------------------------------------------------------------------- */

static enum err_class range(void *self, const struct source_partition *partition, int64_t *ret_low,
                            int64_t *ret_high, struct err *err)
{
    struct kafka_source *source = self;
    char topic[TOPIC_MAX + 1] = "";
    memcpy(topic, partition->topic.at, partition->topic.len);
    rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(source->consumer, topic, partition->partition,
                                                                ret_low, ret_high, RANGE_TIMEOUT_MS);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        return ERR_NONE;
    return err_set(err, ERR_RECONNECT, (int)code, "range", "%s: %s", topic, rd_kafka_err2str(code));
}

static int64_t end(void *self, const struct source_partition *partition)
{
    struct kafka_source *source = self;
    char topic[TOPIC_MAX + 1] = "";
    int64_t low, high;
    memcpy(topic, partition->topic.at, partition->topic.len);
    if (rd_kafka_get_watermark_offsets(source->consumer, topic, partition->partition, &low, &high) !=
        RD_KAFKA_RESP_ERR_NO_ERROR)
        return -1;
    return high < 0 ? -1 : high;
}

const char *kafka_library_version(void)
{
    return rd_kafka_version_str();
}

/* ---- closing --------------------------------------------------------------------------------------------------- */

static enum err_class close_consumer(void *self, uint32_t timeout_ms, struct err *err)
{
    struct kafka_source *source = self;
    struct timespec pause = {.tv_nsec = 10000000};
    if (source->held)
        rd_kafka_message_destroy(source->held);
    source->held = NULL;
    source->closed = true;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(source->consumer);
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(source->consumer, queue);
    if (error) {                 /* after a fatal error: nothing is left, so there is nothing to wait for */
        err_set(err, ERR_RECONNECT, (int)rd_kafka_error_code(error), "close", "%s", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        rd_kafka_queue_destroy(queue);
        return ERR_RECONNECT;
    }
    for (uint32_t waited = 0; waited < timeout_ms && !rd_kafka_consumer_closed(source->consumer); waited += 10) {
        rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 0);
        if (event && rd_kafka_event_type(event) == RD_KAFKA_EVENT_REBALANCE)
            rebalance(source->consumer, rd_kafka_event_error(event),
                      rd_kafka_event_topic_partition_list(event), source);
        if (event)
            rd_kafka_event_destroy(event);
        else
            nanosleep(&pause, NULL);
    }
    rd_kafka_queue_destroy(queue);
    if (!rd_kafka_consumer_closed(source->consumer))
        return err_set(err, ERR_RECONNECT, 0, "close", "the group was not left in time");
    return ERR_NONE;
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

static const struct source_ops ops = {
    .poll = poll, .start = start, .pause = pause_some, .commit = commits_tell, .range = range, .end = end,
    .close = close_consumer,
};

static void silent(const rd_kafka_t *consumer, int level, const char *facility, const char *text)
{
    (void)consumer, (void)level, (void)facility, (void)text;     /* what matters comes as an error of poll */
}

struct kafka_source *kafka_source_create(const struct config *config, const struct source_events *events,
                                         struct err *err)
{
    char text[512];
    struct kafka_source *source = calloc(1, sizeof *source);
    rd_kafka_conf_t *conf = source ? properties_make(config, true, err) : NULL;
    if (!conf) {
        if (!source)
            err_set(err, ERR_FATAL, 0, "start", "out of memory");
        free(source);
        return NULL;
    }
    source->port = (struct source_port){source, &ops};
    source->config = config;
    source->events = *events;
    rd_kafka_conf_set_opaque(conf, source);
    rd_kafka_conf_set_rebalance_cb(conf, rebalance);
    rd_kafka_conf_set_offset_commit_cb(conf, commits_answered);
    rd_kafka_conf_set_log_cb(conf, silent);
    source->consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    if (!source->consumer) {
        rd_kafka_conf_destroy(conf);
        err_set(err, ERR_CONFIG, 0, "kafka", "%s", text);
        free(source);
        return NULL;
    }
    rd_kafka_poll_set_consumer(source->consumer);
    source->wakes = rd_kafka_version() < 0x020200ff && !properties_sasl(config);
    if (!subscribe(source)) {
        err_set(err, ERR_CONFIG, 0, "kafka", "cannot subscribe to the topics");
        kafka_source_destroy(source);
        return NULL;
    }
    return source;
}

void kafka_source_destroy(struct kafka_source *source)
{
    struct err err;
    if (!source)
        return;
    if (!source->closed)
        close_consumer(source, 1000, &err);
    rd_kafka_destroy_flags(source->consumer, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    free(source->assigned);
    free(source->headers);
    free(source);
}

const struct source_port *kafka_source_port(struct kafka_source *source)
{
    return &source->port;
}
