/* SPDX-License-Identifier: MIT */
/* producer: what the relay needs of Kafka: idempotent, acks from all replicas, a report for every message. Owned by the
 * relay's thread. Order is kept by the relay: of one aggregate only one message is on its way. */
#ifndef IDEM_PORT_PRODUCER_H
#define IDEM_PORT_PRODUCER_H

#include "idem/base/bytes.h"
#include "idem/base/err.h"

struct message_header {
    struct bytes name, value;
    bool is_null;
};

struct message {
    uint64_t seq;                    /* comes back with the report */
    struct bytes topic, key, value;
    const struct message_header *headers;
    uint32_t header_count;
    bool alone;                      /* in a request of its own: what is said of it is said of nothing else */
};

/* What became of a message. */
enum delivery {
    DELIVERY_DONE,                   /* all replicas have it */
    DELIVERY_AGAIN,                  /* it may have arrived or not: to be sent again (no broker, purged, too late) */
    DELIVERY_REFUSED,                /* can never be taken as it is (too large, malformed). Not alone: it may be another
                                        message of its batch */
    DELIVERY_NO_TOPIC                /* nor any other of its topic: there is none, or we may not write to it */
};

struct delivery_report {
    uint64_t seq;
    enum delivery delivery;
    int number;                      /* librdkafka's, 0 = none */
    const char *text;                /* borrowed for the call */
};

struct producer_ops {
    /* Queues a copy. ERR_NONE; ERR_RETRY: the queue is full; ERR_DATA: refused at once, *ret_report says how;
     * ERR_RECONNECT: the producer is lost for good, see renew. */
    enum err_class (*send)(void *self, const struct message *message, struct delivery_report *ret_report,
                           struct err *err);
    /* Waits at most timeout_ms for reports; gives each to take(). ERR_NONE, or ERR_RECONNECT as above. */
    enum err_class (*poll)(void *self, uint32_t timeout_ms, void (*take)(void *context, const struct delivery_report *),
                           void *context, struct err *err);
    /* Drops everything that is queued or on its way; reports (AGAIN) come with the next poll. */
    void (*purge)(void *self);
    /* A new producer in place of one that is lost. Messages without a report get none. */
    enum err_class (*renew)(void *self, struct err *err);
};

struct producer_port {
    void *self;
    const struct producer_ops *ops;
};

#endif
