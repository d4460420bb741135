/* SPDX-License-Identifier: MIT */
/* keeper: see idem/app/keeper.h. */
#include "idem/app/keeper.h"

#include "idem/core/retry.h"

#include <stdlib.h>
#include <time.h>

enum {
    DOWN_BASE_MS = 100, DOWN_CAP_MS = 5000,
    COUNT_LIMIT = 1000,              /* rows of one look: a few milliseconds, and some pages of the table */
    COUNT_PAUSE_US = 50000           /* between two looks of one count */
};

static const int64_t count_every_us[LEDGER_LIST_COUNT] = {
    [LEDGER_LETTERS] = 30000000, [LEDGER_PARKED] = 5000000};

void keeper_init(struct keeper *keeper, struct bytes database, const struct ledger_port *ledger,
                 const struct env_port *env, const struct report_port *report, atomic_uint_fast64_t *server)
{
    pthread_condattr_t attributes;
    *keeper = (struct keeper){.database = database, .ledger = ledger, .env = env, .report = report,
                              .server = server, .down = -1};
    pthread_mutex_init(&keeper->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&keeper->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void keeper_watch(struct keeper *keeper, uint32_t ping_every_ms, struct tally *tally)
{
    keeper->ping_every_us = (int64_t)ping_every_ms * 1000;
    keeper->tally = tally;
    /* The start has looked just now. */
    atomic_store(&keeper->answered_us, keeper->env->mono_us(keeper->env->self));
}

static void free_list(struct keeper_job *job)
{
    while (job) {
        struct keeper_job *next = job->next;
        keeper_job_free(job);
        job = next;
    }
}

void keeper_finish(struct keeper *keeper)
{
    free_list(keeper->head);
    free_list(keeper->finished);
    pthread_cond_destroy(&keeper->changed);
    pthread_mutex_destroy(&keeper->lock);
}

struct keeper_job *keeper_job_create(enum keeper_task task, uint32_t count)
{
    size_t head = (sizeof(struct keeper_job) + 15) & ~(size_t)15;
    size_t partitions = count * sizeof(struct ledger_partition);
    uint8_t *memory = calloc(1, head + partitions + 2 * (size_t)count * sizeof(uint32_t));
    if (!memory)
        return NULL;
    struct keeper_job *job = (struct keeper_job *)(void *)memory;
    job->task = task;
    job->count = count;
    job->partitions = (struct ledger_partition *)(void *)(memory + head);
    job->slots = (uint32_t *)(void *)(memory + head + partitions);
    job->epochs = job->slots + count;
    return job;
}

void keeper_job_free(struct keeper_job *job)
{
    struct keeper_parked *parked = job ? job->parked : NULL;
    while (parked) {
        struct keeper_parked *next = parked->next;
        free(parked);
        parked = next;
    }
    free(job);
}

/* ---- due rows ---------------------------------------------------------------------------------------------------- */

static struct bytes copy(struct bytes bytes, uint8_t **at)
{
    struct bytes copied = bytes_of(*at, bytes.len);
    if (bytes.len)
        memcpy(*at, bytes.at, bytes.len);
    *at += bytes.len;
    return copied;
}

struct taking {
    struct keeper_job *job;
    struct keeper_parked **end;
    uint64_t bytes;
    bool memory_out;
};

/* Copies a row behind its own header. */
static bool take_parked(void *context, const struct ledger_parked *row)
{
    struct taking *taking = context;
    const struct record *record = &row->record;
    size_t size = record->topic.len + record->key.len + record->value.len + record->headers.len + row->row.rule.len +
                  row->row.biz_type.len + row->row.biz_no.len + row->row.key.len;
    if (taking->bytes > 0 && taking->bytes + size > taking->job->byte_limit)
        return false;
    struct keeper_parked *parked = malloc(sizeof *parked + size);
    taking->memory_out = taking->memory_out || !parked;
    if (!parked)
        return false;
    uint8_t *at = (uint8_t *)(parked + 1);
    *parked = (struct keeper_parked){.row = *row};
    parked->row.record.topic = copy(record->topic, &at);
    parked->row.record.key = copy(record->key, &at);
    parked->row.record.value = copy(record->value, &at);
    parked->row.record.headers = copy(record->headers, &at);
    parked->row.row.rule = copy(row->row.rule, &at);
    parked->row.row.biz_type = copy(row->row.biz_type, &at);
    parked->row.row.biz_no = copy(row->row.biz_no, &at);
    parked->row.row.key = copy(row->row.key, &at);
    *taking->end = parked;
    taking->end = &parked->next;
    taking->bytes += size;
    return true;
}

/* A second try begins with an empty list. */
static enum err_class run_parked(struct keeper *keeper, struct keeper_job *job, struct err *err)
{
    struct taking taking = {.job = job, .end = &job->parked};
    while (job->parked) {
        struct keeper_parked *next = job->parked->next;
        free(job->parked);
        job->parked = next;
    }
    enum err_class class = keeper->ledger->ops->parked(keeper->ledger->self, job->partitions, job->count, job->limit,
                                                       take_parked, &taking, err);
    return class == ERR_NONE && taking.memory_out ? err_set(err, ERR_RETRY, 0, "parked", "out of memory") : class;
}

void keeper_post(struct keeper *keeper, struct keeper_job *job)
{
    pthread_mutex_lock(&keeper->lock);
    job->next = NULL;
    if (keeper->tail)
        keeper->tail->next = job;
    else
        keeper->head = job;
    keeper->tail = job;
    pthread_mutex_unlock(&keeper->lock);
    pthread_cond_broadcast(&keeper->changed);
}

struct keeper_job *keeper_fetch(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    struct keeper_job *job = keeper->finished;
    if (job)
        keeper->finished = job->next;
    pthread_mutex_unlock(&keeper->lock);
    return job;
}

void keeper_cancel_take_overs(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    for (struct keeper_job *job = keeper->head; job; job = job->next)
        if (job->task == KEEPER_TAKE_OVER)
            job->cancelled = true;
    pthread_mutex_unlock(&keeper->lock);
}

bool keeper_is_idle(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    bool idle = !keeper->head && !keeper->finished;
    pthread_mutex_unlock(&keeper->lock);
    return idle;
}

int keeper_database_down(struct keeper *keeper, int64_t silence_us)
{
    int down = atomic_load(&keeper->down);
    int64_t silent = keeper->env->mono_us(keeper->env->self) - atomic_load(&keeper->answered_us);
    return down < 0 && silent > silence_us ? DOWN_UNREACHABLE : down;
}

static void say(struct keeper *keeper, enum report_event event, int why, const struct err *err)
{
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.level = event == EVENT_PAUSED ? LEVEL_ERR : LEVEL_INFO;
    fields.database = keeper->database;
    fields.why = why == DOWN_CONFIG ? "config" : "unreachable";
    fields.err = err;
    keeper->report->event(keeper->report->self, event, &fields);
}

static void set_down(struct keeper *keeper, int why, const struct err *err)
{
    int before = atomic_exchange(&keeper->down, why);
    if (before == why)
        return;
    if (before >= 0)
        say(keeper, EVENT_RESUMED, before, NULL);
    if (why >= 0)
        say(keeper, EVENT_PAUSED, why, err);
}

static void failed(struct keeper *keeper, const struct err *err)
{
    keeper->ledger->ops->close(keeper->ledger->self);
    keeper->due_us = keeper->env->mono_us(keeper->env->self) +
                     (int64_t)retry_delay_ms(++keeper->tries, DOWN_BASE_MS, DOWN_CAP_MS,
                                             keeper->env->random(keeper->env->self)) * 1000;
    if (keeper->tries > 1)           /* once may be a stale connection */
        set_down(keeper, err->class == ERR_CONFIG || err->class == ERR_SCHEMA ? DOWN_CONFIG : DOWN_UNREACHABLE,
                 err);
}

static void worked(struct keeper *keeper)
{
    keeper->tries = 0;
    keeper->due_us = 0;
    atomic_store(&keeper->answered_us, keeper->env->mono_us(keeper->env->self));
    set_down(keeper, -1, NULL);
}

/* Everybody follows the keeper's session to another server. */
static enum err_class open_session(struct keeper *keeper, struct err *err)
{
    const struct ledger_ops *ops = keeper->ledger->ops;
    enum err_class class = ops->open(keeper->ledger->self, err);
    if (class == ERR_NONE)
        atomic_store(keeper->server, ops->server(keeper->ledger->self));
    return class;
}

static enum err_class run(struct keeper *keeper, struct keeper_job *job, struct err *err)
{
    const struct ledger_ops *ops = keeper->ledger->ops;
    enum err_class class = open_session(keeper, err);
    /* That job only reads, and a server that became read-only answers it. */
    if (class == ERR_NONE && job->task == KEEPER_PARKED)
        class = ops->ping(keeper->ledger->self, err);
    if (class != ERR_NONE)
        return class;
    if (job->task == KEEPER_TAKE_OVER)
        return ops->take_over(keeper->ledger->self, job->partitions, job->count, err);
    if (job->task == KEEPER_PARKED)
        return run_parked(keeper, job, err);
    env_probe(keeper->env, PROBE_BEFORE_PROGRESS);
    class = ops->progress(keeper->ledger->self, job->partitions, job->count, err);
    if (class == ERR_NONE)
        env_probe(keeper->env, PROBE_AFTER_PROGRESS);
    return class;
}

/* The first job, which stays in the list while it runs; cancelled ones go straight to the finished. */
static struct keeper_job *first_job(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    struct keeper_job *job = keeper->head;
    bool cancelled = job && job->cancelled;
    pthread_mutex_unlock(&keeper->lock);
    if (!cancelled)
        return job;
    return NULL;
}

static void finish_first(struct keeper *keeper, bool done)
{
    pthread_mutex_lock(&keeper->lock);
    struct keeper_job *job = keeper->head;
    if (job) {
        keeper->head = job->next;
        if (!keeper->head)
            keeper->tail = NULL;
        job->done = done;
        job->next = NULL;
        struct keeper_job **end = &keeper->finished;
        while (*end)
            end = &(*end)->next;
        *end = job;
    }
    pthread_mutex_unlock(&keeper->lock);
}

static bool has_job(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    bool has = keeper->head != NULL;
    pthread_mutex_unlock(&keeper->lock);
    return has;
}

/* ---- looking --------------------------------------------------------------------------------------------------- */

/* What is counted next: the list that is being counted, else the one whose time comes first. */
static enum ledger_list next_list(const struct keeper *keeper)
{
    if (keeper->counting)
        return keeper->tally->list;
    return keeper->count_us[LEDGER_PARKED] < keeper->count_us[LEDGER_LETTERS] ? LEDGER_PARKED : LEDGER_LETTERS;
}

/* One part of a list, so that a job never waits long. An error is the next ping's business. */
static void count_part(struct keeper *keeper, enum ledger_list list)
{
    const struct ledger_ops *ops = keeper->ledger->ops;
    struct err err = {0};
    bool end = false;
    if (!keeper->counting) {
        tally_begin(keeper->tally, list);
        keeper->count_after = 0;
    }
    enum err_class class = open_session(keeper, &err);
    if (class == ERR_NONE)
        class = ops->count(keeper->ledger->self, list, &keeper->count_after, COUNT_LIMIT, tally_add, keeper->tally,
                           &end, &err);
    if (class == ERR_NONE)
        worked(keeper);
    if (class == ERR_NONE && end)
        tally_publish(keeper->tally);
    keeper->counting = class == ERR_NONE && !end;
    keeper->count_us[list] = keeper->env->mono_us(keeper->env->self) +
                             (keeper->counting ? COUNT_PAUSE_US : count_every_us[list]);
}

static void ping(struct keeper *keeper)
{
    struct err err = {0};
    enum err_class class = open_session(keeper, &err);
    if (class == ERR_NONE)
        class = keeper->ledger->ops->ping(keeper->ledger->self, &err);
    if (class == ERR_NONE)
        worked(keeper);
    else
        failed(keeper, &err);
}

/* Without a job: is the database there, and what stands in its lists? */
static int64_t look(struct keeper *keeper)
{
    if (keeper->ping_every_us == 0)
        return INT64_MAX;
    int64_t now = keeper->env->mono_us(keeper->env->self);
    if (keeper->due_us > now)
        return keeper->due_us;
    if (keeper->tries > 0 || now - atomic_load(&keeper->answered_us) >= keeper->ping_every_us)
        ping(keeper);
    else if (keeper->tally && now >= keeper->count_us[next_list(keeper)])
        count_part(keeper, next_list(keeper));
    if (keeper->due_us > now)
        return keeper->due_us;
    int64_t due = atomic_load(&keeper->answered_us) + keeper->ping_every_us;
    if (keeper->tally && keeper->count_us[next_list(keeper)] < due)
        due = keeper->count_us[next_list(keeper)];
    return due > now ? due : now;        /* never 0, which means an answer */
}

static int64_t step(struct keeper *keeper)
{
    struct err err = {0};
    if (!has_job(keeper))
        return look(keeper);
    struct keeper_job *job = first_job(keeper);
    if (!job) {                          /* cancelled */
        finish_first(keeper, false);
        return 0;
    }
    if (keeper->due_us > keeper->env->mono_us(keeper->env->self))
        return keeper->due_us;
    if (run(keeper, job, &err) != ERR_NONE) {
        failed(keeper, &err);
        return keeper->due_us;
    }
    worked(keeper);
    finish_first(keeper, true);
    return 0;
}

int64_t keeper_step(struct keeper *keeper)
{
    int64_t due = step(keeper);
    keeper->backing_off = keeper->due_us > 0 && due == keeper->due_us;
    return due;
}

void keeper_wait(struct keeper *keeper, int64_t until_us)
{
    struct timespec until = {.tv_sec = until_us / 1000000, .tv_nsec = until_us % 1000000 * 1000};
    int timed_out = 0;
    pthread_mutex_lock(&keeper->lock);
    while ((keeper->backing_off || !keeper->head) && !keeper->poked && !timed_out) {
        if (until_us == INT64_MAX)
            pthread_cond_wait(&keeper->changed, &keeper->lock);
        else
            timed_out = pthread_cond_timedwait(&keeper->changed, &keeper->lock, &until);
    }
    keeper->poked = false;
    pthread_mutex_unlock(&keeper->lock);
}

void keeper_poke(struct keeper *keeper)
{
    pthread_mutex_lock(&keeper->lock);
    keeper->poked = true;
    pthread_mutex_unlock(&keeper->lock);
    pthread_cond_broadcast(&keeper->changed);
}
