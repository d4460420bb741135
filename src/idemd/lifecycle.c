/* SPDX-License-Identifier: MIT */
/* lifecycle: see lifecycle.h. Start order: databases, then the consumer, then threads; READY once the group is
 * joined. Stop order: intake drains and leaves the group, threads end. A reaper ends the process after stop_timeout
 * whatever a library does (details 1, Stopping). */
#include "lifecycle.h"

#include "exit.h"
#include "reaper.h"
#include "signals.h"
#include "startup.h"
#include "wire.h"

#include "idem/adapter/journal.h"
#include "idem/adapter/notify.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    ROUND_MS = 100,
    THREAD_STALL_US = 120000000      /* a step that long is stuck: lock wait and read timeouts are far below */
};

struct life {
    struct config *config;
    const struct env_port *env;
    struct report report;
    struct wire wire;
    int64_t deadline_us;             /* of the start */
    bool ready;
    log_sink *sink;              /* NULL: standard error */
};

static int64_t now_us(const struct life *life)
{
    return life->env->mono_us(life->env->self);
}

static void say_start(struct life *life)
{
    struct log_batch *log = report_line(&life->report, LOG_PRIORITY_INFO, "start");
    log_text(log, "version", IDEM_VERSION);
    log_int(log, "pid", getpid());
    log_field(log, "group", life->config->kafka.group);
    log_field(log, "config", life->config->path);
    report_line_end(&life->report);
}

static void say_stop(struct life *life, int code)
{
    struct log_batch *log = report_line(&life->report, code ? LOG_PRIORITY_ERR : LOG_PRIORITY_INFO, "stop");
    log_int(log, "code", code);
    if (life->wire.intake_made)
        log_int(log, "records", (int64_t)life->wire.intake.finished);
    report_line_end(&life->report);
}

static void say_lost(struct life *life, const struct err *err)
{
    struct log_batch *log = report_line(&life->report, LOG_PRIORITY_ERR, "paused");
    log_text(log, "why", "unreachable");
    log_text(log, "class", err_class_name(err->class));
    log_int(log, "errno", err->number);
    log_text(log, "error", err->text);
    report_line_end(&life->report);
}

static void become_ready(struct life *life)
{
    life->ready = true;
    report_line(&life->report, LOG_PRIORITY_INFO, "ready");
    report_line_end(&life->report);
    notify_ready();
    notify_status("consuming");
}

/* SIGHUP would reload rules: said plainly that it does not yet, rather than dying of it. */
static void refuse_reload(struct life *life)
{
    struct log_batch *log = report_line(&life->report, LOG_PRIORITY_WARNING, "reload_refused");
    log_text(log, "why", "not supported yet: restart to load the file again");
    report_line_end(&life->report);
}

/* Rounds until somebody says stop. Returns the exit code. */
static int rounds(struct life *life)
{
    struct err err = {0};
    while (!signals_stop_wanted()) {
        if (atomic_load(&life->wire.shared.fatal))
            return EXIT_INTERNAL;
        if (!intake_step(&life->wire.intake, ROUND_MS, &err)) {
            say_lost(life, &err);
            return err.class == ERR_FATAL ? EXIT_INTERNAL : EXIT_LOST;
        }
        if (!life->ready && life->wire.intake.joined)
            become_ready(life);
        if (!life->ready && now_us(life) > life->deadline_us) {
            err_set(&err, ERR_RECONNECT, 0, "start", "the group was not joined within start_timeout");
            say_lost(life, &err);
            return EXIT_UNREACHABLE;
        }
        if (signals_take_hangup())
            refuse_reload(life);
        if (threads_alive(&life->wire.threads, THREAD_STALL_US))
            notify_watchdog();
    }
    return EXIT_DRAINED;
}

static int run_threads(struct life *life)
{
    if (!threads_start(&life->wire.threads))
        return EXIT_INTERNAL;
    int code = rounds(life);
    notify_stopping();
    reaper_start(life->config->stop_timeout_ms, &life->wire.threads, code);
    if (code != EXIT_INTERNAL)
        intake_stop(&life->wire.intake, life->config->stop_timeout_ms * 9 / 10);
    threads_stop(&life->wire.threads);
    return code;
}

static int run_wired(struct life *life)
{
    bool stopped = false;
    struct err err = {0};
    enum err_class class =
        wire_init(&life->wire, life->config, life->env, &life->report, life->sink, NULL, &err);
    if (class != ERR_NONE) {
        say_lost(life, &err);
        return class == ERR_CONFIG ? EXIT_CONFIG : EXIT_INTERNAL;
    }
    int code = startup_topics(life->config, life->wire.intake.init.source, life->env, &life->report,
                              life->deadline_us, signals_stop_wanted, &stopped);
    if (code != EXIT_DRAINED || stopped)
        return code;
    return run_threads(life);
}

int lifecycle_run(struct config *config, const struct env_port *env)
{
    bool stopped = false;
    struct life *life = calloc(1, sizeof *life);
    if (!life)
        return EXIT_INTERNAL;
    life->config = config;
    life->env = env;
    life->deadline_us = env->mono_us(env->self) + (int64_t)config->start_timeout_ms * 1000;
    life->sink = journal_is_stderr() ? journal_sink : NULL;
    report_init(&life->report, config, env, life->sink, NULL);
    if (!signals_start(NULL, NULL)) {
        free(life);
        return EXIT_INTERNAL;
    }
    say_start(life);
    notify_status("waiting for databases");
    int code = startup_databases(config, env, &life->report, life->deadline_us, signals_stop_wanted,
                                 &stopped);
    if (code == EXIT_DRAINED && !stopped)
        code = run_wired(life);
    say_stop(life, code);
    if (life->wire.config)
        wire_finish(&life->wire);
    free(life);
    return code;
}
