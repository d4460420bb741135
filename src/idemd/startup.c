/* SPDX-License-Identifier: MIT */
/* startup: databases and topics are looked at before a record is read. Writes rule numbers only. */
#include "startup.h"

#include "exit.h"

#include "idem/adapter/mysql_check.h"
#include "idem/adapter/mysql_migrate.h"
#include "idem/adapter/mysql_schema.h"

#include <time.h>

enum { RETRY_MS = 500 };

struct start {
    struct config *config;
    const struct env_port *env;
    struct report *report;
    int64_t deadline_us;
    bool (*stop)(void);
    uint32_t errors;             /* findings that keep the daemon from running */
    bool told;                   /* an outage is told once, not twice a second */
};

static void say(struct report *report, const char *why, const struct err *err)
{
    struct log_batch *log = report_line(report, LOG_PRIORITY_ERR, "paused");
    log_text(log, "why", why);
    log_text(log, "class", err_class_name(err->class));
    if (err->number)
        log_int(log, "errno", err->number);
    log_text(log, "step", err->where);
    log_text(log, "error", err->text);
    report_line_end(report);
}

/* true: time is over, or somebody wants us to stop. */
static bool wait_or_give_up(struct start *start)
{
    struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
    if (start->stop() || start->env->mono_us(start->env->self) >= start->deadline_us)
        return true;
    nanosleep(&pause, NULL);
    return start->stop();
}

static void finding(void *context, enum severity severity, const char *code, const char *path, const char *message)
{
    struct start *start = context;
    if (severity == SEVERITY_INFO)
        return;
    struct log_batch *log = report_line(start->report, severity == SEVERITY_ERROR ? LOG_PRIORITY_ERR
                                                                                  : LOG_PRIORITY_WARNING, "check");
    log_text(log, "code", code);
    log_text(log, "path", path);
    log_text(log, "message", message);
    report_line_end(start->report);
    start->errors += severity == SEVERITY_ERROR;
}

static enum err_class look(struct start *start, struct conn *conn, uint32_t database, struct err *err)
{
    bool newer = false;
    enum err_class class = conn_open(conn, err);
    if (class == ERR_NONE)
        class = migrate_verify(conn, &newer, err);
    if (class == ERR_NONE && newer) {
        struct log_batch *log = report_line(start->report, LOG_PRIORITY_WARNING, "schema_newer");
        log_field(log, "database", start->config->databases[database].name);
        report_line_end(start->report);
    }
    start->errors = 0;
    if (class == ERR_NONE)
        class = schema_read(conn, start->config, database, true, finding, start, err);
    return class ? class : check_plans(conn, start->config, database, finding, start, err);
}

/* A missing database (1049) may still be made; everything else of ERR_CONFIG and ERR_SCHEMA needs a person. */
static int start_database(struct start *start, uint32_t database)
{
    struct conn *conn = conn_create(&start->config->databases[database]);
    if (!conn)
        return EXIT_INTERNAL;
    int code = EXIT_DRAINED;
    for (;;) {
        struct err err = {0};
        enum err_class class = look(start, conn, database, &err);
        if (class == ERR_NONE) {
            code = start->errors ? EXIT_CONFIG : EXIT_DRAINED;
            break;
        }
        bool passes = (class != ERR_CONFIG && class != ERR_SCHEMA) || err.number == 1049;
        if (!passes || !start->told)
            say(start->report, passes ? "unreachable" : "config", &err);
        start->told = true;
        conn_close(conn);
        code = passes ? EXIT_UNREACHABLE : EXIT_CONFIG;
        if (!passes || wait_or_give_up(start))
            break;
    }
    conn_destroy(conn);
    return code;
}

int startup_databases(struct config *config, const struct env_port *env, struct report *report, int64_t deadline_us,
                      bool (*stop)(void), bool *ret_stopped)
{
    struct start start = {.config = config, .env = env, .report = report, .deadline_us = deadline_us, .stop = stop};
    int code = EXIT_DRAINED;
    for (uint32_t i = 0; i < config->database_count && code == EXIT_DRAINED; i++)
        code = start_database(&start, i);
    *ret_stopped = stop();
    return *ret_stopped ? EXIT_DRAINED : code;
}

int startup_topics(const struct config *config, const struct source_port *source, const struct env_port *env,
                   struct report *report, int64_t deadline_us, bool (*stop)(void), bool *ret_stopped)
{
    struct start start = {.env = env, .report = report, .deadline_us = deadline_us, .stop = stop};
    int code = EXIT_DRAINED;
    for (uint32_t i = 0; i < config->topic_count && code == EXIT_DRAINED; i++) {
        struct source_partition first = {.topic = config->topics[i].name};
        struct err err = {0};
        int64_t low, high;
        while (source->ops->range(source->self, &first, &low, &high, &err) != ERR_NONE) {
            if (!start.told)
                say(report, "unreachable", &err);
            start.told = true;
            if (wait_or_give_up(&start)) {
                code = EXIT_UNREACHABLE;
                break;
            }
        }
    }
    *ret_stopped = stop();
    return *ret_stopped ? EXIT_DRAINED : code;
}
