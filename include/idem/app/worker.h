/* SPDX-License-Identifier: MIT */
/* worker: the batches of one database session. It takes what has queued, runs it as one transaction and decides what
 * an error means: run again, halve, set aside, wait. It never sleeps: worker_step() does at most one attempt and says
 * when to call again, so that a thread and the simulator drive it alike. Owned by one thread. */
#ifndef IDEM_APP_WORKER_H
#define IDEM_APP_WORKER_H

#include "idem/app/queue.h"
#include "idem/app/shared.h"
#include "idem/app/txn.h"
#include "idem/core/config.h"
#include "idem/core/segments.h"
#include "idem/port/report.h"

struct worker_init {
    uint32_t index;                          /* over all databases, for logs */
    uint32_t database;                       /* index into config->databases */
    const struct config *config;
    const struct store_port *store;
    const struct env_port *env;
    const struct report_port *report;
    struct shared *shared;
    struct queue *done;                      /* finished and dropped items go back to intake */
};

/* Connections lost inside transactions; see src/app/blame.h. */
struct losses {
    uint32_t count;                          /* of the present segment */
    uint64_t ever;                           /* of this worker */
    uint64_t commits, foreign;               /* of the database, and losses of others in it, at the first of count */
};

/* Records of one topic that wait for its schema or grants; see src/app/hold.h. */
struct topic_hold {
    struct item_list items;                  /* in order */
    int64_t due_us;                          /* when the oldest are tried again */
    uint32_t tries;
    bool down;                               /* told so */
};

struct worker {
    struct worker_init init;
    struct queue queue;                      /* from intake */
    struct txn txn;
    struct item **batch;                     /* delivery order */
    uint32_t batch_count;
    struct segments segments;                /* parts of batch still to be run */
    struct txn_mode mode;                    /* of the present segment */
    uint32_t tries;                          /* failed attempts of the present segment */
    struct losses losses;                    /* connections lost in it */
    int64_t due_us;                          /* not before */
    bool in_doubt;                           /* the present segment's COMMIT has to be settled */
    bool careful;                            /* the present batch locks first and waits for nobody */
    int64_t wary_until_us;                   /* somebody holds rows: batches are careful until then */
    uint32_t lock_first_left;                /* batches still to be run with locks first */
    struct item_list aside;                  /* set aside, in order of delivery for each number */
    struct topic_hold *holds;                /* by topic */
    const struct topic *held;                /* whose hold gave the present batch, or NULL */
    int down;                                /* enum down_why it has reported, -1 = none */
};

/* All pointers are borrowed until worker_finish. false: out of memory. */
bool worker_init(struct worker *worker, const struct worker_init *init);
void worker_finish(struct worker *worker);

/* Returns the moment (monotonic microseconds) of the next useful call; 0 = at once, INT64_MAX = when something is
 * queued. */
int64_t worker_step(struct worker *worker);

/* Nothing queued, running, set aside or held. */
bool worker_is_idle(struct worker *worker);

#endif
