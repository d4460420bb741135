/* SPDX-License-Identifier: MIT */
/* pool: memory of items, in chunks that are filled one after the other and come back when their last item is gone.
 * Items end in nearly the order they came, so chunks turn over; nothing is allocated for a record once the chunks are
 * there. Owned by intake: taken and given back on one thread. */
#ifndef IDEM_APP_POOL_H
#define IDEM_APP_POOL_H

#include "idem/base/arena.h"
#include "idem/core/item.h"

struct chunk;

struct pool {
    struct chunk *current;       /* being filled */
    struct chunk *spare;         /* list of empty ones */
    uint32_t spare_count;
    size_t held;                 /* bytes of all chunks */
};

/* Empty: the first record allocates the first chunk. */
void pool_init(struct pool *pool);
void pool_finish(struct pool *pool);     /* all items must be back */

/* Opens an arena over free memory of at least `least` bytes for one item; at most one is open. false: out of memory. */
bool pool_open(struct pool *pool, size_t least, struct arena *ret_arena);

/* Keeps what the arena used. `item` lies in it. */
void pool_keep(struct pool *pool, const struct arena *arena, struct item *item);

/* The item's memory may be used again. */
void pool_give_back(struct pool *pool, struct item *item);

#endif
