/* SPDX-License-Identifier: MIT */
/* pool: see idem/app/pool.h. */
#include "idem/app/pool.h"

#include <stdlib.h>

enum {
    CHUNK_SIZE = 256 << 10,      /* some hundred records of usual size */
    SPARE_MAX = 16               /* 4 MiB kept for the next burst */
};

struct chunk {
    struct chunk *next;
    size_t size;                 /* of memory */
    size_t used;
    uint32_t live;               /* items in it that are not given back */
    _Alignas(16) uint8_t memory[];
};

void pool_init(struct pool *pool)
{
    *pool = (struct pool){0};
}

static void chunk_free(struct pool *pool, struct chunk *chunk)
{
    if (!chunk)
        return;
    pool->held -= sizeof *chunk + chunk->size;
    free(chunk);
}

void pool_finish(struct pool *pool)
{
    while (pool->spare) {
        struct chunk *chunk = pool->spare;
        pool->spare = chunk->next;
        chunk_free(pool, chunk);
    }
    chunk_free(pool, pool->current);
    *pool = (struct pool){0};
}

static void chunk_retire(struct pool *pool, struct chunk *chunk)
{
    if (chunk->size > CHUNK_SIZE || pool->spare_count == SPARE_MAX) {
        chunk_free(pool, chunk);
        return;
    }
    chunk->used = 0;
    chunk->next = pool->spare;
    pool->spare = chunk;
    pool->spare_count++;
}

static struct chunk *chunk_get(struct pool *pool, size_t least)
{
    struct chunk *chunk = pool->spare;
    if (least <= CHUNK_SIZE && chunk) {
        pool->spare = chunk->next;
        pool->spare_count--;
    } else {
        size_t size = least > CHUNK_SIZE ? least : CHUNK_SIZE;
        chunk = malloc(sizeof *chunk + size);
        if (!chunk)
            return NULL;
        chunk->size = size;
        pool->held += sizeof *chunk + size;
    }
    chunk->used = 0;
    chunk->live = 0;
    return chunk;
}

bool pool_open(struct pool *pool, size_t least, struct arena *ret_arena)
{
    struct chunk *chunk = pool->current;
    if (!chunk || chunk->size - chunk->used < least) {
        struct chunk *next = chunk_get(pool, least);
        if (!next)
            return false;
        if (chunk && chunk->live == 0)
            chunk_retire(pool, chunk);
        pool->current = chunk = next;
    }
    arena_init(ret_arena, chunk->memory + chunk->used, chunk->size - chunk->used);
    return true;
}

void pool_keep(struct pool *pool, const struct arena *arena, struct item *item)
{
    struct chunk *chunk = pool->current;
    size_t used = (arena->used + 15) & ~(size_t)15;
    if (used > chunk->size - chunk->used)
        used = chunk->size - chunk->used;
    item->chunk = chunk;
    item->block_size = used;
    chunk->used += used;
    chunk->live++;
}

void pool_give_back(struct pool *pool, struct item *item)
{
    struct chunk *chunk = item->chunk;
    if (--chunk->live > 0)
        return;
    if (chunk == pool->current)
        chunk->used = 0;
    else
        chunk_retire(pool, chunk);
}
