/* SPDX-License-Identifier: MIT */
/* retention: how long a key is known against how long its record may come again (design section 5, Purge): as long as
 * Kafka keeps it, then as long as it may be parked, then, for a rule that nothing but its dedupe row guards, as long as
 * its dead letter may be redriven. Pure; for idemctl check and for the daemon, which say the same. */
#ifndef IDEM_CORE_RETENTION_H
#define IDEM_CORE_RETENTION_H

#include "idem/base/buf.h"
#include "idem/core/config.h"

enum { RETENTION_FOREVER = -1 };

/* True if the rule's ttl is shorter than that, and the sum in words is appended to `ret_sum` (some 200 bytes). kept_ms:
 * retention.ms of its topic, or RETENTION_FOREVER. guarded: something beside the dedupe row keeps a late record from
 * being applied again. */
bool retention_is_short(const struct rule *rule, int64_t kept_ms, bool guarded, struct buf *ret_sum);

#endif
