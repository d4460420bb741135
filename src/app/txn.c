/* SPDX-License-Identifier: MIT */
/* txn: one attempt, in the order of design section 3, step 4. This is the only file that names the order of the
 * database steps; read attempt() and run_wave() for the whole story. It never retries, waits, logs or moves an
 * offset. */
#include "idem/app/txn.h"

#include "effects.h"
#include "waiting.h"
#include "idem/core/decide.h"

#include <stdlib.h>

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static uint32_t known_places(uint32_t size)
{
    uint32_t places = 16;
    while (places < size * 2)
        places *= 2;
    return places;
}

bool txn_init(struct txn *txn, const struct store_port *store, const struct env_port *env, uint32_t size,
              size_t scratch_size)
{
    uint32_t places = known_places(size);
    size_t lists = 5 * (size_t)size * sizeof(struct item *);
    size_t known = places * sizeof(struct item *);
    size_t outbox = (size_t)size * sizeof(struct outbox_row);
    uint8_t *memory = calloc(1, lists + known + outbox + wave_set_size(size));
    void *scratch = malloc(scratch_size);
    if (!memory || !scratch) {
        free(memory);
        free(scratch);
        return false;
    }
    *txn = (struct txn){.store = store, .env = env, .size = size, .memory = memory,
                        .known_mask = places - 1, .outbox_size = size};
    txn->pending = (struct item **)(void *)memory;
    txn->wave = txn->pending + size;
    txn->list = txn->wave + size;
    txn->rest = txn->list + size;
    txn->group = txn->rest + size;
    txn->known = (struct item **)(void *)(memory + lists);
    txn->outbox = (struct outbox_row *)(void *)(memory + lists + known);
    wave_set_init(&txn->waves, memory + lists + known + outbox, size);
    arena_init(&txn->scratch, scratch, scratch_size);
    return true;
}

void txn_finish(struct txn *txn)
{
    free(txn->memory);
    free(txn->scratch.base);
    *txn = (struct txn){0};
}

/* ---- keys that this attempt has already judged ------------------------------------------------------------------- */

static struct item **known_place(struct txn *txn, const struct item *item)
{
    uint32_t at = (uint32_t)item_key_hash(item) & txn->known_mask;
    while (txn->known[at] && !item_same_key(txn->known[at], item))
        at = (at + 1) & txn->known_mask;
    return &txn->known[at];
}

