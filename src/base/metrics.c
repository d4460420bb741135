/* SPDX-License-Identifier: MIT */
/* metrics: see idem/base/metrics.h. Labels are written once, when a series is made; rendering copies them. */
#include "idem/base/metrics.h"

#include <stdlib.h>

enum { LABELS_MAX = 4096, CACHE_LINE = 64 };

struct family {
    const char *name, *help;
    enum metrics_kind kind;
    const struct metrics_buckets *buckets;
    uint32_t first, count;       /* series */
};

struct series {
    char *labels;                /* a="b",c="d"; NULL: none */
    size_t len;
    uint32_t cell;
};

struct sheet {
    struct sheet *next;
    metrics_cell *cells;
};

struct metrics {
    struct family *families;
    uint32_t family_count, family_size;
    struct series *series;
    uint32_t series_count, series_size;
    uint32_t cells;
    bool broken;
    _Atomic(struct sheet *) sheets;
};

/* ---- making ---------------------------------------------------------------------------------------------------- */

struct metrics *metrics_create(void)
{
    return calloc(1, sizeof(struct metrics));
}

void metrics_destroy(struct metrics *metrics)
{
    if (!metrics)
        return;
    for (struct sheet *sheet = atomic_load(&metrics->sheets), *next; sheet; sheet = next) {
        next = sheet->next;
        free(sheet->cells);
        free(sheet);
    }
    for (uint32_t i = 0; i < metrics->series_count; i++)
        free(metrics->series[i].labels);
    free(metrics->series);
    free(metrics->families);
    free(metrics);
}

/* Room for one more; the list stays as it is when memory is out. */
static bool grow(void **list, uint32_t count, uint32_t *size, size_t each)
{
    if (count < *size)
        return true;
    uint32_t larger = *size ? *size * 2 : 32;
    void *moved = realloc(*list, larger * each);
    if (!moved)
        return false;
    *list = moved;
    *size = larger;
    return true;
}

void metrics_family(struct metrics *metrics, const char *name, const char *help, enum metrics_kind kind,
                    const struct metrics_buckets *buckets)
{
    void *list = metrics->families;
    if (!grow(&list, metrics->family_count, &metrics->family_size, sizeof(struct family))) {
        metrics->broken = true;
        return;
    }
    metrics->families = list;
    metrics->families[metrics->family_count++] = (struct family){
        .name = name, .help = help, .kind = kind, .buckets = buckets, .first = metrics->series_count};
}

/* Inside quotes: \, " and line ends are escaped; a byte that is no UTF-8 becomes U+FFFD. */
static void put_value(struct buf *buf, struct bytes value)
{
    bool text = bytes_is_utf8(value);
    for (size_t i = 0; i < value.len; i++) {
        uint8_t c = value.at[i];
        if (c == '\n')
            buf_text(buf, "\\n");
        else if (c == '\\' || c == '"')
            buf_char(buf, '\\'), buf_char(buf, (char)c);
        else if (c >= 0x80 && !text)
            buf_text(buf, "\xef\xbf\xbd");
        else
            buf_char(buf, (char)c);
    }
}

static void put_labels(struct buf *buf, const struct metrics_label *labels, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_text(buf, i > 0 ? "," : "");
        buf_text(buf, labels[i].name);
        buf_text(buf, "=\"");
        put_value(buf, labels[i].value);
        buf_char(buf, '"');
    }
}

static bool keep_labels(struct series *series, const struct metrics_label *labels, uint32_t count)
{
    char text[LABELS_MAX];
    struct buf buf;
    buf_init(&buf, text, sizeof text);
    put_labels(&buf, labels, count);
    if (buf.overflow)
        return false;
    series->len = buf.len;
    series->labels = malloc(buf.len + 1);
    if (series->labels)
        memcpy(series->labels, text, buf.len);
    return series->labels != NULL;
}

uint32_t metrics_series(struct metrics *metrics, const struct metrics_label *labels, uint32_t count)
{
    void *list = metrics->series;
    if (metrics->broken || metrics->family_count == 0 ||
        !grow(&list, metrics->series_count, &metrics->series_size, sizeof(struct series))) {
        metrics->broken = true;
        return 0;
    }
    metrics->series = list;
    struct family *family = &metrics->families[metrics->family_count - 1];
    struct series *made = &metrics->series[metrics->series_count];
    *made = (struct series){.cell = metrics->cells};
    if (count > 0 && !keep_labels(made, labels, count)) {
        metrics->broken = true;
        return 0;
    }
    metrics->series_count++;
    family->count++;
    metrics->cells += family->buckets ? family->buckets->count + 2 : 1;
    return made->cell;
}

bool metrics_is_whole(const struct metrics *metrics)
{
    return !metrics->broken;
}

