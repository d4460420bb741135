/* SPDX-License-Identifier: MIT */
/* world: what all instances of a simulation share: the virtual clock, the seeded generator, one database, one topic,
 * and the list of what must never happen. One thread; everything repeats exactly for a seed. */
#ifndef IDEM_SIM_WORLD_H
#define IDEM_SIM_WORLD_H

#include "idem/app/intake.h"
#include "idem/app/relay.h"

#include <setjmp.h>

enum {
    PARTITIONS = 3, ORDERS = 36, RECORDS_MAX = 400, ROWS_MAX = 400, PARKED_MAX = 120, TEXT = 40,
    PUBLISHED_MAX = 2000, QUEUED_MAX = 64, INSTANCES_MAX = 3, WORKERS = 2,
    RESERVED = 16                /* orders at the end, for customers that come late */
};

/* ---- database ---------------------------------------------------------------------------------------------------- */

struct db_order {
    char number[TEXT], status[TEXT], amount[TEXT], txn[TEXT];
    bool has_txn, is_paid;       /* is_paid: paid_at is set */
    bool missing;                /* not made yet */
    int refunded;                /* cents */
};

struct db_record {
    char biz_type[TEXT], key[TEXT], biz_no[TEXT], response[96];
    uint8_t params_hash[PARAMS_HASH_LEN], identity_hash[IDENTITY_HASH_LEN], claim[CLAIM_LEN];
    uint16_t version;
    enum record_status status;
    enum outcome outcome;
    bool has_request_id;
    uint32_t attempts;
    int32_t partition;
    int64_t offset;
};

struct db_event {
    char topic[TEXT], key[TEXT], id[EVENT_ID_LEN];
    uint64_t seq;
    bool deleted;                /* by a relay, after it was published */
};

enum letter_state { LETTER_OPEN, LETTER_RESOLVED, LETTER_DISCARDED };

struct db_letter {
    uint8_t origin[32];
    enum outcome outcome;
    enum cause cause;
    enum letter_state state;
    uint32_t attempts, payload_bytes, payload_len;
    int32_t partition;
    int64_t offset;
};

struct db_parked {
    uint64_t id;
    int32_t partition;
    int64_t offset;              /* what it says stands in the log */
    char rule[TEXT], biz_type[TEXT], biz_no[TEXT], key[TEXT];
    enum cause reason;
    uint32_t attempts;
    int64_t next_us, give_up_us; /* INT64_MAX: the end of time */
};

struct db_ledger {
    char number[TEXT], txn[TEXT], amount[TEXT];
};

/* No pointers: a snapshot is a copy. */
struct db {
    struct db_order orders[ORDERS];
    struct db_record records[ROWS_MAX];
    struct db_event events[ROWS_MAX];
    struct db_letter letters[ROWS_MAX];
    /* Of the letters; empty: NULL. Apart from them: K11 takes a plain read at the end of its batch, which may show what
     * a later record of that batch did. */
    char row_states[ROWS_MAX][2 * TEXT];
    struct db_ledger ledger[ROWS_MAX];
    struct db_parked parked[PARKED_MAX];
    uint32_t record_count, event_count, letter_count, ledger_count, parked_count;
    uint64_t parked_next, event_next;
    int lease_owner;             /* of the relay's lease: fake_relay.instance, 0 = nobody yet */
    uint64_t lease_generation;
    int64_t lease_until_us;
    uint64_t generation[PARTITIONS];                 /* 0: no row */
    int64_t progress[PARTITIONS], last_offset[PARTITIONS];      /* -1: none */
    uint8_t last_hash[PARTITIONS][OFFSET_HASH_LEN];
};

/* ---- topic ------------------------------------------------------------------------------------------------------- */

struct sent {
    int64_t offset;              /* gaps are normal */
    bool has_value;
    char key_header[TEXT], body[256];
    char number[TEXT];
    bool reported;               /* somebody said what came of it; a failover that loses it forgets that */
    bool ever;                   /* the same, never forgotten */
    bool ended;                  /* it had an end once; delivered again it may wait behind a later one of its number */
    enum outcome outcome;        /* the last that was said */
    enum cause cause;
};

struct log {
    struct sent records[RECORDS_MAX];
    uint32_t count;
    int64_t committed;           /* -1 = none */
    int64_t progress_ever;       /* highest idem_progress that any server had, -1 = none */
    int owner;                   /* instance slot, -1 = nobody */
};

enum breakage {
    BREAK_NOTHING, BREAK_OFFSET_EARLY, BREAK_NO_FENCE, BREAK_DOUBLE_APPLY, BREAK_OVERTAKE, BREAK_RELAY_BLIND,
    BREAK_FAILOVER_BLIND, BREAK_PROGRESS_BLIND, BREAK_WORKER_BLIND
};

/* What the next statement meets. */
enum strike {
    STRIKE_NONE, STRIKE_DEADLOCK, STRIKE_LOCK_WAIT,
    STRIKE_LOST,                 /* the connection is gone, and with it the transaction */
    STRIKE_ANSWER_LOST           /* COMMIT only: it happened, and its answer is lost */
};