/* The dedupe row as the item leaves it. */
static struct known_row row_after(const struct item *item)
{
    if (!item->claimed && item->write != WRITE_REPLACE && item->write != WRITE_RETRY)
        return item->known;
    struct known_row row = {
        .present = true,
        .status = outcome_row(item->outcome)->status,
        .outcome = item->outcome,
        .fingerprint_version = item->eval.rule->fingerprint_version,
        .biz_no = item->eval.biz_no,
        .source = item->record.source,
        .topic = item->record.topic,
        .partition = item->record.partition,
        .offset = item->record.offset,
        .attempts = item->known.attempts + 1,
    };
    memcpy(row.params_hash, item->eval.params_hash, sizeof row.params_hash);
    memcpy(row.identity_hash, item->eval.identity_hash, sizeof row.identity_hash);
    return row;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

/* Takes the verdict of part K; false if the business row has to say. */
static bool settle_by_key(struct item *item, bool inserted, bool *ret_fault)
{
    struct verdict verdict = decide_key(item, inserted);
    *ret_fault = *ret_fault || verdict.kind == VERDICT_FAULT;
    item->parked.orphaned = item->parked.orphaned || verdict.kind == VERDICT_ORPHANED;
    if (verdict.kind == VERDICT_BUSINESS) {
        item->write = verdict.write;
        return false;
    }
    item->outcome = verdict.outcome;
    item->cause = verdict.cause;
    item->first_outcome = verdict.first_outcome;
    item->fingerprint_skipped = verdict.fingerprint_skipped;
    return true;
}

static enum txn_step fault(struct err *err)
{
    err_set(err, ERR_FATAL, 0, "claim", "a row carries this attempt's claim that it did not insert");
    return STEP_ERROR;
}

/* Step 4b/4c for the wave: inserts the rows of keys not yet known, judges every key. Records that the business row
 * has to judge come back in txn->rest. */
static enum txn_step claim_keys(struct txn *txn, struct item **wave, uint32_t count,
                                uint32_t *ret_business, struct err *err)
{
    uint32_t claims = 0, business = 0, repeats = 0;
    bool is_fault = false;
    for (uint32_t i = 0; i < count; i++) {
        struct item *before = *known_place(txn, wave[i]);
        if (before)
            wave[i]->known = row_after(before);
        else
            txn->list[claims++] = wave[i];
    }
    if (claims > 0) {
        items_sort_by_key(txn->list, claims);
        if (txn->store->row->claim(txn->store->self, txn->list, claims, txn->claim, &txn->scratch,
                                   err))
            return STEP_ERROR;
        env_probe(txn->env, PROBE_AFTER_CLAIM);
    }
    for (uint32_t i = 0; i < claims; i++)
        repeats += !txn->list[i]->claimed;
    txn->repeats = txn->repeats || repeats * 3 > claims;
    for (uint32_t i = 0; i < count; i++)
        if (!settle_by_key(wave[i], wave[i]->claimed, &is_fault))
            txn->rest[business++] = wave[i];
    *ret_business = business;
    return is_fault ? fault(err) : STEP_ON;
}

/* Steps 4d/4e, rule by rule. txn->rest holds the records; it is used up. */
static enum txn_step judge_wave(struct txn *txn, struct txn_mode mode, uint32_t count, struct err *err)
{
    enum txn_step worst = STEP_ON;
    while (count > 0) {
        const struct rule *rule = txn->rest[0]->eval.rule;
        uint32_t mine = 0, others = 0;
        for (uint32_t i = 0; i < count; i++) {
            struct item *item = txn->rest[i];
            if (item->eval.rule == rule)
                txn->group[mine++] = item;
            else
                txn->rest[others++] = item;
        }
        count = others;
        enum txn_step step = judge_rule(txn, mode, rule, txn->group, mine, err);
        if (step == STEP_WAITING)
            worst = STEP_WAITING;
        else if (step != STEP_ON)
            return step;
    }
    return worst;
}

/* A refused record that was refused before: it leaves its row and its letter, its business row is not touched. */
static void set_poisoned(struct item *item)
{
    item->error_number = item->poison_number;
    item->error_text = BYTES_LIT("refused twice while others of its rule were applied");
    judge_set(item, OUTCOME_REJECTED, CAUSE_DATABASE);
}

static enum txn_step apply_wave(struct txn *txn, struct txn_mode mode, struct item **wave,
                                uint32_t count, uint32_t business, struct item **ret_culprit,
                                struct err *err)
{
    uint32_t culprit = 0;
    if (business > 0 && mode.poisoned) {
        set_poisoned(txn->rest[0]);
        return STEP_ON;
    }
    if (business > 0 && mode.single)
        return effects_single(txn, mode, txn->rest[0], err);
    if (business == 0)
        return STEP_ON;
    enum txn_step step = judge_wave(txn, mode, business, err);
    if (step != STEP_ON)
        return step;
    env_probe(txn->env, PROBE_AFTER_UPDATE);
    step = effects_insert(txn, wave, count, err);
    if (step != STEP_ON)
        return step;
    env_probe(txn->env, PROBE_AFTER_INSERT);
    step = effects_statements(txn, wave, count, &culprit, err);
    if (step == STEP_CULPRIT)
        *ret_culprit = wave[culprit];
    if (step == STEP_ON)
        env_probe(txn->env, PROBE_AFTER_STATEMENTS);
    return step;
}

/* One wave: records with distinct keys, numbers and rows. */
static enum txn_step run_wave(struct txn *txn, struct txn_mode mode, struct item **wave, uint32_t count,
                              struct item **ret_culprit, struct err *err)
{
    uint32_t business = 0;
    enum txn_step step = claim_keys(txn, wave, count, &business, err);
    if (step == STEP_ON)
        step = waiting_behind(txn, txn->rest, &business, err);
    if (step == STEP_ON)
        step = apply_wave(txn, mode, wave, count, business, ret_culprit, err);
    if (step == STEP_ON)
        step = waiting_end(txn, wave, count, err);
    if (step == STEP_ON)
        step = effects_letters_and_events(txn, wave, count, err);
    if (step == STEP_ON) {
        env_probe(txn->env, PROBE_AFTER_OUTBOX);
        step = effects_records(txn, wave, count, err);
    }
    for (uint32_t i = 0; i < count && step == STEP_ON; i++)
        *known_place(txn, wave[i]) = wave[i];
    return step;
}

/* Known keys need no insert: status 1 is final, so an unlocked look may say what a repeat is. Absence decides
 * nothing. */
static enum txn_step look_first(struct txn *txn, struct item **items, uint32_t *count, struct err *err)
{
    uint32_t distinct = 0, left = 0, repeats = 0;
    bool is_fault = false;
    for (uint32_t i = 0; i < *count; i++) {
        struct item **place = known_place(txn, items[i]);
        if (*place)
            continue;
        *place = items[i];
        txn->list[distinct++] = items[i];
    }
    if (txn->store->row->probe(txn->store->self, txn->list, distinct, &txn->scratch, err))
        return STEP_ERROR;
    for (uint32_t i = 0; i < distinct; i++)
        repeats += txn->list[i]->known.present;
    txn->repeats = repeats * 3 > distinct;
    for (uint32_t i = 0; i < *count; i++) {
        struct item *leader = *known_place(txn, items[i]);
        if (!leader->known.present) {
            items[left++] = items[i];
            continue;
        }
        items[i]->known = leader->known;
        settle_by_key(items[i], false, &is_fault);
    }
    memset(txn->known, 0, (txn->known_mask + 1) * sizeof *txn->known);
    *count = left;
    return is_fault ? fault(err) : STEP_ON;
}

/* ---- the attempt ----------------------------------------------------------------------------------------------- */

enum { FENCES_MAX = BATCH_RECORDS_MAX };      /* as many partitions as records */

static uint32_t collect_fences(struct item *const *items, uint32_t count, struct fence *fences)
{
    uint32_t fence_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct item *item = items[i];
        uint32_t k = 0;
        if (item->generation == 0)      /* explain: nobody owns this record */
            continue;
        while (k < fence_count && !(fences[k].partition == item->partition &&
                                    bytes_equal(fences[k].topic, item->record.topic)))
            k++;
        if (k == fence_count)
            fences[fence_count++] = (struct fence){item->record.topic, item->partition,
                                                   item->generation, item->server};
    }
    return fence_count;
}

