/* SPDX-License-Identifier: MIT */
/* signals: one thread that waits for signals and notes them. No handler ever runs. */
#include "signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_bool stop_wanted, hangup;
static void (*wake)(void *context);
static void *wake_context;

static void fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

void signals_block(void)
{
    sigset_t set;
    fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void *wait_for_signals(void *unused)
{
    sigset_t set;
    (void)unused;
    fill(&set);
    for (int number; sigwait(&set, &number) == 0;) {
        if (number == SIGHUP)
            atomic_store(&hangup, true);
        else
            atomic_store(&stop_wanted, true);
        if (wake)
            wake(wake_context);
    }
    return NULL;
}

bool signals_start(void (*woken)(void *context), void *context)
{
    pthread_t thread;
    wake = woken;
    wake_context = context;
    if (pthread_create(&thread, NULL, wait_for_signals, NULL))
        return false;
    pthread_detach(thread);
    return true;
}

bool signals_stop_wanted(void)
{
    return atomic_load(&stop_wanted);
}

bool signals_take_hangup(void)
{
    return atomic_exchange(&hangup, false);
}
