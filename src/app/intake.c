/* SPDX-License-Identifier: MIT */
/* intake: see idem/app/intake.h. Records go down this file, completions come up; offsets and ownership are in
 * assignment.c. */
#include "assignment.h"
#include "guard.h"
#include "parked.h"
#include "proof.h"

#include "idem/base/sha256.h"

#include <stdlib.h>

enum {
    BURST = 256,                     /* records polled before completions are looked at again */
    STALL_BEFORE_PAUSE_US = 2000000, /* pausing throws prefetched records away (hazards K2): only for long stalls */
    RECORD_SLACK = 8192,             /* evaluation's own memory for a usual record */
    RECORD_MEMORY_MAX = 256 << 20
};

bool intake_init(struct intake *intake, const struct intake_init *init)
{
    *intake = (struct intake){.init = *init};
    intake->chains = calloc(init->worker_count, sizeof *intake->chains);
    intake->first_worker = calloc(init->config->database_count, sizeof *intake->first_worker);
    intake->watches = calloc(init->config->database_count, sizeof *intake->watches);
    intake->guards = calloc(init->config->topic_count, sizeof *intake->guards);
    if (!intake->chains || !intake->first_worker || !intake->watches || !intake->guards) {
        free(intake->guards);
        free(intake->chains);
        free(intake->first_worker);
        free(intake->watches);
        return false;
    }
    for (uint32_t i = 0, first = 0; i < init->config->database_count; i++) {
        intake->first_worker[i] = first;
        first += init->config->databases[i].connections;
    }
    partitions_init(&intake->partitions);
    pool_init(&intake->pool);
    queue_init(&intake->done);
    return true;
}

void intake_finish(struct intake *intake)
{
    while (intake->deferred) {
        struct keeper_job *job = intake->deferred;
        intake->deferred = job->next;
        keeper_job_free(job);
    }
    partitions_finish(&intake->partitions);
    pool_finish(&intake->pool);
    queue_finish(&intake->done);
    free(intake->chains);
    free(intake->first_worker);
    free(intake->watches);
    free(intake->guards);
}

/* ---- completions ----------------------------------------------------------------------------------------------- */

static void complete(struct intake *intake, struct item *item)
{
    struct partition *partition = &intake->partitions.slots[item->slot];
    intake->inflight--;
    intake->inflight_bytes -= item->block_size;
    if (item->parked.id)
        parked_completed(intake, item);
    if (item->outcome != OUTCOME_NONE && !item->silent)
        guard_note(intake, item);
    if (partition->epoch == item->epoch) {
        partition->inflight--;
        if (item->fenced)
            partition_fenced(partition, intake->init.env->mono_us(intake->init.env->self));
        if (item->outcome != OUTCOME_NONE && !item->parked.id) {     /* NONE: fenced, its new owner has it */
            offsets_finish(&partition->offsets, item->record.offset);
            partition->parked += item->outcome == OUTCOME_PARKED;
            intake->finished++;
        }
    }
    pool_give_back(&intake->pool, item);
}

void intake_take_completions(struct intake *intake)
{
    struct item_list done = {0};
    queue_take(&intake->done, UINT32_MAX, UINT64_MAX, &done);
    for (struct item *item; (item = item_list_pop(&done));)
        complete(intake, item);
}

/* ---- one record ------------------------------------------------------------------------------------------------ */

static const struct topic *find_topic(const struct config *config, struct bytes name)
{
    for (uint32_t i = 0; i < config->topic_count; i++)
        if (bytes_equal(config->topics[i].name, name))
            return &config->topics[i];
    return NULL;
}

/* What the parser decoded lies in its scratch memory: what the item keeps has to be its own. */
static struct bytes own(struct arena *arena, struct bytes view)
{
    if (view.len == 0 || (view.at >= arena->base && view.at < arena->base + arena->used))
        return view;
    return arena_copy(arena, view);
}

static void own_evaluation(struct arena *arena, struct evaluation *eval)
{
    eval->key = own(arena, eval->key);
    eval->biz_no = own(arena, eval->biz_no);
    eval->request_id = own(arena, eval->request_id);
    if (!eval->values || !eval->rule)
        return;
    struct value *values = arena_alloc(arena, eval->rule->expr_count * sizeof *values);
    for (uint32_t i = 0; i < eval->rule->expr_count && values; i++) {
        values[i] = eval->values[i];
        values[i].text = own(arena, values[i].text);
        values[i].token = own(arena, values[i].token);
    }
    eval->values = values;
}

static bool parse(struct intake *intake, const struct topic *topic, const struct record *record,
                  struct parsed *ret)
{
    *ret = (struct parsed){.cause = CAUSE_BODY};
    if (!record->has_value)
        return true;                                 /* a tombstone: evaluate() looks first */
    if (record->value.len > topic->max_bytes) {
        ret->cause = CAUSE_TOO_LARGE;
        return true;
    }
    return intake->init.parser->parse(intake->init.parser->self, record->value, ret);
}

