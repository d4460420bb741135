/* SPDX-License-Identifier: MIT */
/* flood: whether too large a share of a topic's records became dead letters within the last minute (design section 6,
 * limits.dead_letter_share): then most likely the rules or the producer are wrong, and going on would empty the topic
 * into letters. Pure: the caller brings the clock. */
#ifndef IDEM_CORE_FLOOD_H
#define IDEM_CORE_FLOOD_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FLOOD_SECONDS = 60,
    FLOOD_RECORDS_MIN = 100      /* fewer say nothing about a share */
};

/* Zeroed = nothing was seen. */
struct flood {
    struct {
        uint32_t records, letters;
    } seconds[FLOOD_SECONDS];    /* ring, by second modulo its size */
    int64_t second;              /* the newest */
    uint64_t records, letters;   /* sums of the ring */
};

/* Notes one finished record. now_s: seconds on a monotonic clock. */
void flood_note(struct flood *flood, int64_t now_s, bool letter);

/* More than share_ppm millionths of the last minute's records, and enough of them, became letters. 1000000 = never. */
bool flood_is_over(struct flood *flood, int64_t now_s, uint32_t share_ppm);

#endif
