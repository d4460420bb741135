/* SPDX-License-Identifier: MIT */
/* outbox: idem_outbox of one database as the relay sees it, and the lease that lets one relay of several publish.
 * A session of its own, owned by the relay's thread. Every call is one transaction. */
#ifndef IDEM_PORT_OUTBOX_H
#define IDEM_PORT_OUTBOX_H

#include "idem/base/bytes.h"
#include "idem/base/err.h"
#include "idem/core/gaps.h"

enum { OUTBOX_INLINE_MAX = 32 << 10 };

/* A row, borrowed for the call that brings it. */
struct outbox_event {
    uint64_t seq;
    uint64_t size;                   /* bytes of payload and headers; over OUTBOX_INLINE_MAX both are left out of a
                                        reading, so that one cannot fill the memory: see fetch */
    struct bytes id;                 /* 32 hex digits */
    struct bytes topic, aggregate;   /* aggregateid: the message's key */
    struct bytes payload;
    struct bytes headers;            /* a flat JSON object, or empty: NULL */
};

struct outbox_lease {
    bool held;                       /* by us, until `for_ms` after the call began at least */
    uint64_t generation;             /* rises with every owner */
    uint32_t wait_ms;                /* not held: when it may be free, by the database's clock */
    uint32_t step;                   /* between two numbers of the outbox; 0: not known */
};

struct outbox_ops {
    enum err_class (*open)(void *self, struct err *err);
    void (*close)(void *self);
    /* Takes the lease if it is free or expired, renews it if it is ours. */
    enum err_class (*lease)(void *self, uint32_t for_ms, struct outbox_lease *ret, struct err *err);
    /* Gives it back, so that the next one need not wait. Not ours: nothing happens. */
    enum err_class (*release)(void *self, struct err *err);
    /* Rows that lie in a gap, in what is looked at again, or above the highest number seen; ascending, at most `limit`,
     * to take(), which returns false to stop. Rows of the topics `bare` come without payload and headers, and do not
     * come again. *ret_count = rows that were read. */
    enum err_class (*read)(void *self, const struct gaps *gaps, uint32_t limit, const struct bytes *bare,
                           uint32_t bare_count, bool (*take)(void *context, const struct outbox_event *event),
                           void *context, uint32_t *ret_count, struct err *err);
    /* One row, whole, if it is there. */
    enum err_class (*fetch)(void *self, uint64_t seq, bool (*take)(void *context, const struct outbox_event *event),
                            void *context, bool *ret_found, struct err *err);
    /* Whether a transaction is at work in the gap, or has left a row there. */
    enum err_class (*is_open)(void *self, const struct gap *gap, bool *ret_open, struct err *err);
    /* Deletes under the lease; *ret_held = false: it is not ours (any more), nothing was deleted. ids beside seqs:
     * after a failover another event may have the number; it stays. */
    enum err_class (*remove)(void *self, const uint64_t *seqs, const struct bytes *ids, uint32_t count,
                             uint64_t generation, bool *ret_held, struct err *err);
    /* Counts at most `limit` rows above *after, which becomes the last of them: how many, and the age of the oldest of
     * them in milliseconds (0 without rows). */
    enum err_class (*count)(void *self, uint64_t *after, uint32_t limit, uint32_t *ret_rows, uint64_t *ret_oldest_ms,
                            struct err *err);
};

struct outbox_port {
    void *self;
    const struct outbox_ops *ops;
};

#endif
