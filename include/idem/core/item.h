/* SPDX-License-Identifier: MIT */
/* item: one record on its way from poll to commit: what was delivered, what evaluation made of it, and what the
 * present transaction attempt found and decided. Owned by intake until it is queued, then by one worker, then by
 * intake again (completion). Its memory is one block of intake's pool. */
#ifndef IDEM_CORE_ITEM_H
#define IDEM_CORE_ITEM_H

#include "idem/core/evaluate.h"

/* A column as the database gave it. Text in UTF-8, binary raw, numbers as digits. */
struct stored {
    struct bytes text;
    bool is_null;
};

enum { ROW_COLUMNS_MAX = 1 + WHERE_MAX + IDENTITY_MAX + REQUIRE_MAX };

/* A business row as it was read. Columns in the order of row_layout(). */
struct row_view {
    bool found;                  /* false: no such row (key bytes compared) */
    bool locked;                 /* the row is there, but another session holds it (skip-locked read only) */
    const struct stored *columns;
};

/* The dedupe row as it was read or as this transaction made it. */
struct known_row {
    bool present;
    bool mine;                   /* claim equal to this attempt's */
    enum record_status status;
    enum outcome outcome;
    uint8_t params_hash[PARAMS_HASH_LEN];
    uint8_t identity_hash[IDENTITY_HASH_LEN];
    uint16_t fingerprint_version;
    struct bytes biz_no;
    enum source source;
    struct bytes topic;          /* of its rule */
    int32_t partition;
    int64_t offset;
    uint32_t attempts;
};

/* How the dedupe row gets its final form at the end of the attempt. */
enum record_write {
    WRITE_NONE,                  /* nothing: duplicate and the like, or the insert already was final */
    WRITE_CLOSE,                 /* inserted by this attempt as `first`: set outcome, status, response */
    WRITE_REPLACE,               /* status 2 row judged afresh (K5, K4): everything replaced, attempts + 1 */
    WRITE_RETRY                  /* status 0 row judged by its parked record (K6): claim replaced, then as CLOSE */
};

struct park_gate;                /* idem/app/park_gate.h */

/* The row of idem_parked that brings this record again. */
struct parked_row {
    uint64_t id;                 /* idem_parked.id; 0 = a live record */
    uint64_t letter_id;          /* idem_dead_letter.id of a redrive, 0 = none */
    struct bytes rule, biz_type, key, biz_no;    /* as stored, for a row that today's rules judge otherwise */
    bool orphaned;               /* they do */
    bool given_up;               /* by hand: it ends by its last reason */
    /* read under its lock in each attempt */
    bool found;                  /* false: handled meanwhile */
    enum cause reason;
    uint32_t attempts;           /* retries counted so far */
    bool clock_runs;             /* give_up_at stands */
    bool over;                   /* and has passed */
};

/* Who waits for the same (biz_type, number) in the record's own partition. */
struct parked_queue {
    uint64_t head;               /* lowest idem_parked.id, 0 = nobody */
    bool same_key;               /* one of them has this very key */
};

struct item {
    struct item *next;           /* list link of whoever owns it */
    struct record record;
    struct evaluation eval;
    const struct topic *topic;
    uint32_t slot;               /* intake's partition slot */
    int32_t partition;           /* whose owner judges it; record.partition is its origin */
    struct park_gate *gate;      /* of that partition; NULL: look always */
    struct parked_row parked;    /* id 0: a live record */
    uint32_t epoch;              /* assignment epoch: completions of a former one are dropped */
    uint64_t generation;         /* fence */
    uint64_t server;             /* where it was taken over */
    uint64_t number_hash;        /* of biz_no: routing, order */
    int64_t polled_us;           /* monotonic */
    size_t block_size;           /* bytes of its memory block, for limits.inflight_bytes */
    void *chunk;                 /* the pool's */

    /* ---- the attempt (reset by item_reset before each) -------------------------------------------------------- */
    enum outcome outcome;
    enum cause cause;
    enum outcome first_outcome;  /* of a duplicate: the stored outcome */
    bool fingerprint_skipped;    /* K10, K13 with another version */
    bool claimed;                /* dedupe row inserted by this attempt */
    bool moved;                  /* its transitions were applied in this attempt */
    uint64_t inserts_known;      /* bit i: rule->inserts[i] stands already as this very event (single runs) */
    enum record_write write;
    struct known_row known;
    struct row_view *rows;       /* by transition; NULL = not read */
    struct bytes response;       /* rendered; empty = NULL */
    int error_number;            /* of the database, for dead letter and log */
    struct bytes error_text;
    struct parked_queue queue;
    bool silent;                 /* nothing happened to it that anybody has to be told (a parked one waits on) */

    bool fenced;                 /* dropped without an outcome: its generation, or its server, is not the present one */

    /* ---- over attempts ---------------------------------------------------------------------------------------- */
    uint32_t attempts;           /* transaction attempts so far, for the log */
    uint32_t failures;           /* failed alone with a number in no list */
    uint64_t failure_mark;       /* `first` outcomes of its rule when it failed so for the first time */
    uint64_t failure_mark_judged; /* outcomes of its rule that a business row gave, at that time */
    int poison_number;           /* the number it failed with, once it is known to be poison */
    int64_t not_before_us;       /* set aside until then */
    uint32_t aside_count;        /* times set aside, for the back-off */
    int64_t locked_since_us;     /* first found locked, monotonic; 0 = not yet */
    bool parks_if_locked;        /* held long enough: a locked row parks it instead of keeping it aside */
};

/* Forgets what the last attempt found; keeps what was delivered. */
void item_reset(struct item *item);

/* Columns that row_view holds for transition `index`: state column, then where, identity (first transition only),
 * require, each name once. ret arrays have ROW_COLUMNS_MAX places. Returns the count. */
struct row_layout {
    uint32_t count;
    struct bytes names[ROW_COLUMNS_MAX];
    const struct column *types[ROW_COLUMNS_MAX];
    uint8_t identity_at[IDENTITY_MAX];   /* positions of rule->identity[i] */
    uint8_t require_at[REQUIRE_MAX];
};

/* Pure; ret is filled whole. */
void row_layout(const struct rule *rule, uint32_t transition, struct row_layout *ret);

/* details 1, row_state: JSON object of the row in layout order. */
void row_write_json(const struct row_layout *layout, const struct row_view *row, struct buf *buf);

#endif
