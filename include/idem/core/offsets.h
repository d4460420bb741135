/* SPDX-License-Identifier: MIT */
/* offsets: one partition's ring of *delivered* offsets (gaps are normal: compaction, transactions; hazards K7) and the
 * commit point below which everything delivered is finished. Owned by intake. Never says +1 of an offset that was not
 * delivered. */
#ifndef IDEM_CORE_OFFSETS_H
#define IDEM_CORE_OFFSETS_H

#include "idem/base/bytes.h"

enum { OFFSET_HASH_LEN = 16 };

struct offset_slot {
    int64_t offset;
    bool finished;
    uint8_t hash[OFFSET_HASH_LEN];   /* of the record's value, for idem_progress.last_hash */
    uint32_t at_ms;                  /* when it was delivered: the low bits of a monotonic clock */
};

struct offsets {
    struct offset_slot *ring;        /* caller's, power of two places */
    uint32_t mask;
    uint64_t head, tail;             /* [head, tail): delivered, not yet passed */
    int64_t next;                    /* commit point: the offset to go on from; -1 = nothing known yet */
    int64_t last_offset;             /* last passed record, -1 = none */
    uint8_t last_hash[OFFSET_HASH_LEN];
};

/* `start` = first offset that may be delivered, the initial commit point; -1 = unknown. */
void offsets_init(struct offsets *offsets, struct offset_slot *ring, uint32_t places, int64_t start);

/* false if the ring is full. Offsets must rise; aborts otherwise (a seek starts a new epoch and a new ring). now_us:
 * monotonic. */
bool offsets_deliver(struct offsets *offsets, int64_t offset, const uint8_t hash[OFFSET_HASH_LEN], int64_t now_us);

/* Where one would go on from now: the commit point or, before the first record is finished, that record; -1 = nothing
 * was delivered yet. */
int64_t offsets_low(const struct offsets *offsets);

/* For how long the oldest unfinished record has been here, in ms (modulo 49 days); 0 = there is none. */
uint32_t offsets_oldest_ms(const struct offsets *offsets, int64_t now_us);

/* Whether the offset lies beyond everything delivered so far: what does not comes from an older fetch. */
bool offsets_is_new(const struct offsets *offsets, int64_t offset);

/* Marks a delivered offset finished and moves the commit point. Unknown or finished offsets abort: epochs keep
 * strangers out. Returns true if the commit point moved. */
bool offsets_finish(struct offsets *offsets, int64_t offset);

/* Moves to a larger ring (power of two places); the old one is the caller's again. */
void offsets_grow(struct offsets *offsets, struct offset_slot *ring, uint32_t places);

static inline bool offsets_idle(const struct offsets *offsets)
{
    return offsets->head == offsets->tail;
}

#endif
