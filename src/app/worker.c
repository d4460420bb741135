/* SPDX-License-Identifier: MIT */
/* worker: see idem/app/worker.h. The way of a batch: collect -> segments -> attempt -> finish; every error goes through
 * fail(), which only chooses. */
#include "idem/app/worker.h"

#include "aside.h"
#include "idem/app/park_gate.h"
#include "idem/core/retry.h"

#include <stdlib.h>

enum {
    SCRATCH_PER_RECORD = 4096,
    SCRATCH_FIXED = 8 << 20,         /* one record of the largest size, its row and its letter */
    LOCK_FIRST_BATCHES = 16,         /* after rows differed: so many batches lock before they update */
    LOSSES_BEFORE_HALVING = 3,       /* connections lost inside transactions of one segment */
    CULPRITS_BEFORE_SINGLE = 4,
    ASIDE_BASE_MS = 500, ASIDE_CAP_MS = 60000,
    RETRY_BASE_MS = 5, RETRY_CAP_MS = 1000,
    DOWN_BASE_MS = 100, DOWN_CAP_MS = 5000
};

bool worker_init(struct worker *worker, const struct worker_init *init)
{
    uint32_t size = init->config->batch_max;
    *worker = (struct worker){.init = *init, .down = -1};
    worker->batch = calloc(size, sizeof(struct item *));
    if (!worker->batch)
        return false;
    if (!txn_init(&worker->txn, init->store, init->env, size,
                  SCRATCH_FIXED + (size_t)size * SCRATCH_PER_RECORD)) {
        free(worker->batch);
        return false;
    }
    queue_init(&worker->queue);
    return true;
}

void worker_finish(struct worker *worker)
{
    txn_finish(&worker->txn);
    queue_finish(&worker->queue);
    free(worker->batch);
}

static int64_t now_us(const struct worker *worker)
{
    return worker->init.env->mono_us(worker->init.env->self);
}

static struct bytes database_name(const struct worker *worker)
{
    return worker->init.config->databases[worker->init.database].name;
}

static void report(const struct worker *worker, enum report_event event,
                   struct report_fields fields)
{
    fields.database = database_name(worker);
    worker->init.report->event(worker->init.report->self, event, &fields);
}

/* ---- up and down ----------------------------------------------------------------------------------------------- */

static atomic_int *down_count(const struct worker *worker, int why)
{
    return &worker->init.shared->down[worker->init.database * DOWN_WHY_COUNT + (uint32_t)why];
}

static const char *down_name(int why)
{
    return why == DOWN_CONFIG ? "config" : "unreachable";
}

static void say_down(const struct worker *worker, enum report_event event, const char *why, const struct err *err)
{
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.level = event == EVENT_PAUSED ? LEVEL_ERR : LEVEL_INFO;
    fields.why = why;
    fields.err = err;
    report(worker, event, fields);
}

/* The first session of a database that goes down says so, the last that comes back too. */
static void set_down(struct worker *worker, int why, const struct err *err)
{
    if (worker->down == why)
        return;
    if (worker->down >= 0 && atomic_fetch_sub(down_count(worker, worker->down), 1) == 1)
        say_down(worker, EVENT_RESUMED, down_name(worker->down), NULL);
    worker->down = why;
    if (why >= 0 && atomic_fetch_add(down_count(worker, why), 1) == 0)
        say_down(worker, EVENT_PAUSED, down_name(why), err);
}

/* ---- collecting ------------------------------------------------------------------------------------------------ */

static void collect_queued(struct worker *worker)
{
    struct item_list taken = {0};
    queue_take(&worker->queue, worker->init.config->batch_max, worker->init.config->batch_bytes,
               &taken);
    for (struct item *item; (item = item_list_pop(&taken));) {
        /* Behind one of its number that is set aside: it may not overtake. */
        if (worker->aside.head && aside_has(&worker->aside, item->number_hash)) {
            item->not_before_us = INT64_MAX;
            item_list_push(&worker->aside, item);
        } else {
            worker->batch[worker->batch_count++] = item;
        }
    }
}

static void segment_begins(struct worker *worker)
{
    worker->mode = (struct txn_mode){.lock_first = worker->lock_first_left > 0 || worker->careful,
                                     .skip_locked = worker->careful};
    worker->tries = 0;
    worker->losses = 0;
    worker->due_us = 0;
}

