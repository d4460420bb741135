/* SPDX-License-Identifier: MIT */
/* relay: publishes idem_outbox of one database: reads rows, sends them, deletes them after their delivery report.
 * At least once: whoever reads the topics knows a repeat by the header event_id. One relay of several publishes, by a
 * lease; order is kept by aggregate. It never sleeps: relay_step() says when to call again, so that a thread and a test
 * drive it alike. Owned by one thread. */
#ifndef IDEM_APP_RELAY_H
#define IDEM_APP_RELAY_H

#include "idem/port/env.h"
#include "idem/port/outbox.h"
#include "idem/port/parser.h"
#include "idem/port/producer.h"
#include "idem/port/report.h"

#include <stdatomic.h>

enum { RELAY_TOPICS_COUNTED = 64 };

/* Delivery reports of one topic. */
struct relay_topic_count {
    struct bytes topic;
    atomic_uint_fast64_t published, again, refused;
};

/* For metrics; written by the relay, read by anybody. Topics are set before it starts; what is none of them counts with
 * the last. */
struct relay_counts {
    atomic_uint_fast64_t rows, oldest_ms;                /* of the outbox, looked at now and then */
    struct relay_topic_count topics[RELAY_TOPICS_COUNTED];
    uint32_t topic_count;                                /* at least 1 */
};

struct relay_init {
    struct bytes database;                   /* its name, for events */
    uint32_t lease_ms;
    const struct outbox_port *outbox;
    const struct producer_port *producer;
    const struct parser_port *parser;        /* of the rows' headers */
    const struct env_port *env;
    const struct report_port *report;
    struct relay_counts *counts;
};

struct relay;

/* Everything is borrowed until relay_destroy. NULL: out of memory. */
struct relay *relay_create(const struct relay_init *init);
void relay_destroy(struct relay *relay);

/* Waits at most wait_ms for delivery reports, then does what is due. Returns the monotonic moment (microseconds) of the
 * next useful call. */
int64_t relay_step(struct relay *relay, uint32_t wait_ms);

/* The last steps: nothing more is sent; what is on its way is waited for, deleted, and the lease given back. true:
 * done, or the deadline (monotonic microseconds) has passed. */
bool relay_stop_step(struct relay *relay, uint32_t wait_ms, int64_t deadline_us);

#endif
