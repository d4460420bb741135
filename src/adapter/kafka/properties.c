/* SPDX-License-Identifier: MIT */
/* properties: see properties.h. Fetches are small and often: what is fetched at once is what the memory holds. */
#include "properties.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_MAX_LEN = 128, SECRET_MAX = 64 << 10, FETCH_MIN = 128 << 10 };

/* What the daemon's correctness stands on is not the user's to change. */
static const char *const ours[] = {
    "bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit", "auto.commit.enable",
    "enable.auto.offset.store", "auto.offset.reset", "rebalance_cb", "enable.partition.eof",
    /* Of the relay's producer. */
    "enable.idempotence", "acks", "request.required.acks", "message.timeout.ms", "delivery.timeout.ms",
};

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value, struct err *err)
{
    char text[512];
    if (rd_kafka_conf_set(conf, name, value, text, sizeof text) == RD_KAFKA_CONF_OK)
        return true;
    err_set(err, ERR_CONFIG, 0, "kafka.properties", "%s: %s", name, text);
    return false;
}

/* The file's text without one newline at its end; returned to caller, free(). */
static char *read_secret(const char *path, struct err *err)
{
    FILE *file = fopen(path, "re");
    char *text = malloc(SECRET_MAX);
    if (!file || !text) {
        err_set(err, ERR_CONFIG, 0, "kafka.properties", "cannot read %s", path);
        if (file)
            fclose(file);
        free(text);
        return NULL;
    }
    size_t len = fread(text, 1, SECRET_MAX - 1, file);
    fclose(file);
    text[len] = '\0';
    if (len > 0 && text[len - 1] == '\n')
        text[len - 1] = '\0';
    return text;
}

static char *copy_text(struct bytes text)
{
    char *copy = malloc(text.len + 1);
    if (!copy)
        return NULL;
    if (text.len)
        memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    return copy;
}

static bool set_property(rd_kafka_conf_t *conf, const struct property *property, struct err *err)
{
    char *name = copy_text(property->name), *value = copy_text(property->value);
    bool good = name && value;
    for (size_t i = 0; good && i < sizeof ours / sizeof *ours; i++)
        if (strcmp(name, ours[i]) == 0) {
            err_set(err, ERR_CONFIG, 0, "kafka.properties", "%s is set by idemd itself", name);
            good = false;
        }
    if (good && property->is_file) {
        char *secret = read_secret(value, err);
        free(value);
        value = secret;
        good = secret != NULL;
    }
    good = good && set(conf, name, value, err);
    free(name);
    free(value);
    return good;
}

static bool set_bytes(rd_kafka_conf_t *conf, const char *name, struct bytes value, struct err *err)
{
    char *text = copy_text(value);
    bool good = text && set(conf, name, text, err);
    free(text);
    return good;
}

/* A fetch has to hold the largest record that a topic may bring, or it would never come. */
static bool set_fetch(rd_kafka_conf_t *conf, const struct config *config, struct err *err)
{
    char text[24];
    uint64_t largest = FETCH_MIN;
    snprintf(text, sizeof text, "%llu", (unsigned long long)largest);
    (void)config;                /* a first batch that is larger comes all the same (KIP-74) */
    return set(conf, "fetch.message.max.bytes", text, err) && set(conf, "queued.min.messages", "20000", err);
}

static bool set_consumer(rd_kafka_conf_t *conf, const struct config *config, struct err *err)
{
    /* Known from librdkafka 2.2 on; before, the source wakes the fetcher by itself. */
    rd_kafka_conf_set(conf, "fetch.queue.backoff.ms", "5", NULL, 0);
    return set_bytes(conf, "group.id", config->kafka.group, err) &&
           set(conf, "enable.auto.commit", "false", err) &&
           set(conf, "enable.auto.offset.store", "false", err) &&
           set(conf, "auto.offset.reset", "error", err) &&
           set(conf, "enable.partition.eof", "false", err) &&
           set(conf, "topic.metadata.refresh.interval.ms", "10000", err) && set_fetch(conf, config, err);
}

rd_kafka_conf_t *properties_make(const struct config *config, bool consumer, struct err *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    bool good = set_bytes(conf, "bootstrap.servers", config->kafka.brokers, err) &&
                set(conf, "client.id", "idemd", err) && set(conf, "log.connection.close", "false", err) &&
                (!consumer || set_consumer(conf, config, err));
    for (uint32_t i = 0; good && i < config->kafka.property_count; i++)
        good = set_property(conf, &config->kafka.properties[i], err);
    if (good)
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

bool properties_sasl(const struct config *config)
{
    for (uint32_t i = 0; i < config->kafka.property_count; i++)
        if (config->kafka.properties[i].name.len >= 5 &&
            memcmp(config->kafka.properties[i].name.at, "sasl.", 5) == 0)
            return true;
    return false;
}
