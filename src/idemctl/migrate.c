/* SPDX-License-Identifier: MIT */
/* migrate: idemctl migrate. Runs as the configured user, or as $IDEMCTL_USER with the password in
 * $IDEMCTL_PASSWORD_FILE, since the daemon's user needs no CREATE. --database names one of several databases. */
#include "command.h"

#include "idem/adapter/mysql_migrate.h"

#include <stdio.h>
#include <stdlib.h>


static void tell(void *context, uint32_t version, const char *name, enum migrate_state state)
{
    static const char *const words[] = {
        [MIGRATE_DONE] = "done before", [MIGRATE_PENDING] = "would be applied", [MIGRATE_APPLIED] = "applied",
        [MIGRATE_RESUMED] = "finished (a former run was cut off)"};
    (void)context;
    printf("%04u %-20s %s\n", version, name, words[state]);
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

int command_migrate(struct ctl *ctl)
{
    struct err err = {0};
    uint64_t to = 0;
    bool dry_run = ctl_flag(ctl, "--dry-run");
    const char *to_text = ctl_option(ctl, "--to");
    if ((to_text && !ctl_number(to_text, 9999, &to)) || !ctl_arguments(ctl, 0))
        return CTL_USAGE;
    const char *user = getenv("IDEMCTL_USER"), *file = getenv("IDEMCTL_PASSWORD_FILE");
    char *password = file ? read_password(file) : NULL;
    if (file && !password)
        return ctl_fail(CTL_CONFIG, "cannot read %s", file);
    struct conn_options options = {.user = user, .password = password};
    struct conn *conn = conn_create(&ctl->config->databases[ctl->database]);
    int code = CTL_GOOD;
    if (!conn)
        code = ctl_fail(CTL_INTERNAL, "out of memory");
    if (conn)
        conn_options_set(conn, &options);
    if (conn && (conn_open(conn, &err) ||
                 migrate_run(conn, dry_run, (uint32_t)to, tell, NULL, &err)))
        code = ctl_fail_err(&err);
    conn_destroy(conn);
    free(password);
    return code;
}