/* Copies and evaluates into the arena. NULL with arena->exhausted or eval.fault: more memory is needed; NULL without:
 * the parser has none. */
static struct item *build(struct intake *intake, const struct topic *topic, const struct record *record,
                          struct arena *arena)
{
    struct parsed parsed;
    struct item *item = arena_calloc(arena, 1, sizeof *item);
    if (!item)
        return NULL;
    item->topic = topic;
    item->record = *record;
    item->record.topic = topic->name;
    item->record.key = arena_copy(arena, record->key);
    item->record.value = arena_copy(arena, record->value);
    item->record.headers = arena_copy(arena, record->headers);
    if (arena->exhausted || !parse(intake, topic, &item->record, &parsed))
        return NULL;
    evaluate(topic, &item->record, &parsed, arena, &item->eval);
    if (item->eval.fault)
        arena->exhausted = true;
    else
        own_evaluation(arena, &item->eval);
    return arena->exhausted ? NULL : item;
}

/* row: of the parked record that it is, or NULL. */
static struct item *make_item(struct intake *intake, const struct topic *topic, const struct record *record,
                              const struct ledger_parked *row)
{
    struct arena arena;
    size_t least = sizeof(struct item) + record->key.len + record->value.len + record->headers.len + RECORD_SLACK;
    for (; least <= RECORD_MEMORY_MAX; least *= 2) {
        if (!pool_open(&intake->pool, least, &arena))
            return NULL;
        struct item *item = build(intake, topic, record, &arena);
        if (item && row)
            parked_row_bind(item, &row->row, &arena);
        if (item && !arena.exhausted) {
            pool_keep(&intake->pool, &arena, item);
            return item;
        }
        if (!arena.exhausted)
            return NULL;
    }
    return NULL;
}

/* By (database, business number): one order is never in two workers. What has no number goes by its partition. */
static uint32_t route(const struct intake *intake, struct item *item)
{
    uint32_t database = item->topic->database;
    struct bytes number = item->parked.id ? item->parked.biz_no : item->eval.biz_no;
    if (number.len == 0)
        number = bytes_of(&item->record.partition, sizeof item->record.partition);
    item->number_hash = bytes_hash(number, database + 17u);
    return intake->first_worker[database] +
           (uint32_t)(item->number_hash >> 32) % intake->init.config->databases[database].connections;
}

static void flush_chains(struct intake *intake)
{
    for (uint32_t i = 0; i < intake->init.worker_count && intake->chained > 0; i++) {
        intake->chained -= intake->chains[i].count;
        queue_push(&intake->init.workers[i].queue, &intake->chains[i]);
    }
}

/* The item is its worker's from now on. */
static void send_down(struct intake *intake, struct item *item)
{
    struct partition *partition = &intake->partitions.slots[item->slot];
    item->epoch = partition->epoch;
    item->generation = partition->generation;
    item->server = partition->server;
    item->partition = partition->number;
    item->gate = partition->gate;
    partition->inflight++;
    intake->inflight++;
    intake->inflight_bytes += item->block_size;
    item_list_push(&intake->chains[route(intake, item)], item);
    intake->chained++;
}

bool intake_take_parked(struct intake *intake, uint32_t slot, const struct ledger_parked *row)
{
    struct item *item = make_item(intake, intake->partitions.slots[slot].topic, &row->record, row);
    if (!item)
        return false;
    item->slot = slot;
    item->polled_us = intake->init.env->mono_us(intake->init.env->self);
    send_down(intake, item);
    return true;
}

/* false: out of memory. */
static bool accept(struct intake *intake, const struct record *record)
{
    uint8_t digest[SHA256_LEN];
    const struct topic *topic = find_topic(intake->init.config, record->topic);
    uint32_t slot = topic ? partitions_find(&intake->partitions, topic, record->partition) : UINT32_MAX;
    if (slot == UINT32_MAX || intake->partitions.slots[slot].state != PARTITION_RUNNING)
        return true;                                 /* a straggler of a former assignment */
    struct partition *partition = &intake->partitions.slots[slot];
    if (partition->proof.pending && proof_takes(intake, partition, record))
        return true;
    if (!offsets_is_new(&partition->offsets, record->offset))
        return true;                                 /* delivered before, or by an older fetch */
    struct item *item = make_item(intake, topic, record, NULL);
    if (!item)
        return false;
    sha256(record->value, digest);
    item->polled_us = intake->init.env->mono_us(intake->init.env->self);
    if (!partition_deliver(partition, record->offset, digest, item->polled_us))
        return false;
    item->slot = slot;
    send_down(intake, item);
    return true;
}

/* ---- the limits ------------------------------------------------------------------------------------------------ */

