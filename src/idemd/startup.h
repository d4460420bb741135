/* SPDX-License-Identifier: MIT */
/* startup: every database answers, has the tables of this program, and fits the rules: before a record is read. */
#ifndef IDEMD_STARTUP_H
#define IDEMD_STARTUP_H

#include "report.h"

#include "idem/port/source.h"

/* Fills column types, indexes and rule ids of the configuration. Waits for servers until deadline_us (monotonic) or
 * until `stop` says so. Returns an exit code: EXIT_DRAINED (0) = go on; EXIT_UNREACHABLE, EXIT_CONFIG as they say
 * (the reason was logged). *ret_stopped: asked to stop meanwhile. */
int startup_databases(struct config *config, const struct env_port *env, struct report *report,
                      int64_t deadline_us, bool (*stop)(void), bool *ret_stopped);

/* Every topic of the configuration exists. Missing ones are waited for. Returns as above. */
int startup_topics(const struct config *config, const struct source_port *source,
                   const struct env_port *env, struct report *report, int64_t deadline_us,
                   bool (*stop)(void), bool *ret_stopped);

#endif