/* A parked record never waits for a lock, a live one that was held up long enough neither. */
static void note_waits(struct worker *worker, struct item *item)
{
    item->parks_if_locked = item->parked.id || aside_parks_from(item) <= now_us(worker);
    worker->careful = worker->careful || item->parked.id;
}

static bool collect(struct worker *worker)
{
    worker->batch_count = aside_take(&worker->aside, now_us(worker), worker->batch, worker->init.config->batch_max);
    worker->careful = worker->batch_count > 0;
    if (worker->batch_count == 0)
        collect_queued(worker);
    if (worker->batch_count == 0)
        return false;
    for (uint32_t i = 0; i < worker->batch_count; i++)
        note_waits(worker, worker->batch[i]);
    segments_init(&worker->segments, worker->batch_count);
    segment_begins(worker);
    return true;
}

/* ---- finishing ------------------------------------------------------------------------------------------------- */

static void segment_ends(struct worker *worker)
{
    segments_pop(&worker->segments);
    if (worker->segments.count == 0) {
        worker->batch_count = 0;
        if (worker->lock_first_left > 0)
            worker->lock_first_left--;
    }
    segment_begins(worker);
}

static void count_commit(const struct worker *worker, const struct item *item)
{
    if (item->outcome == OUTCOME_FIRST)
        atomic_fetch_add_explicit(&worker->init.shared->rule_commits[item->eval.rule->index], 1,
                                  memory_order_relaxed);
}

static void tell(const struct worker *worker, struct item *item, int64_t now)
{
    count_commit(worker, item);
    if (item->outcome == OUTCOME_PARKED)
        park_gate_raise(item->gate);
    worker->init.report->outcome(worker->init.report->self, item, now - item->polled_us, worker->init.index);
}

/* A parked record that waits on: its outcome was told when it was parked. */
static void waits_on(const struct worker *worker, const struct item *item)
{
    if (!item->parked.orphaned || !item->parked.found)
        return;
    report(worker, EVENT_ORPHANED, (struct report_fields){
        .level = LEVEL_WARNING, .topic = item->record.topic, .partition = item->partition,
        .offset = item->record.offset, .generation = -1, .count = -1, .attempt = -1, .delay_ms = -1,
        .key = item->parked.key});
}

/* The transaction is in the database: outcomes stand, intake may move the offset. */
static void finish(struct worker *worker, const struct segment *segment)
{
    struct item_list done = {0};
    int64_t now = now_us(worker);
    set_down(worker, -1, NULL);
    for (uint32_t i = segment->from; i < segment->to; i++) {
        struct item *item = worker->batch[i];
        if (item->silent)
            waits_on(worker, item);
        else
            tell(worker, item, now);
        item_list_push(&done, item);
    }
    worker->init.report->flush(worker->init.report->self);
    queue_push(worker->init.done, &done);
    segment_ends(worker);
}

/* Somebody else owns one of these partitions. Which one is found out partition by partition; its records are dropped in
 * silence, for the new owner has them. */
static void drop(struct worker *worker, const struct segment *segment)
{
    struct item_list done = {0};
    struct item *first = worker->batch[segment->from];
    for (uint32_t i = segment->from; i < segment->to; i++) {
        item_reset(worker->batch[i]);
        item_list_push(&done, worker->batch[i]);
    }
    report(worker, EVENT_FENCED, (struct report_fields){
        .level = LEVEL_WARNING, .topic = first->record.topic, .partition = first->record.partition,
        .offset = -1, .generation = (int64_t)first->generation, .count = done.count, .attempt = -1,
        .delay_ms = -1});
    queue_push(worker->init.done, &done);
    segment_ends(worker);
}

static bool one_partition(const struct worker *worker, const struct segment *segment)
{
    const struct item *first = worker->batch[segment->from];
    for (uint32_t i = segment->from + 1; i < segment->to; i++) {
        const struct item *item = worker->batch[i];
        if (item->record.partition != first->record.partition ||
            item->generation != first->generation ||
            !bytes_equal(item->record.topic, first->record.topic))
            return false;
    }
    return true;
}

