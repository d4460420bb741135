/* SPDX-License-Identifier: MIT */
/* threads: one thread around each worker and each keeper. All they add is waiting; what happens is in the app floor. */
#ifndef IDEMD_THREADS_H
#define IDEMD_THREADS_H

#include "idem/app/intake.h"

#include <pthread.h>

/* What one thread shows the watchdog. */
struct pulse {
    atomic_int_least64_t busy_since_us;      /* 0 = waiting */
};

struct threads {
    struct worker *workers;
    uint32_t worker_count;
    struct keeper *keepers;
    uint32_t keeper_count;
    struct queue *wake;                      /* poked after each keeper's answer */
    const struct env_port *env;
    pthread_t *ids;                          /* workers, then keepers */
    struct pulse *pulses;
    struct thread_start *starts;
    uint32_t started;
    atomic_bool stopping;
};

/* Everything is borrowed until threads_stop. false: no thread or memory; those started are stopped again. */
bool threads_start(struct threads *threads);

/* Asks all to end after their present step and waits for them. */
void threads_stop(struct threads *threads);

/* Every thread waits or began its present step less than limit_us ago. */
bool threads_alive(const struct threads *threads, int64_t limit_us);

#endif
