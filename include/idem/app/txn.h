/* SPDX-License-Identifier: MIT */
/* txn: one attempt to apply records in one local transaction. txn.c is the only file that names the order of the
 * database steps (design section 3, step 4). Owned by one worker. It neither retries nor waits: it says what
 * happened, the worker says what to do about it. */
#ifndef IDEM_APP_TXN_H
#define IDEM_APP_TXN_H

#include "idem/base/arena.h"
#include "idem/core/batch.h"
#include "idem/port/env.h"
#include "idem/port/store.h"

/* How an attempt is run. */
struct txn_mode {
    bool lock_first;      /* rows are locked and classified before any UPDATE (step 4e) */
    bool skip_locked;     /* with lock_first: rows held by others are reported, not waited for */
    bool single;          /* one record: refused inserts and statement counts end in its outcome, by savepoint */
    bool poisoned;        /* single: the record is known to be refused; it leaves its row and its letter only */
    bool dry_run;         /* ROLLBACK where COMMIT would stand (explain) */
};

enum txn_end {
    TXN_COMMITTED,        /* outcomes of all items stand (dry_run: would stand) */
    TXN_FENCED,           /* a fence did not hold; rolled back */
    TXN_DIFFERS,          /* affected rows differ: rolled back, run again with lock_first */
    TXN_WAITING,          /* rolled back: items with outcome PARKED, cause LOCKED are held by others */
    TXN_CULPRIT,          /* rolled back: the statement count of *ret_culprit was off */
    TXN_ERROR             /* rolled back (ERR_IN_DOUBT: unknown): *err says */
};

struct txn {
    const struct store_port *store;
    const struct env_port *env;
    struct arena scratch;
    struct wave_set waves;
    uint32_t size;                       /* records at most */
    struct item **pending, **wave, **list, **rest, **group;
    struct item **known;                 /* open addressing by key: who last judged this key in this attempt */
    uint32_t known_mask;
    struct outbox_row *outbox;
    uint32_t outbox_size, outbox_count;
    uint8_t claim[CLAIM_LEN];
    char now[20];
    bool repeats;                        /* the last batch met many known keys: look before inserting */
    void *memory;
};

/* size: records of a batch at most; scratch_size: bytes for what is read in one attempt. false: out of memory. store
 * and env are borrowed until txn_finish. */
bool txn_init(struct txn *txn, const struct store_port *store, const struct env_port *env, uint32_t size,
              size_t scratch_size);
void txn_finish(struct txn *txn);

/* items in delivery order, all of one database. The session must be open (store->tx->open). On TXN_COMMITTED every
 * item has its outcome. Every end but TXN_COMMITTED leaves nothing behind. On TXN_ERROR with ERR_IN_DOUBT txn->claim
 * and the items' claimed/write flags stay as they are for settle(). */
enum txn_end txn_attempt(struct txn *txn, struct item **items, uint32_t count, struct txn_mode mode,
                         uint32_t *ret_culprit, struct err *err);

/* What would happen to this record now, changing nothing and waiting for no lock: outcome PARKED, cause LOCKED if a
 * row is held. The session must be open with a short lock wait. ERR_NONE: item->outcome and cause stand. */
enum err_class txn_explain(struct txn *txn, struct item *item, struct err *err);

#endif
