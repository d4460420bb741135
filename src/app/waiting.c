/* SPDX-License-Identifier: MIT */
/* waiting: see waiting.h. What waits is a row of idem_parked, never a record in memory: whoever owns the partition next
 * finds it there. */
#include "waiting.h"

#include "idem/app/park_gate.h"
#include "idem/core/parking.h"

static enum txn_step failed(enum err_class class)
{
    return class == ERR_NONE ? STEP_ON : STEP_ERROR;
}

/* ---- own rows ---------------------------------------------------------------------------------------------------- */

static enum txn_step keep(struct txn *txn, struct item *item, struct park_step step, struct err *err)
{
    item->silent = true;
    return failed(txn->store->park->keep(txn->store->self, item, &step, err));
}

enum txn_step waiting_begin(struct txn *txn, struct item **items, uint32_t *count, struct err *err)
{
    uint32_t parked = 0, left = 0;
    enum txn_step step = STEP_ON;
    for (uint32_t i = 0; i < *count; i++)
        if (items[i]->parked.id)
            txn->list[parked++] = items[i];
    if (parked == 0)
        return STEP_ON;
    if (txn->store->park->read(txn->store->self, txn->list, parked, err))
        return STEP_ERROR;
    for (uint32_t i = 0; i < *count && step == STEP_ON; i++) {
        struct item *item = items[i];
        if (item->parked.id && !item->parked.found)
            item->silent = true;                 /* somebody has brought it to its end */
        else if (item->parked.orphaned)
            step = keep(txn, item, park_still(&item->parked), err);
        else
            items[left++] = item;
    }
    *count = left;
    return step;
}

/* ---- B0 ---------------------------------------------------------------------------------------------------------- */

static bool is_head(const struct item *item)
{
    return item->parked.id && item->queue.head >= item->parked.id;
}

/* Behind others of its number. A redrive that waits may have this very key: then the record is that one, delivered
 * again, unless it has just made the first row for the key; then it waits until the redrive was judged. */
static bool waits_behind(struct item *item, bool *ret_aside)
{
    if (item->parked.given_up) {
        enum cause cause;
        enum outcome outcome = park_given_up(item->parked.reason, &cause);
        judge_set(item, outcome, cause);
        return true;
    }
    if (item->queue.head == 0 || is_head(item))
        return false;
    if (!item->parked.id && item->queue.same_key && item->claimed) {
        item->outcome = OUTCOME_PARKED;
        item->cause = CAUSE_LOCKED;
        *ret_aside = true;
    } else if (!item->parked.id && item->queue.same_key) {
        item->write = WRITE_NONE;
        judge_set(item, OUTCOME_PROCESSING, CAUSE_NONE);
    } else {
        judge_set(item, OUTCOME_PARKED, CAUSE_BEHIND);
    }
    return true;
}

enum txn_step waiting_behind(struct txn *txn, struct item **items, uint32_t *count, struct err *err)
{
    uint32_t looked = 0, left = 0;
    bool aside = false;
    for (uint32_t i = 0; i < *count; i++)
        if (items[i]->parked.id || park_gate_is_open(items[i]->gate))
            txn->list[looked++] = items[i];
    if (looked > 0 && txn->store->park->queue(txn->store->self, txn->list, looked, err))
        return STEP_ERROR;
    for (uint32_t i = 0; i < *count; i++)
        if (!waits_behind(items[i], &aside))
            items[left++] = items[i];
    *count = left;
    return aside ? STEP_WAITING : STEP_ON;
}

/* ---- after the judgement ----------------------------------------------------------------------------------------- */

/* One that waited has to wait on, or has waited long enough. */
static enum txn_step wait_on(struct txn *txn, struct item *item, struct err *err)
{
    struct park_step step = park_again(&item->eval.rule->park, &item->parked, item->cause);
    if (!step.give_up)
        return keep(txn, item, step, err);
    enum cause cause;
    enum outcome outcome = park_given_up(item->cause, &cause);
    judge_set(item, outcome, cause);
    return STEP_ON;
}

static enum txn_step park_new(struct txn *txn, struct item **items, uint32_t count, struct err *err)
{
    struct park_step *steps = arena_alloc(&txn->scratch, count * sizeof *steps);
    if (!steps) {
        err_set(err, ERR_TOO_LARGE, 0, "park", "scratch memory is full");
        return STEP_ERROR;
    }
    for (uint32_t i = 0; i < count; i++) {
        steps[i] = park_first(&items[i]->eval.rule->park, items[i]->cause);
        park_gate_raise(items[i]->gate);
    }
    return failed(txn->store->park->insert(txn->store->self, items, steps, count, err));
}

/* Those of the wave that have an end now, and whose row goes with it. */
static uint32_t pick_ended(struct item **wave, uint32_t count, struct item **ret_items)
{
    uint32_t ended = 0;
    for (uint32_t i = 0; i < count; i++)
        if (wave[i]->parked.id && !wave[i]->silent)
            ret_items[ended++] = wave[i];
    return ended;
}

enum txn_step waiting_end(struct txn *txn, struct item **wave, uint32_t count, struct err *err)
{
    enum txn_step step = STEP_ON;
    uint32_t new = 0;
    for (uint32_t i = 0; i < count && step == STEP_ON; i++) {
        struct item *item = wave[i];
        if (item->parked.orphaned && !item->silent)
            step = keep(txn, item, park_still(&item->parked), err);
        else if (item->outcome == OUTCOME_PARKED && item->parked.id)
            step = wait_on(txn, item, err);
        else if (item->outcome == OUTCOME_PARKED)
            txn->list[new++] = item;
    }
    if (step == STEP_ON && new > 0)
        step = park_new(txn, txn->list, new, err);
    uint32_t ended = step == STEP_ON ? pick_ended(wave, count, txn->list) : 0;
    if (ended > 0)
        step = failed(txn->store->park->leave(txn->store->self, txn->list, ended, err));
    return step;
}
