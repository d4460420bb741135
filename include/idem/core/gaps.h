/* SPDX-License-Identifier: MIT */
/* gaps: which numbers of an auto-increment table were seen, if rows are read in ascending order but committed in any.
 * Up to `high` every number was seen or lies in a gap: there a transaction may still be open, so gaps are read again
 * and again, and a row that is committed late is found before a higher one that was written after it. Pure. */
#ifndef IDEM_CORE_GAPS_H
#define IDEM_CORE_GAPS_H

#include <stdbool.h>
#include <stdint.h>

enum { GAPS_MAX = 128 };             /* more are joined: what lies between two is then read again, too */

struct gap {
    uint64_t from, to;               /* both are in it */
    int64_t since_us;
};

struct gaps {
    struct gap list[GAPS_MAX];       /* ascending */
    uint32_t count;
    uint64_t high;                   /* the highest number seen */
    uint64_t step;                   /* by so much numbers rise by themselves (auto_increment_increment) */
    uint64_t again, again_end;       /* (again, again_end] is looked at once more; equal: nothing is */
};

/* Nothing seen. */
void gaps_init(struct gaps *gaps);

/* A row of that number was read. Within one reading numbers rise. */
void gaps_see(struct gaps *gaps, uint64_t number, int64_t now_us);

/* All that was seen so far is looked at once more, from the first number on. */
void gaps_look_again(struct gaps *gaps);

/* A reading of gaps, `again` and everything above `high`, in ascending order, came up to `last`; end: there was no
 * more. */
void gaps_read_to(struct gaps *gaps, uint64_t last, bool end);

/* Nobody will ever commit in this one. */
void gaps_drop(struct gaps *gaps, uint32_t index);

#endif
