/* SPDX-License-Identifier: MIT */
/* web: what the listener answers: /healthz, /readyz, /metrics. Answers from memory: no server is asked, nobody is
 * waited for. */
#ifndef IDEMD_WEB_H
#define IDEMD_WEB_H

#include "relays.h"
#include "wire.h"

#include "idem/app/health.h"
#include "idem/app/meters.h"

/* What it shows. All of it outlives the listener. */
struct web {
    const struct config *config;
    const struct meters *meters;
    struct gauges *gauges;
    const struct health *health;
    const struct wire *wire;             /* tallies; looked at only once health is attached */
    const struct relays *relays;
    /* The same as feeds the watchdog. */
    bool (*alive)(void *context);
    void *context;
};

/* As http_answer_fn; context is the web. */
struct http_answer;
void web_answer(void *context, struct bytes path, struct http_answer *ret);

#endif