metrics_cell *metrics_sheet(struct metrics *metrics)
{
    size_t size = (metrics->cells * sizeof(metrics_cell) + CACHE_LINE) / CACHE_LINE * CACHE_LINE;
    struct sheet *sheet = malloc(sizeof *sheet);
    metrics_cell *cells = aligned_alloc(CACHE_LINE, size);
    if (!sheet || !cells) {
        free(sheet);
        free(cells);
        return NULL;
    }
    for (size_t i = 0; i < size / sizeof *cells; i++)
        atomic_init(&cells[i], 0);
    sheet->cells = cells;
    sheet->next = atomic_load(&metrics->sheets);
    while (!atomic_compare_exchange_weak(&metrics->sheets, &sheet->next, sheet))
        continue;
    return cells;
}

/* ---- rendering ------------------------------------------------------------------------------------------------- */

static void put_scaled(struct buf *buf, uint64_t value, uint32_t scale)
{
    buf_uint(buf, value / scale);
    uint64_t rest = value % scale;
    if (rest == 0)
        return;
    buf_char(buf, '.');
    while (rest > 0) {
        scale /= 10;
        buf_char(buf, (char)('0' + rest / scale));
        rest %= scale;
    }
}

void metrics_head(struct buf *buf, const char *name, const char *help, enum metrics_kind kind)
{
    static const char *const kinds[] = {
        [METRICS_COUNTER] = "counter", [METRICS_GAUGE] = "gauge", [METRICS_HISTOGRAM] = "histogram"};
    buf_text(buf, "# HELP ");
    buf_text(buf, name);
    buf_char(buf, ' ');
    buf_text(buf, help);
    buf_text(buf, "\n# TYPE ");
    buf_text(buf, name);
    buf_char(buf, ' ');
    buf_text(buf, kinds[kind]);
    buf_char(buf, '\n');
}

static void put_series(struct buf *buf, const char *name, const struct metrics_label *labels, uint32_t count)
{
    buf_text(buf, name);
    if (count > 0) {
        buf_char(buf, '{');
        put_labels(buf, labels, count);
        buf_char(buf, '}');
    }
    buf_char(buf, ' ');
}

void metrics_line_scaled(struct buf *buf, const char *name, const struct metrics_label *labels, uint32_t count,
                         uint64_t value, uint32_t scale)
{
    put_series(buf, name, labels, count);
    put_scaled(buf, value, scale);
    buf_char(buf, '\n');
}

void metrics_line(struct buf *buf, const char *name, const struct metrics_label *labels, uint32_t count,
                  int64_t value)
{
    put_series(buf, name, labels, count);
    buf_int(buf, value);
    buf_char(buf, '\n');
}

static uint64_t total(const struct metrics *metrics, uint32_t cell)
{
    uint64_t sum = 0;
    for (const struct sheet *sheet = atomic_load(&metrics->sheets); sheet; sheet = sheet->next)
        sum += atomic_load_explicit(&sheet->cells[cell], memory_order_relaxed);
    return sum;
}

/* name suffix{labels,more} */
static void put_name(struct buf *buf, const struct family *family, const char *suffix, const struct series *series,
                     bool more)
{
    buf_text(buf, family->name);
    buf_text(buf, suffix);
    if (series->len > 0 || more)
        buf_char(buf, '{');
    buf_put(buf, series->labels, series->len);
    if (series->len > 0 && !more)
        buf_char(buf, '}');
    else if (series->len > 0)
        buf_char(buf, ',');
}

static void put_histogram(const struct metrics *metrics, struct buf *buf, const struct family *family,
                          const struct series *series)
{
    const struct metrics_buckets *buckets = family->buckets;
    uint64_t count = 0;
    for (uint32_t i = 0; i <= buckets->count; i++) {
        count += total(metrics, series->cell + i);
        put_name(buf, family, "_bucket", series, true);
        buf_text(buf, "le=\"");
        if (i < buckets->count)
            put_scaled(buf, buckets->bounds[i], buckets->scale);
        else
            buf_text(buf, "+Inf");
        buf_text(buf, "\"} ");
        buf_uint(buf, count);
        buf_char(buf, '\n');
    }
    put_name(buf, family, "_sum", series, false);
    buf_char(buf, ' ');
    put_scaled(buf, total(metrics, series->cell + buckets->count + 1), buckets->scale);
    buf_char(buf, '\n');
    put_name(buf, family, "_count", series, false);
    buf_char(buf, ' ');
    buf_uint(buf, count);
    buf_char(buf, '\n');
}

void metrics_render(const struct metrics *metrics, struct buf *buf)
{
    for (uint32_t i = 0; i < metrics->family_count && !buf->overflow; i++) {
        const struct family *family = &metrics->families[i];
        metrics_head(buf, family->name, family->help, family->kind);
        for (uint32_t k = 0; k < family->count; k++) {
            const struct series *series = &metrics->series[family->first + k];
            if (family->buckets) {
                put_histogram(metrics, buf, family, series);
                continue;
            }
            put_name(buf, family, "", series, false);
            buf_char(buf, ' ');
            buf_uint(buf, total(metrics, series->cell));
            buf_char(buf, '\n');
        }
    }
}
