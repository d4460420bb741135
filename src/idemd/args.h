/* SPDX-License-Identifier: MIT */
/* args: the command line of idemd. */
#ifndef IDEMD_ARGS_H
#define IDEMD_ARGS_H

#include <stdbool.h>

enum args_action { ARGS_RUN, ARGS_CHECK, ARGS_EXIT };

struct args {
    enum args_action action;
    int exit_code;               /* of ARGS_EXIT: help and version were printed (0), or a mistake (64) */
    const char *config_path;     /* borrowed from argv */
};

struct args args_parse(int argc, char **argv);

#endif
