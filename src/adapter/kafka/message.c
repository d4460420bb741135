/* SPDX-License-Identifier: MIT */
/* message: librdkafka messages as records of core, headers in their stored form. For the source and fetch; owns
 * nothing. */
#include "message.h"

#include <stdlib.h>

static int64_t timestamp_of(const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t type;
    int64_t timestamp = rd_kafka_message_timestamp(message, &type);
    return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp;
}

struct record message_record(const rd_kafka_message_t *message)
{
    return (struct record){
        .source = SOURCE_KAFKA,
        .topic = bytes_text(rd_kafka_topic_name(message->rkt)),
        .partition = message->partition,
        .offset = message->offset,
        .timestamp_ms = timestamp_of(message),
        .has_key = message->key != NULL,
        .has_value = message->payload != NULL,
        .key = bytes_of(message->key, message->key ? message->key_len : 0),
        .value = bytes_of(message->payload, message->payload ? message->len : 0),
    };
}

static void put_u32(uint8_t *at, uint32_t number)
{
    at[0] = (uint8_t)(number >> 24);
    at[1] = (uint8_t)(number >> 16);
    at[2] = (uint8_t)(number >> 8);
    at[3] = (uint8_t)number;
}

static bool reserve(uint8_t **block, size_t *size, size_t wanted)
{
    if (*size >= wanted)
        return true;
    uint8_t *larger = realloc(*block, wanted * 2);
    if (!larger)
        return false;
    *block = larger;
    *size = wanted * 2;
    return true;
}

bool headers_store(const rd_kafka_message_t *message, uint8_t **block, size_t *size, struct bytes *ret)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t len, used = 4;
    uint32_t count = 0;
    *ret = (struct bytes){0};
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return true;
    while (rd_kafka_header_get_all(headers, count, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        size_t name_len = strlen(name), value_len = value ? len : 0;
        if (!reserve(block, size, used + 8 + name_len + value_len))
            return false;
        put_u32(*block + used, (uint32_t)name_len);
        memcpy(*block + used + 4, name, name_len);
        put_u32(*block + used + 4 + name_len, value ? (uint32_t)len : UINT32_MAX);
        if (value_len)
            memcpy(*block + used + 8 + name_len, value, value_len);
        used += 8 + name_len + value_len;
        count++;
    }
    if (!reserve(block, size, used))
        return false;
    put_u32(*block, count);
    *ret = (struct bytes){*block, used};
    return true;
}
