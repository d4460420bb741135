/* SPDX-License-Identifier: MIT */
/* source_self: the inside of the source, shared by source.c, rebalance.c and commits.c. */
#ifndef IDEM_KAFKA_SOURCE_SELF_H
#define IDEM_KAFKA_SOURCE_SELF_H

#include "idem/adapter/kafka_source.h"

#include <librdkafka/rdkafka.h>

/* One partition of the present assignment. */
struct assigned {
    char topic[TOPIC_MAX + 1];
    int32_t number;
    bool started;                /* fetched; false: held back */
    bool paused;                 /* pausing is told only once: resuming what is not paused rewinds (hazards K1) */
    int64_t next;                /* next offset to deliver, or where it starts */
    int64_t committed;           /* highest that was accepted, or told without waiting, -1 = none */
    bool refused;                /* `committed` was told without waiting, and refused since */
};

struct kafka_source {
    struct source_port port;
    const struct config *config;
    struct source_events events;
    rd_kafka_t *consumer;
    rd_kafka_message_t *held;    /* the record that the caller looks at */
    struct assigned *assigned;
    uint32_t assigned_count, assigned_size;
    bool wakes;                  /* librdkafka before 2.2, without SASL: see wake_fetcher */
    bool closed;
    bool resubscribe;            /* the offsets of an assignment could not be read */
    int64_t again_ms;            /* monotonic: when refused offsets are told again, 0 = there are none */
    uint32_t polls;              /* since the fetcher was woken */
    uint8_t *headers;            /* stored form of the held record's */
    size_t headers_size;
};

/* assigned.c. A pointer holds until the next add or remove. find: NULL if it is not ours; add gives a known one as
 * it stands. */
struct assigned *assigned_find(struct kafka_source *source, const char *topic, int32_t number);
struct assigned *assigned_add(struct kafka_source *source, const char *topic, int32_t number);
void assigned_remove(struct kafka_source *source, const char *topic, int32_t number);

/* librdkafka keeps a pause over unassign and assign, and resuming what is not paused rewinds (hazards K1): called
 * before a partition is given up or moved, once. */
void unpause(struct kafka_source *source, struct assigned *partition);

/* The rebalance callback; its opaque is the source. */
void rebalance(rd_kafka_t *consumer, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list,
               void *opaque);

/* The port's commit(), and librdkafka's callback for what became of it; the opaque is the source. */
enum err_class commits_tell(void *self, const struct source_partition *partitions, uint32_t count, bool wait,
                            uint32_t timeout_ms, struct err *err);
void commits_answered(rd_kafka_t *consumer, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t *list,
                      void *opaque);

/* Tells refused offsets again, if it is time or `now`; waits for no answer. */
void commits_again(struct kafka_source *source, bool now);

/* Tells librdkafka to fetch what is started, by assign (eager) or incrementally. `changed` NULL: everything. */
rd_kafka_resp_err_t fetch_started(struct kafka_source *source, const struct source_partition *changed,
                                  uint32_t count);

#endif
