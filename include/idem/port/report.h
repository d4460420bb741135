/* SPDX-License-Identifier: MIT */
/* report: what the app floor tells the operator. One instance a thread (outcome lines are buffered there until
 * flush). The program turns it into log lines and counters, the simulator into checks. Never fails, never blocks for
 * long. */
#ifndef IDEM_PORT_REPORT_H
#define IDEM_PORT_REPORT_H

#include "idem/base/err.h"
#include "idem/core/item.h"

/* Closed list, design section 7. */
enum report_event {
    EVENT_ASSIGN, EVENT_REVOKE, EVENT_FENCED, EVENT_TX_RETRY, EVENT_TX_IN_DOUBT, EVENT_TX_SETTLED,
    EVENT_BISECT, EVENT_SET_ASIDE, EVENT_PAUSED, EVENT_RESUMED, EVENT_REWOUND,
    EVENT_ORPHANED, EVENT_RECREATED, EVENT_DEAD_LETTER_FLOOD,
    EVENT_RELAY_LEASE, EVENT_RELAY_REFUSED, EVENT_DRAIN,
    EVENT_COUNT
};

/* Fields of an event; what is empty, -1 or 0 is left out as marked. */
struct report_fields {
    enum outcome_level level;
    struct bytes database;       /* empty = left out */
    struct bytes topic;          /* empty = left out */
    int64_t partition;           /* -1 = left out */
    int64_t offset;              /* -1 = left out */
    int64_t generation;          /* -1 = left out */
    int64_t count;               /* -1 = left out: records concerned */
    int64_t attempt;             /* -1 = left out */
    int64_t delay_ms;            /* -1 = left out */
    const char *why;             /* NULL = left out: config, unreachable, flood, full, operator, ... */
    struct bytes key;            /* empty = left out */
    const struct err *err;       /* NULL = left out */
};

#define REPORT_FIELDS_INIT                                                                          \
    {.level = LEVEL_INFO, .partition = -1, .offset = -1, .generation = -1, .count = -1,              \
     .attempt = -1, .delay_ms = -1}

/* How an attempt to run records in one transaction ended. */
enum report_tx { REPORT_TX_COMMITTED, REPORT_TX_ROLLED_BACK, REPORT_TX_FENCED, REPORT_TX_IN_DOUBT, REPORT_TX_COUNT };

struct report_port {
    void *self;
    /* A finished record, after its commit (or without one, for `ignored`). took_us: poll to commit. */
    void (*outcome)(void *self, const struct item *item, int64_t took_us, uint32_t worker);
    void (*event)(void *self, enum report_event event, const struct report_fields *fields);
    /* Each attempt of a worker. `database` is its index in the configuration; took_us: from BEGIN to its end. Before
     * the outcomes of its records. */
    void (*transaction)(void *self, uint32_t database, enum report_tx result, uint32_t records, int64_t took_us);
    /* End of a batch: buffered lines go out. */
    void (*flush)(void *self);
};

#endif
