/* SPDX-License-Identifier: MIT */
/* fetch: see fetch.h. A consumer of a throw-away group that is assigned one partition by hand. */
#include "idem/adapter/kafka_fetch.h"

#include "message.h"
#include "tool.h"

#include "idem/adapter/clock.h"

#include <stdlib.h>

static enum err_class keep(const rd_kafka_message_t *message, struct arena *arena, struct record *ret,
                           struct err *err)
{
    uint8_t *block = NULL;
    size_t size = 0;
    struct bytes headers;
    *ret = message_record(message);
    bool good = headers_store(message, &block, &size, &headers);
    ret->topic = arena_copy(arena, ret->topic);
    ret->key = arena_copy(arena, ret->key);
    ret->value = arena_copy(arena, ret->value);
    ret->headers = arena_copy(arena, headers);
    free(block);
    if (!good || arena->exhausted)
        return err_set(err, ERR_FATAL, 0, "fetch", "out of memory");
    return ERR_NONE;
}

static enum err_class poll_one(rd_kafka_t *consumer, int64_t offset, uint32_t timeout_ms, struct arena *arena,
                               struct record *ret, bool *ret_found, struct err *err)
{
    int64_t deadline = clock_mono_us() + (int64_t)timeout_ms * 1000;
    while (clock_mono_us() < deadline) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 100);
        enum err_class class = ERR_NONE;
        if (!message)
            continue;
        bool ended = message->err != RD_KAFKA_RESP_ERR_NO_ERROR;
        if (message->err == RD_KAFKA_RESP_ERR__TRANSPORT || message->err == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
            ended = false;
        if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            ended = true;        /* another offset: this one is a gap */
            *ret_found = message->offset == offset;
            if (*ret_found)
                class = keep(message, arena, ret, err);
        }
        rd_kafka_message_destroy(message);
        if (ended)
            return class;
    }
    return err_set(err, ERR_RECONNECT, 0, "fetch", "Kafka did not answer in time");
}

enum err_class kafka_fetch_one(const struct config *config, struct bytes topic, int32_t partition, int64_t offset,
                               uint32_t timeout_ms, struct arena *arena, struct record *ret, bool *ret_found,
                               struct err *err)
{
    char name[TOPIC_MAX + 1] = "";
    *ret_found = false;
    if (topic.len > TOPIC_MAX)
        return err_set(err, ERR_CONFIG, 0, "fetch", "topic name too long");
    memcpy(name, topic.at, topic.len);
    rd_kafka_t *consumer = tool_open(config, err);
    if (!consumer)
        return err->class;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, name, partition)->offset = offset;
    rd_kafka_resp_err_t code = rd_kafka_assign(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    enum err_class class =
        code ? err_set(err, ERR_RECONNECT, (int)code, "fetch", "%s", rd_kafka_err2str(code))
             : poll_one(consumer, offset, timeout_ms, arena, ret, ret_found, err);
    rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    return class;
}
