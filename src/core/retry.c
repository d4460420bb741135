/* SPDX-License-Identifier: MIT */
/* retry: see idem/core/retry.h. */
#include "idem/core/retry.h"

uint32_t retry_delay_ms(uint32_t attempt, uint32_t base_ms, uint32_t cap_ms, uint64_t random)
{
    uint64_t delay = base_ms;
    for (uint32_t i = 1; i < attempt && delay < cap_ms; i++)
        delay *= 2;
    if (delay > cap_ms)
        delay = cap_ms;
    uint64_t half = delay / 2;
    return (uint32_t)(half + (delay - half ? random % (delay - half + 1) : 0));
}
