/* SPDX-License-Identifier: MIT */
/* threads: a thread around each worker and keeper; all it adds is waiting. */
#include "threads.h"

#include <stdlib.h>

struct thread_start {
    struct threads *threads;
    uint32_t index;
};

static int64_t now_us(const struct threads *threads)
{
    return threads->env->mono_us(threads->env->self);
}

static void *run_worker(void *argument)
{
    struct thread_start *start = argument;
    struct threads *threads = start->threads;
    struct worker *worker = &threads->workers[start->index];
    struct pulse *pulse = &threads->pulses[start->index];
    while (!atomic_load(&threads->stopping)) {
        atomic_store(&pulse->busy_since_us, now_us(threads));
        int64_t due = worker_step(worker);
        atomic_store(&pulse->busy_since_us, 0);
        if (due <= now_us(threads))
            continue;
        /* A batch that waits for its next attempt is not hurried by new records. */
        if (worker->batch_count > 0)
            queue_wait_poke(&worker->queue, due);
        else
            queue_wait(&worker->queue, due);
    }
    worker->init.store->tx->close(worker->init.store->self);
    return NULL;
}

static void *run_keeper(void *argument)
{
    struct thread_start *start = argument;
    struct threads *threads = start->threads;
    struct keeper *keeper = &threads->keepers[start->index - threads->worker_count];
    struct pulse *pulse = &threads->pulses[start->index];
    while (!atomic_load(&threads->stopping)) {
        atomic_store(&pulse->busy_since_us, now_us(threads));
        int64_t due = keeper_step(keeper);
        atomic_store(&pulse->busy_since_us, 0);
        if (due == 0)
            queue_poke(threads->wake);
        else if (due > now_us(threads))
            keeper_wait(keeper, due);
    }
    keeper->ledger->ops->close(keeper->ledger->self);
    return NULL;
}

bool threads_start(struct threads *threads)
{
    uint32_t count = threads->worker_count + threads->keeper_count;
    threads->ids = calloc(count, sizeof *threads->ids);
    threads->pulses = calloc(count, sizeof *threads->pulses);
    threads->starts = calloc(count, sizeof *threads->starts);
    if (!threads->ids || !threads->pulses || !threads->starts) {
        threads_stop(threads);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        threads->starts[i] = (struct thread_start){threads, i};
        if (pthread_create(&threads->ids[i], NULL, i < threads->worker_count ? run_worker : run_keeper,
                           &threads->starts[i])) {
            threads_stop(threads);
            return false;
        }
        threads->started++;
    }
    return true;
}

void threads_stop(struct threads *threads)
{
    atomic_store(&threads->stopping, true);
    for (uint32_t i = 0; i < threads->worker_count; i++)
        queue_poke(&threads->workers[i].queue);
    for (uint32_t i = 0; i < threads->keeper_count; i++)
        keeper_poke(&threads->keepers[i]);
    for (uint32_t i = 0; i < threads->started; i++)
        pthread_join(threads->ids[i], NULL);
    threads->started = 0;
}

void threads_finish(struct threads *threads)
{
    free(threads->ids);
    free(threads->pulses);
    free(threads->starts);
    threads->ids = NULL;
    threads->pulses = NULL;
    threads->starts = NULL;
}

bool threads_alive(const struct threads *threads, int64_t limit_us)
{
    return pulses_are_fresh(threads->pulses, threads->started, now_us(threads), limit_us);
}

bool threads_are_working(const struct threads *threads)
{
    uint32_t workers = threads->started < threads->worker_count ? threads->started : threads->worker_count;
    return !pulses_are_fresh(threads->pulses, workers, now_us(threads), 0);
}