static void fenced(struct worker *worker, const struct segment *segment)
{
    if (one_partition(worker, segment)) {
        drop(worker, segment);
    } else {
        segments_halve(&worker->segments);
        segment_begins(worker);
    }
}

/* ---- setting aside --------------------------------------------------------------------------------------------- */

static void remove_from_batch(struct worker *worker, uint32_t index)
{
    for (uint32_t i = index; i + 1 < worker->batch_count; i++)
        worker->batch[i] = worker->batch[i + 1];
    worker->batch_count--;
    segments_remove(&worker->segments, index);
}

/* Takes batch[index] out, and everything of its number that comes after it. */
static void set_aside(struct worker *worker, uint32_t index, const struct err *err)
{
    struct item *item = worker->batch[index];
    const struct env_port *env = worker->init.env;
    uint32_t delay = retry_delay_ms(++item->aside_count, ASIDE_BASE_MS, ASIDE_CAP_MS,
                                    env->random(env->self));
    aside_delay(item, now_us(worker), delay);
    report(worker, EVENT_SET_ASIDE, (struct report_fields){
        .level = LEVEL_WARNING, .topic = item->record.topic, .partition = item->record.partition,
        .offset = item->record.offset, .generation = -1, .count = -1, .attempt = item->aside_count,
        .delay_ms = delay, .key = item->eval.key, .err = err});
    struct item_list front = {0};
    remove_from_batch(worker, index);
    item_list_push(&front, item);
    for (uint32_t i = index; i < worker->batch_count;) {
        struct item *later = worker->batch[i];
        if (later->number_hash != item->number_hash) {
            i++;
            continue;
        }
        remove_from_batch(worker, i);
        later->not_before_us = INT64_MAX;
        item_list_push(&front, later);
    }
    aside_put_first(&worker->aside, &front);
}

static void after_removal(struct worker *worker)
{
    if (worker->segments.count == 0)
        worker->batch_count = 0;
    segment_begins(worker);
}

