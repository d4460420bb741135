/* SPDX-License-Identifier: MIT */
/* main: the table of subcommands, the options that all share, and the way to one of them. */
#include "command.h"

#include "idem/adapter/config_load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct command {
    const char *name;
    command_run *run;            /* NULL: of the manual, but not built yet */
    const char *arguments, *help;
};

static const struct command commands[] = {
    {"check", command_check, "[--offline]",
     "rules against the live schema: types, indexes, plans, grants, states, settings, retention"},
    {"migrate", command_migrate, "[--dry-run] [--to N]", "makes or updates idemd's own tables"},
    {"explain", command_explain, "--topic T (--file F | --partition P --offset O) [--key K] [--header K=V]...",
     "what would happen to this record now; changes nothing"},
    {"key", command_key, "(BIZ_TYPE KEY | --biz-no BIZ_TYPE NO) [--payload]", "what is known of a key or of one order"},
    {"dead-letter", command_dead_letter,
     "list [--outcome O] [--cause C] [--rule R] [--biz-type B] [--biz-no N] [--topic T] [--state S] [--since TS] "
     "[--until TS] [--limit N] | show ID [--payload] | redrive (ID... | FILTERS as in list) [--rate R] [--dry-run] "
     "[--force] | discard ID... --note TEXT --yes [--force]", "records that could not be applied"},
    {"lag", NULL, "[--watch S]", "how far behind each partition is"},
    {"replay", NULL, "--topic T ...", "reads a part of a topic again"},
    {"offsets", NULL, "show|set --topic T ...", "where the group stands"},
    {"parked", command_parked,
     "list [--topic T] [--rule R] [--biz-type B] [--biz-no N] [--reason R] [--since TS] [--until TS] [--limit N] | "
     "retry BIZ_TYPE BIZ_NO | give-up BIZ_TYPE BIZ_NO --yes", "records that wait to be applied"},
    {"outbox", command_outbox,
     "list [--topic T] [--aggregate-id ID] [--since TS] [--until TS] [--limit N] | discard ID --note TEXT --yes",
     "events that wait to be published"},
    {"reconcile", NULL, "--rule R --since TS", "business rows against records and events"},
    {"purge", NULL, "[--dry-run]", "expired keys"},
    {"pause", NULL, "[--topic T] [--partition N]", "stops taking records"},
    {"resume", NULL, "[--topic T] [--partition N]", "takes records again"},
    {"rate", NULL, "N", "records a second"},
    {"status", NULL, "", "what the daemon is doing"},
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static void print_help(FILE *to)
{
    fputs("usage: idemctl -c FILE [--json] [--database NAME] COMMAND ...\n"
          "       idemctl --help | --version\n\n", to);
    for (int i = 0; i < COMMAND_COUNT; i++)
        fprintf(to, "  %-12s %s%s\n", commands[i].name, commands[i].help,
                commands[i].run ? "" : " (not supported yet)");
    fputs("\nidemctl COMMAND --help prints its arguments. Exit codes: 0 nothing to report, 1 done with findings,\n"
          "64 usage, 66 no such key or id, 69 unreachable, 70 internal, 75 busy, 77 refused, 78 configuration.\n", to);
}

int ctl_fail(int code, const char *format, ...)
{
    va_list arguments;
    fputs("idemctl: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return code;
}

static int code_of(const struct err *err)
{
    int code = CTL_INTERNAL;
    if (err->class == ERR_CONFIG || err->class == ERR_SCHEMA)
        code = CTL_CONFIG;
    else if (err->class == ERR_RECONNECT || err->class == ERR_EXHAUSTED || err->class == ERR_WRONG_SERVER)
        code = CTL_UNREACHABLE;
    else if (err->class == ERR_LOCKED || err->class == ERR_RETRY)
        code = CTL_BUSY;
    return code;
}

static int tell_err(struct bytes database, const struct err *err)
{
    char number[16] = "";
    if (err->number)
        snprintf(number, sizeof number, " (%d)", err->number);
    return ctl_fail(code_of(err), "%.*s%s%s: %s%s", (int)database.len, (const char *)database.at,
                    database.len ? ": " : "", err->where ? err->where : "database", err->text, number);
}

int ctl_fail_err(const struct err *err)
{
    return tell_err(BYTES_LIT(""), err);
}

int ctl_fail_database(const struct ctl *ctl, uint32_t database, const struct err *err)
{
    bool several = ctl->config->database_count > 1;
    return tell_err(several ? ctl->config->databases[database].name : BYTES_LIT(""), err);
}

struct conn *ctl_connect(const struct ctl *ctl, uint32_t database, bool read_only, int *ret_code)
{
    struct err err = {0};
    struct conn_options options = {.read_only_allowed = read_only};
    struct conn *conn = conn_create(&ctl->config->databases[database]);
    if (!conn) {
        *ret_code = ctl_fail(CTL_INTERNAL, "out of memory");
        return NULL;
    }
    conn_options_set(conn, &options);
    if (conn_open(conn, &err) == ERR_NONE)
        return conn;
    *ret_code = ctl_fail_database(ctl, database, &err);
    conn_destroy(conn);
    return NULL;
}

static void remove_arguments(struct ctl *ctl, int at, int count)
{
    for (int i = at; i + count < ctl->argc; i++)
        ctl->argv[i] = ctl->argv[i + count];
    ctl->argc -= count;
}

const char *ctl_option(struct ctl *ctl, const char *name)
{
    for (int i = 0; i + 1 < ctl->argc; i++)
        if (strcmp(ctl->argv[i], name) == 0) {
            const char *value = ctl->argv[i + 1];
            remove_arguments(ctl, i, 2);
            return value;
        }
    return NULL;
}

bool ctl_flag(struct ctl *ctl, const char *name)
{
    for (int i = 0; i < ctl->argc; i++)
        if (strcmp(ctl->argv[i], name) == 0) {
            remove_arguments(ctl, i, 1);
            return true;
        }
    return false;
}

const char *ctl_word(struct ctl *ctl)
{
    if (ctl->argc < 1)
        return "";
    ctl->argc--;
    return *ctl->argv++;
}

bool ctl_arguments(const struct ctl *ctl, int count)
{
    for (int i = 0; i < ctl->argc; i++)
        if (strncmp(ctl->argv[i], "--", 2) == 0)
            return false;
    return ctl->argc == count;
}

bool ctl_number(const char *text, uint64_t max, uint64_t *ret)
{
    uint64_t number = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (*text < '0' || *text > '9' || digit > max || number > (max - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret = number;
    return true;
}

static int load(struct ctl *ctl, const char *path, const char *database)
{
    enum { MISTAKES_MAX = 200 };
    static struct diagnostic list[MISTAKES_MAX];
    struct diagnostics mistakes = {.list = list, .size = MISTAKES_MAX};
    if (!path)
        return ctl_fail(CTL_USAGE, "-c FILE is needed");
    if (!config_file_load(path, &ctl->config, &mistakes)) {
        for (uint32_t i = 0; i < mistakes.count && i < mistakes.size; i++) {
            char block[1024];
            struct buf line;
            buf_init(&line, block, sizeof block);
            diagnostic_write(&list[i], bytes_text(path), &line);
            fprintf(stderr, "%.*s\n", (int)line.len, line.at);
        }
        return CTL_CONFIG;
    }
    ctl->count = ctl->config->database_count;
    for (uint32_t i = 0; database && i < ctl->config->database_count; i++)
        if (bytes_equal(ctl->config->databases[i].name, bytes_text(database))) {
            ctl->first = i;
            ctl->count = 1;
            return CTL_GOOD;
        }
    return database ? ctl_fail(CTL_USAGE, "there is no database \"%s\" in %s", database, path) : CTL_GOOD;
}

/* A document comes out whole or not at all; text comes out as far as it got. */
static int print_out(const struct ctl *ctl, int code, const char *text, size_t len)
{
    bool whole = code == CTL_GOOD || code == CTL_FINDINGS || code == CTL_NOT_FOUND ||
                 code == CTL_REFUSED;
    if (ctl->json && !whole)
        return code;
    if (fwrite(text, 1, len, stdout) == len && fflush(stdout) == 0)
        return code;
    return ctl_fail(CTL_INTERNAL, "cannot write: %m");
}

static int run_printing(const struct command *command, struct ctl *ctl)
{
    char *text = NULL;
    size_t len = 0;
    ctl->out = open_memstream(&text, &len);
    if (!ctl->out)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    int code = command->run(ctl);
    bool good = !ferror(ctl->out);
    good = fclose(ctl->out) == 0 && good;
    code = good ? print_out(ctl, code, text, len) : ctl_fail(CTL_INTERNAL, "out of memory");
    free(text);
    return code;
}

static int run_command(struct ctl *ctl, const char *path, const char *database)
{
    const char *name = ctl_word(ctl);
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        if (ctl_flag(ctl, "--help")) {
            printf("usage: idemctl -c FILE %s %s\n%s\n", commands[i].name, commands[i].arguments, commands[i].help);
            return CTL_GOOD;
        }
        if (!commands[i].run)
            return ctl_fail(CTL_USAGE, "%s: not supported yet", name);
        int code = load(ctl, path, database);
        if (code == CTL_GOOD)
            code = run_printing(&commands[i], ctl);
        if (code == CTL_USAGE)
            fprintf(stderr, "usage: idemctl -c FILE %s %s\n", commands[i].name, commands[i].arguments);
        config_free(ctl->config);
        return code;
    }
    print_help(stderr);
    return ctl_fail(CTL_USAGE, "there is no command \"%s\"", name);
}

int main(int argc, char **argv)
{
    struct ctl ctl = {.argc = argc - 1, .argv = argv + 1};
    const char *path = NULL, *database = NULL;
    while (ctl.argc > 0 && ctl.argv[0][0] == '-') {
        const char *option = ctl.argv[0];
        bool has_value = strcmp(option, "-c") == 0 || strcmp(option, "--config") == 0 ||
                         strcmp(option, "--database") == 0;
        if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) {
            print_help(stdout);
            return CTL_GOOD;
        }
        if (strcmp(option, "--version") == 0) {
            puts("idemctl " IDEM_VERSION);
            return CTL_GOOD;
        }
        if (strcmp(option, "--json") == 0)
            ctl.json = true;
        else if (!has_value || ctl.argc < 2)
            return ctl_fail(CTL_USAGE, "%s: unknown option, or without its value (--help)", option);
        else if (strcmp(option, "--database") == 0)
            database = ctl.argv[1];
        else
            path = ctl.argv[1];
        ctl.argv += has_value ? 2 : 1;
        ctl.argc -= has_value ? 2 : 1;
    }
    if (ctl.argc == 0) {
        print_help(stderr);
        return CTL_USAGE;
    }
    return run_command(&ctl, path, database);
}
