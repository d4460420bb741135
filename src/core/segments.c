/* SPDX-License-Identifier: MIT */
/* segments: see idem/core/segments.h. */
#include "idem/core/segments.h"

#include <stdlib.h>

void segments_init(struct segments *segments, uint32_t count)
{
    segments->count = 0;
    if (count > 0)
        segments->stack[segments->count++] = (struct segment){0, count};
}

const struct segment *segments_top(const struct segments *segments)
{
    return segments->count ? &segments->stack[segments->count - 1] : NULL;
}

void segments_pop(struct segments *segments)
{
    if (segments->count == 0)
        abort();
    segments->count--;
}

static void push(struct segments *segments, uint32_t from, uint32_t to)
{
    if (from == to)
        return;
    if (segments->count == SEGMENTS_MAX)
        abort();
    segments->stack[segments->count++] = (struct segment){from, to};
}

void segments_split(struct segments *segments, uint32_t index)
{
    const struct segment *top = segments_top(segments);
    if (!top || index <= top->from || index >= top->to)
        abort();
    struct segment whole = *top;
    segments_pop(segments);
    push(segments, index, whole.to);
    push(segments, whole.from, index);
}

void segments_halve(struct segments *segments)
{
    const struct segment *top = segments_top(segments);
    if (!top)
        abort();
    segments_split(segments, top->from + (top->to - top->from) / 2);
}

void segments_cut(struct segments *segments, uint32_t index)
{
    const struct segment *top = segments_top(segments);
    if (!top || index < top->from || index >= top->to)
        abort();
    struct segment whole = *top;
    segments_pop(segments);
    push(segments, index + 1, whole.to);
    push(segments, index, index + 1);
    push(segments, whole.from, index);
}

void segments_remove(struct segments *segments, uint32_t index)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < segments->count; i++) {
        struct segment segment = segments->stack[i];
        segment.from -= segment.from > index;
        segment.to -= segment.to > index;
        if (segment.from < segment.to)
            segments->stack[kept++] = segment;
    }
    segments->count = kept;
}
