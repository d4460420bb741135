/* SPDX-License-Identifier: MIT */
/* port_cases: what every store and every ledger has to do, the fakes of the simulator and the MySQL adapter alike.
 * Each case sees only the ports and the hooks below, so that the two can be compared. For cmocka
 * programs; a failed expectation ends the case.
 *
 * All cases use one rule (port_rule): topic t, rule paid, biz_type payment, action pay, table orders
 * (order_no, status, amount, channel_txn, paid_at, refunded), from PENDING to PAID, already SHIPPED, early CREATED,
 * conflict CLOSED, require amount, one insert into payment_ledger (unique channel_txn), one statement that refunds 5
 * while that leaves 20 or less refunded, one event order.paid. */
#ifndef IDEM_TESTS_PORT_CASES_H
#define IDEM_TESTS_PORT_CASES_H

#include "idem/core/config.h"
#include "idem/port/ledger.h"
#include "idem/port/store.h"

/* Of all cases, as the simulator calls it. */
#define PORT_TOPIC "t"

struct CMUnitTest;

struct port_order {
    char status[80], amount[80], txn[80];
    bool txn_null, paid_at_set;
};

struct port_record {
    char outcome[32], biz_no[80], response[256];
    int status;
    uint32_t attempts;
    int64_t offset;
    bool response_null, request_id_null;
};

struct port_letter {
    char cause[64], state[16], row_state[256];
    uint32_t attempts, payload_bytes, payload_len;
    int64_t offset;
};

struct port_event {
    char topic[80], key[80], id[EVENT_ID_LEN + 1];
};

struct port_hooks {
    void *context;
    /* Empties every table; idem_partition holds the topic's partitions 0 and 1, generation 7. */
    void (*reset)(void *context);
    /* 0: the partition has no row. */
    void (*set_generation)(void *context, int32_t partition, uint64_t generation);
    /* txn NULL: the column is NULL. */
    void (*put_order)(void *context, const char *order_no, const char *status, const char *amount,
                      const char *txn);
    bool (*get_order)(void *context, const char *order_no, struct port_order *ret);
    /* Committed rows of orders, payment_ledger, idem_record, idem_outbox, idem_dead_letter. */
    uint64_t (*count)(void *context, const char *table);
    bool (*get_record)(void *context, const char *key, struct port_record *ret);
    /* The only letter there is. */
    bool (*get_letter)(void *context, struct port_letter *ret);
    void (*set_letter_state)(void *context, const char *state);
    /* In the order in which they were written; false: there are not that many. */
    bool (*get_event)(void *context, uint32_t index, struct port_event *ret);
    /* idem_progress; -1: no row. */
    int64_t (*get_progress)(void *context, int32_t partition);

    /* A moment passes on the clock of what has a clock of its own. */
    void (*tick)(void *context);

    /* Another session holds this order, or this key that it has not committed, until calm(). */
    void (*hold_order)(void *context, const char *order_no);
    void (*hold_key)(void *context, const char *key);
    /* The store has locked `mine`; another session holds `theirs` and waits for `mine`. The store is the victim. */
    void (*close_circle)(void *context, const char *mine, const char *theirs);
    /* The server ends the store's session. */
    void (*kill)(void *context);
    /* The answer to the next COMMIT is lost; it happened or not. */
    void (*lose_commit)(void *context, bool happened);
    /* No new connection can be made, until calm(). */
    void (*outage)(void *context);
    /* Ends all of these troubles. Called after every case. */
    void (*calm)(void *context);
};

struct port_world {
    const struct store_port *store;
    const struct ledger_port *ledgers[2];    /* of two instances, not open */
    const struct port_hooks *hooks;
    uint64_t server;                         /* theirs, of the running case */
};

struct port_case {
    const char *name;
    void (*run)(struct port_world *world);
};

/* What a transaction does; what may go wrong in it; who owns a partition; what waits. */
extern const struct port_case port_cases[], port_trouble_cases[], port_ledger_cases[], port_parked_cases[];
extern const size_t port_case_count, port_trouble_case_count, port_ledger_case_count, port_parked_case_count;

/* The configuration that the cases use: one database, one topic with port_rule(). group `g`,
 * batch_max 64, payload_max 16. Static. */
const struct config *port_config(void);
struct rule *port_rule(void);

/* A record of the rule: order, amount with two digits, transaction, partition 0. Key
 * payment:ORDER:pay. One of 64 static places, reused by port_begin. */
struct item *port_item(const char *order_no, const char *amount, const char *txn, int64_t offset);

extern const uint8_t port_claim[CLAIM_LEN], port_other_claim[CLAIM_LEN];

/* Runs them all as cmocka tests, each between port_start() and port_finish(), and more (more_count) after them, which
 * bring their own. Returns the number that failed. */
int port_run(const char *name, struct port_world *world, const struct CMUnitTest *more, size_t more_count);

/* Empties the tables and the items, opens the store. */
void port_start(struct port_world *world);
/* Rolls back, closes the ledgers, and calms. */
void port_finish(struct port_world *world);
/* A transaction whose fence stands. */
void port_begin(struct port_world *world);
void port_commit(struct port_world *world);
struct arena *port_scratch(void);

#endif
