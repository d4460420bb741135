/* SPDX-License-Identifier: MIT */
/* check: idemctl check. The file was read before; --offline stops there. Each database, then what Kafka keeps. A fault
 * that only stops a part of the looks is a finding, and the other parts are looked at all the same. */
#include "check.h"

#include "idem/adapter/mysql_migrate.h"

/* Rights first: without them the rest would be told as missing tables and columns. */
static enum err_class look(struct ctl *ctl, uint32_t database, struct conn *conn, struct findings *findings,
                           struct err *err)
{
    bool newer;
    uint32_t before = findings->serious;
    enum err_class class = check_own_grants(conn, ctl->config, database, check_finding, findings, err);
    if (class == ERR_NONE)
        class = migrate_verify(conn, &newer, err);
    if (class == ERR_NONE)
        class = schema_read(conn, ctl->config, database, false, check_finding, findings, err);
    if (class == ERR_SCHEMA && (err->number == 1142 || err->number == 1143) && findings->serious > before)
        return ERR_NONE;                 /* told, and nothing more can be read */
    if (class == ERR_NONE)
        class = check_plans(conn, ctl->config, database, check_finding, findings, err);
    return class ? class : check_all(conn, ctl->config, database, check_finding, findings, err);
}

/* 1298: the server knows no such zone, so no session of the daemon would come to be. Looked at without it. */
static enum err_class open_without_zone(struct ctl *ctl, uint32_t database, struct conn *conn,
                                        struct findings *findings, struct err *err)
{
    char path[160], message[300];
    struct database_config *config = &ctl->config->databases[database];
    snprintf(path, sizeof path, "databases.%.*s.time_zone", (int)config->name.len, (const char *)config->name.at);
    snprintf(message, sizeof message, "the server does not know time zone %.*s: an offset (+08:00) always works, a "
             "name needs the server's time zone tables (mysql_tzinfo_to_sql)", (int)config->time_zone.len,
             (const char *)config->time_zone.at);
    check_finding(findings, SEVERITY_ERROR, "time_zone", path, message);
    config->time_zone = BYTES_LIT("+00:00");
    return conn_open(conn, err);
}

static int check_database(struct ctl *ctl, uint32_t database, struct findings *findings)
{
    struct err err = {0};
    struct conn_options options = {.read_only_allowed = true};
    int code = CTL_GOOD;
    struct conn *conn = conn_create(&ctl->config->databases[database]);
    if (!conn)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    conn_options_set(conn, &options);
    enum err_class class = conn_open(conn, &err);
    if (class == ERR_CONFIG && err.number == 1298)
        class = open_without_zone(ctl, database, conn, findings, &err);
    if (class == ERR_NONE)
        class = look(ctl, database, conn, findings, &err);
    if (class != ERR_NONE)
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
    if (!offline && code == CTL_GOOD)
        code = check_retention(ctl, &findings);
    if (ctl->json)
        fputs("]}\n", ctl->out);
    else if (code == CTL_GOOD && findings.count == 0)
        fputs(offline ? "the file is good\n" : "nothing to report\n", ctl->out);
    if (code == CTL_GOOD && findings.serious)
        code = CTL_FINDINGS;
    return code;
}
