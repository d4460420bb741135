/* SPDX-License-Identifier: MIT */
/* check: idemctl check. The file was read before; --offline stops there. */
#include "print.h"

#include "idem/adapter/mysql_check.h"
#include "idem/adapter/mysql_migrate.h"

struct findings {
    const struct ctl *ctl;
    uint32_t count, serious;     /* serious: errors and warnings */
};

static void finding(void *context, enum severity severity, const char *code, const char *path, const char *message)
{
    struct findings *findings = context;
    FILE *to = findings->ctl->out;
    findings->serious += severity != SEVERITY_INFO;
    if (!findings->ctl->json) {
        fprintf(to, "%-8s %-16s %s: %s\n", severity_name(severity), code, path, message);
    } else {
        fprintf(to, "%s{\"severity\":\"%s\",\"code\":\"%s\",\"path\":", findings->count ? "," : "",
                severity_name(severity), code);
        print_string(bytes_text(path), to);
        fputs(",\"message\":", to);
        print_string(bytes_text(message), to);
        fputc('}', to);
    }
    findings->count++;
}

static enum err_class look(struct ctl *ctl, uint32_t database, struct conn *conn, struct findings *findings,
                           struct err *err)
{
    bool newer;
    enum err_class class = migrate_verify(conn, &newer, err);
    if (class == ERR_NONE)
        class = schema_read(conn, ctl->config, database, false, finding, findings, err);
    if (class == ERR_NONE)
        class = check_plans(conn, ctl->config, database, finding, findings, err);
    return class ? class : check_all(conn, ctl->config, database, finding, findings, err);
}

static int check_database(struct ctl *ctl, uint32_t database, struct findings *findings)
{
    struct err err = {0};
    int code = CTL_GOOD;
    struct conn *conn = ctl_connect(ctl, database, true, &code);
    if (!conn)
        return code;
    if (look(ctl, database, conn, findings, &err))
        code = ctl_fail_database(ctl, database, &err);
    conn_destroy(conn);
    return code;
}

int command_check(struct ctl *ctl)
{
    struct findings findings = {.ctl = ctl};
    int code = CTL_GOOD;
    bool offline = ctl_flag(ctl, "--offline");
    if (!ctl_arguments(ctl, 0))
        return CTL_USAGE;
    if (ctl->json)
        fputs("{\"findings\":[", ctl->out);
    for (uint32_t i = 0; !offline && i < ctl->count && code == CTL_GOOD; i++)
        code = check_database(ctl, ctl->first + i, &findings);
    if (ctl->json)
        fputs("]}\n", ctl->out);
    else if (code == CTL_GOOD && findings.count == 0)
        fputs(offline ? "the file is good\n" : "nothing to report\n", ctl->out);
    if (code == CTL_GOOD && findings.serious)
        code = CTL_FINDINGS;
    return code;
}
