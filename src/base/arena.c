/* SPDX-License-Identifier: MIT */
/* arena: see idem/base/arena.h. */
#include "idem/base/arena.h"

enum { ALIGN = 16 };

void arena_init(struct arena *arena, void *block, size_t size)
{
    *arena = (struct arena){.base = block, .size = size};
}

void *arena_alloc(struct arena *arena, size_t size)
{
    uintptr_t at = (uintptr_t)arena->base + arena->used;
    size_t gap = (ALIGN - at % ALIGN) % ALIGN;
    size_t left = arena->size - arena->used;
    if (arena->base == NULL || gap > left || size > left - gap) {
        arena->exhausted = true;
        return NULL;
    }
    arena->used += gap + size;
    return arena->base + (arena->used - size);
}

void *arena_calloc(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        arena->exhausted = true;
        return NULL;
    }
    void *block = arena_alloc(arena, total);
    if (block)
        memset(block, 0, total);
    return block;
}

struct bytes arena_copy(struct arena *arena, struct bytes bytes)
{
    if (bytes.len == 0)
        return (struct bytes){(const uint8_t *)"", 0};
    uint8_t *at = arena_alloc(arena, bytes.len);
    if (!at)
        return (struct bytes){NULL, 0};
    memcpy(at, bytes.at, bytes.len);
    return (struct bytes){at, bytes.len};
}