static bool render_response(struct txn *txn, struct item *item)
{
    struct buf buf;
    buf_init(&buf, txn->scratch.base + txn->scratch.used, txn->scratch.size - txn->scratch.used);
    template_write(&item->eval.rule->respond, item->eval.rule, item->eval.values,
                   bytes_text(txn->now), &buf);
    txn->scratch.used += buf.len;
    item->response = buf_view(&buf);
    return !buf.overflow;
}

/* Resets the items, renders what they answer, lists those that a rule has to apply in txn->pending. */
static enum txn_step prepare(struct txn *txn, struct item **items, uint32_t count, uint32_t *ret_pending,
                             struct err *err)
{
    uint32_t pending = 0;
    bool reads_now = false;
    for (uint32_t i = 0; i < count; i++)
        reads_now = reads_now || (items[i]->eval.rule && items[i]->eval.rule->reads_now);
    txn->now[0] = '\0';
    if (reads_now && txn->store->tx->now(txn->store->self, txn->now, err))
        return STEP_ERROR;
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = items[i];
        if (item->parked.orphaned) {                    /* its evaluation counts no more */
            txn->pending[pending++] = item;
            continue;
        }
        if (item->eval.outcome != OUTCOME_NONE) {       /* evaluation already was the outcome */
            item->outcome = item->eval.outcome;
            item->cause = item->eval.cause;
            continue;
        }
        txn->pending[pending++] = item;
        if (item->eval.rule->has_respond && !render_response(txn, item)) {
            err_set(err, ERR_TOO_LARGE, 0, "respond", "scratch memory is full");
            return STEP_ERROR;
        }
    }
    *ret_pending = pending;
    return STEP_ON;
}

static bool has_parked(struct item *const *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i]->parked.id)
            return true;
    return false;
}

static bool has_statements(struct item *const *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (items[i]->eval.rule->statement_count > 0)
            return true;
    return false;
}

static enum txn_step run_waves(struct txn *txn, struct txn_mode mode, uint32_t pending,
                               struct item **ret_culprit, struct err *err)
{
    enum txn_step step = STEP_ON;
    bool ordered = has_statements(txn->pending, pending);
    if (txn->repeats && !mode.single && pending > 1 && !has_parked(txn->pending, pending))
        step = look_first(txn, txn->pending, &pending, err);
    while (pending > 0 && step == STEP_ON) {
        uint32_t rest = 0;
        uint32_t count = (ordered ? wave_prefix : wave_pick)(&txn->waves, txn->pending, pending,
                                                             txn->wave, txn->pending, &rest);
        step = run_wave(txn, mode, txn->wave, count, ret_culprit, err);
        pending = rest;
    }
    return step;
}

