/* SPDX-License-Identifier: MIT */
/* lifecycle: from a loaded configuration to the exit code. */
#ifndef IDEMD_LIFECYCLE_H
#define IDEMD_LIFECYCLE_H

#include "idem/core/config.h"
#include "idem/port/env.h"

/* Runs until SIGTERM, SIGINT or a fault; returns an exit code of exit.h. config and env are borrowed. */
int lifecycle_run(struct config *config, const struct env_port *env);

#endif
