/* SPDX-License-Identifier: MIT */
/* partitions: what intake knows of each partition it owns: epoch, generation, offsets. Slots are never given back to
 * the allocator while intake lives, so that an item's slot number stays valid; the epoch tells one assignment from
 * the next. Owned by the intake thread. */
#ifndef IDEM_APP_PARTITIONS_H
#define IDEM_APP_PARTITIONS_H

#include "idem/app/park_gate.h"
#include "idem/core/config.h"
#include "idem/core/offsets.h"
#include "idem/port/source.h"

enum partition_state {
    PARTITION_GONE,          /* not ours */
    PARTITION_HELD,          /* ours, waiting for the database to say where to start */
    PARTITION_RUNNING,
    PARTITION_STOPPED        /* its position is gone from Kafka: stands still until somebody acts */
};

/* Why a partition is not fetched; several may hold at once. */
enum pause_why {
    PAUSE_LIMITS = 1,        /* limits.inflight, limits.inflight_bytes */
    PAUSE_CONFIG = 2,        /* its topic waits for somebody to mend the schema or the grants */
    PAUSE_FLOOD = 4,         /* too many of its topic's records became dead letters: until the process starts anew */
    PAUSE_FULL = 8           /* limits.parked_max of its records wait in idem_parked */
};

/* Why a partition does not move, as operators are told: label values of idem_paused, words of `paused why=`. CONFIG and
 * UNREACHABLE are mostly states of a database or a topic, which health.h knows. */
enum halt_why {
    HALT_CONFIG, HALT_UNREACHABLE,
    HALT_FLOOD,              /* too many dead letters */
    HALT_FULL,               /* limits.parked_max */
    HALT_OPERATOR,
    HALT_OFFSET_GONE,        /* its position is gone from Kafka */
    HALT_RECREATED,          /* another record stands where the last one was */
    HALT_FAULT,              /* none of these: the source could not start it */
    HALT_WHY_COUNT
};

const char *halt_why_name(enum halt_why why);            /* "flood" */
/* HALT_FAULT if there is no such name. */
enum halt_why halt_why_parse(const char *name);

/* The last record that was finished, to be met again before anything else is taken (details 1, "Topic made again"). */
struct proof {
    bool pending;            /* not met yet */
    bool restart;            /* its position is gone from the log: start where reading goes on */
    int64_t offset;
    int64_t start;           /* where reading goes on once it was met */
    uint8_t hash[OFFSET_HASH_LEN];
};

struct partition {
    const struct topic *topic;
    int32_t number;
    enum partition_state state;
    uint32_t epoch;          /* rises with every assignment and every start */
    uint64_t generation;     /* the last that we took over, kept when the partition goes */
    uint64_t server;         /* where that was */
    int64_t committed;       /* the group's offset, as it was when it was assigned or as we committed it, -1 = none */
    bool begun;              /* since it was assigned it has begun once, */
    int64_t began;           /* here; -1 = the beginning */
    int64_t fenced_us;       /* since when its records are refused though it is ours, 0 = they are not */
    struct offsets offsets;
    struct offset_slot *ring;
    uint32_t places;
    uint32_t inflight;       /* items of this epoch between poll and completion */
    int64_t posted;          /* last commit point given to the keeper, -1 = none */
    bool posting;            /* that one is not answered yet */
    struct park_gate *gate;  /* of its rows in idem_parked; stays where it is while intake lives */
    uint64_t parked;         /* those rows when they were last counted, and what was parked since */
    struct proof proof;
    uint32_t pauses;         /* set of enum pause_why */
    bool is_paused;          /* the source was told so */
    enum halt_why halt;      /* of PARTITION_STOPPED */
};

struct partitions {
    struct partition *slots;
    uint32_t count, size;
};

/* Empty. */
void partitions_init(struct partitions *partitions);
/* Frees slots and rings. */
void partitions_finish(struct partitions *partitions);

/* Slot number of (topic, number), a new one if need be. UINT32_MAX: out of memory. */
uint32_t partitions_slot(struct partitions *partitions, const struct topic *topic, int32_t number);

/* The same, but UINT32_MAX if there is none. */
uint32_t partitions_find(const struct partitions *partitions, const struct topic *topic, int32_t number);

/* A new epoch that starts at `start` (-1 = the beginning, unknown yet). false: out of memory. */
bool partition_start(struct partition *partition, uint64_t generation, int64_t start);

/* Its records, or its progress, met another generation or another server. */
void partition_fenced(struct partition *partition, int64_t now_us);

/* Not ours any more (or held again): items on their way belong to a former epoch from now on. */
void partition_end(struct partition *partition, enum partition_state state);

/* Sets or clears one reason; partitions_pause() tells the source. */
void partition_pause(struct partition *partition, enum pause_why why, bool paused);

/* Tells the source what changed: a partition is fetched while it has no reason to be paused. false: the source could
 * not do it now, call again. Not from within a handler of the source. */
bool partitions_pause(struct partitions *partitions, const struct source_port *source);

/* Notes a delivered offset; grows the ring if it is full. false: out of memory. */
bool partition_deliver(struct partition *partition, int64_t offset, const uint8_t hash[OFFSET_HASH_LEN],
                       int64_t now_us);

/* Every reason why it does not move that is its own: 1 << enum halt_why. */
uint32_t partition_halts(const struct partition *partition);

#endif
