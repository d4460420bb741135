/* SPDX-License-Identifier: MIT */
/* tool: a client for looks: of the user's properties, silent, without a group of its own that anybody would see. */
#ifndef IDEM_KAFKA_TOOL_H
#define IDEM_KAFKA_TOOL_H

#include <librdkafka/rdkafka.h>

#include "idem/base/err.h"
#include "idem/core/config.h"

/* Destroy with rd_kafka_destroy. NULL: ERR_CONFIG. */
rd_kafka_t *tool_open(const struct config *config, struct err *err);

#endif
