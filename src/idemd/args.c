/* SPDX-License-Identifier: MIT */
/* args: see args.h. Help and mistakes are printed here; nothing else is done. */
#include "args.h"

#include "exit.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] =
    "usage: idemd -c FILE [--check]\n"
    "Consumes business callbacks from Kafka and applies each exactly once in MySQL.\n"
    "\n"
    "  -c, --config FILE  configuration (YAML)\n"
    "      --check        read and check the file, then exit: 0 good, 78 not\n"
    "      --version      print the version\n"
    "  -h, --help         print this\n"
    "\n"
    "SIGTERM drains, commits and exits 0. Exit codes: 0 drained, 64 usage, 69 MySQL or Kafka\n"
    "unreachable for start_timeout, 70 internal check failed, 75 lost for good (restart),\n"
    "78 configuration, schema or credentials. `idemctl check` looks at the live schema too.\n";

static struct args mistake(void)
{
    fputs(usage, stderr);
    return (struct args){.action = ARGS_EXIT, .exit_code = EXIT_USAGE};
}

struct args args_parse(int argc, char **argv)
{
    enum { OPTION_CHECK = 256, OPTION_VERSION };
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'}, {"check", no_argument, NULL, OPTION_CHECK},
        {"version", no_argument, NULL, OPTION_VERSION}, {"help", no_argument, NULL, 'h'}, {0}};
    struct args args = {.action = ARGS_RUN};
    for (int option; (option = getopt_long(argc, argv, "c:h", options, NULL)) != -1;) {
        switch (option) {
        case 'c':
            args.config_path = optarg;
            break;
        case OPTION_CHECK:
            args.action = ARGS_CHECK;
            break;
        case OPTION_VERSION:
            puts("idemd " IDEM_VERSION);
            return (struct args){.action = ARGS_EXIT};
        case 'h':
            fputs(usage, stdout);
            return (struct args){.action = ARGS_EXIT};
        default:
            return mistake();
        }
    }
    if (!args.config_path || optind != argc)
        return mistake();
    return args;
}
