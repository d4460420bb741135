/* SPDX-License-Identifier: MIT */
/* clock: see idem/adapter/clock.h. */
#include "idem/adapter/clock.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

int64_t clock_mono_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t mono_us(void *self)
{
    (void)self;
    return clock_mono_us();
}

static int64_t wall_ms(void *self)
{
    struct timespec now;
    (void)self;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t random_bits(void *self)
{
    uint64_t bits;
    (void)self;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        abort();
    return bits;
}

const struct env_port clock_env = {.mono_us = mono_us, .wall_ms = wall_ms, .random = random_bits};
