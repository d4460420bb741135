/* SPDX-License-Identifier: MIT */
/* keeper: the one who writes ownership and progress of partitions into one database, so that intake never waits for
 * it. Jobs come and go as values; keeper_step() does at most one database transaction. The ledger is owned by the
 * keeper's thread, the mailbox is shared under its lock. */
#ifndef IDEM_APP_KEEPER_H
#define IDEM_APP_KEEPER_H

#include "idem/app/shared.h"
#include "idem/app/tally.h"
#include "idem/port/env.h"
#include "idem/port/ledger.h"
#include "idem/port/report.h"

#include <pthread.h>
#include <stdatomic.h>

enum keeper_task { KEEPER_TAKE_OVER, KEEPER_PROGRESS, KEEPER_PARKED };

/* A due row of idem_parked on its way to intake. */
struct keeper_parked {
    struct keeper_parked *next;
    struct ledger_parked row;            /* with views into this block */
};

struct keeper_job {
    struct keeper_job *next;
    enum keeper_task task;
    uint64_t number;                     /* intake's, to know the job again */
    bool cancelled;                      /* by intake: do not begin it any more */
    bool done;                           /* the ledger has it */
    uint32_t count;
    struct ledger_partition *partitions; /* with topic views that outlive the job */
    uint32_t *slots;                     /* intake's slot of each */
    uint32_t *epochs;                    /* and its epoch when the job was made */
    uint32_t limit;                      /* KEEPER_PARKED: rows at most */
    uint64_t byte_limit;                 /* and payload bytes */
    struct keeper_parked *parked;        /* what came, in order; freed with the job */
};

struct keeper {
    pthread_mutex_t lock;
    pthread_cond_t changed;              /* CLOCK_MONOTONIC */
    struct keeper_job *head, *tail;      /* to do */
    struct keeper_job *finished;         /* to be fetched by intake */
    bool poked;
    struct bytes database;
    const struct ledger_port *ledger;
    const struct env_port *env;
    const struct report_port *report;
    atomic_uint_fast64_t *server;        /* told to all: where its session is */
    uint32_t tries;
    int64_t due_us;
    bool backing_off;                    /* the present wait is for due_us: a new job changes nothing */
    int64_t ping_every_us;               /* 0: it looks only when it has a job */
    struct tally *tally;                 /* counted now and then; NULL: not */
    int64_t count_us[LEDGER_LIST_COUNT]; /* when each is counted again */
    bool counting;                       /* in the midst of tally->list */
    uint64_t count_after;                /* the last id of it that was counted */
    atomic_int down;                     /* enum down_why, -1 = it answers */
    atomic_int_least64_t answered_us;    /* when the database last did; monotonic */
};

/* Everything is borrowed until keeper_finish. */
void keeper_init(struct keeper *keeper, struct bytes database, const struct ledger_port *ledger,
                 const struct env_port *env, const struct report_port *report, atomic_uint_fast64_t *server);
void keeper_finish(struct keeper *keeper);       /* frees jobs that are left */

/* From now on it also looks whether the database answers, and counts letters and parked records into `tally` (borrowed
 * until keeper_finish; NULL: it does not). Before its first step. */
void keeper_watch(struct keeper *keeper, uint32_t ping_every_ms, struct tally *tally);

/* Whether the database can be worked with, as far as the keeper knows: -1 = yes, else enum down_why. One that has not
 * answered for silence_us (it may hang in a call) is unreachable. Any thread. */
int keeper_database_down(struct keeper *keeper, int64_t silence_us);

/* A job with room for count partitions; NULL: out of memory. Freed by keeper_job_free. */
struct keeper_job *keeper_job_create(enum keeper_task task, uint32_t count);
/* NULL is fine. */
void keeper_job_free(struct keeper_job *job);

void keeper_post(struct keeper *keeper, struct keeper_job *job);     /* job is taken */
struct keeper_job *keeper_fetch(struct keeper *keeper);              /* finished or cancelled, returned; NULL: none */
/* Those not begun come back without having been done. */
void keeper_cancel_take_overs(struct keeper *keeper);
bool keeper_is_idle(struct keeper *keeper);                          /* nothing to do, nothing to fetch */

/* Returns the monotonic moment of the next useful call; 0 = at once, INT64_MAX = when a job is posted. */
int64_t keeper_step(struct keeper *keeper);
void keeper_wait(struct keeper *keeper, int64_t until_us);           /* until a job is posted or poked */
void keeper_poke(struct keeper *keeper);

#endif
