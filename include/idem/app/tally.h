/* SPDX-License-Identifier: MIT */
/* tally: how many dead letters are open and how many records are parked, by topic, as one database last told. Counted
 * by its keeper in parts, read by any thread. Topics of other databases, and topics that the configuration does not
 * name, are left out. */
#ifndef IDEM_APP_TALLY_H
#define IDEM_APP_TALLY_H

#include "idem/core/config.h"
#include "idem/port/ledger.h"

#include <stdatomic.h>

struct tally {
    const struct config *config;
    uint32_t database;
    uint64_t *counting;                  /* the keeper's: for each topic by outcome, by reason, and the oldest */
    atomic_uint_least64_t *told;         /* the same places: the last whole counts */
    enum ledger_list list;               /* being counted */
};

/* All 0. config is borrowed until tally_finish. false: out of memory. */
bool tally_init(struct tally *tally, const struct config *config, uint32_t database);
void tally_finish(struct tally *tally);

/* The keeper's: what is given from now on belongs to this list; forgets what was not published. */
void tally_begin(struct tally *tally, enum ledger_list list);
/* As ledger_ops.count calls it; context is the tally. */
void tally_add(void *context, const struct ledger_kind *kind);
/* What was added stands from now on. */
void tally_publish(struct tally *tally);

/* Any thread. */
uint64_t tally_letters(const struct tally *tally, uint32_t topic, enum outcome outcome);
uint64_t tally_parked(const struct tally *tally, uint32_t topic, enum cause reason);
uint64_t tally_parked_oldest_s(const struct tally *tally, uint32_t topic);

#endif
