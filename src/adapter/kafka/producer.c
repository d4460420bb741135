/* SPDX-License-Identifier: MIT */
/* producer: see idem/adapter/kafka_producer.h. Which errors are the message's own, which the topic's and which pass:
 * one table here. A broker judges requests, not messages, so there are two handles: one that fills requests, and one
 * that sends each message in its own. Never blocks but in poll(). */
#include "idem/adapter/kafka_producer.h"

#include "properties.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TOPIC_BYTES = 250,
    BETWEEN_MS = 2,                  /* reports of the one handle, while the other is waited for */
    MISSING_MAX_MS = 5000            /* so long a topic that is not there may be one that is just being made */
};

enum handle { MANY, ALONE, HANDLES };

struct kafka_producer {
    struct producer_port port;
    const struct config *config;
    uint32_t timeout_ms;
    rd_kafka_t *handles[HANDLES];
    uint32_t alone;                  /* messages of ALONE without a report */
    void (*take)(void *context, const struct delivery_report *);
    void *context;
};

/* librdkafka, rdkafka.h: errors of messages. What is in no list may pass. */
static enum delivery delivery_of(rd_kafka_resp_err_t error)
{
    switch ((int)error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        return DELIVERY_DONE;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
        return DELIVERY_REFUSED;
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        return DELIVERY_NO_TOPIC;
    default:
        return DELIVERY_AGAIN;
    }
}

static void delivered(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque)
{
    struct kafka_producer *producer = opaque;
    producer->alone -= handle == producer->handles[ALONE] && producer->alone > 0;
    if (!producer->take)
        return;
    struct delivery_report report = {(uint64_t)(uintptr_t)message->_private, delivery_of(message->err),
                                     (int)message->err, rd_kafka_err2str(message->err)};
    producer->take(producer->context, &report);
}

/* A fatal error of the idempotent producer (a gap that it cannot close, a fenced epoch) ends its handle. */
static enum err_class alive(const struct kafka_producer *producer, struct err *err)
{
    char text[256];
    for (int i = 0; i < HANDLES; i++) {
        rd_kafka_resp_err_t error = rd_kafka_fatal_error(producer->handles[i], text, sizeof text);
        if (error)
            return err_set(err, ERR_RECONNECT, (int)error, "producer", "%s", text);
    }
    return ERR_NONE;
}

static rd_kafka_headers_t *make_headers(const struct message *message)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(message->header_count);
    for (uint32_t i = 0; headers && i < message->header_count; i++) {
        const struct message_header *header = &message->headers[i];
        rd_kafka_header_add(headers, (const char *)header->name.at, (ssize_t)header->name.len,
                            header->is_null ? NULL : (const void *)header->value.at,
                            header->is_null ? 0 : (ssize_t)header->value.len);
    }
    return headers;
}

static enum err_class producer_send(void *self, const struct message *message, struct delivery_report *ret_report,
                                    struct err *err)
{
    struct kafka_producer *producer = self;
    char topic[TOPIC_BYTES];
    if (message->topic.len >= sizeof topic) {
        *ret_report = (struct delivery_report){message->seq, DELIVERY_NO_TOPIC, 0, "the topic's name is too long"};
        return err_set(err, ERR_DATA, 0, "producer", "%s", ret_report->text);
    }
    snprintf(topic, sizeof topic, "%.*s", (int)message->topic.len, (const char *)message->topic.at);
    rd_kafka_headers_t *headers = make_headers(message);
    rd_kafka_resp_err_t error = rd_kafka_producev(
        producer->handles[message->alone ? ALONE : MANY], RD_KAFKA_V_TOPIC(topic),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(message->key.len ? (const void *)message->key.at : "", message->key.len),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)message->value.at, message->value.len), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_OPAQUE((void *)(uintptr_t)message->seq), RD_KAFKA_V_END);
    producer->alone += !error && message->alone;
    if (!error)
        return ERR_NONE;
    rd_kafka_headers_destroy(headers);           /* ours again only when it failed */
    if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL)
        return err_set(err, ERR_RETRY, (int)error, "producer", "the queue is full");
    if (error == RD_KAFKA_RESP_ERR__FATAL)
        return alive(producer, err);
    *ret_report = (struct delivery_report){message->seq, delivery_of(error), (int)error, rd_kafka_err2str(error)};
    return err_set(err, ERR_DATA, (int)error, "producer", "%s", rd_kafka_err2str(error));
}

static enum err_class producer_poll(void *self, uint32_t timeout_ms,
                                    void (*take)(void *context, const struct delivery_report *), void *context,
                                    struct err *err)
{
    struct kafka_producer *producer = self;
    producer->take = take;
    producer->context = context;
    if (producer->alone > 0 && timeout_ms > BETWEEN_MS)
        timeout_ms = BETWEEN_MS;
    rd_kafka_poll(producer->handles[MANY], (int)timeout_ms);
    rd_kafka_poll(producer->handles[ALONE], 0);
    producer->take = NULL;
    return alive(producer, err);
}

static void producer_purge(void *self)
{
    struct kafka_producer *producer = self;
    for (int i = 0; i < HANDLES; i++)
        if (producer->handles[i])
            rd_kafka_purge(producer->handles[i],
                           RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err)
{
    char text[256];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) == RD_KAFKA_CONF_OK)
        return true;
    err_set(err, ERR_CONFIG, 0, "producer", "%s: %s", name, text);
    return false;
}

