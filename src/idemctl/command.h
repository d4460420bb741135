/* SPDX-License-Identifier: MIT */
/* command: what every subcommand gets and owes. One file a subcommand; main.c has the table. */
#ifndef IDEMCTL_COMMAND_H
#define IDEMCTL_COMMAND_H

#include "idem/core/config.h"

#include "idem/adapter/mysql_conn.h"

#include <stdio.h>

/* Exit codes, design section 7. */
enum ctl_exit {
    CTL_GOOD = 0, CTL_FINDINGS = 1, CTL_USAGE = 64, CTL_NOT_FOUND = 66, CTL_UNREACHABLE = 69, CTL_INTERNAL = 70,
    CTL_BUSY = 75, CTL_REFUSED = 77, CTL_CONFIG = 78
};

struct ctl {
    struct config *config;       /* NULL for commands that need none */
    uint32_t first, count;       /* config->databases to work on: that of --database, or all */
    bool json;
    FILE *out;                   /* what is printed; with --json it comes out whole or not at all (main.c) */
    int argc;                    /* of the command: argv[0] is its first argument */
    char **argv;
};

typedef int command_run(struct ctl *ctl);

command_run command_check, command_migrate, command_explain, command_key, command_dead_letter,
    command_parked, command_outbox;

/* Prints `idemctl: text` to standard error; returns code. */
int ctl_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for an error of a server: the code says which kind it was. */
int ctl_fail_err(const struct err *err);

/* The same, naming config->databases[database] where the file has several. */
int ctl_fail_database(const struct ctl *ctl, uint32_t database, const struct err *err);

/* An open session with config->databases[database]; NULL: *ret_code says why (told). read_only: a replica will do.
 * Destroy with conn_destroy. */
struct conn *ctl_connect(const struct ctl *ctl, uint32_t database, bool read_only, int *ret_code);

/* Takes `--name VALUE` or `--name` out of the arguments. */
const char *ctl_option(struct ctl *ctl, const char *name);
bool ctl_flag(struct ctl *ctl, const char *name);
/* Takes the first argument; "" if there is none. */
const char *ctl_word(struct ctl *ctl);
/* true if nothing that starts with - is left and exactly count arguments are. */
bool ctl_arguments(const struct ctl *ctl, int count);

bool ctl_number(const char *text, uint64_t max, uint64_t *ret);

#endif
