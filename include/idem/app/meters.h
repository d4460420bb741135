/* SPDX-License-Identifier: MIT */
/* meters: what is counted, by the names of the contract (design section 7, Metrics). Made from the configuration, so
 * that every series is there, at 0, before the first record. A thread counts through a meter of its own; what is read
 * at the time of a scrape (partitions, letters, readiness) is in gauges.h. */
#ifndef IDEM_APP_METERS_H
#define IDEM_APP_METERS_H

#include "idem/base/metrics.h"
#include "idem/core/config.h"
#include "idem/port/report.h"

struct meters;

/* `config` is borrowed until meters_destroy. NULL: out of memory. */
struct meters *meters_create(const struct config *config);
void meters_destroy(struct meters *meters);                  /* NULL is fine */

/* Everything counted so far, as text. Any thread. */
void meters_render(const struct meters *meters, struct buf *buf);

/* One thread's. */
struct meter {
    const struct meters *meters;
    metrics_cell *cells;
};

/* false: out of memory. The meter is valid until meters_destroy. */
bool meter_init(struct meter *meter, struct meters *meters);

/* A record that is finished; wall_ms: now, milliseconds since 1970. */
void meter_outcome(struct meter *meter, const struct item *item, int64_t wall_ms);
void meter_event(struct meter *meter, enum report_event event, const struct report_fields *fields);
/* As report_port.transaction. */
void meter_transaction(struct meter *meter, uint32_t database, enum report_tx result, uint32_t records,
                       int64_t took_us);
/* A SIGHUP: the file was taken, or refused. */
void meter_reload(struct meter *meter, bool taken);

#endif
