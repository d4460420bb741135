/* SPDX-License-Identifier: MIT */
/* gaps: see idem/core/gaps.h. */
#include "idem/core/gaps.h"

#include <string.h>

void gaps_init(struct gaps *gaps)
{
    *gaps = (struct gaps){.step = 1};
}

void gaps_drop(struct gaps *gaps, uint32_t index)
{
    gaps->count--;
    memmove(&gaps->list[index], &gaps->list[index + 1], (gaps->count - index) * sizeof *gaps->list);
}

/* Room for one more: the two that lie closest become one. */
static void join_closest(struct gaps *gaps)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i + 1 < gaps->count; i++)
        if (gaps->list[i + 1].from - gaps->list[i].to < gaps->list[best + 1].from - gaps->list[best].to)
            best = i;
    gaps->list[best].to = gaps->list[best + 1].to;
    if (gaps->list[best + 1].since_us < gaps->list[best].since_us)
        gaps->list[best].since_us = gaps->list[best + 1].since_us;
    gaps_drop(gaps, best + 1);
}

/* The gap that holds the number; count: none. */
static uint32_t find(const struct gaps *gaps, uint64_t number)
{
    uint32_t low = 0, high = gaps->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (gaps->list[middle].to < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < gaps->count && gaps->list[low].from <= number ? low : gaps->count;
}

static void fill(struct gaps *gaps, uint64_t number)
{
    uint32_t at = find(gaps, number);
    if (at == gaps->count)
        return;
    struct gap *gap = &gaps->list[at];
    if (gap->from == gap->to) {
        gaps_drop(gaps, at);
    } else if (gap->from == number) {
        gap->from++;
    } else if (gap->to == number) {
        gap->to--;
    } else {
        if (gaps->count == GAPS_MAX)
            join_closest(gaps);
        at = find(gaps, number);
        memmove(&gaps->list[at + 1], &gaps->list[at], (gaps->count - at) * sizeof *gaps->list);
        gaps->list[at].to = number - 1;
        gaps->list[at + 1].from = number + 1;
        gaps->count++;
    }
}

void gaps_see(struct gaps *gaps, uint64_t number, int64_t now_us)
{
    if (number <= gaps->high) {
        fill(gaps, number);
        return;
    }
    /* Of what lies below the first number ever, a hole is as likely as any other. */
    if (number - gaps->high > gaps->step) {
        if (gaps->count == GAPS_MAX)
            join_closest(gaps);
        gaps->list[gaps->count++] = (struct gap){gaps->high + 1, number - 1, now_us};
    }
    gaps->high = number;
}

void gaps_look_again(struct gaps *gaps)
{
    gaps->again = 0;
    gaps->again_end = gaps->high;
}

void gaps_read_to(struct gaps *gaps, uint64_t last, bool end)
{
    if (end || last > gaps->again_end)
        gaps->again = gaps->again_end;
    else if (last > gaps->again)
        gaps->again = last;
}
