/* SPDX-License-Identifier: MIT */
/* wire: plugs adapters into ports, in start order, and takes them apart in reverse. */
#include "wire.h"

#include "idem/adapter/json.h"
#include "idem/adapter/kafka_source.h"
#include "idem/adapter/mysql_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ASSIGN_WAIT_MS = 5000,       /* far below max.poll.interval.ms */
    PING_EVERY_MS = 2000         /* an idle database: how soon readiness knows that it is gone */
};

static void wait_for_work(void *context, uint32_t timeout_ms)
{
    struct wire *wire = context;
    queue_wait(&wire->intake.done,
               wire->env.mono_us(wire->env.self) + (int64_t)timeout_ms * 1000);
}

static struct report *make_report(const struct wire *wire)
{
    struct report *report = malloc(sizeof *report);
    if (report && !report_init(report, wire->config, &wire->env, wire->meters, wire->sink, wire->sink_context)) {
        free(report);
        return NULL;
    }
    return report;
}

static bool make_worker(struct wire *wire, uint32_t index, uint32_t database)
{
    wire->stores[index] = mysql_store_create(&wire->config->databases[database], wire->config);
    wire->worker_reports[index] = make_report(wire);
    if (!wire->stores[index] || !wire->worker_reports[index])
        return false;
    struct worker_init init = {
        .index = index,
        .database = database,
        .config = wire->config,
        .store = mysql_store_port(wire->stores[index]),
        .env = &wire->env,
        .report = &wire->worker_reports[index]->port,
        .shared = &wire->shared,
        .done = &wire->intake.done,
    };
    if (!worker_init(&wire->workers[index], &init))
        return false;
    wire->workers_made++;
    return true;
}

/* HOST/PID: who owns a partition, for people that read idem_partition. */
static void owner_name(char text[128])
{
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    snprintf(text, 128, "%s/%ld", host, (long)getpid());
}

static bool make_keeper(struct wire *wire, uint32_t database)
{
    char owner[128];
    const struct database_config *config = &wire->config->databases[database];
    owner_name(owner);
    wire->ledgers[database] = mysql_ledger_create(config, wire->config, owner);
    wire->keeper_reports[database] = make_report(wire);
    if (!wire->ledgers[database] || !wire->keeper_reports[database])
        return false;
    keeper_init(&wire->keepers[database], config->name, mysql_ledger_port(wire->ledgers[database]),
                &wire->env, &wire->keeper_reports[database]->port, &wire->shared.servers[database]);
    wire->keepers_made++;
    if (!tally_init(&wire->tallies[database], wire->config, database))
        return false;
    keeper_watch(&wire->keepers[database], PING_EVERY_MS, &wire->tallies[database]);
    return true;
}

static bool make_tables(struct wire *wire)
{
    const struct config *config = wire->config;
    for (uint32_t i = 0; i < config->database_count; i++)
        wire->worker_count += config->databases[i].connections;
    wire->stores = calloc(wire->worker_count, sizeof(struct mysql_store *));
    wire->workers = calloc(wire->worker_count, sizeof *wire->workers);
    wire->worker_reports = calloc(wire->worker_count, sizeof(struct report *));
    wire->ledgers = calloc(config->database_count, sizeof(struct mysql_ledger *));
    wire->keepers = calloc(config->database_count, sizeof *wire->keepers);
    wire->keeper_reports = calloc(config->database_count, sizeof(struct report *));
    wire->tallies = calloc(config->database_count, sizeof *wire->tallies);
    wire->shared.rule_commits = calloc(config->rule_count + 1, sizeof *wire->shared.rule_commits);
    wire->shared.rule_judged = calloc(config->rule_count + 1, sizeof *wire->shared.rule_judged);
    wire->shared.commits = calloc(config->database_count, sizeof *wire->shared.commits);
    wire->shared.losses = calloc(config->database_count, sizeof *wire->shared.losses);
    wire->shared.topic_down = calloc(config->topic_count, sizeof *wire->shared.topic_down);
    wire->shared.servers = calloc(config->database_count, sizeof *wire->shared.servers);
    wire->shared.down = calloc((size_t)config->database_count * DOWN_WHY_COUNT, sizeof *wire->shared.down);
    return wire->stores && wire->workers && wire->worker_reports && wire->ledgers && wire->keepers &&
           wire->keeper_reports && wire->tallies && wire->shared.rule_commits && wire->shared.rule_judged &&
           wire->shared.commits && wire->shared.losses && wire->shared.topic_down && wire->shared.down &&
           wire->shared.servers;
}

