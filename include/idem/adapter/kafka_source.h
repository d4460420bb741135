/* SPDX-License-Identifier: MIT */
/* source: the consumer of librdkafka as the source port. Owned by the intake thread. */
#ifndef IDEM_ADAPTER_KAFKA_SOURCE_H
#define IDEM_ADAPTER_KAFKA_SOURCE_H

#include "idem/core/config.h"
#include "idem/port/source.h"

struct kafka_source;

/* Makes a consumer of all topics of the configuration and joins its group in the background. config is borrowed until
 * the source is destroyed; events is copied. NULL: ERR_CONFIG for a property that is wrong or not the user's to set,
 * ERR_FATAL otherwise. */
struct kafka_source *kafka_source_create(const struct config *config, const struct source_events *events,
                                         struct err *err);

/* Closes the consumer if close() was not called. NULL is fine. */
void kafka_source_destroy(struct kafka_source *source);

/* Borrowed until the source is destroyed. */
const struct source_port *kafka_source_port(struct kafka_source *source);

/* Static text. */
const char *kafka_library_version(void);

#endif
