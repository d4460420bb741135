/* SPDX-License-Identifier: MIT */
/* park_gate: whether a partition may have rows in idem_parked, so that looking is free while nothing waits. Raised
 * before a transaction that parks commits and again after it (a look at the table may fall between); lowered when the
 * table was seen empty and nothing has been parked since the look began. Shared by intake and workers, lives as long
 * as intake. */
#ifndef IDEM_APP_PARK_GATE_H
#define IDEM_APP_PARK_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct park_gate {
    atomic_uint_fast64_t raised;     /* rises with every record that may have been parked */
    atomic_uint_fast64_t lowered;    /* value of `raised` when the partition was last seen without rows */
};

/* NULL: nobody counts, nothing to do. */
static inline void park_gate_raise(struct park_gate *gate)
{
    if (gate)
        atomic_fetch_add(&gate->raised, 1);
}

/* false: surely nothing is parked. NULL: nobody counts, so always look. */
static inline bool park_gate_is_open(struct park_gate *gate)
{
    return !gate || atomic_load(&gate->raised) != atomic_load(&gate->lowered);
}

#endif
