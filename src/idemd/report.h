/* SPDX-License-Identifier: MIT */
/* report: what the app floor tells, as log lines and counts. One a thread: lines of outcomes are gathered and go out
 * with the batch; events go out at once. What the log's level or sampling leaves out is counted all the same. Never
 * logs a payload. */
#ifndef IDEMD_REPORT_H
#define IDEMD_REPORT_H

#include "idem/app/meters.h"
#include "idem/base/log.h"
#include "idem/core/config.h"
#include "idem/port/env.h"
#include "idem/port/report.h"

struct report {
    struct report_port port;         /* self is this */
    const struct config *config;
    const struct env_port *env;
    struct meter meter;
    int64_t wall_ms;                 /* of the outcomes since the last flush; 0 = not asked yet */
    uint32_t skipped;                /* of log.records: N */
    struct log_batch log;
};

/* sink as in log_init. Everything is borrowed while the report lives. false: out of memory. */
bool report_init(struct report *report, const struct config *config, const struct env_port *env,
                 struct meters *meters, log_sink *sink, void *context);

/* A line of the program itself: log_begin .. log_end, then flushed. The caller adds fields in between. */
struct log_batch *report_line(struct report *report, enum log_priority priority, const char *event);
void report_line_end(struct report *report);

#endif
