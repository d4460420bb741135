/* SPDX-License-Identifier: MIT */
/* migrate: idemctl migrate. Runs as the configured user, or as $IDEMCTL_USER with the password in
 * $IDEMCTL_PASSWORD_FILE, since the daemon's user needs no CREATE. All databases of the file, or that of --database. */
#include "print.h"

#include "idem/adapter/mysql_migrate.h"

#include <stdlib.h>

struct telling {
    const struct ctl *ctl;
    uint32_t database;
    uint32_t count;              /* lines told */
};

static const char *const words[] = {
    [MIGRATE_DONE] = "done before", [MIGRATE_PENDING] = "would be applied", [MIGRATE_APPLIED] = "applied",
    [MIGRATE_RESUMED] = "finished (a former run was cut off)"};
static const char *const json_words[] = {
    [MIGRATE_DONE] = "done", [MIGRATE_PENDING] = "pending", [MIGRATE_APPLIED] = "applied",
    [MIGRATE_RESUMED] = "resumed"};

static void tell(void *context, uint32_t version, const char *name, enum migrate_state state)
{
    struct telling *telling = context;
    const struct ctl *ctl = telling->ctl;
    struct bytes database = ctl->config->databases[telling->database].name;
    if (ctl->json) {
        fprintf(ctl->out, "%s{\"database\":", telling->count ? "," : "");
        print_string(database, ctl->out);
        fprintf(ctl->out, ",\"version\":%u,\"name\":\"%s\",\"state\":\"%s\"}", version, name, json_words[state]);
    } else {
        if (ctl->count > 1)
            fprintf(ctl->out, "%-12.*s ", (int)database.len, (const char *)database.at);
        fprintf(ctl->out, "%04u %-20s %s\n", version, name, words[state]);
    }
    telling->count++;
}

/* One line of the file; returned to caller, free(). NULL if it cannot be read. */
static char *read_password(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (!file)
        return NULL;
    ssize_t len = getline(&text, &size, file);
    fclose(file);
    if (len > 0 && text[len - 1] == '\n')
        text[len - 1] = '\0';
    return text;
}

/* As the migrate user: one after the other, and none after the first that fails. */
static int migrate_all(struct ctl *ctl, const struct conn_options *options, bool dry_run, uint32_t to)
{
    struct telling telling = {.ctl = ctl};
    int code = CTL_GOOD;
    for (uint32_t i = 0; i < ctl->count && code == CTL_GOOD; i++) {
        struct err err = {0};
        struct conn *conn = conn_create(&ctl->config->databases[ctl->first + i]);
        if (!conn)
            return ctl_fail(CTL_INTERNAL, "out of memory");
        telling.database = ctl->first + i;
        conn_options_set(conn, options);
        if (conn_open(conn, &err) || migrate_run(conn, dry_run, to, tell, &telling, &err))
            code = ctl_fail_database(ctl, ctl->first + i, &err);
        conn_destroy(conn);
    }
    return code;
}

int command_migrate(struct ctl *ctl)
{
    uint64_t to = 0;
    bool dry_run = ctl_flag(ctl, "--dry-run");
    const char *to_text = ctl_option(ctl, "--to");
    if (to_text && (!ctl_number(to_text, migrate_latest(), &to) || to == 0))
        return ctl_fail(CTL_USAGE, "--to %s: it is a version from 1 to %u", to_text, migrate_latest());
    if (!ctl_arguments(ctl, 0))
        return CTL_USAGE;
    const char *user = getenv("IDEMCTL_USER"), *file = getenv("IDEMCTL_PASSWORD_FILE");
    char *password = file ? read_password(file) : NULL;
    if (file && !password)
        return ctl_fail(CTL_CONFIG, "cannot read %s", file);
    struct conn_options options = {.user = user, .password = password};
    if (ctl->json)
        fputs("{\"migrations\":[", ctl->out);
    int code = migrate_all(ctl, &options, dry_run, (uint32_t)to);
    if (ctl->json)
        fputs("]}\n", ctl->out);
    free(password);
    return code;
}
