/* SPDX-License-Identifier: MIT */
/* intake: the only owner of the source and of the offsets. Polls, evaluates (a pure function), routes by business
 * number, takes completions back, and moves offsets: first idem_progress by the keeper, then Kafka. Owned by one
 * thread. */
#ifndef IDEM_APP_INTAKE_H
#define IDEM_APP_INTAKE_H

#include "idem/app/keeper.h"
#include "idem/app/partitions.h"
#include "idem/app/pool.h"
#include "idem/app/worker.h"
#include "idem/core/flood.h"
#include "idem/port/parser.h"
#include "idem/port/source.h"

struct intake_init {
    const struct config *config;
    const struct source_port *source;
    const struct env_port *env;
    const struct report_port *report;
    const struct parser_port *parser;
    struct worker *workers;              /* of all databases, one after the other */
    uint32_t worker_count;
    struct keeper *keepers;              /* one a database */
    struct shared *shared;
    uint32_t assign_wait_ms;             /* how long an assignment may wait for the database */
    /* Waits until a completion or a keeper's answer may be there, at most so long. The simulator runs others here. */
    void (*wait)(void *context, uint32_t timeout_ms);
    void *context;
};

/* Looking for due rows of idem_parked in one database. */
struct parked_watch {
    bool asked;                          /* the keeper has a job */
    int64_t due_us;                      /* when to ask again */
    uint32_t out;                        /* its records on their way */
};

/* What protects the operator from rules or producers gone wrong, by topic. */
struct topic_guard {
    struct flood flood;
    bool flooded;
};

struct intake {
    struct intake_init init;
    struct partitions partitions;
    struct pool pool;
    struct queue done;                   /* completions from workers */
    struct item_list *chains;            /* by worker: not yet queued */
    uint32_t *first_worker;              /* by database */
    uint32_t chained;
    uint64_t inflight;                   /* items out, of any epoch */
    uint64_t inflight_bytes;
    int64_t stalled_us;                  /* since when the limits hold us back, 0 = they do not */
    bool paused;                         /* the source was told */
    bool joined, stopping;
    int64_t progress_us;                 /* last round */
    uint32_t jobs_out;                   /* progress jobs not answered */
    uint64_t assignments;                /* number of the last one */
    struct keeper_job *deferred;         /* take-overs answered while the source could not be called */
    struct parked_watch *watches;        /* by database */
    struct topic_guard *guards;          /* by topic */
    uint64_t finished;                   /* records done since start */
};

/* Everything is borrowed until intake_finish. The source must have been created with intake_events(). false: out of
 * memory. */
bool intake_init(struct intake *intake, const struct intake_init *init);
void intake_finish(struct intake *intake);

/* The handlers that the source calls; context is the intake. */
struct source_events intake_events(struct intake *intake);

/* One round: completions, offsets, then records for at most wait_ms. false: the source is lost, *err says why. */
bool intake_step(struct intake *intake, uint32_t wait_ms, struct err *err);

/* Takes no more records, finishes what is out, writes progress and offsets, leaves the group. Returns true if every
 * delivered record was finished or its transaction surely did not happen; false if the time ran out with work in
 * workers. */
bool intake_stop(struct intake *intake, uint32_t timeout_ms);

#endif
