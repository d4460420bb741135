/* SPDX-License-Identifier: MIT */
/* segments: halving. A batch is a row of records in delivery order; a segment is a contiguous part of it that is run
 * as one transaction. A failing segment is split and its parts run in order, so that the result is that of the
 * records one by one. Pure, fixed size: a stack, since the first part runs first. */
#ifndef IDEM_CORE_SEGMENTS_H
#define IDEM_CORE_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { SEGMENTS_MAX = 64 };    /* halving 5 000 needs 13 levels; a split around one record adds two */

struct segment {
    uint32_t from, to;         /* [from, to) */
};

struct segments {
    struct segment stack[SEGMENTS_MAX];
    uint32_t count;
};

/* One segment of everything; none if count is 0. */
void segments_init(struct segments *segments, uint32_t count);

/* The segment that runs now, or NULL. */
const struct segment *segments_top(const struct segments *segments);

/* The present segment is done. */
void segments_pop(struct segments *segments);

/* Replaces the present segment (of two records or more) by its halves. */
void segments_halve(struct segments *segments);

/* Replaces it by what lies before `index` and what begins there; both must be within it. */
void segments_split(struct segments *segments, uint32_t index);

/* Replaces it by what lies before `index`, the record itself, and what lies after it. */
void segments_cut(struct segments *segments, uint32_t index);

/* A record left the batch at `index` (set aside): later ones move down by one. */
void segments_remove(struct segments *segments, uint32_t index);

#endif
