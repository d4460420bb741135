/* SPDX-License-Identifier: MIT */
/* delivery: see delivery.h. Copies what it keeps: neither the source's record nor the parser's memory outlives a
 * call. */
#include "delivery.h"
#include "guard.h"
#include "proof.h"

#include "idem/base/sha256.h"

enum {
    RECORD_SLACK = 8192,             /* evaluation's own memory for a usual record */
    RECORD_MEMORY_MAX = 256 << 20
};

/* ---- completions ----------------------------------------------------------------------------------------------- */

/* A row of idem_parked that was sent down came back. */
static void note_parked(struct intake *intake, const struct item *item)
{
    struct parked_watch *watch = &intake->watches[item->topic->database];
    watch->out--;
    if (!item->silent && item->outcome != OUTCOME_NONE)
        watch->due_us = 0;           /* those behind it are due now */
}

static void complete(struct intake *intake, struct item *item)
{
    struct partition *partition = &intake->partitions.slots[item->slot];
    intake->inflight--;
    intake->inflight_bytes -= item->block_size;
    if (item->parked.id)
        note_parked(intake, item);
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

void delivery_take_back(struct intake *intake)
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

void delivery_flush(struct intake *intake)
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

bool delivery_take_parked(struct intake *intake, uint32_t slot, const struct ledger_parked *row)
{
    struct item *item = make_item(intake, intake->partitions.slots[slot].topic, &row->record, row);
    if (!item)
        return false;
    item->slot = slot;
    item->polled_us = intake->init.env->mono_us(intake->init.env->self);
    send_down(intake, item);
    return true;
}

bool delivery_accept(struct intake *intake, const struct record *record)
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
