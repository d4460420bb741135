/* SPDX-License-Identifier: MIT */
/* env: time, randomness and crash points for the app floor. The simulator gives a virtual clock and a seeded
 * generator. Functions never fail (a host without a clock or entropy aborts). */
#ifndef IDEM_PORT_ENV_H
#define IDEM_PORT_ENV_H

#include "idem/base/bytes.h"

/* Crash points, details 5. The names are IDEMD_CRASH's. */
enum probe_point {
    PROBE_AFTER_FENCE, PROBE_AFTER_CLAIM, PROBE_AFTER_UPDATE, PROBE_AFTER_INSERT,
    PROBE_AFTER_STATEMENTS, PROBE_AFTER_OUTBOX, PROBE_BEFORE_COMMIT, PROBE_AFTER_COMMIT,
    PROBE_BEFORE_PROGRESS, PROBE_AFTER_PROGRESS, PROBE_AFTER_OFFSET,
    PROBE_COUNT
};

struct env_port {
    void *self;
    int64_t (*mono_us)(void *self);      /* CLOCK_MONOTONIC, microseconds */
    int64_t (*wall_ms)(void *self);      /* milliseconds since 1970 UTC */
    uint64_t (*random)(void *self);      /* 64 random bits; thread-safe */
    void (*probe)(void *self, enum probe_point point);   /* NULL: no probes in this build */
};

static inline void env_probe(const struct env_port *env, enum probe_point point)
{
    if (env->probe)
        env->probe(env->self, point);
}

#endif
