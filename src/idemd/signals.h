/* SPDX-License-Identifier: MIT */
/* signals: SIGTERM and SIGINT ask to stop; SIGHUP is noted. One thread waits for them, so that no handler ever runs. */
#ifndef IDEMD_SIGNALS_H
#define IDEMD_SIGNALS_H

#include <stdbool.h>

/* Blocks the signals for this thread and those made after it. First thing in main. */
void signals_block(void);

/* Starts the waiting thread. `woken` (may be NULL) is called from it after each signal. false: no thread. */
bool signals_start(void (*woken)(void *context), void *context);

bool signals_stop_wanted(void);

/* true once after each SIGHUP. */
bool signals_take_hangup(void);

#endif
