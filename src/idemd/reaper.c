/* SPDX-License-Identifier: MIT */
/* reaper: a thread that ends the process when stopping takes too long. Never returns. */
#include "reaper.h"

#include "exit.h"

#include <time.h>
#include <unistd.h>

static struct {
    uint32_t timeout_ms;
    const struct threads *threads;
    int code;
} reaper;

static void *reap(void *unused)
{
    struct timespec left = {.tv_sec = reaper.timeout_ms / 1000,
                            .tv_nsec = reaper.timeout_ms % 1000 * 1000000L};
    (void)unused;
    while (nanosleep(&left, &left) != 0)
        continue;
    _exit(threads_are_working(reaper.threads) ? EXIT_LOST : reaper.code);
}

void reaper_start(uint32_t timeout_ms, const struct threads *threads, int code)
{
    pthread_t thread;
    reaper.timeout_ms = timeout_ms;
    reaper.threads = threads;
    reaper.code = code;
    if (pthread_create(&thread, NULL, reap, NULL) == 0)
        pthread_detach(thread);
}