/* Records of the present segment that others hold go aside; the rest runs again at once. */
static void waiting(struct worker *worker)
{
    const struct segment segment = *segments_top(&worker->segments);
    uint32_t to = segment.to;
    for (uint32_t i = segment.from; i < to && i < worker->batch_count;) {
        struct item *item = worker->batch[i];
        bool parks = item->parks_if_locked && !item->queue.same_key;
        if (item->outcome != OUTCOME_PARKED || item->cause != CAUSE_LOCKED || parks) {
            i++;
            continue;
        }
        uint32_t before = worker->batch_count;
        aside_note_locked(item, now_us(worker));
        set_aside(worker, i, NULL);
        uint32_t removed = before - worker->batch_count;
        to = removed > to - i ? i : to - removed;
    }
    after_removal(worker);
    worker->mode.lock_first = true;
    worker->mode.skip_locked = true;
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

static void wait_ms(struct worker *worker, uint32_t base_ms, uint32_t cap_ms, uint32_t *ret_delay)
{
    const struct env_port *env = worker->init.env;
    *ret_delay = retry_delay_ms(++worker->tries, base_ms, cap_ms, env->random(env->self));
    worker->due_us = now_us(worker) + (int64_t)*ret_delay * 1000;
}

static void say_retry(const struct worker *worker, const struct segment *segment, enum outcome_level level,
                      uint32_t delay, const struct err *err)
{
    report(worker, EVENT_TX_RETRY, (struct report_fields){
        .level = level, .partition = -1, .offset = -1, .generation = -1, .count = segment->to - segment->from,
        .attempt = worker->tries, .delay_ms = delay, .err = err});
}

static void run_again(struct worker *worker, const struct segment *segment, const struct err *err)
{
    uint32_t delay;
    wait_ms(worker, RETRY_BASE_MS, RETRY_CAP_MS, &delay);
    say_retry(worker, segment, LEVEL_INFO, delay, err);
}

static void halve(struct worker *worker, const struct segment *segment, const struct err *err)
{
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.count = segment->to - segment->from;
    fields.err = err;
    report(worker, EVENT_BISECT, fields);
    segments_halve(&worker->segments);
    segment_begins(worker);
}

static void lost(struct worker *worker, const struct segment *segment, bool in_transaction,
                 const struct err *err)
{
    uint32_t delay;
    worker->init.store->tx->close(worker->init.store->self);
    worker->losses += in_transaction;
    if (worker->losses >= LOSSES_BEFORE_HALVING && segment->to - segment->from > 1) {
        halve(worker, segment, err);
        return;
    }
    wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
    /* A lost transaction is no outage yet: only what cannot be opened again is. */
    if (!in_transaction)
        set_down(worker, err->class == ERR_CONFIG ? DOWN_CONFIG : DOWN_UNREACHABLE, err);
    else
        say_retry(worker, segment, LEVEL_WARNING, delay, err);
}

static void paused_by_config(struct worker *worker, const struct err *err)
{
    uint32_t delay;
    worker->init.store->tx->close(worker->init.store->self);
    wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
    set_down(worker, DOWN_CONFIG, err);
}

static void poison(struct worker *worker, struct item *item, const struct err *err)
{
    item->poison_number = err->number;
    worker->mode = (struct txn_mode){.lock_first = true, .single = true, .poisoned = true};
    worker->due_us = 0;
}

/* A number in no list, alone. Poison only if another record of its rule was committed between two failures; otherwise
 * it is taken for infrastructure, and the record waits aside while others show what is true. */
static void failed_alone(struct worker *worker, const struct segment *segment, const struct err *err)
{
    struct item *item = worker->batch[segment->from];
    const struct rule *rule = item->eval.rule;
    uint64_t commits = rule ? atomic_load(&worker->init.shared->rule_commits[rule->index]) : 0;
    worker->init.store->tx->close(worker->init.store->self);
    if (item->failures++ > 0 && commits > item->failure_mark) {
        poison(worker, item, err);
        return;
    }
    if (item->failures == 1)
        item->failure_mark = commits;
    set_aside(worker, segment->from, err);
    after_removal(worker);
}

static void locked(struct worker *worker, const struct segment *segment, const struct err *err)
{
    if (!worker->mode.skip_locked) {
        run_again(worker, segment, err);
        worker->mode.lock_first = true;
        worker->mode.skip_locked = true;
    } else if (segment->to - segment->from > 1) {
        halve(worker, segment, err);
        worker->mode.lock_first = true;
        worker->mode.skip_locked = true;
    } else if (worker->batch[segment->from]->parks_if_locked && !worker->mode.single) {
        worker->mode.single = true;
    } else {
        aside_note_locked(worker->batch[segment->from], now_us(worker));
        set_aside(worker, segment->from, err);
        after_removal(worker);
    }
}

/* The database refuses something of this record: alone, its refusal becomes its outcome. */
static void refused(struct worker *worker, const struct segment *segment, const struct err *err)
{
    if (segment->to - segment->from > 1) {
        halve(worker, segment, err);
    } else if (!worker->mode.single) {
        worker->mode.single = true;
        worker->mode.lock_first = true;
    } else if (!worker->mode.poisoned) {
        poison(worker, worker->batch[segment->from], err);
    } else {
        set_aside(worker, segment->from, err);      /* not even its letter is taken */
        after_removal(worker);
    }
}

static void fail(struct worker *worker, const struct segment *segment, bool in_transaction,
                 const struct err *err)
{
    switch (err->class) {
    case ERR_RETRY:
        run_again(worker, segment, err);
        return;
    case ERR_LOCKED:
        locked(worker, segment, err);
        return;
    case ERR_RECONNECT:
    case ERR_WRONG_SERVER:
        lost(worker, segment, in_transaction, err);
        return;
    case ERR_IN_DOUBT:
        worker->in_doubt = true;
        worker->tries = 0;
        report(worker, EVENT_TX_IN_DOUBT, (struct report_fields){
            .level = LEVEL_WARNING, .partition = -1, .offset = -1, .generation = -1,
            .count = segment->to - segment->from, .attempt = -1, .delay_ms = -1, .err = err});
        return;
    case ERR_TOO_LARGE:
    case ERR_DATA:
    case ERR_UNIQUE:
        refused(worker, segment, err);
        return;
    case ERR_UNKNOWN:
        if (segment->to - segment->from > 1)
            halve(worker, segment, err);
        else
            failed_alone(worker, segment, err);
        return;
    case ERR_CONFIG:
        paused_by_config(worker, err);
        return;
    case ERR_NONE:
    case ERR_FATAL:
        break;
    }
    say_down(worker, EVENT_PAUSED, "fault", err);
    atomic_store(&worker->init.shared->fatal, true);
    worker->due_us = INT64_MAX;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static void settle(struct worker *worker, const struct segment *segment)
{
    struct err err = {0};
    bool committed = false;
    uint32_t delay;
    enum err_class class = worker->init.store->tx->settle(
        worker->init.store->self, worker->batch + segment->from, segment->to - segment->from,
        worker->txn.claim, &committed, &err);
    if (class == ERR_FATAL) {
        fail(worker, segment, true, &err);
        return;
    }
    if (class != ERR_NONE) {
        wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
        set_down(worker, class == ERR_CONFIG ? DOWN_CONFIG : DOWN_UNREACHABLE, &err);
        return;
    }
    set_down(worker, -1, NULL);
    worker->in_doubt = false;
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.count = segment->to - segment->from;
    fields.why = committed ? "committed" : "rolled_back";
    report(worker, EVENT_TX_SETTLED, fields);
    if (committed)
        finish(worker, segment);
    else
        segment_begins(worker);
}

static void culprit(struct worker *worker, uint32_t index)
{
    segments_cut(&worker->segments, index);
    segment_begins(worker);
    if (segments_top(&worker->segments)->to - segments_top(&worker->segments)->from == 1) {
        worker->mode.single = true;
        worker->mode.lock_first = true;
    }
}

static void attempt(struct worker *worker, const struct segment *segment)
{
    struct err err = {0};
    uint32_t bad = 0, count = segment->to - segment->from;
    for (uint32_t i = segment->from; i < segment->to; i++)
        worker->batch[i]->attempts++;
    switch (txn_attempt(&worker->txn, worker->batch + segment->from, count, worker->mode, &bad,
                        &err)) {
    case TXN_COMMITTED:
        finish(worker, segment);
        return;
    case TXN_FENCED:
        fenced(worker, segment);
        return;
    case TXN_DIFFERS:
        worker->lock_first_left = LOCK_FIRST_BATCHES;
        if (!worker->mode.lock_first)
            worker->mode.lock_first = true;
        else if (count > 1)
            halve(worker, segment, NULL);
        else
            worker->mode.single = true;
        return;
    case TXN_WAITING:
        waiting(worker);
        return;
    case TXN_CULPRIT:
        culprit(worker, segment->from + bad);
        return;
    case TXN_ERROR:
        fail(worker, segment, true, &err);
    }
}

/* Records that leave nothing in the database need no transaction. */
static bool all_ignored(const struct worker *worker, const struct segment *segment)
{
    for (uint32_t i = segment->from; i < segment->to; i++)
        if (worker->batch[i]->eval.outcome != OUTCOME_IGNORED)
            return false;
    return true;
}

static void finish_ignored(struct worker *worker, const struct segment *segment)
{
    for (uint32_t i = segment->from; i < segment->to; i++) {
        item_reset(worker->batch[i]);
        worker->batch[i]->outcome = OUTCOME_IGNORED;
        worker->batch[i]->cause = worker->batch[i]->eval.cause;
    }
    finish(worker, segment);
}

int64_t worker_step(struct worker *worker)
{
    struct err err = {0};
    if (worker->due_us > now_us(worker))
        return worker->due_us;
    if (worker->batch_count == 0 && !collect(worker))
        return aside_due(&worker->aside);
    const struct segment segment = *segments_top(&worker->segments);
    if (worker->in_doubt)
        settle(worker, &segment);
    else if (all_ignored(worker, &segment))
        finish_ignored(worker, &segment);
    else if (worker->init.store->tx->open(worker->init.store->self, &err))
        fail(worker, &segment, false, &err);
    else {
        if (worker->down == DOWN_UNREACHABLE)
            set_down(worker, -1, NULL);
        attempt(worker, &segment);
    }
    return worker->due_us;
}

bool worker_is_idle(struct worker *worker)
{
    return queue_is_empty(&worker->queue) && worker->batch_count == 0 && !worker->aside.head;
}
