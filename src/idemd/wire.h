/* SPDX-License-Identifier: MIT */
/* wire: the one place where adapters are plugged into ports, in start order, and taken apart in reverse. */
#ifndef IDEMD_WIRE_H
#define IDEMD_WIRE_H

#include "report.h"
#include "threads.h"

#include "idem/app/intake.h"

struct kafka_source;
struct json_parser;

struct wire {
    struct config *config;
    struct env_port env;
    struct report *report;               /* of the main thread */
    struct meters *meters;
    log_sink *sink;
    void *sink_context;
    struct shared shared;
    struct mysql_store **stores;         /* one a worker */
    struct mysql_ledger **ledgers;       /* one a database */
    struct worker *workers;
    struct report **worker_reports;
    struct report **keeper_reports;
    uint32_t worker_count, workers_made;
    struct keeper *keepers;
    struct tally *tallies;               /* one a database */
    uint32_t keepers_made;
    struct json_parser *json;
    struct parser_port parser;
    struct kafka_source *source;
    struct intake intake;
    bool intake_made;
    struct threads threads;
};

/* Builds everything but starts nothing. config, env, report, meters and sink are borrowed until wire_finish.
 * ERR_CONFIG: the consumer's properties; ERR_FATAL: out of memory. */
enum err_class wire_init(struct wire *wire, struct config *config, const struct env_port *env,
                         struct report *report, struct meters *meters, log_sink *sink, void *sink_context,
                         struct err *err);

/* After the threads were stopped. NULL-safe for what was not made. */
void wire_finish(struct wire *wire);

#endif