static bool make_intake(struct wire *wire)
{
    size_t largest = 0;
    for (uint32_t i = 0; i < wire->config->topic_count; i++)
        if (wire->config->topics[i].max_bytes > largest)
            largest = wire->config->topics[i].max_bytes;
    wire->json = json_parser_create(largest);
    if (!wire->json)
        return false;
    wire->parser = json_parser_port(wire->json);
    struct intake_init init = {
        .config = wire->config,
        .env = &wire->env,
        .report = &wire->report->port,
        .parser = &wire->parser,
        .workers = wire->workers,
        .worker_count = wire->worker_count,
        .keepers = wire->keepers,
        .shared = &wire->shared,
        .assign_wait_ms = ASSIGN_WAIT_MS,
        .wait = wait_for_work,
        .context = wire,
    };
    wire->intake_made = intake_init(&wire->intake, &init);
    return wire->intake_made;
}

static bool make_parts(struct wire *wire)
{
    uint32_t index = 0;
    if (!make_tables(wire) || !make_intake(wire))
        return false;
    for (uint32_t i = 0; i < wire->config->database_count; i++) {
        if (!make_keeper(wire, i))
            return false;
        for (uint32_t k = 0; k < wire->config->databases[i].connections; k++)
            if (!make_worker(wire, index++, i))
                return false;
    }
    return true;
}

enum err_class wire_init(struct wire *wire, struct config *config, const struct env_port *env,
                         struct report *report, struct meters *meters, log_sink *sink, void *sink_context,
                         struct err *err)
{
    *wire = (struct wire){.config = config, .env = *env, .report = report, .meters = meters, .sink = sink,
                          .sink_context = sink_context};
    if (!make_parts(wire))
        return err_set(err, ERR_FATAL, 0, "start", "out of memory");
    struct source_events events = intake_events(&wire->intake);
    wire->source = kafka_source_create(config, &events, err);
    if (!wire->source)
        return err->class;
    wire->intake.init.source = kafka_source_port(wire->source);
    wire->threads = (struct threads){
        .workers = wire->workers,
        .worker_count = wire->worker_count,
        .keepers = wire->keepers,
        .keeper_count = config->database_count,
        .wake = &wire->intake.done,
        .env = &wire->env,
    };
    return ERR_NONE;
}

void wire_finish(struct wire *wire)
{
    threads_finish(&wire->threads);
    kafka_source_destroy(wire->source);
    for (uint32_t i = 0; i < wire->workers_made; i++)
        worker_finish(&wire->workers[i]);
    for (uint32_t i = 0; i < wire->keepers_made; i++)
        keeper_finish(&wire->keepers[i]);
    if (wire->intake_made)
        intake_finish(&wire->intake);
    for (uint32_t i = 0; i < wire->worker_count && wire->stores && wire->worker_reports; i++) {
        mysql_store_destroy(wire->stores[i]);
        free(wire->worker_reports[i]);
    }
    for (uint32_t i = 0; wire->ledgers && wire->keeper_reports && i < wire->config->database_count; i++) {
        mysql_ledger_destroy(wire->ledgers[i]);
        free(wire->keeper_reports[i]);
    }
    for (uint32_t i = 0; wire->tallies && i < wire->config->database_count; i++)
        tally_finish(&wire->tallies[i]);
    json_parser_destroy(wire->json);
    free(wire->stores);
    free(wire->workers);
    free(wire->worker_reports);
    free(wire->ledgers);
    free(wire->keepers);
    free(wire->keeper_reports);
    free(wire->tallies);
    free(wire->shared.rule_commits);
    free(wire->shared.rule_judged);
    free(wire->shared.commits);
    free(wire->shared.losses);
    free(wire->shared.topic_down);
    free(wire->shared.servers);
    free(wire->shared.down);
}
