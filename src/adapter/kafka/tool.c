/* SPDX-License-Identifier: MIT */
/* tool: see tool.h. A consumer that subscribes to nothing and never commits. */
#include "tool.h"

#include "properties.h"

rd_kafka_t *tool_open(const struct config *config, struct err *err)
{
    char text[512];
    rd_kafka_conf_t *conf = properties_make(config, false, err);
    if (!conf)
        return NULL;
    rd_kafka_conf_set(conf, "group.id", "idemctl", NULL, 0);
    rd_kafka_conf_set(conf, "enable.auto.commit", "false", NULL, 0);
    rd_kafka_conf_set(conf, "auto.offset.reset", "error", NULL, 0);
    rd_kafka_conf_set(conf, "enable.partition.eof", "true", NULL, 0);
    rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof text);
    if (!client) {
        rd_kafka_conf_destroy(conf);
        err_set(err, ERR_CONFIG, 0, "kafka", "%s", text);
    }
    return client;
}
