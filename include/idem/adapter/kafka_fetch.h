/* SPDX-License-Identifier: MIT */
/* fetch: one record by its offset, for tools. Joins no group, commits nothing. */
#ifndef IDEM_ADAPTER_KAFKA_FETCH_H
#define IDEM_ADAPTER_KAFKA_FETCH_H

#include "idem/base/arena.h"
#include "idem/base/err.h"
#include "idem/core/config.h"
#include "idem/core/record.h"

/* The record at exactly this offset, its bytes copied into arena. *ret_found false: there is none (gap, beyond the
 * end, gone). ERR_CONFIG: properties; ERR_RECONNECT: no answer within timeout_ms; ERR_FATAL: arena too small. */
enum err_class kafka_fetch_one(const struct config *config, struct bytes topic, int32_t partition, int64_t offset,
                               uint32_t timeout_ms, struct arena *arena, struct record *ret, bool *ret_found,
                               struct err *err);

#endif
