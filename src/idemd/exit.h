/* SPDX-License-Identifier: MIT */
/* exit: the exit codes of idemd, design section 7 (numbers after sysexits.h). */
#ifndef IDEMD_EXIT_H
#define IDEMD_EXIT_H

enum exit_code {
    EXIT_DRAINED = 0,
    EXIT_USAGE = 64,
    EXIT_UNREACHABLE = 69,     /* MySQL or Kafka, for start_timeout */
    EXIT_INTERNAL = 70,        /* an internal check failed */
    EXIT_LOST = 75,            /* lost for good, restart me */
    EXIT_CONFIG = 78           /* configuration, schema or credentials at start */
};

#endif
