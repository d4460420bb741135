/* SPDX-License-Identifier: MIT */
/* threads: one thread around each worker and each keeper. All they add is waiting; what happens is in the app floor. */
#ifndef IDEMD_THREADS_H
#define IDEMD_THREADS_H

#include "idem/app/health.h"

#include <pthread.h>

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
    _Atomic uint32_t started;
    atomic_bool stopping;
};

/* Everything is borrowed until threads_finish. false: no thread or memory; those started are stopped again. */
bool threads_start(struct threads *threads);

/* Asks all to end after their present step and waits for them. Others may still ask threads_alive(). */
void threads_stop(struct threads *threads);

/* After threads_stop(), when nobody asks any more; also if they were never started. */
void threads_finish(struct threads *threads);

/* Every thread waits or began its present step less than limit_us ago. */
bool threads_alive(const struct threads *threads, int64_t limit_us);

/* Some worker is in a step: it may be in a transaction. Keepers do not count, what they write is repeated. */
bool threads_are_working(const struct threads *threads);

#endif
