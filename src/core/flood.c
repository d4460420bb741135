/* SPDX-License-Identifier: MIT */
/* flood: see idem/core/flood.h. Never decides what to do about it. */
#include "idem/core/flood.h"

#include <string.h>

/* Seconds that have passed out of the minute are taken out of the sums. */
static void move_on(struct flood *flood, int64_t now_s)
{
    if (now_s - flood->second >= FLOOD_SECONDS) {
        memset(flood, 0, sizeof *flood);
        flood->second = now_s;
    }
    while (flood->second < now_s) {
        int64_t at = ++flood->second % FLOOD_SECONDS;
        flood->records -= flood->seconds[at].records;
        flood->letters -= flood->seconds[at].letters;
        flood->seconds[at].records = flood->seconds[at].letters = 0;
    }
}

void flood_note(struct flood *flood, int64_t now_s, bool letter)
{
    move_on(flood, now_s);
    int64_t at = flood->second % FLOOD_SECONDS;
    flood->seconds[at].records++;
    flood->records++;
    flood->seconds[at].letters += letter;
    flood->letters += letter;
}

bool flood_is_over(struct flood *flood, int64_t now_s, uint32_t share_ppm)
{
    move_on(flood, now_s);
    return share_ppm < 1000000 && flood->records >= FLOOD_RECORDS_MIN &&
           flood->letters * 1000000 > flood->records * share_ppm;
}
