/* SPDX-License-Identifier: MIT */
/* relay_self: what the files of the relay share. */
#ifndef IDEM_APP_RELAY_SELF_H
#define IDEM_APP_RELAY_SELF_H

#include "idem/app/relay.h"

#include "relay_rows.h"
#include "relay_topics.h"

/* Where reading stands. */
struct relay_reading {
    struct gaps gaps;
    uint64_t last;                           /* row of the present reading */
    bool stopped;                            /* it: no room for more */
    int64_t due_us;                          /* the next one */
    int64_t again_us, began_us;              /* when all is looked at again; when the present look began */
    int64_t gaps_us;                         /* when the oldest gaps are asked about */
    uint32_t gap_next;
    int64_t refused_us;                      /* when it is looked whether refused rows are still there */
};

/* Counting the table, in parts. */
struct relay_counting {
    int64_t due_us;
    uint64_t after, rows, oldest_ms;         /* of the present count */
};

struct relay {
    struct relay_init init;
    struct relay_rows rows;
    struct relay_topics blocked;             /* take nothing */
    struct relay_topics apart;               /* refused a batch: one message a request */
    bool held;
    uint64_t generation;
    int64_t lease_until_us, lease_due_us;    /* stop then; ask then */
    struct relay_reading reading;
    struct relay_counting counting;
    int64_t send_us, unblock_us, done_us;
    int64_t down_until_us;                   /* the database did not answer */
    uint32_t tries, agains;
};

static inline int64_t relay_now(const struct relay *relay)
{
    return relay->init.env->mono_us(relay->init.env->self);
}

/* The database did not do it: the session is closed, and asked again after a while. */
void relay_failed(struct relay *relay);

/* Room for more rows. */
bool relay_has_room(const struct relay *relay);

/* ---- relay_read.c ------------------------------------------------------------------------------------------------ */

/* A new lease: nothing was read yet. */
void relay_read_anew(struct relay *relay);
/* Everything is looked at once more, before anything that was not seen yet. */
void relay_look_again(struct relay *relay);
/* Each does what is due; false: relay_failed. */
bool relay_read(struct relay *relay);
bool relay_close_gaps(struct relay *relay);
bool relay_look_at_refused(struct relay *relay);
bool relay_count(struct relay *relay);

#endif
