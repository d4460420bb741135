/* SPDX-License-Identifier: MIT */
/* health: may this instance be sent work (ready), and does every thread of it move (alive)? Both are answered from what
 * threads tell in passing; nothing here asks a server. Any thread may ask. */
#ifndef IDEM_APP_HEALTH_H
#define IDEM_APP_HEALTH_H

#include "idem/app/gauges.h"

/* What one thread shows: since when it is in its present step. */
struct pulse {
    atomic_int_least64_t busy_since_us;      /* monotonic; 0 = it waits for something */
};

/* Every one of them waits, or began its present step at most limit_us ago. */
bool pulses_are_fresh(const struct pulse *pulses, uint32_t count, int64_t now_us, int64_t limit_us);

/* A step that lasts longer is stuck, microseconds: beyond what a session waits for a server that hangs. */
int64_t pulse_limit_us(const struct config *config);

struct health {
    const struct config *config;
    const struct shared *shared;             /* these two from health_attach() on */
    struct keeper *keepers;                  /* one a database */
    struct gauges *gauges;
    atomic_bool attached;                    /* databases were looked at, threads may run */
    atomic_bool joined;                      /* member of the group */
    atomic_bool stopping;                    /* asked to stop */
};

/* Nothing attached, not joined. All is borrowed while the health is asked. */
void health_init(struct health *health, const struct config *config, struct gauges *gauges);
void health_attach(struct health *health, const struct shared *shared, struct keeper *keepers);

/* -1: the database can be worked with, as far as anybody has tried; else enum down_why. */
int health_database_down(const struct health *health, uint32_t database);

/* Every reason why a partition does not move, those of its database and its topic included: 1 << enum halt_why. Between
 * gauges_hold and gauges_release. */
uint32_t health_halts(const struct health *health, const struct gauge *gauge);

/* Appends ["why:what",...], the reasons for not being ready; returns how many. The words are in docs/operate.md:
 * stopping, starting, not_joined, unreachable:DATABASE, config:DATABASE, config:TOPIC, flood:TOPIC,
 * WHY:TOPIC/PARTITION. */
uint32_t health_reasons(const struct health *health, struct buf *buf);

#endif
