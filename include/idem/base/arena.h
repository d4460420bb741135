/* SPDX-License-Identifier: MIT */
/* arena: bump allocation from one block that the caller gives. Owned by one thread. It never grows
 * and never frees single pieces; arena_reset() gives back everything since a mark. */
#ifndef IDEM_BASE_ARENA_H
#define IDEM_BASE_ARENA_H

#include "idem/base/bytes.h"

struct arena {
    uint8_t *base;
    size_t size;     /* bytes */
    size_t used;     /* bytes */
    bool exhausted;  /* set by the first allocation that did not fit; cleared by the caller */
};

/* `block` is borrowed until the arena is no longer used. */
void arena_init(struct arena *arena, void *block, size_t size);

/* Aligned to 16 bytes, not zeroed; NULL (and exhausted = true) if it does not fit. size 0 is valid. */
void *arena_alloc(struct arena *arena, size_t size);

/* The same, zeroed, for an array; NULL also if count * size overflows. */
void *arena_calloc(struct arena *arena, size_t count, size_t size);

/* Copy; a view of length 0 gives {NULL or non-NULL, 0}. On exhaustion {NULL, 0} and exhausted = true. */
struct bytes arena_copy(struct arena *arena, struct bytes bytes);

static inline size_t arena_mark(const struct arena *arena)
{
    return arena->used;
}

static inline void arena_reset(struct arena *arena, size_t mark)
{
    arena->used = mark;
}

#endif
