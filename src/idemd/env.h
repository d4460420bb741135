/* SPDX-License-Identifier: MIT */
/* env: the real clock, the kernel's randomness and the crash points (only in builds with -Dprobes=true). */
#ifndef IDEMD_ENV_H
#define IDEMD_ENV_H

#include "idem/port/env.h"

/* Reads IDEMD_CRASH=NAME[:n]. false: there is no such point; *ret_env is usable all the same. */
bool env_init(struct env_port *ret_env);

#endif
