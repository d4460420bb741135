/* SPDX-License-Identifier: MIT */
/* producer: librdkafka's idempotent producer as the producer port. */
#ifndef IDEM_ADAPTER_KAFKA_PRODUCER_H
#define IDEM_ADAPTER_KAFKA_PRODUCER_H

#include "idem/core/config.h"
#include "idem/port/producer.h"

struct kafka_producer;

/* timeout_ms: a message that no broker took so long is reported AGAIN. config is borrowed. NULL: ERR_CONFIG for a
 * property that is wrong, ERR_FATAL otherwise. */
struct kafka_producer *kafka_producer_create(const struct config *config, uint32_t timeout_ms, struct err *err);
/* Drops what is still queued. NULL is fine. */
void kafka_producer_destroy(struct kafka_producer *producer);
/* Borrowed until the producer is destroyed. */
const struct producer_port *kafka_producer_port(struct kafka_producer *producer);

#endif