/* What waits for a topic's schema leaves the other topics their room, up to once more the limits. */
static uint64_t without_held(uint64_t all, const atomic_uint_fast64_t *held_count, uint64_t limit)
{
    uint64_t held = atomic_load_explicit(held_count, memory_order_relaxed);
    if (held > limit)
        held = limit;
    return all > held ? all - held : 0;
}

static uint64_t records_out(const struct intake *intake)
{
    return without_held(intake->inflight, &intake->init.shared->held, intake->init.config->limits.inflight);
}

static uint64_t bytes_out(const struct intake *intake)
{
    return without_held(intake->inflight_bytes, &intake->init.shared->held_bytes,
                        intake->init.config->limits.inflight_bytes);
}

static bool over_limits(const struct intake *intake)
{
    const struct limits_config *limits = &intake->init.config->limits;
    return records_out(intake) >= limits->inflight || bytes_out(intake) >= limits->inflight_bytes;
}

static bool under_half(const struct intake *intake)
{
    const struct limits_config *limits = &intake->init.config->limits;
    return records_out(intake) <= limits->inflight / 2 && bytes_out(intake) <= limits->inflight_bytes / 2;
}

/* Partitions are fetched or not, by what holds now. false: the source could not be told. */
static bool pause_round(struct intake *intake)
{
    for (uint32_t i = 0; i < intake->partitions.count; i++) {
        struct partition *partition = &intake->partitions.slots[i];
        bool is_down = atomic_load(&intake->init.shared->topic_down[partition->topic->index]) > 0;
        partition_pause(partition, PAUSE_LIMITS, intake->paused);
        partition_pause(partition, PAUSE_CONFIG, is_down);
    }
    return partitions_pause(&intake->partitions, intake->init.source);
}

/* All partitions, because of the limits. */
static void pause_all(struct intake *intake, bool paused)
{
    intake->paused = paused;
    if (!pause_round(intake))
        intake->paused = !paused;
}

/* true: no record may be taken now, and what had to be done about that was done. */
static bool held_back(struct intake *intake, uint32_t wait_ms)
{
    int64_t now = intake->init.env->mono_us(intake->init.env->self);
    if (!over_limits(intake) && !(intake->paused && !under_half(intake))) {
        intake->stalled_us = 0;
        if (intake->paused)
            pause_all(intake, false);
        return false;
    }
    if (intake->stalled_us == 0)
        intake->stalled_us = now;
    if (!intake->paused && now - intake->stalled_us > STALL_BEFORE_PAUSE_US)
        pause_all(intake, true);
    if (!intake->paused)
        intake->init.wait(intake->init.context, wait_ms < 20 ? wait_ms : 20);
    return !intake->paused;                          /* paused: poll on, for the group's sake */
}

/* ---- rounds ---------------------------------------------------------------------------------------------------- */

static bool poll_burst(struct intake *intake, uint32_t wait_ms, struct err *err)
{
    struct record record;
    for (uint32_t i = 0; i < BURST; i++) {
        switch (intake->init.source->ops->poll(intake->init.source->self, i == 0 ? wait_ms : 0, &record,
                                               err)) {
        case SOURCE_NOTHING:
            return true;
        case SOURCE_RECORD:
            if (!accept(intake, &record)) {
                err_set(err, ERR_FATAL, 0, "intake", "out of memory");
                return false;
            }
            break;
        case SOURCE_FATAL:
            return false;
        }
        if (over_limits(intake))
            return true;
    }
    return true;
}

bool intake_step(struct intake *intake, uint32_t wait_ms, struct err *err)
{
    intake_take_completions(intake);
    assignment_round(intake, false);
    parked_round(intake);
    guard_round(intake);
    pause_round(intake);
    if (held_back(intake, wait_ms))
        return true;
    bool alive = poll_burst(intake, wait_ms, err);
    flush_chains(intake);
    return alive;
}

void intake_flush(struct intake *intake)
{
    flush_chains(intake);
}

bool intake_stop(struct intake *intake, uint32_t timeout_ms)
{
    struct err err;
    int64_t start = intake->init.env->mono_us(intake->init.env->self);
    struct report_fields fields = REPORT_FIELDS_INIT;
    intake->stopping = true;
    flush_chains(intake);
    fields.count = (int64_t)intake->inflight;
    intake->init.report->event(intake->init.report->self, EVENT_DRAIN, &fields);
    int64_t deadline = start + (int64_t)timeout_ms * 1000 / 2;
    assignment_drain(intake, deadline);
    assignment_settle(intake, start + (int64_t)timeout_ms * 1000 * 3 / 4);
    int64_t left_ms = (start + (int64_t)timeout_ms * 1000 - intake->init.env->mono_us(intake->init.env->self)) / 1000;
    if (intake->init.source->ops->close(intake->init.source->self,
                                        left_ms > 100 ? (uint32_t)left_ms : 100, &err) != ERR_NONE)
        return intake->inflight == 0;
    return intake->inflight == 0;
}
