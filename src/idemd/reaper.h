/* SPDX-License-Identifier: MIT */
/* reaper: ends the process when stopping takes too long, whatever a library does. */
#ifndef IDEMD_REAPER_H
#define IDEMD_REAPER_H

#include "threads.h"

/* After timeout_ms the process exits at once: with 75 if a worker was in a transaction then, else with `code`.
 * `threads` is borrowed until the process ends. */
void reaper_start(uint32_t timeout_ms, const struct threads *threads, int code);

#endif
