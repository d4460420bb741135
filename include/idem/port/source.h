/* SPDX-License-Identifier: MIT */
/* source: the consumer side of Kafka, owned by the intake thread. Offsets here are always "next to read". */
#ifndef IDEM_PORT_SOURCE_H
#define IDEM_PORT_SOURCE_H

#include "idem/base/err.h"
#include "idem/core/record.h"

enum {
    SOURCE_OFFSET_NONE = -1,        /* no committed offset; in an answer: hold the partition back */
    SOURCE_OFFSET_BEGINNING = -2    /* the first record that is there */
};

struct source_partition {
    struct bytes topic;
    int32_t partition;
    int64_t offset;                 /* next to read; SOURCE_OFFSET_NONE where that is allowed */
};

/* What a rebalance or a poll tells. Called on the intake thread from inside poll() or close(); must not call the source
 * again except where said. */
struct source_events {
    void *context;
    /* New partitions. offsets hold the group's committed offset (or NONE). The handler replaces each by where to start;
     * SOURCE_OFFSET_NONE = hold it back, start() comes later. Returns nothing: it may wait for the database, but not
     * longer
     * than a part of max.poll.interval. */
    void (*assigned)(void *context, struct source_partition *partitions, uint32_t count);
    /* About to be given up, or (lost) already somebody else's. The handler may call commit() unless lost. */
    void (*revoked)(void *context, const struct source_partition *partitions, uint32_t count, bool lost);
    /* The group was joined (first assignment, even an empty one). */
    void (*joined)(void *context);
    /* A stored position is gone from the log, or a partition cannot be read: alarm, the partition stands still. */
    void (*stopped)(void *context, const struct source_partition *partition, const char *why);
};

enum source_polled { SOURCE_NOTHING, SOURCE_RECORD, SOURCE_FATAL };

struct source_ops {
    /* Waits at most timeout_ms. SOURCE_RECORD: *ret_record is borrowed until the next call. SOURCE_FATAL: *err, the
     * process has to end with 75. */
    enum source_polled (*poll)(void *self, uint32_t timeout_ms, struct record *ret_record, struct err *err);
    /* Starts partitions that were held back, or moves running ones (seek). Not from within a handler. */
    enum err_class (*start)(void *self, const struct source_partition *partitions, uint32_t count,
                            struct err *err);
    /* Pauses or resumes fetching of these (offset is not looked at). Idempotent; lasts until the partition is started
     * or assigned anew; those that are not assigned or not started are passed over. Records that were fetched already
     * may still come. Not from within a handler. */
    enum err_class (*pause)(void *self, const struct source_partition *partitions, uint32_t count, bool paused,
                            struct err *err);
    /* Stores and commits. wait: blocks until the broker answered (revoke, stop), at most timeout_ms. Without: ERR_NONE
     * means that it was told; should it be refused, the source tells it again by itself from within poll(), for as long
     * as the partition stays ours. */
    enum err_class (*commit)(void *self, const struct source_partition *partitions, uint32_t count,
                             bool wait, uint32_t timeout_ms, struct err *err);
    /* Lowest and highest offset of a partition now in the log. */
    enum err_class (*range)(void *self, const struct source_partition *partition, int64_t *ret_low,
                            int64_t *ret_high, struct err *err);
    /* One past the last record of a partition, as the last answer to a fetch told it; -1 = nothing was told yet. Asks
     * nobody. */
    int64_t (*end)(void *self, const struct source_partition *partition);
    /* Leaves the group: revoked() comes first. At most timeout_ms. */
    enum err_class (*close)(void *self, uint32_t timeout_ms, struct err *err);
};

struct source_port {
    void *self;
    const struct source_ops *ops;
};

#endif
