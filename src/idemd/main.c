/* SPDX-License-Identifier: MIT */
/* main: the life of the process: configuration, databases, Kafka, ready, rounds until asked to stop, drain, end. */
#include "args.h"
#include "env.h"
#include "exit.h"
#include "lifecycle.h"
#include "signals.h"

#include "idem/adapter/config_load.h"

#include <stdio.h>
#include <stdlib.h>

static void print_mistakes(const char *path, const struct diagnostics *mistakes)
{
    uint32_t kept = mistakes->count < mistakes->size ? mistakes->count : mistakes->size;
    for (uint32_t i = 0; i < kept; i++) {
        const struct diagnostic *mistake = &mistakes->list[i];
        fprintf(stderr, "%s:%u:%u: %s%s%s\n", path, mistake->line, mistake->column, mistake->path,
                mistake->path[0] ? ": " : "", mistake->message);
    }
    if (mistakes->count > kept)
        fprintf(stderr, "%s: and %u more\n", path, mistakes->count - kept);
}

int main(int argc, char **argv)
{
    enum { MISTAKES_MAX = 200 };
    static struct diagnostic list[MISTAKES_MAX];
    struct diagnostics mistakes = {.list = list, .size = MISTAKES_MAX};
    struct config *config = NULL;
    struct env_port env;
    struct args args = args_parse(argc, argv);
    if (args.action == ARGS_EXIT)
        return args.exit_code;
    signals_block();
    if (!config_file_load(args.config_path, &config, &mistakes)) {
        print_mistakes(args.config_path, &mistakes);
        return EXIT_CONFIG;
    }
    if (args.action == ARGS_CHECK) {
        printf("%s: good\n", args.config_path);
        config_free(config);
        return EXIT_DRAINED;
    }
    if (!env_init(&env)) {
        fputs("IDEMD_CRASH: no such crash point in this build\n", stderr);
        config_free(config);
        return EXIT_USAGE;
    }
    int code = lifecycle_run(config, &env);
    config_free(config);
    return code;
}
