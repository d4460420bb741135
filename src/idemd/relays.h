/* SPDX-License-Identifier: MIT */
/* relays: one relay a database, each in a thread of its own with its own session, producer and parser. They start when
 * the databases have answered and end after intake has drained, so that its last events go out too. */
#ifndef IDEMD_RELAYS_H
#define IDEMD_RELAYS_H

#include "report.h"

#include "idem/app/health.h"
#include "idem/app/relay.h"

struct relay_thread;

struct relays {
    struct relay_thread *list;
    uint32_t count;                  /* 0: outbox.relay is off */
    struct pulse *pulses;
    const struct config *config;
    const struct env_port *env;
    atomic_bool stopping;
    int64_t deadline_us;             /* of stopping */
};

/* Nothing runs yet, but counts can be asked for. Everything is borrowed until relays_finish. false: out of memory. */
bool relays_init(struct relays *relays, const struct config *config, const struct env_port *env);

/* ERR_NONE also where outbox.relay is off. ERR_CONFIG: a property of Kafka; ERR_FATAL: no memory, no thread. */
enum err_class relays_start(struct relays *relays, struct meters *meters, log_sink *sink, struct err *err);

/* Waits for what is on its way until the deadline (monotonic microseconds), gives the leases back. NULL-safe for what
 * was not started. Others may still ask. */
void relays_stop(struct relays *relays, int64_t deadline_us);

/* After relays_stop(), when nobody asks any more. */
void relays_finish(struct relays *relays);

/* Every one waits or began its present step less than limit_us ago. */
bool relays_alive(const struct relays *relays, int64_t limit_us);

/* Of database `index`; NULL if there is no relay. */
const struct relay_counts *relays_counts(const struct relays *relays, uint32_t index);

#endif
