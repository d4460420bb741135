/* SPDX-License-Identifier: MIT */
/* retry: how long to wait before the next attempt. Pure; the caller gives the random number. */
#ifndef IDEM_CORE_RETRY_H
#define IDEM_CORE_RETRY_H

#include <stdint.h>

/* Exponential from base_ms, capped, with full jitter over the upper half: [d/2, d]. attempt counts from 1. */
uint32_t retry_delay_ms(uint32_t attempt, uint32_t base_ms, uint32_t cap_ms, uint64_t random);

#endif
