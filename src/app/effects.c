/* SPDX-License-Identifier: MIT */
/* effects: inserts, statements, letters, events and final rows of one attempt, for txn. Never commits. */
#include "effects.h"

static enum txn_step failed(enum err_class class)
{
    return class == ERR_NONE ? STEP_ON : STEP_ERROR;
}

enum txn_step effects_insert(struct txn *txn, struct item **wave, uint32_t count, struct err *err)
{
    /* Rule by rule: a multi-row statement has one shape. txn->list is free here. */
    for (uint32_t i = 0; i < count; i++)
        txn->rest[i] = wave[i];
    for (uint32_t left = count; left > 0;) {
        const struct rule *rule = txn->rest[0]->eval.rule;
        uint32_t mine = 0, others = 0;
        for (uint32_t i = 0; i < left; i++) {
            struct item *item = txn->rest[i];
            if (item->eval.rule != rule)
                txn->rest[others++] = item;
            else if (item->outcome == OUTCOME_FIRST)
                txn->list[mine++] = item;
        }
        left = others;
        for (uint32_t i = 0; i < rule->insert_count && mine > 0; i++)
            if (txn->store->effect->insert(txn->store->self, rule, i, txn->list, mine, err))
                return STEP_ERROR;
    }
    return STEP_ON;
}

enum txn_step effects_statements(struct txn *txn, struct item **wave, uint32_t count,
                                 uint32_t *ret_culprit, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct rule *rule = wave[i]->eval.rule;
        if (wave[i]->outcome != OUTCOME_FIRST)
            continue;
        for (uint32_t k = 0; k < rule->statement_count; k++) {
            uint64_t affected = 0;
            if (txn->store->effect->statement(txn->store->self, rule, k, wave[i], &affected, err))
                return STEP_ERROR;
            if (affected != rule->statements[k].affected) {
                *ret_culprit = i;
                return STEP_CULPRIT;
            }
        }
    }
    return STEP_ON;
}

/* ---- one record alone ------------------------------------------------------------------------------------------ */

static enum txn_step undo(struct txn *txn, struct err *err)
{
    return failed(txn->store->tx->undo(txn->store->self, err));
}

/* The database refused the record: nothing of it stays but its dedupe row and its letter. */
static enum txn_step reject(struct txn *txn, struct item *item, enum cause cause, struct err *err)
{
    item->error_number = err->number;
    item->error_text = arena_copy(&txn->scratch, bytes_text(err->text));
    item->moved = false;
    judge_set(item, OUTCOME_REJECTED, cause);
    return undo(txn, err);
}

static enum txn_step refused(struct txn *txn, struct item *item, enum err_class class,
                             struct err *err)
{
    if (class == ERR_DATA)
        return reject(txn, item, CAUSE_DATABASE, err);
    if (class == ERR_UNIQUE)
        return reject(txn, item, CAUSE_UNIQUE_CONFLICT, err);
    if (class == ERR_LOCKED && item->parks_if_locked) {      /* 1205 undoes its own statement only */
        item->moved = false;
        judge_set(item, OUTCOME_PARKED, CAUSE_LOCKED);
        return undo(txn, err);
    }
    return STEP_ERROR;
}

/* 1062 on the rule's own insert: this very event again, or somebody else's? *ret_again: undone, judge once more without
 * that insert. */
static enum txn_step insert_refused(struct txn *txn, struct item *item, uint32_t index,
                                    bool *ret_again, struct err *err)
{
    bool same = false;
    struct err unique = *err;
    if (undo(txn, err) != STEP_ON)
        return STEP_ERROR;
    if (txn->store->effect->insert_known(txn->store->self, item->eval.rule, index, item, &same, err))
        return STEP_ERROR;
    if (!same) {
        item->error_number = unique.number;
        item->error_text = arena_copy(&txn->scratch, bytes_text(unique.text));
        item->moved = false;
        judge_set(item, OUTCOME_REJECTED, CAUSE_UNIQUE_CONFLICT);
        return STEP_ON;
    }
    item->inserts_known |= UINT64_C(1) << index;
    *ret_again = true;
    return STEP_ON;
}

static enum txn_step single_inserts(struct txn *txn, struct item *item, bool *ret_again,
                                    struct err *err)
{
    const struct rule *rule = item->eval.rule;
    for (uint32_t i = 0; i < rule->insert_count; i++) {
        if (item->inserts_known & (UINT64_C(1) << i))
            continue;
        enum err_class class = txn->store->effect->insert(txn->store->self, rule, i, &item, 1, err);
        if (class == ERR_UNIQUE)
            return insert_refused(txn, item, i, ret_again, err);
        if (class != ERR_NONE)
            return refused(txn, item, class, err);
    }
    return STEP_ON;
}

static enum txn_step statement_off(struct txn *txn, struct item *item,
                                   const struct statement *statement, struct err *err)
{
    item->moved = false;
    if (statement->otherwise == OUTCOME_IGNORED)
        judge_set(item, OUTCOME_ALREADY_APPLIED, CAUSE_SUPERSEDED);
    else
        judge_set(item, statement->otherwise, CAUSE_STATEMENT_COUNT);
    return undo(txn, err);
}

static enum txn_step single_statements(struct txn *txn, struct item *item, struct err *err)
{
    const struct rule *rule = item->eval.rule;
    for (uint32_t i = 0; i < rule->statement_count; i++) {
        uint64_t affected = 0;
        enum err_class class = txn->store->effect->statement(txn->store->self, rule, i, item,
                                                             &affected, err);
        if (class != ERR_NONE)
            return refused(txn, item, class, err);
        if (affected != rule->statements[i].affected)
            return statement_off(txn, item, &rule->statements[i], err);
    }
    return STEP_ON;
}

