/* SPDX-License-Identifier: MIT */
/* retention: how long Kafka keeps the records of the configured topics (DescribeConfigs), asked by a client of its own;
 * for idemctl and the daemon. */
#ifndef IDEM_ADAPTER_KAFKA_RETENTION_H
#define IDEM_ADAPTER_KAFKA_RETENTION_H

#include "idem/base/err.h"
#include "idem/core/retention.h"

struct kafka_retention {
    bool known;                  /* false: the broker did not say, `why` */
    int64_t ms;                  /* retention.ms, or RETENTION_FOREVER (-1, or a compacted topic) */
    char why[200];               /* NUL-terminated */
};

/* Fills list[i] for config->topics[i]; topic_count places. ERR_CONFIG: properties; ERR_RECONNECT: no answer within
 * timeout_ms, or the broker cannot answer such a question at all; ERR_FATAL: out of memory. */
enum err_class kafka_retentions(const struct config *config, uint32_t timeout_ms, struct kafka_retention *list,
                                struct err *err);

#endif
