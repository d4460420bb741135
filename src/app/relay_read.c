/* SPDX-License-Identifier: MIT */
/* relay_read: which rows the relay reads, and when (relay_self.h). By state, never by a cursor: numbers are committed
 * in any order, so those that were passed over stay gaps until nobody can commit there (core/gaps.h). What a row must
 * not overtake is therefore always read before it. */
#include "relay_self.h"

enum {
    READ_AT_ONCE = 500, HELD_MAX = 10000, BYTES_MAX = 16 << 20,
    LOOK_EVERY_US = 50000,           /* an empty outbox */
    AGAIN_EVERY_US = 10000000,       /* numbers that nobody could expect: a counter set back, a table restored */
    GAP_AGE_US = 5000000,            /* longer than a statement needs between taking a number and inserting the row */
    GAPS_EVERY_US = 1000000, GAPS_AT_ONCE = 8,
    REFUSED_EVERY_US = 2000000, REFUSED_AT_ONCE = 32,
    COUNT_EVERY_US = 5000000, COUNT_AT_ONCE = 20000, COUNT_PAUSE_US = 50000,
    SHARE = 20                       /* looks that cost more than usual are made so much rarer: 5 % of the time */
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool relay_has_room(const struct relay *relay)
{
    return relay->rows.count < HELD_MAX && relay->rows.bytes < BYTES_MAX;
}

void relay_read_anew(struct relay *relay)
{
    int64_t now = relay_now(relay);
    relay->reading = (struct relay_reading){.again_us = now + AGAIN_EVERY_US};
    relay->counting = (struct relay_counting){0};
    gaps_init(&relay->reading.gaps);
}

void relay_look_again(struct relay *relay)
{
    gaps_look_again(&relay->reading.gaps);
    relay->reading.began_us = relay_now(relay);
    relay->reading.again_us = INT64_MAX;             /* told when it has ended */
    relay->reading.due_us = 0;
}

static bool take_row(void *context, const struct outbox_event *event)
{
    struct relay *relay = context;
    bool is_new;
    if (!relay_topics_active(&relay->blocked, event->topic) && !relay_rows_add(&relay->rows, event, &is_new)) {
        relay->reading.stopped = true;               /* out of memory: this one is read again */
        return false;
    }
    gaps_see(&relay->reading.gaps, event->seq, relay_now(relay));
    relay->reading.last = event->seq;
    relay->reading.stopped = !relay_has_room(relay);
    return !relay->reading.stopped;
}

/* A look at everything has ended. */
static void plan_look(struct relay_reading *reading, int64_t now)
{
    if (reading->again_us != INT64_MAX || reading->gaps.again < reading->gaps.again_end)
        return;
    reading->again_us = now + later(AGAIN_EVERY_US, SHARE * (now - reading->began_us));
}

bool relay_read(struct relay *relay)
{
    struct relay_reading *reading = &relay->reading;
    struct bytes bare[RELAY_TOPICS_MAX];
    struct err err = {0};
    uint32_t count = 0, bare_count = relay_topics_names(&relay->blocked, bare);
    int64_t now = relay_now(relay);
    if (now < reading->due_us || !relay_has_room(relay))
        return true;
    if (now >= reading->again_us)
        relay_look_again(relay);
    reading->stopped = false;
    reading->last = 0;
    if (relay->init.outbox->ops->read(relay->init.outbox->self, &reading->gaps, READ_AT_ONCE, bare, bare_count,
                                      take_row, relay, &count, &err) != ERR_NONE) {
        relay_failed(relay);
        return false;
    }
    bool end = count < READ_AT_ONCE && !reading->stopped;
    gaps_read_to(&reading->gaps, reading->last, end);
    plan_look(reading, relay_now(relay));
    /* Stopped though there is room: no memory for the row. */
    reading->due_us = end || (reading->stopped && relay_has_room(relay)) ? now + LOOK_EVERY_US : 0;
    return true;
}

/* A few at a time. One whose transaction is at work is asked about again later. */
bool relay_close_gaps(struct relay *relay)
{
    struct relay_reading *reading = &relay->reading;
    struct gaps *gaps = &reading->gaps;
    struct err err = {0};
    int64_t began = relay_now(relay);
    if (began < reading->gaps_us || gaps->again < gaps->again_end)
        return true;
    for (uint32_t i = 0; i < GAPS_AT_ONCE && gaps->count > 0; i++) {
        uint32_t at = reading->gap_next < gaps->count ? reading->gap_next : 0;
        bool open = true;
        if (began - gaps->list[at].since_us >= GAP_AGE_US &&
            relay->init.outbox->ops->is_open(relay->init.outbox->self, &gaps->list[at], &open, &err) != ERR_NONE) {
            relay_failed(relay);
            return false;
        }
        if (!open)
            gaps_drop(gaps, at);
        reading->gap_next = open ? at + 1 : at;
    }
    reading->gaps_us = relay_now(relay) + later(GAPS_EVERY_US, SHARE * (relay_now(relay) - began));
    return true;
}

/* One that was discarded by hand lets its aggregate go on. */
bool relay_look_at_refused(struct relay *relay)
{
    uint64_t seqs[REFUSED_AT_ONCE];
    struct err err = {0};
    int64_t now = relay_now(relay);
    bool gone = false;
    if (now < relay->reading.refused_us)
        return true;
    relay->reading.refused_us = now + REFUSED_EVERY_US;
    uint32_t count = relay_rows_blocked(&relay->rows, seqs, REFUSED_AT_ONCE);
    for (uint32_t i = 0; i < count; i++) {
        struct gap row = {seqs[i], seqs[i], now};
        bool there = true;
        if (relay->init.outbox->ops->is_open(relay->init.outbox->self, &row, &there, &err) != ERR_NONE) {
            relay_failed(relay);
            return false;
        }
        if (!there)
            relay_rows_remove(&relay->rows, seqs[i]);
        gone = gone || !there;
    }
    if (gone)
        relay_look_again(relay);
    return true;
}

bool relay_count(struct relay *relay)
{
    struct relay_counting *counting = &relay->counting;
    struct err err = {0};
    uint32_t rows = 0;
    uint64_t oldest_ms = 0;
    int64_t began = relay_now(relay), pause = COUNT_PAUSE_US;
    if (began < counting->due_us)
        return true;
    if (relay->init.outbox->ops->count(relay->init.outbox->self, &counting->after, COUNT_AT_ONCE, &rows, &oldest_ms,
                                       &err) != ERR_NONE) {
        relay_failed(relay);
        return false;
    }
    counting->rows += rows;
    if (oldest_ms > counting->oldest_ms)
        counting->oldest_ms = oldest_ms;
    if (rows < COUNT_AT_ONCE) {
        atomic_store(&relay->init.counts->rows, counting->rows);
        atomic_store(&relay->init.counts->oldest_ms, counting->oldest_ms);
        *counting = (struct relay_counting){0};
        pause = COUNT_EVERY_US;
    }
    int64_t now = relay_now(relay);
    counting->due_us = now + later(pause, SHARE * (now - began));
    return true;
}
