/* SPDX-License-Identifier: MIT */
/* batch: waves of records that may share statements, and the lock orders. Pure, in the caller's memory. */
#include "idem/core/batch.h"

#include <stdlib.h>

enum { HASHES_MAX = 2 + TRANSITIONS_MAX };

size_t wave_set_size(uint32_t records)
{
    size_t places = 16;
    while (places < (size_t)records * HASHES_MAX * 2)
        places *= 2;
    return places * sizeof(uint64_t);
}

void wave_set_init(struct wave_set *set, void *slots, uint32_t records)
{
    set->slots = slots;
    set->mask = wave_set_size(records) / sizeof(uint64_t) - 1;
}

/* 0 marks an empty place; a hash of 0 is taken as 1. */
static bool set_has(const struct wave_set *set, uint64_t hash)
{
    hash += hash == 0;
    for (size_t i = hash & set->mask; set->slots[i] != 0; i = (i + 1) & set->mask)
        if (set->slots[i] == hash)
            return true;
    return false;
}

static void set_add(struct wave_set *set, uint64_t hash)
{
    hash += hash == 0;
    size_t i = hash & set->mask;
    while (set->slots[i] != 0) {
        if (set->slots[i] == hash)
            return;
        i = (i + 1) & set->mask;
    }
    set->slots[i] = hash;
}

uint64_t item_key_hash(const struct item *item)
{
    return bytes_hash(item->eval.key, bytes_hash(item->eval.rule->biz_type, 1));
}

bool item_same_key(const struct item *a, const struct item *b)
{
    return bytes_equal(a->eval.key, b->eval.key) &&
           bytes_equal(a->eval.rule->biz_type, b->eval.rule->biz_type);
}

static uint64_t row_hash(const struct item *item, const struct transition *transition)
{
    uint64_t hash = bytes_hash(transition->table, 3);
    for (uint32_t i = 0; i < transition->where_count; i++)
        hash = bytes_hash(item->eval.values[transition->where[i].expr].text, hash);
    return hash;
}

static uint32_t item_hashes(const struct item *item, uint64_t ret_hashes[HASHES_MAX])
{
    const struct rule *rule = item->eval.rule;
    uint32_t count = 0;
    ret_hashes[count++] = item_key_hash(item);
    ret_hashes[count++] = item->number_hash;
    for (uint32_t i = 0; i < rule->transition_count; i++)
        ret_hashes[count++] = row_hash(item, &rule->transitions[i]);
    return count;
}

/* Whether the item conflicts with none that was seen before; it is seen from now on in any case, since who conflicts
 * with one that is left for later has to come after it. */
static bool see(struct wave_set *set, const struct item *item)
{
    uint64_t hashes[HASHES_MAX];
    uint32_t count = item_hashes(item, hashes);
    bool free = true;
    for (uint32_t i = 0; i < count && free; i++)
        free = !set_has(set, hashes[i]);
    for (uint32_t i = 0; i < count; i++)
        set_add(set, hashes[i]);
    return free;
}

static void forget(struct wave_set *set)
{
    memset(set->slots, 0, (set->mask + 1) * sizeof *set->slots);
}

uint32_t wave_pick(struct wave_set *set, struct item **pending, uint32_t count, struct item **ret_wave,
                   struct item **ret_rest, uint32_t *ret_rest_count)
{
    uint32_t wave = 0, rest = 0;
    forget(set);
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = pending[i];
        if (see(set, item))
            ret_wave[wave++] = item;
        else
            ret_rest[rest++] = item;
    }
    *ret_rest_count = rest;
    return wave;
}

uint32_t wave_prefix(struct wave_set *set, struct item **pending, uint32_t count, struct item **ret_wave,
                     struct item **ret_rest, uint32_t *ret_rest_count)
{
    uint32_t wave = 0, rest = 0;
    forget(set);
    while (wave < count && see(set, pending[wave])) {
        ret_wave[wave] = pending[wave];
        wave++;
    }
    for (uint32_t i = wave; i < count; i++)
        ret_rest[rest++] = pending[i];
    *ret_rest_count = rest;
    return wave;
}

static int by_key(const void *a, const void *b)
{
    const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
    int order = bytes_compare(x->eval.rule->biz_type, y->eval.rule->biz_type);
    return order ? order : bytes_compare(x->eval.key, y->eval.key);
}

void items_sort_by_key(struct item **items, uint32_t count)
{
    qsort(items, count, sizeof *items, by_key);
}

static int by_row(const void *a, const void *b, void *context)
{
    const struct item *x = *(struct item *const *)a, *y = *(struct item *const *)b;
    const struct transition *transition = context;
    for (uint32_t i = 0; i < transition->where_count; i++) {
        uint16_t expr = transition->where[i].expr;
        int order = bytes_compare(x->eval.values[expr].text, y->eval.values[expr].text);
        if (order)
            return order;
    }
    return 0;
}

void items_sort_by_row(struct item **items, uint32_t count, uint32_t transition)
{
    if (count > 1)
        qsort_r(items, count, sizeof *items, by_row,
                (void *)(uintptr_t)&items[0]->eval.rule->transitions[transition]);
}
