/* SPDX-License-Identifier: MIT */
/* metrics: counters and histograms that many threads raise and one reads, and their text form (the Prometheus
 * exposition format 0.0.4). Families and series are made at start; every thread that counts has a sheet of its own
 * with a place for each series, so that counting is one addition in memory that nobody else writes: no lock, no
 * allocation, no shared cache line. A reader adds the sheets up. Whole numbers only; a histogram of milliseconds is
 * shown in seconds by its scale. */
#ifndef IDEM_BASE_METRICS_H
#define IDEM_BASE_METRICS_H

#include "idem/base/buf.h"

#include <stdatomic.h>

enum metrics_kind { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM };

struct metrics_buckets {
    const uint64_t *bounds;      /* upper bounds, inclusive, rising; +Inf is added */
    uint32_t count;
    uint32_t scale;              /* a power of ten: so many units make one of what is shown */
};

struct metrics_label {
    const char *name;
    struct bytes value;          /* any bytes; escaped here, and what is no UTF-8 replaced */
};

typedef atomic_uint_least64_t metrics_cell;

struct metrics;

/* Empty. NULL: out of memory. */
struct metrics *metrics_create(void);
/* With all sheets; NULL is fine. */
void metrics_destroy(struct metrics *metrics);

/* A family, shown in the order they are made. Texts and buckets are borrowed while the registry lives; buckets are
 * NULL for what is no histogram. */
void metrics_family(struct metrics *metrics, const char *name, const char *help, enum metrics_kind kind,
                    const struct metrics_buckets *buckets);

/* A series of the last family; its first cell. Series of one family that are made one after the other have cells one
 * after the other (a histogram takes bounds + 2). */
uint32_t metrics_series(struct metrics *metrics, const struct metrics_label *labels, uint32_t count);

/* false: memory ran out while families or series were made. */
bool metrics_is_whole(const struct metrics *metrics);

/* A new sheet, all 0, after the last series was made; freed with the registry. NULL: out of memory. May be called
 * while another thread renders. */
metrics_cell *metrics_sheet(struct metrics *metrics);

/* Only by the thread that owns the sheet. */
static inline void metrics_add(metrics_cell *sheet, uint32_t cell, uint64_t amount)
{
    atomic_store_explicit(&sheet[cell], atomic_load_explicit(&sheet[cell], memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

/* One value into a histogram series. Only by the thread that owns the sheet. */
static inline void metrics_observe(metrics_cell *sheet, uint32_t cell, const struct metrics_buckets *buckets,
                                   uint64_t value)
{
    uint32_t at = 0;
    while (at < buckets->count && value > buckets->bounds[at])
        at++;
    metrics_add(sheet, cell + at, 1);
    metrics_add(sheet, cell + buckets->count + 1, value);
}

/* All families, over all sheets. What does not fit sets buf->overflow. Any thread. */
void metrics_render(const struct metrics *metrics, struct buf *buf);

/* ---- the text form, for series that come and go ------------------------------------------------------------------ */

/* # HELP and # TYPE lines. */
void metrics_head(struct buf *buf, const char *name, const char *help, enum metrics_kind kind);
/* name{label="value",...} number */
void metrics_line(struct buf *buf, const char *name, const struct metrics_label *labels, uint32_t count,
                  int64_t value);
/* The same with value / scale; scale is a power of ten. */
void metrics_line_scaled(struct buf *buf, const char *name, const struct metrics_label *labels, uint32_t count,
                         uint64_t value, uint32_t scale);

#endif
