/* SPDX-License-Identifier: MIT */
/* retention: see idem/core/retention.h. Asks nobody: Kafka's answer is brought. */
#include "idem/core/retention.h"

static const uint64_t letters_ms = 90 * UINT64_C(86400000);      /* dead_letter.keep, the only value there is so far */

/* 604800000 -> 7d; as a person would write it. */
static void put_duration(struct buf *buf, uint64_t ms)
{
    static const struct {
        uint64_t ms;
        const char *name;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    if (ms == 0)
        buf_text(buf, "0s");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (ms / units[i].ms > 0) {
            buf_uint(buf, ms / units[i].ms);
            buf_text(buf, units[i].name);
        }
        ms %= units[i].ms;
    }
}

/* It is given up when `for` is over and all attempts are used. */
static uint64_t longest_park_ms(const struct rule *rule)
{
    uint64_t retries = rule->park.attempts * rule->park.backoff_cap_ms;
    if (rule->park.for_ms == 0)
        return 0;
    return retries > rule->park.for_ms ? retries : rule->park.for_ms;
}

bool retention_is_short(const struct rule *rule, int64_t kept_ms, bool guarded, struct buf *ret_sum)
{
    uint64_t ttl_ms = (uint64_t)rule->ttl_s * 1000, park_ms = longest_park_ms(rule);
    uint64_t wanted = (uint64_t)kept_ms + park_ms + (guarded ? 0 : letters_ms);
    bool forever = kept_ms == RETENTION_FOREVER;
    if (rule->ttl_s < 0 || (!forever && ttl_ms >= wanted))
        return false;
    buf_text(ret_sum, "ttl ");
    put_duration(ret_sum, ttl_ms);
    if (forever) {
        buf_text(ret_sum, ", and Kafka keeps the topic for ever (retention.ms=-1, compacted): ");
        buf_text(ret_sum, "what is read again later is ");
    } else {
        buf_text(ret_sum, " < retention.ms ");
        put_duration(ret_sum, (uint64_t)kept_ms);
        buf_text(ret_sum, " + longest park ");
        put_duration(ret_sum, park_ms);
        if (!guarded) {
            buf_text(ret_sum, " + dead_letter.keep ");
            put_duration(ret_sum, letters_ms);
        }
        buf_text(ret_sum, " = ");
        put_duration(ret_sum, wanted);
        buf_text(ret_sum, ": what comes again in between is ");
    }
    buf_text(ret_sum, guarded ? "judged by its business row alone" : "applied again");
    return true;
}
