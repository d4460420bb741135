/* SPDX-License-Identifier: MIT */
/* check: idemctl check. The file was read before; --offline stops there. */
#include "print.h"

#include "idem/adapter/mysql_check.h"
#include "idem/adapter/mysql_migrate.h"

struct findings {
    bool json;
    uint32_t count, serious;     /* serious: errors and warnings */
};

static void finding(void *context, enum severity severity, const char *code, const char *path, const char *message)
{
    struct findings *findings = context;
    findings->serious += severity != SEVERITY_INFO;
    if (!findings->json) {
        printf("%-8s %-16s %s: %s\n", severity_name(severity), code, path, message);
    } else {
        printf("%s{\"severity\":\"%s\",\"code\":\"%s\",\"path\":", findings->count ? "," : "", severity_name(severity),
               code);
        print_string(bytes_text(path), stdout);
        fputs(",\"message\":", stdout);
        print_string(bytes_text(message), stdout);
        putchar('}');
    }
    findings->count++;
}

static enum err_class look(struct ctl *ctl, struct conn *conn, struct findings *findings, struct err *err)
{
    bool newer;
    enum err_class class = migrate_verify(conn, &newer, err);
    if (class == ERR_NONE)
        class = schema_read(conn, ctl->config, ctl->database, false, finding, findings, err);
    if (class == ERR_NONE)
        class = check_plans(conn, ctl->config, ctl->database, finding, findings, err);
    return class ? class : check_all(conn, ctl->config, ctl->database, finding, findings, err);
}

int command_check(struct ctl *ctl)
{
    struct findings findings = {.json = ctl->json};
    struct err err = {0};
    int code = CTL_GOOD;
    bool offline = ctl_flag(ctl, "--offline");
    if (!ctl_arguments(ctl, 0))
        return CTL_USAGE;
    struct conn *conn = offline ? NULL : ctl_connect(ctl, true, &code);
    if (!conn && !offline)
        return code;
    if (ctl->json)
        fputs("{\"findings\":[", stdout);
    enum err_class class = conn ? look(ctl, conn, &findings, &err) : ERR_NONE;
    if (ctl->json)
        puts("]}");
    conn_destroy(conn);
    if (class != ERR_NONE)
        return ctl_fail_err(&err);
    if (!ctl->json && findings.count == 0)
        puts(offline ? "the file is good" : "nothing to report");
    return findings.serious ? CTL_FINDINGS : CTL_GOOD;
}
