/* SPDX-License-Identifier: MIT */
/* clock: the real time and the kernel's randomness. The app floor has them by port/env.h only, so that the simulator
 * can give others. Functions never fail (a host without a clock or entropy aborts) and may be called by any thread. */
#ifndef IDEM_ADAPTER_CLOCK_H
#define IDEM_ADAPTER_CLOCK_H

#include "idem/port/env.h"

/* CLOCK_MONOTONIC, microseconds (clock_gettime(2)). */
int64_t clock_mono_us(void);

/* The port without crash points; needs nothing of `self`. */
extern const struct env_port clock_env;

#endif
