/* SPDX-License-Identifier: MIT */
/* env: clock, randomness and crash points of the real process, for the app floor. */
#include "env.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static int64_t mono_us(void *self)
{
    struct timespec now;
    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
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

#ifdef IDEM_PROBES
#include <stdatomic.h>

static const char *const probe_names[PROBE_COUNT] = {
    [PROBE_AFTER_FENCE] = "after_fence",           [PROBE_AFTER_CLAIM] = "after_claim",
    [PROBE_AFTER_UPDATE] = "after_update",         [PROBE_AFTER_INSERT] = "after_insert",
    [PROBE_AFTER_STATEMENTS] = "after_statements", [PROBE_AFTER_OUTBOX] = "after_outbox",
    [PROBE_BEFORE_COMMIT] = "before_commit",       [PROBE_AFTER_COMMIT] = "after_commit",
    [PROBE_BEFORE_PROGRESS] = "before_progress",   [PROBE_AFTER_PROGRESS] = "after_progress",
    [PROBE_AFTER_OFFSET] = "after_offset",
};

static enum probe_point armed = PROBE_COUNT;
static atomic_long passages_left;

static void probe(void *self, enum probe_point point)
{
    (void)self;
    if (point == armed && atomic_fetch_sub(&passages_left, 1) == 1)
        raise(SIGKILL);
}

static bool arm(struct env_port *env)
{
    const char *text = getenv("IDEMD_CRASH");
    if (!text || !*text)
        return true;
    size_t len = strcspn(text, ":");
    for (int i = 0; i < PROBE_COUNT; i++) {
        if (strlen(probe_names[i]) != len || memcmp(probe_names[i], text, len) != 0)
            continue;
        long passage = text[len] == ':' ? strtol(text + len + 1, NULL, 10) : 1;
        armed = (enum probe_point)i;
        atomic_store(&passages_left, passage > 0 ? passage : 1);
        env->probe = probe;
        return true;
    }
    return false;
}
#else
static bool arm(struct env_port *env)
{
    env->probe = NULL;
    return getenv("IDEMD_CRASH") == NULL;
}
#endif

bool env_init(struct env_port *ret_env)
{
    *ret_env = (struct env_port){.mono_us = mono_us, .wall_ms = wall_ms, .random = random_bits};
    return arm(ret_env);
}
