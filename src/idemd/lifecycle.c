/* SPDX-License-Identifier: MIT */
/* lifecycle: see lifecycle.h. Start order: the listener (who waits for a server is healthy, and not ready), databases,
 * then the consumer, then threads; READY once the group is joined. Stop order: not ready at once, intake drains and
 * leaves the group, threads end, the listener goes last. A reaper ends the process after stop_timeout
 * whatever a library does (details 1, Stopping). */
#include "lifecycle.h"

#include "exit.h"
#include "reaper.h"
#include "relays.h"
#include "retention.h"
#include "signals.h"
#include "startup.h"
#include "web.h"
#include "wire.h"

#include "idem/adapter/http.h"
#include "idem/adapter/journal.h"
#include "idem/adapter/notify.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    ROUND_MS = 100,
    GAUGES_EVERY_US = 500000
};

struct life {
    struct config *config;
    const struct env_port *env;
    struct report report;
    struct report retention_report;  /* of that thread */
    struct wire wire;
    struct relays relays;
    int64_t deadline_us;             /* of the start */
    bool ready;
    log_sink *sink;                  /* NULL: standard error */
    struct meters *meters;
    struct gauges gauges;
    int64_t gauges_us;               /* when they were taken */
    struct health health;
    struct pulse pulse;              /* of this thread */
    struct web web;
    struct http *http;               /* NULL: no listener */
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
    log_text(log, "http", life->http ? http_address(life->http) : NULL);
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

static void say_lost(struct life *life, const char *why, const struct err *err)
{
    struct log_batch *log = report_line(&life->report, LOG_PRIORITY_ERR, "paused");
    log_text(log, "why", why);
    log_text(log, "class", err_class_name(err->class));
    log_int(log, "errno", err->number);
    log_text(log, "error", err->text);
    report_line_end(&life->report);
}

static void take_gauges(struct life *life, bool now)
{
    if (!now && now_us(life) - life->gauges_us < GAUGES_EVERY_US)
        return;
    life->gauges_us = now_us(life);
    gauges_take(&life->gauges, &life->wire.intake);
}

static void become_ready(struct life *life)
{
    life->ready = true;
    take_gauges(life, true);
    atomic_store(&life->health.joined, true);
    struct log_batch *log = report_line(&life->report, LOG_PRIORITY_INFO, "ready");
    log_text(log, "http", life->http ? http_address(life->http) : NULL);
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
    meter_reload(&life->report.meter, false);
}

/* Every thread, this one included, waits or moves: the watchdog is fed, and /healthz says so. Any thread may ask. A
 * process that starts waits for servers; one that stops is ended by its reaper. */
static bool is_alive(void *context)
{
    struct life *life = context;
    if (!atomic_load(&life->health.attached) || atomic_load(&life->health.stopping))
        return true;
    int64_t limit_us = pulse_limit_us(life->config);
    return pulses_are_fresh(&life->pulse, 1, now_us(life), limit_us) && threads_alive(&life->wire.threads, limit_us) &&
           relays_alive(&life->relays, limit_us);
}

/* Rounds until somebody says stop. Returns the exit code. */
static int rounds(struct life *life)
{
    struct err err = {0};
    while (!signals_stop_wanted()) {
        if (atomic_load(&life->wire.shared.fatal))
            return EXIT_INTERNAL;
        if (!intake_step(&life->wire.intake, ROUND_MS, &err)) {
            say_lost(life, err.class == ERR_CONFIG ? "config" : "unreachable", &err);
            return err.class == ERR_FATAL ? EXIT_INTERNAL : EXIT_LOST;
        }
        atomic_store(&life->pulse.busy_since_us, now_us(life));
        if (!life->ready && life->wire.intake.joined)
            become_ready(life);
        atomic_store(&life->health.joined, life->wire.intake.joined);
        take_gauges(life, false);
        if (!life->ready && now_us(life) > life->deadline_us) {
            err_set(&err, ERR_RECONNECT, 0, "start", "the group was not joined within start_timeout");
            say_lost(life, err.class == ERR_CONFIG ? "config" : "unreachable", &err);
            return EXIT_UNREACHABLE;
        }
        if (signals_take_hangup())
            refuse_reload(life);
        if (is_alive(life))
            notify_watchdog();
    }
    return EXIT_DRAINED;
}

static int run_threads(struct life *life)
{
    if (!threads_start(&life->wire.threads))
        return EXIT_INTERNAL;
    struct retention_watch *watch = retention_start(life->config, &life->retention_report);
    atomic_store(&life->pulse.busy_since_us, now_us(life));
    health_attach(&life->health, &life->wire.shared, life->wire.keepers);
    struct err err = {0};
    int code = EXIT_CONFIG;
    if (relays_start(&life->relays, life->meters, life->sink, &err) == ERR_NONE)
        code = rounds(life);
    else
        say_lost(life, "config", &err);
    atomic_store(&life->health.stopping, true);
    int64_t stop_us = now_us(life);
    notify_stopping();
    reaper_start(life->config->stop_timeout_ms, &life->wire.threads, code);
    if (code != EXIT_INTERNAL)
        intake_stop(&life->wire.intake, life->config->stop_timeout_ms * 9 / 10);
    threads_stop(&life->wire.threads);
    relays_stop(&life->relays, stop_us + (int64_t)life->config->stop_timeout_ms * 950);
    retention_stop(watch);
    return code;
}

static int run_wired(struct life *life)
{
    bool stopped = false;
    struct err err = {0};
    enum err_class class =
        wire_init(&life->wire, life->config, life->env, &life->report, life->meters, life->sink, NULL, &err);
    if (class != ERR_NONE) {
        say_lost(life, err.class == ERR_CONFIG ? "config" : "unreachable", &err);
        return class == ERR_CONFIG ? EXIT_CONFIG : EXIT_INTERNAL;
    }
    int code = startup_topics(life->config, life->wire.intake.init.source, life->env, &life->report,
                              life->deadline_us, signals_stop_wanted, &stopped);
    if (code != EXIT_DRAINED || stopped)
        return code;
    return run_threads(life);
}

/* A signal asks to stop: whoever asks whether we are ready hears it at once, not when the round is over. */
static void stop_is_wanted(void *context)
{
    struct life *life = context;
    if (signals_stop_wanted())
        atomic_store(&life->health.stopping, true);
}

static bool make_parts(struct life *life)
{
    life->meters = meters_create(life->config);
    if (!life->meters || !report_init(&life->report, life->config, life->env, life->meters, life->sink, NULL) ||
        !report_init(&life->retention_report, life->config, life->env, life->meters, life->sink, NULL) ||
        !gauges_init(&life->gauges, life->config) || !relays_init(&life->relays, life->config, life->env))
        return false;
    health_init(&life->health, life->config, &life->gauges);
    life->web = (struct web){.config = life->config, .meters = life->meters, .gauges = &life->gauges,
                             .health = &life->health, .wire = &life->wire, .relays = &life->relays, .alive = is_alive,
                             .context = life};
    return true;
}

/* Nobody asked for the default address: payments do not stand still because another process has it. */
static void say_unheard(struct life *life, const struct err *err)
{
    struct log_batch *log = report_line(&life->report, LOG_PRIORITY_WARNING, "check");
    log_text(log, "code", "http");
    log_text(log, "message", "running without health and metrics: set http.listen to an address of its own, or \"\"");
    log_text(log, "error", err->text);
    report_line_end(&life->report);
}

/* Returns an exit code. An address that the file asks for and that is taken does not become free by waiting: 78. */
static int start_listener(struct life *life)
{
    struct err err = {0};
    if (life->config->http.listen.len == 0)
        return EXIT_DRAINED;
    life->http = http_start(&life->config->http, web_answer, &life->web, &err);
    if (life->http)
        return EXIT_DRAINED;
    if (err.class == ERR_CONFIG && !life->config->http.asked) {
        say_unheard(life, &err);
        return EXIT_DRAINED;
    }
    say_lost(life, err.class == ERR_CONFIG ? "config" : "fault", &err);
    return err.class == ERR_CONFIG ? EXIT_CONFIG : EXIT_INTERNAL;
}

static int run(struct life *life)
{
    bool stopped = false;
    int code = start_listener(life);
    say_start(life);
    if (code == EXIT_DRAINED) {
        notify_status("waiting for databases");
        code = startup_databases(life->config, life->env, &life->report, life->deadline_us, signals_stop_wanted,
                                 &stopped);
    }
    if (code == EXIT_DRAINED && !stopped)
        code = run_wired(life);
    say_stop(life, code);
    return code;
}

int lifecycle_run(struct config *config, const struct env_port *env)
{
    int code = EXIT_INTERNAL;
    struct life *life = calloc(1, sizeof *life);
    if (!life)
        return code;
    life->config = config;
    life->env = env;
    life->deadline_us = env->mono_us(env->self) + (int64_t)config->start_timeout_ms * 1000;
    life->sink = journal_is_stderr() ? journal_sink : NULL;
    if (make_parts(life) && signals_start(stop_is_wanted, life))
        code = run(life);
    http_stop(life->http);
    if (life->wire.config)
        wire_finish(&life->wire);
    relays_finish(&life->relays);
    gauges_finish(&life->gauges);
    meters_destroy(life->meters);
    return code;                     /* life itself stays: the thread that waits for signals knows it */
}