struct world {
    uint64_t seed, random;
    int64_t now_us;
    struct db db;
    uint64_t server;             /* who has it: another one after each failover */
    struct log logs[PARTITIONS];
    bool faults;                 /* errors and crashes may come */
    char published[PUBLISHED_MAX][EVENT_ID_LEN];     /* ids of events that arrived, in their order */
    uint32_t published_count;
    int members;                 /* instances that were ever started: who holds the lease */
    bool outage;                 /* the database does not answer */
    bool refuse_commit;          /* Kafka refuses the next one */
    enum strike strike;          /* to come for certain; the others come from the seed */
    bool revoked, lost_index;    /* the victim's rules may not write, or their index is gone */
    int victim;                  /* a partition of that topic */
    bool held[ORDERS];           /* by the shop's own session */
    char held_key[TEXT];         /* claimed by a session that does not end */
    enum breakage breakage;
    struct config *config;
    jmp_buf crash;               /* where a crash of the running instance goes */
    bool may_crash;
    bool refunds;                /* many records are: several keys of one number, whose order counts */
    int late;                    /* customers that came late */
    bool verbose;
};

extern struct world world;

/* Compiles the shop's rules into world.config. */
void world_load_rules(void);
enum breakage world_breakage(const char *name);

/* The topic of a partition: the last partition has one of its own, with the same rules. */
const char *world_topic(int partition);
/* A partition that there is. */
bool world_has(struct bytes topic, int32_t partition);

uint64_t world_random(void);
/* One chance in `of`. */
bool world_chance(uint32_t of);
/* Prints the seed and how to replay it, then ends the program. */
_Noreturn void world_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The running instance may die here. */
void world_may_crash(void);

const struct env_port *world_env(void);

/* One more record of any kind; one payment that is right. */
void customers_send(void);
void customers_send_paying(int partition, int order);

/* Where a session is, as ledger_ops.server says. */
uint64_t world_server(void);

/* No replica; one that has what was committed until now; the primary dies and the replica, if there is one, takes its
 * place, without what it has not got yet. */
void replica_forget(void);
void replica_copy(void);
void replica_takes_over(void);

/* Fails the seed if an order was paid twice, an event or a ledger row is missing or doubled, or a record has no
 * outcome. */
void invariants_hold(void);

/* Fails it if the database and the outcomes of partition 0 are not those of `one` and `log`: batching shows. */
void invariants_same(const struct db *one, const struct log *log);

/* ---- fakes ------------------------------------------------------------------------------------------------------- */

struct fake_store {
    struct store_port port;
    uint64_t server;             /* of the session; sessions with a former one are broken */
    bool open, in_transaction, saved;
    struct db before, savepoint;
};

struct fake_ledger {
    struct ledger_port port;
    uint64_t server;
    bool open;
};

enum { FAKE_HEADERS_MAX = 128 };
/* The stored form of the record's headers. */
struct bytes fake_headers(const struct sent *sent, uint8_t headers[FAKE_HEADERS_MAX]);
/* The record of this offset; fails the seed if there is none. */
struct sent *world_sent(int32_t partition, int64_t offset);

extern const struct store_park_ops fake_park_table;       /* fake_parked.c */
enum err_class fake_ledger_parked(void *self, struct ledger_partition *partitions, uint32_t count, uint32_t limit,
                                  bool (*take)(void *context, const struct ledger_parked *row), void *context,
                                  struct err *err);
/* What may go wrong with any statement of the store, by the seed. */
enum err_class fake_fault(struct fake_store *store, struct err *err);
/* Cuts what does not fit, fills up with zeros. */
void fake_copy(char *target, size_t size, struct bytes text);

struct fake_message {
    uint64_t seq;
    char id[EVENT_ID_LEN];
};

struct fake_relay {
    struct outbox_port outbox;
    struct producer_port producer;
    int instance;                /* number of its start: one that was started again is another */
    uint64_t server;             /* that gave it the lease: a failover may give it away once more */
    struct fake_message queue[QUEUED_MAX];
    uint32_t queued;
};

void fake_relay_init(struct fake_relay *relay);
/* What was queued arrives, or not. */
void fake_relay_flush(struct fake_relay *relay);
/* Nothing is left in the outbox. */
bool fake_relay_is_drained(void);

void fake_store_init(struct fake_store *store);
void fake_ledger_init(struct fake_ledger *ledger);

struct fake_source {
    struct source_port port;
    struct source_events events;
    int instance;
    bool assigned[PARTITIONS], started[PARTITIONS];
    int64_t next[PARTITIONS], committed[PARTITIONS];     /* committed: since it was assigned */
    bool refused[PARTITIONS];    /* `committed` was told without waiting and refused: the next poll tells it again */
    bool paused[PARTITIONS];
    int turn;
};

void fake_source_init(struct fake_source *source, int instance);
/* What a rebalance tells this member. */
void fake_source_revoke(struct fake_source *source, bool lost);
void fake_source_assign(struct fake_source *source, const bool *mine);

#endif
