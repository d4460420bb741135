/* SPDX-License-Identifier: MIT */
/* relay_rows: see relay_rows.h. Published rows leave their aggregate at once and wait for their deletion in a list of
 * their own bucket only, so that the next of the aggregate need not wait for it. */
#include "relay_rows.h"

#include <stdlib.h>

enum { BUCKETS = 8192 };

bool relay_rows_init(struct relay_rows *rows)
{
    *rows = (struct relay_rows){0};
    rows->rows = calloc(BUCKETS, sizeof *rows->rows);
    rows->aggregates = calloc(BUCKETS, sizeof *rows->aggregates);
    rows->ready_end = &rows->ready;
    if (rows->rows && rows->aggregates)
        return true;
    free(rows->rows);
    free(rows->aggregates);
    return false;
}

void relay_rows_clear(struct relay_rows *rows)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        while (rows->rows[i]) {
            struct relay_row *row = rows->rows[i];
            rows->rows[i] = row->next_in_bucket;
            free(row);
        }
        while (rows->aggregates[i]) {
            struct aggregate *aggregate = rows->aggregates[i];
            rows->aggregates[i] = aggregate->next_in_bucket;
            free(aggregate);
        }
    }
    rows->ready = NULL;
    rows->ready_end = &rows->ready;
    rows->count = rows->sent = rows->done = 0;
    rows->bytes = rows->sent_bytes = 0;
}

