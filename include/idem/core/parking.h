/* SPDX-License-Identifier: MIT */
/* parking: when a parked record is tried again and when it is given up (design section 6 `park`; details section 1,
 * Parking; table B13). Pure: durations only, the database adds its own clock. */
#ifndef IDEM_CORE_PARKING_H
#define IDEM_CORE_PARKING_H

#include "idem/core/item.h"

enum park_clock {
    PARK_CLOCK_STOPPED,      /* give_up_at = the end of time: locked and behind do not count */
    PARK_CLOCK_STARTED,      /* give_up_at = now + park.for */
    PARK_CLOCK_KEPT,         /* as it stands */
    PARK_CLOCK_SHIFTED       /* later by the delay: that time is spent locked */
};

enum { PARK_UNTIL_WOKEN = 0 };       /* delay of those that only the end of their head makes due */

struct park_step {
    bool give_up;            /* nothing below counts then */
    enum cause reason;       /* CAUSE_NOT_FOUND, CAUSE_STATE, CAUSE_LOCKED, CAUSE_BEHIND */
    uint32_t attempts;
    uint64_t delay_ms;       /* PARK_UNTIL_WOKEN: next_attempt_at = the end of time */
    bool until_give_up;      /* next_attempt_at is not after give_up_at */
    enum park_clock clock;
    uint64_t for_ms;         /* PARK_CLOCK_STARTED */
};

/* A live record is parked for this reason. */
struct park_step park_first(const struct park_config *park, enum cause reason);

/* A parked one has to wait on for this reason; row as it was read. */
struct park_step park_again(const struct park_config *park, const struct parked_row *row, enum cause reason);

/* It is not looked at again by itself (orphaned, or behind another). */
struct park_step park_still(const struct parked_row *row);

/* Makes an evaluated item the record of this row of idem_parked: texts are copied into the arena; what today's rules
 * judge as another fact is orphaned; a redrive has no origin that could come again (details 1, "Same origin"). */
void parked_row_bind(struct item *item, const struct parked_row *row, struct arena *arena);

/* B13: what a parked record of this last reason ends as. *ret_cause belongs to it. */
enum outcome park_given_up(enum cause reason, enum cause *ret_cause);

#endif
