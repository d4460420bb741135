/* SPDX-License-Identifier: MIT */
/* worker: see idem/app/worker.h. The way of a batch: collect -> segments -> attempt -> finish; every error goes through
 * fail(), which only chooses. */
#include "idem/app/worker.h"

#include "aside.h"
#include "blame.h"
#include "down.h"
#include "hold.h"
#include "worker_self.h"
#include "idem/app/park_gate.h"
#include "idem/core/retry.h"

#include <stdlib.h>

enum {
    SCRATCH_PER_RECORD = 4096,
    SCRATCH_FIXED = 8 << 20,         /* one record of the largest size, its row and its letter */
    WARY_US = 30000000,              /* after a lock wait: so long batches skip rows that others hold */
    LOCK_FIRST_BATCHES = 16,         /* after rows differed: so many batches lock before they update */
    RETRY_BASE_MS = 5, RETRY_CAP_MS = 1000,
    DOWN_BASE_MS = 100, DOWN_CAP_MS = 5000,
    TRIES_BEFORE_DOWN = 4            /* of settling, while the old session still holds its rows */
};

bool worker_init(struct worker *worker, const struct worker_init *init)
{
    uint32_t size = init->config->batch_max;
    *worker = (struct worker){.init = *init, .down = -1};
    worker->batch = calloc(size, sizeof(struct item *));
    worker->holds = calloc(init->config->topic_count + 1, sizeof *worker->holds);
    if (!worker->batch || !worker->holds || !txn_init(&worker->txn, init->store, init->env, size,
                  SCRATCH_FIXED + (size_t)size * SCRATCH_PER_RECORD)) {
        free(worker->batch);
        free(worker->holds);
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
    free(worker->holds);
}

int64_t worker_now(const struct worker *worker)
{
    return worker->init.env->mono_us(worker->init.env->self);
}

/* ---- collecting ------------------------------------------------------------------------------------------------ */

void worker_admit(struct worker *worker, struct item *item)
{
    if (worker->aside.head && aside_has(&worker->aside, item->number_hash)) {
        item->not_before_us = INT64_MAX;
        item_list_push(&worker->aside, item);
    } else {
        worker->batch[worker->batch_count++] = item;
    }
}

static void collect_queued(struct worker *worker)
{
    struct item_list taken = {0};
    queue_take(&worker->queue, worker->init.config->batch_max, worker->init.config->batch_bytes,
               &taken);
    for (struct item *item; (item = item_list_pop(&taken));)
        if (!hold_takes(worker, item))
            worker_admit(worker, item);
}

void worker_segment_begins(struct worker *worker)
{
    worker->mode = (struct txn_mode){.lock_first = worker->lock_first_left > 0 || worker->careful,
                                     .skip_locked = worker->careful};
    worker->tries = 0;
    worker->losses.count = 0;
    worker->due_us = 0;
}

/* A parked record never waits for a lock, a live one that was held up long enough neither. */
static void note_waits(struct worker *worker, struct item *item)
{
    item->parks_if_locked = item->parked.id || aside_parks_from(item) <= worker_now(worker);
    worker->careful = worker->careful || item->parked.id;
}

static bool collect(struct worker *worker)
{
    worker->batch_count = aside_take(&worker->aside, worker_now(worker), worker->batch, worker->init.config->batch_max);
    if (worker->batch_count > 0)
        hold_older(worker);
    worker->careful = worker->batch_count > 0;
    if (worker->batch_count == 0)
        hold_collect(worker);
    if (worker->batch_count == 0)
        collect_queued(worker);
    if (worker->batch_count == 0)
        return false;
    worker->careful = worker->careful || worker->wary_until_us > worker_now(worker);
    for (uint32_t i = 0; i < worker->batch_count; i++)
        note_waits(worker, worker->batch[i]);
    segments_init(&worker->segments, worker->batch_count);
    worker_segment_begins(worker);
    return true;
}

/* ---- finishing ------------------------------------------------------------------------------------------------- */

void worker_batch_ends(struct worker *worker)
{
    worker->batch_count = 0;
    hold_done(worker);
}

static void segment_ends(struct worker *worker)
{
    segments_pop(&worker->segments);
    if (worker->segments.count == 0) {
        worker_batch_ends(worker);
        if (worker->lock_first_left > 0)
            worker->lock_first_left--;
    }
    worker_segment_begins(worker);
}

static void tell(const struct worker *worker, struct item *item, int64_t now)
{
    if (item->outcome == OUTCOME_PARKED)
        park_gate_raise(item->gate);
    worker->init.report->outcome(worker->init.report->self, item, now - item->polled_us, worker->init.index);
}

/* A parked record that waits on: its outcome was told when it was parked. */
static void waits_on(const struct worker *worker, const struct item *item)
{
    if (!item->parked.orphaned || !item->parked.found)
        return;
    worker_report(worker, EVENT_ORPHANED, (struct report_fields){
        .level = LEVEL_WARNING, .topic = item->record.topic, .partition = item->partition,
        .offset = item->record.offset, .generation = -1, .count = -1, .attempt = -1, .delay_ms = -1,
        .key = item->parked.key});
}

/* Outcomes stand, intake may move the offset. */
static void finish(struct worker *worker, const struct segment *segment)
{
    struct item_list done = {0};
    int64_t now = worker_now(worker);
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

/* The transaction is in the database. */
static void committed(struct worker *worker, const struct segment *segment)
{
    blame_committed(worker, segment);
    if (worker->held)
        up_topic(worker, worker->held);
    finish(worker, segment);
}

/* Somebody else owns one of these partitions. Which one is found out partition by partition; its records are dropped in
 * silence, for the new owner has them. */
static void drop(struct worker *worker, const struct segment *segment)
{
    struct item_list done = {0};
    struct item *first = worker->batch[segment->from];
    for (uint32_t i = segment->from; i < segment->to; i++) {
        item_reset(worker->batch[i]);
        worker->batch[i]->fenced = true;
        item_list_push(&done, worker->batch[i]);
    }
    worker_report(worker, EVENT_FENCED, (struct report_fields){
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
        worker_segment_begins(worker);
    }
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

static void wait_ms(struct worker *worker, uint32_t base_ms, uint32_t cap_ms, uint32_t *ret_delay)
{
    const struct env_port *env = worker->init.env;
    *ret_delay = retry_delay_ms(++worker->tries, base_ms, cap_ms, env->random(env->self));
    worker->due_us = worker_now(worker) + (int64_t)*ret_delay * 1000;
}

static void say_retry(const struct worker *worker, const struct segment *segment, enum outcome_level level,
                      uint32_t delay, const struct err *err)
{
    worker_report(worker, EVENT_TX_RETRY, (struct report_fields){
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
    worker_report(worker, EVENT_BISECT, fields);
    segments_halve(&worker->segments);
    worker_segment_begins(worker);
}

/* A session that could not be had. */
static void unreachable(struct worker *worker, const struct err *err)
{
    uint32_t delay;
    worker->init.store->tx->close(worker->init.store->self);
    wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
    down_set(worker, DOWN_UNREACHABLE, err);
}

/* A session that ended inside a transaction. Once is no outage yet. One record alone that ends its sessions while
 * others are committed is nobody's poison, for it may be the server's own trouble: it waits aside. */
static void lost(struct worker *worker, const struct segment *segment, const struct err *err)
{
    uint32_t delay;
    worker->init.store->tx->close(worker->init.store->self);
    if (blame_lost(worker)) {
        if (segment->to - segment->from > 1) {
            halve(worker, segment, err);
        } else {
            worker_set_aside(worker, segment->from, err);
            worker_after_removal(worker);
        }
        return;
    }
    wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
    if (worker->losses.count > 1)
        down_set(worker, DOWN_UNREACHABLE, err);
    else
        say_retry(worker, segment, LEVEL_WARNING, delay, err);
}

/* The server has no room: nobody's fault, and nothing that a smaller transaction would cure. */
static void exhausted(struct worker *worker, const struct err *err)
{
    uint32_t delay;
    wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
    down_set(worker, DOWN_UNREACHABLE, err);
}

static void paused_by_config(struct worker *worker, const struct err *err)
{
    uint32_t delay;
    worker->init.store->tx->close(worker->init.store->self);
    wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
    down_set(worker, DOWN_CONFIG, err);
}

static void poison(struct worker *worker, struct item *item, const struct err *err)
{
    item->poison_number = err->number;
    worker->mode = (struct txn_mode){.lock_first = true, .single = true, .poisoned = true};
    worker->due_us = 0;
}

/* A number in no list, alone. What is not proven to be poison is taken for infrastructure, and the record waits aside
 * while others show what is true. */
static void failed_alone(struct worker *worker, const struct segment *segment, const struct err *err)
{
    struct item *item = worker->batch[segment->from];
    worker->init.store->tx->close(worker->init.store->self);
    /* Poisoned: not even its letter is taken. */
    if (blame_failed(worker, item) && !worker->mode.poisoned) {
        poison(worker, item, err);
        return;
    }
    worker_set_aside(worker, segment->from, err);
    worker_after_removal(worker);
}

static void locked(struct worker *worker, const struct segment *segment, const struct err *err)
{
    if (!worker->mode.skip_locked) {
        /* One lock wait is enough to know that somebody holds rows: the next ones are seen without waiting. */
        worker->wary_until_us = worker_now(worker) + WARY_US;
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
        aside_note_locked(worker->batch[segment->from], worker_now(worker));
        worker_set_aside(worker, segment->from, err);
        worker_after_removal(worker);
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
        worker_set_aside(worker, segment->from, err);      /* not even its letter is taken */
        worker_after_removal(worker);
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
        if (in_transaction && err->class == ERR_RECONNECT)
            lost(worker, segment, err);
        else
            unreachable(worker, err);
        return;
    case ERR_EXHAUSTED:
        exhausted(worker, err);
        return;
    case ERR_IN_DOUBT:
        worker->in_doubt = true;
        worker->tries = 0;
        worker_report(worker, EVENT_TX_IN_DOUBT, (struct report_fields){
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
    case ERR_SCHEMA:
        hold_fault(worker, segment, err);
        return;
    case ERR_CONFIG:
        paused_by_config(worker, err);
        return;
    case ERR_NONE:
    case ERR_FATAL:
        break;
    }
    down_for_good(worker, "fault", err);
    atomic_store(&worker->init.shared->fatal, true);
    worker->due_us = INT64_MAX;
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static void settle(struct worker *worker, const struct segment *segment)
{
    struct err err = {0};
    bool stands = false;
    uint32_t delay;
    enum err_class class = worker->init.store->tx->settle(
        worker->init.store->self, worker->batch + segment->from, segment->to - segment->from,
        worker->txn.claim, &stands, &err);
    if (class == ERR_FATAL) {
        fail(worker, segment, true, &err);
        return;
    }
    if (class != ERR_NONE) {
        wait_ms(worker, DOWN_BASE_MS, DOWN_CAP_MS, &delay);
        /* Locked: the old session is on its way out, which may take a moment. */
        if (class != ERR_LOCKED || worker->tries >= TRIES_BEFORE_DOWN)
            down_set(worker, class == ERR_CONFIG ? DOWN_CONFIG : DOWN_UNREACHABLE, &err);
        return;
    }
    down_set(worker, -1, NULL);
    worker->in_doubt = false;
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.count = segment->to - segment->from;
    fields.why = stands ? "committed" : "rolled_back";
    worker_report(worker, EVENT_TX_SETTLED, fields);
    if (stands)
        committed(worker, segment);
    else
        worker_segment_begins(worker);
}

static void culprit(struct worker *worker, uint32_t index)
{
    segments_cut(&worker->segments, index);
    worker_segment_begins(worker);
    if (segments_top(&worker->segments)->to - segments_top(&worker->segments)->from == 1) {
        worker->mode.single = true;
        worker->mode.lock_first = true;
    }
}

/* What does not show that the database works. */
static bool is_outage(enum err_class class)
{
    return class == ERR_RECONNECT || class == ERR_EXHAUSTED || class == ERR_WRONG_SERVER || class == ERR_IN_DOUBT ||
           class == ERR_CONFIG;
}

static enum report_tx result_of(enum txn_end end, const struct err *err)
{
    switch (end) {
    case TXN_COMMITTED: return REPORT_TX_COMMITTED;
    case TXN_FENCED: return REPORT_TX_FENCED;
    case TXN_ERROR: return err->class == ERR_IN_DOUBT ? REPORT_TX_IN_DOUBT : REPORT_TX_ROLLED_BACK;
    case TXN_DIFFERS:
    case TXN_WAITING:
    case TXN_CULPRIT: break;
    }
    return REPORT_TX_ROLLED_BACK;
}

static void attempt(struct worker *worker, const struct segment *segment)
{
    struct err err = {0};
    uint32_t bad = 0, count = segment->to - segment->from;
    int64_t began = worker_now(worker);
    for (uint32_t i = segment->from; i < segment->to; i++)
        worker->batch[i]->attempts++;
    enum txn_end end = txn_attempt(&worker->txn, worker->batch + segment->from, count, worker->mode, &bad, &err);
    worker->init.report->transaction(worker->init.report->self, worker->init.database, result_of(end, &err), count,
                                     worker_now(worker) - began);
    if (end != TXN_ERROR || !is_outage(err.class))
        down_set(worker, -1, NULL);
    switch (end) {
    case TXN_COMMITTED:
        committed(worker, segment);
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
        worker_waiting(worker);
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

static int64_t next_due(const struct worker *worker)
{
    int64_t aside = aside_due(&worker->aside), held = hold_due(worker);
    return aside < held ? aside : held;
}

/* Every topic of the segment still has what proves its rows. One that has not waits; false: run nothing now. */
static bool topics_stand(struct worker *worker, const struct segment *segment)
{
    const struct topic *seen = NULL;
    for (uint32_t i = segment->from; i < segment->to; i++) {
        struct err err = {0};
        const struct topic *topic = worker->batch[i]->topic;
        if (topic == seen)
            continue;
        seen = topic;
        enum err_class class = worker->init.store->tx->stands(worker->init.store->self, topic, &err);
        if (class == ERR_SCHEMA)
            hold_topic(worker, topic, segment->from, &err);
        else if (class != ERR_NONE)
            fail(worker, segment, false, &err);
        if (class != ERR_NONE)
            return false;
    }
    return true;
}

/* Partitions that were taken over on a server that the database has left: what its last commits were, and whether
 * they are there still, is found out by taking the partitions over again. Until then nothing of them may be applied:
 * a record could overtake one of its number that was applied there and is lost. */
static bool left_behind(const struct worker *worker, const struct segment *segment)
{
    uint64_t server = atomic_load(&worker->init.shared->servers[worker->init.database]);
    for (uint32_t i = segment->from; i < segment->to; i++)
        if (worker->batch[i]->server != server)
            return true;
    return false;
}

int64_t worker_step(struct worker *worker)
{
    struct err err = {0};
    if (worker->due_us > worker_now(worker))
        return worker->due_us;
    if (worker->batch_count == 0 && !collect(worker))
        return next_due(worker);
    const struct segment segment = *segments_top(&worker->segments);
    if (worker->in_doubt)
        settle(worker, &segment);
    else if (all_ignored(worker, &segment))
        finish_ignored(worker, &segment);
    else if (left_behind(worker, &segment))
        fenced(worker, &segment);
    else if (worker->init.store->tx->open(worker->init.store->self, &err))
        fail(worker, &segment, false, &err);
    else if (topics_stand(worker, &segment))
        attempt(worker, &segment);
    return worker->due_us;
}

bool worker_is_idle(struct worker *worker)
{
    return queue_is_empty(&worker->queue) && worker->batch_count == 0 && !worker->aside.head &&
           hold_is_empty(worker);
}
