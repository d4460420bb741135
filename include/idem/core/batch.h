/* SPDX-License-Identifier: MIT */
/* batch: which records of a batch may go into SQL together. Two records conflict if they have the same (biz_type,
 * key), the same business number, or name the same row in any transition (details 1, Waves); the earlier in delivery
 * order goes first. Works on 64-bit hashes: a collision only makes a record wait for the next wave. Workspace is the
 * caller's. */
#ifndef IDEM_CORE_BATCH_H
#define IDEM_CORE_BATCH_H

#include "idem/core/item.h"

struct wave_set {
    uint64_t *slots;         /* power of two places, at most half of them used */
    size_t mask;
};

/* Bytes of slots for so many records. */
size_t wave_set_size(uint32_t records);
/* slots: wave_set_size(records) bytes, borrowed while the set is used. */
void wave_set_init(struct wave_set *set, void *slots, uint32_t records);

/* Picks from pending[0..count) (delivery order) every item that conflicts with none before it (picked or not) into
 * ret_wave, the others into ret_rest, both in delivery order; ret_rest may be pending. Returns the wave's length. */
uint32_t wave_pick(struct wave_set *set, struct item **pending, uint32_t count, struct item **ret_wave,
                   struct item **ret_rest, uint32_t *ret_rest_count);

/* The same, but stops at the first item that conflicts: ret_wave is a prefix of pending. For rules with statements,
 * whose effects must come in delivery order. */
uint32_t wave_prefix(struct wave_set *set, struct item **pending, uint32_t count, struct item **ret_wave,
                     struct item **ret_rest, uint32_t *ret_rest_count);

/* Of (biz_type, key). */
uint64_t item_key_hash(const struct item *item);
/* Whether (biz_type, key) are equal. */
bool item_same_key(const struct item *a, const struct item *b);

/* Bytewise by (biz_type, key): the order in which dedupe rows are inserted (hazards M13). */
void items_sort_by_key(struct item **items, uint32_t count);

/* Bytewise by the where values of that transition: the order in which rows are locked. All items have this rule. */
void items_sort_by_row(struct item **items, uint32_t count, uint32_t transition);

#endif