/* A rule without transition whose insert stands already has nothing left to do. */
static bool stands_already(const struct item *item)
{
    return item->eval.rule->transition_count == 0 && item->inserts_known != 0;
}

static enum txn_step single_judge(struct txn *txn, struct txn_mode mode, struct item *item,
                                  struct err *err)
{
    enum txn_step step = judge_rule(txn, mode, item->eval.rule, &item, 1, err);
    if (step == STEP_ERROR)
        return refused(txn, item, err->class, err);
    if (step == STEP_DIFFERS) {
        /* Under its lock and still not as decided: the row cannot be moved by this rule. */
        err_set(err, ERR_UNKNOWN, 0, "update", "affected rows differ from what the locked row says");
        return STEP_ERROR;
    }
    return step;
}

enum txn_step effects_single(struct txn *txn, struct txn_mode mode, struct item *item, struct err *err)
{
    mode.lock_first = true;
    for (;;) {
        bool again = false;
        if (txn->store->tx->savepoint(txn->store->self, err))
            return STEP_ERROR;
        if (stands_already(item)) {
            judge_set(item, OUTCOME_ALREADY_APPLIED, CAUSE_NONE);
            return STEP_ON;
        }
        enum txn_step step = single_judge(txn, mode, item, err);
        if (step == STEP_ON && item->outcome == OUTCOME_FIRST) {
            env_probe(txn->env, PROBE_AFTER_UPDATE);
            step = single_inserts(txn, item, &again, err);
        }
        if (again) {
            item->outcome = OUTCOME_NONE;
            item->moved = false;
            continue;
        }
        if (step == STEP_ON && item->outcome == OUTCOME_FIRST) {
            env_probe(txn->env, PROBE_AFTER_INSERT);
            step = single_statements(txn, item, err);
        }
        if (step == STEP_ON && item->outcome == OUTCOME_FIRST)
            env_probe(txn->env, PROBE_AFTER_STATEMENTS);
        return step;
    }
}

/* ---- letters, events, records ---------------------------------------------------------------------------------- */

/* K11 shows the row as it is now, by a plain read; what was judged by the row shows what was read under its lock. */
static enum txn_step letter_state(struct txn *txn, struct item *item, struct bytes *ret_json,
                                  struct err *err)
{
    const struct rule *rule = item->eval.rule;
    *ret_json = (struct bytes){0};
    if (!rule || rule->transition_count == 0)
        return STEP_ON;
    if (!item->rows && item->outcome == OUTCOME_APPLIED_BY_OTHER &&
        txn->store->row->look(txn->store->self, item, &txn->scratch, err))
        return STEP_ERROR;
    if (!item->rows || !item->rows[0].found || item->rows[0].locked)
        return STEP_ON;
    struct row_layout layout;
    struct buf buf;
    row_layout(rule, 0, &layout);
    buf_init(&buf, txn->scratch.base + txn->scratch.used, txn->scratch.size - txn->scratch.used);
    row_write_json(&layout, &item->rows[0], &buf);
    if (buf.overflow) {
        err_set(err, ERR_TOO_LARGE, 0, "letter", "scratch memory is full");
        return STEP_ERROR;
    }
    txn->scratch.used += buf.len;
    *ret_json = buf_view(&buf);
    return STEP_ON;
}

/* Events of a letter go out only when it was new, and for a second payment only when the other's identity is known. */
static const struct event_list *letter_events(const struct item *item, bool new_letter)
{
    static const struct event_list none;
    if (!item->eval.rule || !new_letter || item->cause == CAUSE_IDENTITY_UNKNOWN)
        return &none;
    return &item->eval.rule->on[item->outcome];
}

static enum txn_step queue_events(struct txn *txn, const struct item *item,
                                  const struct event_list *list, struct err *err)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (txn->outbox_count == txn->outbox_size) {
            enum err_class class = txn->store->effect->events(
                txn->store->self, txn->outbox, txn->outbox_count, bytes_text(txn->now), err);
            if (class != ERR_NONE)
                return STEP_ERROR;
            txn->outbox_count = 0;
        }
        txn->outbox[txn->outbox_count++] =
            (struct outbox_row){item, &list->events[i], item->outcome, i};
    }
    return STEP_ON;
}

enum txn_step effects_letters_and_events(struct txn *txn, struct item **items, uint32_t count,
                                         struct err *err)
{
    enum txn_step step = STEP_ON;
    txn->outbox_count = 0;
    for (uint32_t i = 0; i < count && step == STEP_ON; i++) {
        struct item *item = items[i];
        if (item->outcome == OUTCOME_FIRST) {
            step = queue_events(txn, item, &item->eval.rule->events, err);
        } else if (outcome_row(item->outcome)->dead_letter) {
            struct bytes state;
            bool new_letter = false;
            step = letter_state(txn, item, &state, err);
            if (step == STEP_ON)
                step = failed(txn->store->effect->letter(txn->store->self, item, state,
                                                         &new_letter, err));
            if (step == STEP_ON)
                step = queue_events(txn, item, letter_events(item, new_letter), err);
        }
    }
    if (step == STEP_ON && txn->outbox_count > 0)
        step = failed(txn->store->effect->events(txn->store->self, txn->outbox, txn->outbox_count,
                                                 bytes_text(txn->now), err));
    return step;
}

enum txn_step effects_records(struct txn *txn, struct item **items, uint32_t count, struct err *err)
{
    uint32_t writes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (items[i]->write != WRITE_NONE)
            txn->list[writes++] = items[i];
    if (writes == 0)
        return STEP_ON;
    return failed(txn->store->effect->records(txn->store->self, txn->list, writes, txn->claim, err));
}