/* What is wrong comes back as an error of a call; the library's own lines would tear ours. */
static void silent(const rd_kafka_t *handle, int level, const char *facility, const char *text)
{
    (void)handle, (void)level, (void)facility, (void)text;
}

/* Unless the user says otherwise. */
static bool set_usual(const struct kafka_producer *producer, rd_kafka_conf_t *conf, const char *name, const char *value,
                      struct err *err)
{
    for (uint32_t i = 0; i < producer->config->kafka.property_count; i++)
        if (bytes_equal(producer->config->kafka.properties[i].name, bytes_text(name)))
            return true;
    return set(conf, name, value, err);
}

/* Only the broker knows how large a message its topic takes. */
static bool set_alone(rd_kafka_conf_t *conf, struct err *err)
{
    return set(conf, "batch.num.messages", "1", err) && set(conf, "linger.ms", "0", err) &&
           set(conf, "message.max.bytes", "67108864", err);
}

static rd_kafka_conf_t *make_conf(struct kafka_producer *producer, enum handle which, struct err *err)
{
    char timeout[16], missing[16];
    rd_kafka_conf_t *conf = properties_make(producer->config, false, err);
    uint32_t missing_ms = producer->timeout_ms / 2 < MISSING_MAX_MS ? producer->timeout_ms / 2 : MISSING_MAX_MS;
    snprintf(timeout, sizeof timeout, "%u", (unsigned)producer->timeout_ms);
    /* Before its messages run out of time, or they would only be sent again. */
    snprintf(missing, sizeof missing, "%u", (unsigned)missing_ms);
    if (!conf)
        return NULL;
    /* The partitioner of Kafka's own clients: a key lies in one partition whoever sends it. A short linger: while
     * requests are on their way messages gather anyhow, and a hot aggregate waits for it with every message. */
    if (set_usual(producer, conf, "partitioner", "murmur2_random", err) &&
        set_usual(producer, conf, "linger.ms", "1", err) && set(conf, "enable.idempotence", "true", err) &&
        set(conf, "acks", "all", err) && set(conf, "message.timeout.ms", timeout, err) &&
        set(conf, "queue.buffering.max.messages", "20000", err) &&
        set(conf, "topic.metadata.propagation.max.ms", missing, err) &&
        set_usual(producer, conf, "topic.metadata.refresh.interval.ms", "10000", err) &&
        (which == MANY || set_alone(conf, err)))
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

static rd_kafka_t *make_handle(struct kafka_producer *producer, enum handle which, struct err *err)
{
    char text[256];
    rd_kafka_conf_t *conf = make_conf(producer, which, err);
    if (!conf)
        return NULL;
    rd_kafka_conf_set_log_cb(conf, silent);
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_conf_set_opaque(conf, producer);
    rd_kafka_t *handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    if (handle)
        return handle;
    err_set(err, ERR_CONFIG, 0, "producer", "%s", text);
    rd_kafka_conf_destroy(conf);
    return NULL;
}

static void end_handles(rd_kafka_t **handles)
{
    for (int i = 0; i < HANDLES; i++) {
        if (!handles[i])
            continue;
        rd_kafka_purge(handles[i],
                       RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
        rd_kafka_destroy_flags(handles[i], RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        handles[i] = NULL;
    }
}

/* Both or none. */
static bool make_handles(struct kafka_producer *producer, rd_kafka_t **ret_handles, struct err *err)
{
    for (int i = 0; i < HANDLES; i++)
        ret_handles[i] = NULL;
    for (int i = 0; i < HANDLES; i++) {
        ret_handles[i] = make_handle(producer, (enum handle)i, err);
        if (!ret_handles[i]) {
            end_handles(ret_handles);
            return false;
        }
    }
    return true;
}

static enum err_class producer_renew(void *self, struct err *err)
{
    struct kafka_producer *producer = self;
    rd_kafka_t *handles[HANDLES];
    if (!make_handles(producer, handles, err))
        return ERR_CONFIG;
    end_handles(producer->handles);
    memcpy(producer->handles, handles, sizeof handles);
    producer->alone = 0;
    return ERR_NONE;
}

static const struct producer_ops producer_table = {
    .send = producer_send, .poll = producer_poll, .purge = producer_purge, .renew = producer_renew,
};

struct kafka_producer *kafka_producer_create(const struct config *config, uint32_t timeout_ms, struct err *err)
{
    struct kafka_producer *producer = calloc(1, sizeof *producer);
    if (!producer) {
        err_set(err, ERR_FATAL, 0, "producer", "out of memory");
        return NULL;
    }
    producer->config = config;
    producer->timeout_ms = timeout_ms;
    producer->port = (struct producer_port){producer, &producer_table};
    if (make_handles(producer, producer->handles, err))
        return producer;
    free(producer);
    return NULL;
}

void kafka_producer_destroy(struct kafka_producer *producer)
{
    if (!producer)
        return;
    end_handles(producer->handles);
    free(producer);
}

const struct producer_port *kafka_producer_port(struct kafka_producer *producer)
{
    return &producer->port;
}