void relay_rows_finish(struct relay_rows *rows)
{
    if (rows->rows)
        relay_rows_clear(rows);
    free(rows->rows);
    free(rows->aggregates);
    *rows = (struct relay_rows){0};
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static struct relay_row **row_bucket(const struct relay_rows *rows, uint64_t seq)
{
    return &rows->rows[seq % BUCKETS];
}

struct relay_row *relay_rows_find(const struct relay_rows *rows, uint64_t seq)
{
    struct relay_row *row = *row_bucket(rows, seq);
    while (row && row->event.seq != seq)
        row = row->next_in_bucket;
    return row;
}

static uint64_t aggregate_hash(const struct outbox_event *event)
{
    return bytes_hash(event->aggregate, bytes_hash(event->topic, 29));
}

static struct aggregate *find_aggregate(const struct relay_rows *rows, const struct outbox_event *event, uint64_t hash)
{
    struct aggregate *aggregate = rows->aggregates[hash % BUCKETS];
    while (aggregate && (aggregate->hash != hash || !bytes_equal(aggregate->rows->event.aggregate, event->aggregate) ||
                         !bytes_equal(aggregate->rows->event.topic, event->topic)))
        aggregate = aggregate->next_in_bucket;
    return aggregate;
}

static size_t message_size(const struct relay_row *row)
{
    return (size_t)row->event.size + row->event.aggregate.len;
}

/* It is on its way no more. */
static void come_back(struct relay_rows *rows, const struct relay_row *row)
{
    if (row->state != ROW_SENT)
        return;
    rows->sent--;
    rows->sent_bytes -= message_size(row);
}

/* ---- the ready list ---------------------------------------------------------------------------------------------- */

static void make_ready(struct relay_rows *rows, struct aggregate *aggregate)
{
    if (aggregate->ready_place)
        return;
    aggregate->next_ready = NULL;
    aggregate->ready_place = rows->ready_end;
    *rows->ready_end = aggregate;
    rows->ready_end = &aggregate->next_ready;
}

static void leave_ready(struct relay_rows *rows, struct aggregate *aggregate)
{
    if (!aggregate->ready_place)
        return;
    *aggregate->ready_place = aggregate->next_ready;
    if (aggregate->next_ready)
        aggregate->next_ready->ready_place = aggregate->ready_place;
    else
        rows->ready_end = aggregate->ready_place;
    aggregate->ready_place = NULL;
}

struct relay_row *relay_rows_next(struct relay_rows *rows)
{
    struct aggregate *aggregate = rows->ready;
    if (!aggregate)
        return NULL;
    leave_ready(rows, aggregate);
    aggregate->rows->state = ROW_SENT;
    rows->sent++;
    rows->sent_bytes += message_size(aggregate->rows);
    return aggregate->rows;
}

/* ---- adding and removing ----------------------------------------------------------------------------------------- */

static struct bytes copy(struct bytes bytes, uint8_t **at)
{
    struct bytes copied = bytes_of(*at, bytes.len);
    if (bytes.len)
        memcpy(*at, bytes.at, bytes.len);
    *at += bytes.len;
    return copied;
}

static struct relay_row *make_row(const struct outbox_event *event)
{
    size_t size = sizeof(struct relay_row) + event->id.len + event->topic.len + event->aggregate.len +
                  event->payload.len + event->headers.len;
    struct relay_row *row = calloc(1, size);
    if (!row)
        return NULL;
    uint8_t *at = (uint8_t *)(row + 1);
    row->size = size;
    row->event.seq = event->seq;
    row->event.size = event->size;
    row->event.id = copy(event->id, &at);
    row->event.topic = copy(event->topic, &at);
    row->event.aggregate = copy(event->aggregate, &at);
    row->event.payload = copy(event->payload, &at);
    row->event.headers = copy(event->headers, &at);
    return row;
}

/* In order of numbers: one that was committed late goes before those that still wait. */
static void insert(struct aggregate *aggregate, struct relay_row *row)
{
    struct relay_row **at = &aggregate->rows;
    while (*at && ((*at)->event.seq < row->event.seq || (*at)->state == ROW_SENT))
        at = &(*at)->next;
    row->next = *at;
    *at = row;
    row->aggregate = aggregate;
}

bool relay_rows_add(struct relay_rows *rows, const struct outbox_event *event, bool *ret_new)
{
    uint64_t hash = aggregate_hash(event);
    struct aggregate *aggregate = find_aggregate(rows, event, hash);
    *ret_new = false;
    if (relay_rows_find(rows, event->seq) || (aggregate && aggregate->blocked_until_us > 0))
        return true;
    struct relay_row *row = make_row(event);
    if (!aggregate && row)
        aggregate = calloc(1, sizeof *aggregate);
    if (!row || !aggregate) {
        free(row);
        return false;
    }
    bool is_new = aggregate->rows == NULL;
    insert(aggregate, row);
    if (is_new) {
        aggregate->hash = hash;
        aggregate->next_in_bucket = rows->aggregates[hash % BUCKETS];
        rows->aggregates[hash % BUCKETS] = aggregate;
        make_ready(rows, aggregate);
    }
    row->next_in_bucket = *row_bucket(rows, event->seq);
    *row_bucket(rows, event->seq) = row;
    rows->count++;
    rows->bytes += row->size;
    *ret_new = true;
    return true;
}

static void forget_aggregate(struct relay_rows *rows, struct aggregate *aggregate)
{
    struct aggregate **at = &rows->aggregates[aggregate->hash % BUCKETS];
    while (*at != aggregate)
        at = &(*at)->next_in_bucket;
    *at = aggregate->next_in_bucket;
    leave_ready(rows, aggregate);
    free(aggregate);
}

/* Out of its aggregate; whoever comes next there may go. */
static void part(struct relay_rows *rows, struct relay_row *row)
{
    struct aggregate *aggregate = row->aggregate;
    struct relay_row **at = &aggregate->rows;
    while (*at != row)
        at = &(*at)->next;
    *at = row->next;
    row->next = NULL;
    row->aggregate = NULL;
    if (!aggregate->rows)
        forget_aggregate(rows, aggregate);
    else if (aggregate->rows->state == ROW_WAITS && aggregate->blocked_until_us == 0)
        make_ready(rows, aggregate);
}

void relay_rows_remove(struct relay_rows *rows, uint64_t seq)
{
    struct relay_row **at = row_bucket(rows, seq);
    while (*at && (*at)->event.seq != seq)
        at = &(*at)->next_in_bucket;
    struct relay_row *row = *at;
    if (!row)
        return;
    *at = row->next_in_bucket;
    if (row->aggregate)
        part(rows, row);
    come_back(rows, row);
    rows->done -= row->state == ROW_DONE;
    rows->count--;
    rows->bytes -= row->size;
    free(row);
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

void relay_rows_wait(struct relay_rows *rows, struct relay_row *row)
{
    come_back(rows, row);
    row->state = ROW_WAITS;
    make_ready(rows, row->aggregate);
}

void relay_rows_publish(struct relay_rows *rows, struct relay_row *row)
{
    come_back(rows, row);
    rows->done++;
    row->state = ROW_DONE;
    part(rows, row);
}

void relay_rows_block(struct relay_rows *rows, struct relay_row *row, int64_t until_us)
{
    struct aggregate *aggregate = row->aggregate;
    come_back(rows, row);
    row->state = ROW_WAITS;
    aggregate->blocked_until_us = until_us;
    leave_ready(rows, aggregate);
    while (row->next)
        relay_rows_remove(rows, row->next->event.seq);
}

int64_t relay_rows_unblock(struct relay_rows *rows, int64_t now_us, uint32_t *ret_unblocked)
{
    int64_t next = INT64_MAX;
    *ret_unblocked = 0;
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct aggregate *aggregate = rows->aggregates[i]; aggregate; aggregate = aggregate->next_in_bucket) {
            if (aggregate->blocked_until_us == 0)
                continue;
            if (aggregate->blocked_until_us > now_us) {
                next = aggregate->blocked_until_us < next ? aggregate->blocked_until_us : next;
                continue;
            }
            aggregate->blocked_until_us = 0;
            make_ready(rows, aggregate);
            ++*ret_unblocked;
        }
    return next;
}

uint32_t relay_rows_blocked(const struct relay_rows *rows, uint64_t *ret_seqs, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < BUCKETS && count < max; i++)
        for (const struct aggregate *aggregate = rows->aggregates[i]; aggregate && count < max;
             aggregate = aggregate->next_in_bucket)
            if (aggregate->blocked_until_us > 0)
                ret_seqs[count++] = aggregate->rows->event.seq;
    return count;
}

uint32_t relay_rows_published(const struct relay_rows *rows, uint64_t *ret_seqs, struct bytes *ret_ids, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < BUCKETS && count < max && rows->done > count; i++)
        for (const struct relay_row *row = rows->rows[i]; row && count < max; row = row->next_in_bucket)
            if (row->state == ROW_DONE) {
                ret_ids[count] = row->event.id;
                ret_seqs[count++] = row->event.seq;
            }
    return count;
}

void relay_rows_unsend(struct relay_rows *rows)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct relay_row *row = rows->rows[i]; row; row = row->next_in_bucket)
            if (row->state == ROW_SENT)
                relay_rows_wait(rows, row);
}

void relay_rows_drop_topic(struct relay_rows *rows, struct bytes topic)
{
    for (uint32_t i = 0; i < BUCKETS; i++)
        for (struct relay_row *row = rows->rows[i]; row;) {
            struct relay_row *next = row->next_in_bucket;
            if (row->state == ROW_WAITS && bytes_equal(row->event.topic, topic))
                relay_rows_remove(rows, row->event.seq);
            row = next;
        }
}
