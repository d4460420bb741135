/* SPDX-License-Identifier: MIT */
/* judge: see judge.h. Nothing is ever classified from an unlocked read: the row can change between a missed UPDATE
 * and a look, so a difference sends the whole attempt back to be run with locks first. */
#include "judge.h"

#include "idem/core/decide.h"

void judge_set(struct item *item, enum outcome outcome, enum cause cause)
{
    item->outcome = outcome;
    item->cause = cause;
    /* The insert wrote `first`; any other outcome has to be brought into the row afterwards. */
    if (item->claimed && outcome != OUTCOME_FIRST)
        item->write = WRITE_CLOSE;
}

static enum txn_step failed(enum err_class class)
{
    return class == ERR_NONE ? STEP_ON : STEP_ERROR;
}

static bool proven_by_count(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->transition_count; i++)
        if (!rule->transitions[i].set_based || rule->transitions[i].self)
            return false;
    return true;
}

static void all_moved(struct item **items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        judge_set(items[i], OUTCOME_FIRST, CAUSE_NONE);
        items[i]->moved = true;
    }
}

/* Step 4d: as many changed as were sent, so every one of them. */
static enum txn_step judge_by_count(struct txn *txn, const struct rule *rule, struct item **items,
                                    uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < rule->transition_count; i++) {
        uint64_t affected = 0;
        enum err_class class = txn->store->row->update(txn->store->self, rule, i, items, count,
                                                       &affected, err);
        if (class != ERR_NONE)
            return STEP_ERROR;
        if (affected != count)
            return STEP_DIFFERS;
    }
    all_moved(items, count);
    return STEP_ON;
}

static enum txn_step lock_rows(struct txn *txn, struct txn_mode mode, const struct rule *rule,
                               struct item **items, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        items[i]->rows = arena_calloc(&txn->scratch, rule->transition_count, sizeof *items[i]->rows);
        if (!items[i]->rows) {
            err_set(err, ERR_TOO_LARGE, 0, "lock", "scratch memory is full");
            return STEP_ERROR;
        }
    }
    for (uint32_t i = 0; i < rule->transition_count; i++) {
        enum err_class class = txn->store->row->lock(txn->store->self, rule, i, items, count,
                                                     mode.skip_locked, &txn->scratch, err);
        if (class != ERR_NONE)
            return STEP_ERROR;
    }
    return STEP_ON;
}

/* Classifies every record under its locks; those to be moved go to the front of txn->list. */
static enum txn_step classify(struct txn *txn, const struct rule *rule, struct item **items,
                              uint32_t count, uint32_t *ret_apply)
{
    bool waiting = false;
    *ret_apply = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct verdict verdict = decide_business(rule, items[i]->eval.values, items[i]->rows);
        switch (verdict.kind) {
        case VERDICT_APPLY:
            txn->list[(*ret_apply)++] = items[i];
            break;
        case VERDICT_WAIT:
            if (items[i]->parks_if_locked) {
                judge_set(items[i], OUTCOME_PARKED, CAUSE_LOCKED);
                break;
            }
            items[i]->outcome = OUTCOME_PARKED;
            items[i]->cause = CAUSE_LOCKED;
            waiting = true;
            break;
        case VERDICT_DONE:
        case VERDICT_BUSINESS:
        case VERDICT_ORPHANED:
        case VERDICT_FAULT:
            judge_set(items[i], verdict.outcome, verdict.cause);
        }
    }
    return waiting ? STEP_WAITING : STEP_ON;
}

/* One record at a time where the count of many proves nothing: exactly 1 each; a `self` transition may change
 * nothing. */
static enum txn_step update_singly(struct txn *txn, const struct rule *rule, uint32_t index,
                                   struct item **items, uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t affected = 0;
        if (txn->store->row->update(txn->store->self, rule, index, &items[i], 1, &affected, err))
            return STEP_ERROR;
        if (affected != 1 && !(affected == 0 && rule->transitions[index].self))
            return STEP_DIFFERS;
    }
    return STEP_ON;
}

static enum txn_step update_decided(struct txn *txn, const struct rule *rule, struct item **items,
                                    uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < rule->transition_count; i++) {
        const struct transition *transition = &rule->transitions[i];
        enum txn_step step = STEP_ON;
        uint64_t affected = 0;
        if (!transition->set_based) {
            step = update_singly(txn, rule, i, items, count, err);
        } else {
            step = failed(txn->store->row->update(txn->store->self, rule, i, items, count,
                                                  &affected, err));
            if (step == STEP_ON && affected != count && !transition->self)
                step = STEP_DIFFERS;
        }
        if (step != STEP_ON)
            return step;
    }
    all_moved(items, count);
    return STEP_ON;
}

enum txn_step judge_rule(struct txn *txn, struct txn_mode mode, const struct rule *rule,
                         struct item **items, uint32_t count, struct err *err)
{
    uint32_t apply = 0;
    if (rule->transition_count == 0) {       /* B12: its inserts and statements decide */
        all_moved(items, count);
        return STEP_ON;
    }
    if (!mode.lock_first && proven_by_count(rule))
        return judge_by_count(txn, rule, items, count, err);
    enum txn_step step = lock_rows(txn, mode, rule, items, count, err);
    if (step == STEP_ON)
        step = classify(txn, rule, items, count, &apply);
    if (step == STEP_ON && apply > 0)
        step = update_decided(txn, rule, txn->list, apply, err);
    return step;
}
