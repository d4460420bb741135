/* SPDX-License-Identifier: MIT */
/* message: a librdkafka message as a record of core. */
#ifndef IDEM_KAFKA_MESSAGE_H
#define IDEM_KAFKA_MESSAGE_H

#include "idem/core/record.h"

#include <librdkafka/rdkafka.h>

/* Everything but the headers; views into the message. */
struct record message_record(const rd_kafka_message_t *message);

/* Its headers in the stored form (details section 3), in a block that grows and is the caller's, free(*block). No
 * headers: an empty view. false: out of memory. */
bool headers_store(const rd_kafka_message_t *message, uint8_t **block, size_t *size, struct bytes *ret);

#endif