/* Letters of those that evaluation refused, and of those that a look at known keys settled. */
static enum txn_step remaining_letters(struct txn *txn, struct item **items, uint32_t count,
                                       struct err *err)
{
    uint32_t letters = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct item *item = items[i];
        if (item->silent)
            continue;
        bool in_wave = item->eval.outcome == OUTCOME_NONE && *known_place(txn, item) != NULL;
        if (!in_wave && outcome_row(item->outcome)->dead_letter)
            txn->wave[letters++] = item;
    }
    return effects_letters_and_events(txn, txn->wave, letters, err);
}

static enum txn_step attempt(struct txn *txn, struct item **items, uint32_t count, struct txn_mode mode,
                             struct item **ret_culprit, struct err *err)
{
    uint32_t pending = 0;
    enum txn_step step = prepare(txn, items, count, &pending, err);
    if (step == STEP_ON)
        step = waiting_begin(txn, txn->pending, &pending, err);
    if (step == STEP_ON)
        step = run_waves(txn, mode, pending, ret_culprit, err);
    if (step == STEP_ON)
        step = remaining_letters(txn, items, count, err);
    return step;
}

static enum txn_end end_of(enum txn_step step)
{
    switch (step) {
    case STEP_ON: return TXN_COMMITTED;
    case STEP_DIFFERS: return TXN_DIFFERS;
    case STEP_WAITING: return TXN_WAITING;
    case STEP_CULPRIT: return TXN_CULPRIT;
    case STEP_ERROR: return TXN_ERROR;
    }
    abort();
}

static void attempt_reset(struct txn *txn, struct item **items, uint32_t count)
{
    uint64_t claim = txn->env->random(txn->env->self);
    memcpy(txn->claim, &claim, sizeof txn->claim);
    arena_reset(&txn->scratch, 0);
    txn->scratch.exhausted = false;
    memset(txn->known, 0, (txn->known_mask + 1) * sizeof *txn->known);
    for (uint32_t i = 0; i < count; i++)
        item_reset(items[i]);
}

static enum txn_end commit(struct txn *txn, bool dry_run, struct err *err)
{
    if (dry_run) {
        txn->store->tx->rollback(txn->store->self);
        return TXN_COMMITTED;
    }
    env_probe(txn->env, PROBE_BEFORE_COMMIT);
    enum err_class class = txn->store->tx->commit(txn->store->self, err);
    if (class != ERR_NONE) {
        if (class != ERR_IN_DOUBT)      /* in doubt the session belongs to settle() */
            txn->store->tx->rollback(txn->store->self);
        return TXN_ERROR;
    }
    env_probe(txn->env, PROBE_AFTER_COMMIT);
    return TXN_COMMITTED;
}

enum txn_end txn_attempt(struct txn *txn, struct item **items, uint32_t count, struct txn_mode mode,
                         uint32_t *ret_culprit, struct err *err)
{
    struct fence fences[FENCES_MAX];
    struct item *culprit = NULL;
    bool current = false;
    attempt_reset(txn, items, count);
    uint32_t fence_count = collect_fences(items, count, fences);
    if (txn->store->tx->begin(txn->store->self, fences, fence_count, &current, err)) {
        txn->store->tx->rollback(txn->store->self);
        return TXN_ERROR;
    }
    if (!current) {
        txn->store->tx->rollback(txn->store->self);
        return TXN_FENCED;
    }
    env_probe(txn->env, PROBE_AFTER_FENCE);
    enum txn_step step = attempt(txn, items, count, mode, &culprit, err);
    if (step == STEP_ON)
        return commit(txn, mode.dry_run, err);
    txn->store->tx->rollback(txn->store->self);
    for (uint32_t i = 0; i < count && culprit; i++)
        if (items[i] == culprit)
            *ret_culprit = i;
    return end_of(step);
}

/* ---- explain --------------------------------------------------------------------------------------------------- */

enum err_class txn_explain(struct txn *txn, struct item *item, struct err *err)
{
    struct txn_mode mode = {.lock_first = true, .skip_locked = true, .single = true, .dry_run = true};
    uint32_t culprit = 0;
    switch (txn_attempt(txn, &item, 1, mode, &culprit, err)) {
    case TXN_COMMITTED:
    case TXN_WAITING:
        return ERR_NONE;
    case TXN_ERROR:
        if (err->class != ERR_LOCKED)
            return err->class;
        item->outcome = OUTCOME_PARKED;
        item->cause = CAUSE_LOCKED;
        return ERR_NONE;
    case TXN_FENCED:
    case TXN_DIFFERS:
    case TXN_CULPRIT:
        break;
    }
    return err_set(err, ERR_FATAL, 0, "explain", "an attempt for one record ended as for many");
}
