/* SPDX-License-Identifier: MIT */
/* store: one database session of one worker, as the transaction sees it. Every call blocks, belongs to one thread,
 * and returns what the caller has to do (err_class); after any class but ERR_NONE inside a transaction the caller
 * calls rollback() and nothing else. `items` arrays are the caller's order; the store sorts by itself where lock
 * order matters (bytewise). `scratch` holds what is read, until the caller resets it. Fakes and the MySQL adapter
 * pass one contract test (tests/contract). */
#ifndef IDEM_PORT_STORE_H
#define IDEM_PORT_STORE_H

#include "idem/base/arena.h"
#include "idem/base/err.h"
#include "idem/core/parking.h"

struct fence {
    struct bytes topic;
    int32_t partition;
    uint64_t generation;
    uint64_t server;             /* where that generation was taken over: ledger_ops.server */
};

struct outbox_row {
    const struct item *item;
    const struct event *event;
    enum outcome outcome;        /* whose list it is of: event id */
    uint32_t index;              /* in that list */
};

/* Session and transaction. */
struct store_tx_ops {
    /* Makes sure there is a usable connection (new if the last one was closed or broken), verified: not read-only,
     * READ COMMITTED, strict mode, no FOUND_ROWS. ERR_RECONNECT, ERR_WRONG_SERVER, ERR_CONFIG. */
    enum err_class (*open)(void *self, struct err *err);
    /* Whether what proves the rows of the topic's rules still stands (unique indexes; looked at on every new connection
     * and once a minute). ERR_SCHEMA if not. The session is open and idle, and stays so. */
    enum err_class (*stands)(void *self, const struct topic *topic, struct err *err);
    /* Closes the connection (nothing is sent if it is broken). */
    void (*close)(void *self);
    /* Starts a transaction and reads the fence rows with a shared lock. *ret_current = all generations equal.
     * ERR_WRONG_SERVER if the session's server is not that of every fence: a replica that was promoted has the rows of
     * the former primary and may lack its last commits. The next open() tries the next host then. */
    enum err_class (*begin)(void *self, const struct fence *fences, uint32_t count,
                            bool *ret_current, struct err *err);
    /* Text of NOW() in the database's zone for templates: YYYY-MM-DD HH:MM:SS and NUL. */
    enum err_class (*now)(void *self, char ret_text[20], struct err *err);
    /* set: SAVEPOINT; undo: ROLLBACK TO it. One level. */
    enum err_class (*savepoint)(void *self, struct err *err);
    enum err_class (*undo)(void *self, struct err *err);
    /* ERR_IN_DOUBT: unknown. Any other class: surely rolled back. */
    enum err_class (*commit)(void *self, struct err *err);
    /* Always ends the transaction: ROLLBACK, or closes the connection if that fails. */
    void (*rollback)(void *self);
    /* After ERR_IN_DOUBT: new connection, old session surely gone, then a locking read of the claims of items that
     * have `claimed`, WRITE_REPLACE or WRITE_RETRY. *ret_committed: any row carries `claim`. Retryable classes: call
     * again. */
    enum err_class (*settle)(void *self, struct item *const *items, uint32_t count,
                             const uint8_t claim[CLAIM_LEN], bool *ret_committed, struct err *err);
};

/* Reading and claiming. */
struct store_row_ops {
    /* Unlocked look: fills item->known of those that stand with status 1; the others have known.present = false, which
     * decides nothing. */
    enum err_class (*probe)(void *self, struct item *const *items, uint32_t count,
                            struct arena *scratch, struct err *err);
    /* Inserts the dedupe rows (distinct keys) in their final form as `first`, status 1, with item->response and claim.
     * Sets item->claimed; for rows that stood before, fills item->known under their lock. */
    enum err_class (*claim)(void *self, struct item *const *items, uint32_t count,
                            const uint8_t claim[CLAIM_LEN], struct arena *scratch, struct err *err);
    /* Conditional UPDATE of transition `index`, `from` and `require` in its WHERE; items have one rule and distinct
     * rows.
     * *ret_affected = changed rows in all. Only for set_based transitions or count 1. More than count, or more than 1
     * for one item, is ERR_FATAL. */
    enum err_class (*update)(void *self, const struct rule *rule, uint32_t index,
                             struct item *const *items, uint32_t count, uint64_t *ret_affected,
                             struct err *err);
    /* Locks and reads the rows of transition `index` into item->rows[index]. skip_locked: rows that another session
     * holds
     * come back found and locked instead of waiting. */
    enum err_class (*lock)(void *self, const struct rule *rule, uint32_t index,
                           struct item *const *items, uint32_t count, bool skip_locked,
                           struct arena *scratch, struct err *err);
    /* The same row by a plain read (row_state of K11); first transition only. */
    enum err_class (*look)(void *self, struct item *item, struct arena *scratch, struct err *err);
};

/* Writing. */
struct store_effect_ops {
    /* One row an item into rule->inserts[index]. ERR_UNIQUE on 1062. */
    enum err_class (*insert)(void *self, const struct rule *rule, uint32_t index,
                             struct item *const *items, uint32_t count, struct err *err);
    /* After ERR_UNIQUE and undo(): re-reads by the `unique` columns (details 1, "1062 on the rule's insert").
     * *ret_same: this very event stands there already. */
    enum err_class (*insert_known)(void *self, const struct rule *rule, uint32_t index,
                                   struct item *item, bool *ret_same, struct err *err);
    enum err_class (*statement)(void *self, const struct rule *rule, uint32_t index,
                                struct item *item, uint64_t *ret_affected, struct err *err);
    /* Outbox rows in this order. */
    enum err_class (*events)(void *self, const struct outbox_row *rows, uint32_t count,
                             struct bytes now, struct err *err);
    /* Upsert of the item's dead letter by origin hash; row_state is JSON text or empty (NULL). *ret_new: inserted; then
     * it goes into the outbox too, where dead_letter.topic asks for that. */
    enum err_class (*letter)(void *self, const struct item *item, struct bytes row_state,
                             bool *ret_new, struct err *err);
    /* Brings dedupe rows into their final form (item->write, outcome, response). */
    enum err_class (*records)(void *self, struct item *const *items, uint32_t count,
                              const uint8_t claim[CLAIM_LEN], struct err *err);
};

/* Records that wait in idem_parked. Only the owner of their partition calls these, and idemctl under the row locks. */
struct store_park_ops {
    /* Locks the rows of item->parked.id and fills found, reason, attempts, clock_runs, over; found = false: gone. */
    enum err_class (*read)(void *self, struct item *const *items, uint32_t count, struct err *err);
    /* Fills item->queue from the rows of the item's partition, changes of this transaction included. Items have a
     * rule. */
    enum err_class (*queue)(void *self, struct item *const *items, uint32_t count, struct err *err);
    /* One new row an item, whole record included. ERR_RETRY if somebody has parked the key meanwhile. */
    enum err_class (*insert)(void *self, struct item *const *items, const struct park_step *steps, uint32_t count,
                             struct err *err);
    /* The row stays and is tried again as `step` says. */
    enum err_class (*keep)(void *self, const struct item *item, const struct park_step *step, struct err *err);
    /* Rows of records that have an end: deleted, those behind them made due, the letters of applied redrives
     * resolved. */
    enum err_class (*leave)(void *self, struct item *const *items, uint32_t count, struct err *err);
};

struct store_port {
    void *self;
    const struct store_tx_ops *tx;
    const struct store_row_ops *row;
    const struct store_effect_ops *effect;
    const struct store_park_ops *park;
};

#endif
