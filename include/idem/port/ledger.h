/* SPDX-License-Identifier: MIT */
/* ledger: who owns a partition and how far it got, in one database: idem_partition and idem_progress. A session of its
 * own, owned by the keeper thread of that database. Every call is one transaction. */
#ifndef IDEM_PORT_LEDGER_H
#define IDEM_PORT_LEDGER_H

#include "idem/base/err.h"
#include "idem/core/offsets.h"
#include "idem/core/item.h"

struct ledger_partition {
    struct bytes topic;
    int32_t partition;
    uint64_t generation;             /* take_over: the last one known here in, the new one out; progress: in */
    uint64_t server;                 /* take_over: out, where it happened; progress: in */
    int64_t next_offset;             /* take_over: out, -1 = no row; progress: in */
    int64_t last_offset;             /* -1 = none */
    uint8_t last_hash[OFFSET_HASH_LEN];
    bool current;                    /* progress: out, false = fenced or another server: nothing written for it */
    uint64_t parked;                 /* parked: out, its rows in idem_parked */
    uint64_t mark;                   /* the caller's own */
};

/* A row of idem_parked that is due; views are borrowed for the call. */
struct ledger_parked {
    struct record record;            /* as it was delivered; source SOURCE_KAFKA */
    struct parked_row row;           /* id, letter_id and texts */
};

/* What is counted for the metrics. */
enum ledger_list {
    LEDGER_LETTERS,                  /* open dead letters, by outcome */
    LEDGER_PARKED,                   /* rows of idem_parked, by reason */
    LEDGER_LIST_COUNT
};

struct ledger_kind {
    struct bytes topic, word;        /* outcome or reason */
    uint64_t count;
    uint64_t oldest_s;               /* how long the oldest has been there; 0 for letters */
};

struct ledger_ops {
    enum err_class (*open)(void *self, struct err *err);
    void (*close)(void *self);
    /* Identity of the server behind the session, and of its present run: a replica, and a server that was started
     * again, may lack commits that were confirmed. Never 0; only while open. */
    uint64_t (*server)(void *self);
    /* A generation above the row's and above the one known here (which a failover may have lost), owner replaced,
     * progress read: one transaction, partitions sorted by caller. */
    enum err_class (*take_over)(void *self, struct ledger_partition *partitions, uint32_t count,
                                struct err *err);
    /* Under the fence: those whose generation still stands, on the server where it was taken over, get their row. */
    enum err_class (*progress)(void *self, struct ledger_partition *partitions, uint32_t count,
                               struct err *err);
    /* Counts the parked rows of these partitions and gives at most `limit` of those that are due to take(), the longest
     * due first, those of one number oldest first. take() returns false to stop. */
    enum err_class (*parked)(void *self, struct ledger_partition *partitions, uint32_t count, uint32_t limit,
                             bool (*take)(void *context, const struct ledger_parked *row), void *context,
                             struct err *err);
    /* A cheap round trip: the server answers and is writable. */
    enum err_class (*ping)(void *self, struct err *err);
    /* The next rows of the list with an id over *after, `limit` at most, counted by topic and word: each() once a pair,
     * its views valid during the call. *after becomes the last id that was looked at; *ret_end: there are no more.
     * Reads in order of an index, locks nothing. */
    enum err_class (*count)(void *self, enum ledger_list list, uint64_t *after, uint32_t limit,
                            void (*each)(void *context, const struct ledger_kind *kind), void *context,
                            bool *ret_end, struct err *err);
};

struct ledger_port {
    void *self;
    const struct ledger_ops *ops;
};

#endif
