/* SPDX-License-Identifier: MIT */
/* offsets: see idem/core/offsets.h. The ring holds what was delivered and is not yet passed; finding an offset in it
 * is a binary search, since delivered offsets rise. */
#include "idem/core/offsets.h"

#include <stdlib.h>

void offsets_init(struct offsets *offsets, struct offset_slot *ring, uint32_t places, int64_t start)
{
    *offsets = (struct offsets){.ring = ring, .mask = places - 1, .next = start, .last_offset = -1};
}

static struct offset_slot *slot(const struct offsets *offsets, uint64_t at)
{
    return &offsets->ring[at & offsets->mask];
}

bool offsets_is_new(const struct offsets *offsets, int64_t offset)
{
    if (!offsets_idle(offsets))
        return offset > slot(offsets, offsets->tail - 1)->offset;
    return offset > offsets->last_offset && offset >= offsets->next;
}

bool offsets_deliver(struct offsets *offsets, int64_t offset, const uint8_t hash[OFFSET_HASH_LEN], int64_t now_us)
{
    if (offsets->tail - offsets->head > offsets->mask)
        return false;
    if (!offsets_is_new(offsets, offset))
        abort();
    struct offset_slot *added = slot(offsets, offsets->tail++);
    added->offset = offset;
    added->finished = false;
    memcpy(added->hash, hash, OFFSET_HASH_LEN);
    added->at_ms = (uint32_t)(now_us / 1000);
    return true;
}

int64_t offsets_low(const struct offsets *offsets)
{
    return offsets->next < 0 && !offsets_idle(offsets) ? slot(offsets, offsets->head)->offset : offsets->next;
}

uint32_t offsets_oldest_ms(const struct offsets *offsets, int64_t now_us)
{
    return offsets_idle(offsets) ? 0 : (uint32_t)(now_us / 1000) - slot(offsets, offsets->head)->at_ms;
}

static struct offset_slot *find(const struct offsets *offsets, int64_t offset)
{
    uint64_t low = offsets->head, high = offsets->tail;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (slot(offsets, middle)->offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == offsets->tail || slot(offsets, low)->offset != offset)
        return NULL;
    return slot(offsets, low);
}

bool offsets_finish(struct offsets *offsets, int64_t offset)
{
    struct offset_slot *finished = find(offsets, offset);
    if (!finished || finished->finished)
        abort();
    finished->finished = true;
    bool moved = false;
    while (!offsets_idle(offsets) && slot(offsets, offsets->head)->finished) {
        struct offset_slot *passed = slot(offsets, offsets->head++);
        offsets->last_offset = passed->offset;
        memcpy(offsets->last_hash, passed->hash, OFFSET_HASH_LEN);
        moved = true;
    }
    if (moved)      /* the next delivered one, or one past the last: never past unfinished work */
        offsets->next = offsets_idle(offsets) ? offsets->last_offset + 1
                                              : slot(offsets, offsets->head)->offset;
    return moved;
}

void offsets_grow(struct offsets *offsets, struct offset_slot *ring, uint32_t places)
{
    if (places <= offsets->mask)
        abort();
    for (uint64_t at = offsets->head; at < offsets->tail; at++)
        ring[at & (places - 1)] = *slot(offsets, at);
    offsets->ring = ring;
    offsets->mask = places - 1;
}
