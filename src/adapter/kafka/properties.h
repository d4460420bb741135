/* SPDX-License-Identifier: MIT */
/* properties: librdkafka's configuration from ours. */
#ifndef IDEM_KAFKA_PROPERTIES_H
#define IDEM_KAFKA_PROPERTIES_H

#include "idem/base/err.h"
#include "idem/core/config.h"

#include <librdkafka/rdkafka.h>

/* Brokers and the user's properties, `_file` ones read now. Returned to caller, free with rd_kafka_conf_destroy or
 * give it to rd_kafka_new. NULL: ERR_CONFIG. consumer: with the group and everything the daemon relies on. */
rd_kafka_conf_t *properties_make(const struct config *config, bool consumer, struct err *err);

/* Whether a SASL mechanism is configured by user name and password, and which; views into config or empty. */
bool properties_sasl(const struct config *config);

#endif
