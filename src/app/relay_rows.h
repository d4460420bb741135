/* SPDX-License-Identifier: MIT */
/* relay_rows: the rows of the outbox that the relay holds: by their number, and in order by aggregate. Of one aggregate
 * only the first may be on its way; one that was refused stops its aggregate for a while. Owned by the relay. */
#ifndef IDEM_APP_RELAY_ROWS_H
#define IDEM_APP_RELAY_ROWS_H

#include "idem/port/outbox.h"

enum row_state { ROW_WAITS, ROW_SENT, ROW_DONE };

struct aggregate;

struct relay_row {
    struct relay_row *next_in_bucket, *next;     /* by number; in the aggregate, by number */
    struct aggregate *aggregate;
    enum row_state state;
    bool told;                       /* its refusal */
    bool alone;                      /* goes in a request of its own */
    size_t size;                     /* bytes of this block */
    struct outbox_event event;       /* views into this block */
};

struct aggregate {
    struct aggregate *next_in_bucket;
    struct aggregate *next_ready, **ready_place;     /* in the ready list, or NULL */
    uint64_t hash;
    struct relay_row *rows;          /* ascending; never empty */
    int64_t blocked_until_us;        /* refused: not before; 0 = not */
};

struct relay_rows {
    struct relay_row **rows;         /* buckets */
    struct aggregate **aggregates;   /* buckets */
    struct aggregate *ready, **ready_end;    /* whose first row waits and may be sent */
    uint32_t count, sent, done;
    size_t bytes;                    /* held here */
    size_t sent_bytes;               /* of messages that are on their way */
};

bool relay_rows_init(struct relay_rows *rows);       /* false: out of memory */
void relay_rows_finish(struct relay_rows *rows);
void relay_rows_clear(struct relay_rows *rows);      /* forgets all */

/* Copies the row and puts it in order. True if it is held (now or before); false: out of memory. *ret_new: it was not
 * held before. A row of a blocked aggregate is not held: it is read again when that ends. */
bool relay_rows_add(struct relay_rows *rows, const struct outbox_event *event, bool *ret_new);

struct relay_row *relay_rows_find(const struct relay_rows *rows, uint64_t seq);      /* NULL: not held */

/* The next aggregate whose first row may be sent; it leaves the ready list. NULL: none. */
struct relay_row *relay_rows_next(struct relay_rows *rows);

/* The first row of its aggregate waits (again). */
void relay_rows_wait(struct relay_rows *rows, struct relay_row *row);

/* Its row was published: it is kept until it is deleted, the next of its aggregate becomes ready. */
void relay_rows_publish(struct relay_rows *rows, struct relay_row *row);

/* Refused: it stays at the head, everything behind it is forgotten. */
void relay_rows_block(struct relay_rows *rows, struct relay_row *row, int64_t until_us);

/* Blocked aggregates whose time has come become ready. Returns when the next one's comes; INT64_MAX: none. */
int64_t relay_rows_unblock(struct relay_rows *rows, int64_t now_us, uint32_t *ret_unblocked);

/* Numbers of refused rows that stop their aggregates, at most `max`. */
uint32_t relay_rows_blocked(const struct relay_rows *rows, uint64_t *ret_seqs, uint32_t max);

/* Numbers and ids of published rows, at most `max`, not yet deleted. */
uint32_t relay_rows_published(const struct relay_rows *rows, uint64_t *ret_seqs, struct bytes *ret_ids, uint32_t max);

/* Whatever was sent waits again: its producer is gone. */
void relay_rows_unsend(struct relay_rows *rows);

/* Deleted, or nobody's any more: forgotten. */
void relay_rows_remove(struct relay_rows *rows, uint64_t seq);

/* Forgets waiting and blocked rows of this topic (it is passed over for a while). */
void relay_rows_drop_topic(struct relay_rows *rows, struct bytes topic);

#endif
