/* SPDX-License-Identifier: MIT */
/* env: clock, randomness and crash points of the real process, for the app floor. */
#include "env.h"

#include "idem/adapter/clock.h"

#include <signal.h>
#include <stdlib.h>

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
    (void)env;
    return getenv("IDEMD_CRASH") == NULL;
}
#endif

bool env_init(struct env_port *ret_env)
{
    *ret_env = clock_env;
    return arm(ret_env);
}
