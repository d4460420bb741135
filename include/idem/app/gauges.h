/* SPDX-License-Identifier: MIT */
/* gauges: what intake's partitions look like at a moment, copied now and then so that a scrape neither waits for the
 * intake thread nor holds it up. Taken by the intake thread, read by any. */
#ifndef IDEM_APP_GAUGES_H
#define IDEM_APP_GAUGES_H

#include "idem/app/intake.h"

#include <pthread.h>

/* One partition that is ours. */
struct gauge {
    const struct topic *topic;
    int32_t number;
    int64_t commit;              /* next offset to go on from; 0 = not known yet */
    int64_t lag;                 /* records behind the end of the log, as far as the last fetch told; 0 = not known */
    uint32_t oldest_ms;          /* how long the oldest unfinished record has been here */
    uint32_t halts;              /* 1 << enum halt_why, its own */
};

struct gauges {
    pthread_mutex_t lock;
    const struct config *config;
    struct gauge *list;
    uint32_t count, size;
    uint64_t *inflight;          /* by topic: records between poll and commit */
};

/* Empty. config is borrowed until gauges_finish. false: out of memory. */
bool gauges_init(struct gauges *gauges, const struct config *config);
void gauges_finish(struct gauges *gauges);

/* Copies; nothing happens while somebody reads. By the intake thread, between its steps. */
void gauges_take(struct gauges *gauges, const struct intake *intake);

/* Between these two nobody changes `list`, `count` and `inflight`. */
void gauges_hold(struct gauges *gauges);
void gauges_release(struct gauges *gauges);

#endif
