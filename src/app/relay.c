/* SPDX-License-Identifier: MIT */
/* relay: see idem/app/relay.h. Rows are found by state, never by a cursor: a lower number that is committed later is
 * still sent. The cursor below only says where to look most of the time; the last seconds' numbers are looked at again
 * every second, and the whole table twice a minute. */
#include "idem/app/relay.h"

#include "relay_rows.h"
#include "idem/core/retry.h"

#include <stdlib.h>

enum {
    READ_AT_ONCE = 500, HELD_MAX = 10000, BYTES_MAX = 16 << 20, SENT_MAX = 5000, REMOVE_AT_ONCE = 500,
    LOOK_EVERY_US = 50000,           /* an empty outbox */
    NEAR_EVERY_US = 1000000, FAR_EVERY_US = 30000000, SIZE_EVERY_US = 5000000,
    REFUSED_FOR_US = 60000000,       /* details 1, "Relay refusals": retried at most every 60 s */
    REMOVE_AFTER_US = 5000,          /* reports come in swarms: one DELETE for many */
    DOWN_BASE_MS = 100, DOWN_CAP_MS = 5000, AGAIN_BASE_MS = 100, AGAIN_CAP_MS = 5000,
    HEADERS_MAX = 64
};

struct relay {
    struct relay_init init;
    struct relay_rows rows;
    struct blocked_topic topics[RELAY_TOPICS_BLOCKED];
    bool held, memory_out;
    uint64_t generation;
    int64_t lease_until_us, lease_due_us;    /* stop then; ask then */
    uint64_t cursor, top, tops[RELAY_TOPS];  /* where to read on; the highest seen; the same in the last seconds */
    int64_t read_us, near_us, far_us, size_us, send_us, unblock_us, done_us;
    int64_t down_until_us;                   /* the database did not answer */
    uint32_t tries, agains;
};

static int64_t now_us(const struct relay *relay)
{
    return relay->init.env->mono_us(relay->init.env->self);
}

static void say(const struct relay *relay, enum report_event event, enum outcome_level level, const char *why,
                const struct outbox_event *row, const struct err *err)
{
    struct report_fields fields = REPORT_FIELDS_INIT;
    fields.level = level;
    fields.why = why;
    fields.database = relay->init.database;
    fields.err = err;
    if (event == EVENT_RELAY_LEASE)
        fields.generation = (int64_t)relay->generation;
    if (row) {
        fields.topic = row->topic;
        fields.key = row->aggregate;
        fields.offset = (int64_t)row->seq;
    }
    relay->init.report->event(relay->init.report->self, event, &fields);
}

struct relay *relay_create(const struct relay_init *init)
{
    struct relay *relay = calloc(1, sizeof *relay);
    if (!relay)
        return NULL;
    relay->init = *init;
    if (relay_rows_init(&relay->rows))
        return relay;
    free(relay);
    return NULL;
}

void relay_destroy(struct relay *relay)
{
    if (!relay)
        return;
    relay_rows_finish(&relay->rows);
    free(relay);
}

/* The next reading begins at the first row. */
static void look_everywhere(struct relay *relay)
{
    relay->far_us = 0;
    relay->read_us = 0;
}

/* ---- topics that take nothing ------------------------------------------------------------------------------------ */

static struct blocked_topic *blocked_topic(struct relay *relay, struct bytes name)
{
    for (int i = 0; i < RELAY_TOPICS_BLOCKED; i++)
        if (relay->topics[i].len && bytes_equal(bytes_of(relay->topics[i].name, relay->topics[i].len), name))
            return &relay->topics[i];
    return NULL;
}

/* Passed over for a while; told once. Without a free place only the aggregate waits. */
static bool block_topic(struct relay *relay, struct relay_row *row, const struct err *err)
{
    struct bytes name = row->event.topic;
    struct blocked_topic *topic = blocked_topic(relay, name);
    bool told = topic != NULL;
    for (int i = 0; i < RELAY_TOPICS_BLOCKED && !topic; i++)
        if (relay->topics[i].len == 0)
            topic = &relay->topics[i];
    if (!topic || name.len > TOPIC_MAX)
        return false;
    if (!told)
        say(relay, EVENT_RELAY_REFUSED, LEVEL_ERR, "topic", &row->event, err);
    memcpy(topic->name, name.at, name.len);
    topic->len = (uint16_t)name.len;
    topic->until_us = now_us(relay) + REFUSED_FOR_US;
    if (topic->until_us < relay->unblock_us)
        relay->unblock_us = topic->until_us;
    return true;
}

static uint32_t blocked_names(struct relay *relay, struct bytes *ret_names)
{
    uint32_t count = 0;
    for (int i = 0; i < RELAY_TOPICS_BLOCKED; i++)
        if (relay->topics[i].len && relay->topics[i].until_us > now_us(relay))
            ret_names[count++] = bytes_of(relay->topics[i].name, relay->topics[i].len);
    return count;
}

static struct relay_topic_count *count_of(const struct relay *relay, struct bytes topic)
{
    struct relay_counts *counts = relay->init.counts;
    uint32_t i = 0;
    while (i + 1 < counts->topic_count && !bytes_equal(counts->topics[i].topic, topic))
        i++;
    return &counts->topics[i];
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static void published(struct relay *relay, struct relay_row *row)
{
    struct blocked_topic *topic = blocked_topic(relay, row->event.topic);
    if (topic)
        topic->len = 0;
    if (relay->rows.done == 0)
        relay->done_us = now_us(relay);
    relay->agains = 0;
    atomic_fetch_add(&count_of(relay, row->event.topic)->published, 1);
    relay_rows_publish(&relay->rows, row);
}

static void refused(struct relay *relay, struct relay_row *row, const struct err *err)
{
    int64_t until = now_us(relay) + REFUSED_FOR_US;
    if (!row->told)
        say(relay, EVENT_RELAY_REFUSED, LEVEL_ERR, "message", &row->event, err);
    row->told = true;
    relay_rows_block(&relay->rows, row, until);
    if (until < relay->unblock_us)
        relay->unblock_us = until;
}

/* To be sent again, after a while that grows while nothing is taken at all. */
static void again(struct relay *relay, struct relay_row *row)
{
    const struct env_port *env = relay->init.env;
    int64_t delay_ms = retry_delay_ms(++relay->agains, AGAIN_BASE_MS, AGAIN_CAP_MS, env->random(env->self));
    if (relay->send_us <= now_us(relay))
        relay->send_us = now_us(relay) + delay_ms * 1000;
    atomic_fetch_add(&count_of(relay, row->event.topic)->again, 1);
    relay_rows_wait(&relay->rows, row);
}

static void take_report(void *context, const struct delivery_report *report)
{
    struct relay *relay = context;
    struct relay_row *row = relay_rows_find(&relay->rows, report->seq);
    struct err err = {0};
    if (!row || row->state != ROW_SENT)
        return;                      /* of a former lease or producer */
    err_set(&err, ERR_DATA, report->number, "relay", "%s", report->text);
    switch (report->delivery) {
    case DELIVERY_DONE:
        published(relay, row);
        return;
    case DELIVERY_AGAIN:
        again(relay, row);
        return;
    case DELIVERY_NO_TOPIC:
        atomic_fetch_add(&count_of(relay, row->event.topic)->refused, 1);
        if (block_topic(relay, row, &err)) {
            relay_rows_wait(&relay->rows, row);
            relay_rows_drop_topic(&relay->rows, bytes_of(blocked_topic(relay, row->event.topic)->name,
                                                         row->event.topic.len));
        } else {
            refused(relay, row, &err);
        }
        return;
    case DELIVERY_REFUSED:
        atomic_fetch_add(&count_of(relay, row->event.topic)->refused, 1);
        refused(relay, row, &err);
    }
}

/* A producer that is lost takes what was on its way with it: sent again by the next. */
static void renew_producer(struct relay *relay, const struct err *why)
{
    struct err err = {0};
    say(relay, EVENT_TX_RETRY, LEVEL_WARNING, "producer", NULL, why);
    relay_rows_unsend(&relay->rows);
    if (relay->init.producer->ops->renew(relay->init.producer->self, &err) != ERR_NONE)
        relay->send_us = now_us(relay) + DOWN_CAP_MS * 1000;
}

static void take_reports(struct relay *relay, uint32_t wait_ms)
{
    struct err err = {0};
    if (relay->init.producer->ops->poll(relay->init.producer->self, wait_ms, take_report, relay, &err) != ERR_NONE)
        renew_producer(relay, &err);
}

/* ---- the lease --------------------------------------------------------------------------------------------------- */

/* Nothing of it is ours any more. What is queued is dropped before somebody else may begin. */
static void lose(struct relay *relay, const char *why)
{
    if (!relay->held)
        return;
    relay->init.producer->ops->purge(relay->init.producer->self);
    relay_rows_clear(&relay->rows);
    relay->held = false;
    say(relay, EVENT_RELAY_LEASE, LEVEL_WARNING, why, NULL, NULL);
}

static void failed(struct relay *relay, const struct err *err)
{
    const struct env_port *env = relay->init.env;
    (void)err;                       /* the keeper of this database tells that it is gone */
    relay->init.outbox->ops->close(relay->init.outbox->self);
    relay->down_until_us = now_us(relay) + (int64_t)retry_delay_ms(++relay->tries, DOWN_BASE_MS, DOWN_CAP_MS,
                                                                   env->random(env->self)) * 1000;
    relay->lease_due_us = 0;         /* whatever server answers next has to say that it is ours */
}

static void took(struct relay *relay, uint64_t generation)
{
    relay->held = true;
    relay->generation = generation;
    relay->cursor = relay->top = 0;
    memset(relay->tops, 0, sizeof relay->tops);
    relay->near_us = now_us(relay);
    relay->unblock_us = relay->size_us = 0;
    look_everywhere(relay);
    say(relay, EVENT_RELAY_LEASE, LEVEL_INFO, "taken", NULL, NULL);
}

/* Asked for with time to spare: counted from before the question, a fifth early. false: not ours now. */
static bool keep_lease(struct relay *relay)
{
    struct err err = {0};
    struct outbox_lease lease = {0};
    const struct outbox_ops *ops = relay->init.outbox->ops;
    int64_t before = now_us(relay), length = (int64_t)relay->init.lease_ms * 1000;
    if (relay->held && before >= relay->lease_until_us)
        lose(relay, "expired");
    if (before < relay->lease_due_us)
        return relay->held;
    if (ops->open(relay->init.outbox->self, &err) != ERR_NONE ||
        ops->lease(relay->init.outbox->self, relay->init.lease_ms, &lease, &err) != ERR_NONE) {
        failed(relay, &err);
        return false;
    }
    relay->tries = 0;
    if (relay->held && (!lease.held || lease.generation != relay->generation))
        lose(relay, "lost");
    if (!lease.held) {
        int64_t wait = (int64_t)lease.wait_ms * 1000;
        relay->lease_due_us = before + (wait < length / 3 ? wait + 1000 : length / 3);
        return false;
    }
    relay->lease_until_us = before + length - length / 5;
    relay->lease_due_us = before + length / 3;
    if (!relay->held)
        took(relay, lease.generation);
    return true;
}

/* ---- deleting ---------------------------------------------------------------------------------------------------- */

/* false: the database did not do it, or the lease is gone. */
static bool remove_published(struct relay *relay)
{
    uint64_t seqs[REMOVE_AT_ONCE];
    struct bytes ids[REMOVE_AT_ONCE];
    struct err err = {0};
    bool held = false;
    uint32_t count = relay_rows_published(&relay->rows, seqs, ids, REMOVE_AT_ONCE);
    if (count == 0)
        return true;
    if (relay->init.outbox->ops->remove(relay->init.outbox->self, seqs, ids, count, relay->generation, &held, &err) !=
        ERR_NONE) {
        failed(relay, &err);
        return false;
    }
    if (!held) {
        lose(relay, "lost");
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        relay_rows_remove(&relay->rows, seqs[i]);
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool take_event(void *context, const struct outbox_event *event)
{
    struct relay *relay = context;
    bool is_new;
    if (!relay_rows_add(&relay->rows, event, &is_new)) {
        relay->memory_out = true;
        return false;
    }
    relay->cursor = event->seq;
    if (event->seq > relay->top)
        relay->top = event->seq;
    return relay->rows.count < HELD_MAX && relay->rows.bytes < BYTES_MAX;
}

/* Where the next reading begins: most of the time where the last one ended. */
static void choose_start(struct relay *relay, int64_t now)
{
    if (now - relay->far_us >= FAR_EVERY_US) {
        relay->far_us = now;
        relay->cursor = 0;
    } else if (now - relay->near_us >= NEAR_EVERY_US) {
        relay->near_us = now;
        if (relay->tops[0] < relay->cursor)
            relay->cursor = relay->tops[0];
        memmove(relay->tops, relay->tops + 1, (RELAY_TOPS - 1) * sizeof *relay->tops);
        relay->tops[RELAY_TOPS - 1] = relay->top;
    }
}

static bool read_more(struct relay *relay)
{
    struct err err = {0};
    struct bytes without[RELAY_TOPICS_BLOCKED];
    uint32_t count = 0, blocked = blocked_names(relay, without);
    int64_t now = now_us(relay);
    if (now < relay->read_us || relay->rows.count >= HELD_MAX || relay->rows.bytes >= BYTES_MAX)
        return true;
    choose_start(relay, now);
    relay->memory_out = false;
    if (relay->init.outbox->ops->read(relay->init.outbox->self, relay->cursor, READ_AT_ONCE, without, blocked,
                                      take_event, relay, &count, &err) != ERR_NONE) {
        failed(relay, &err);
        return false;
    }
    if (count < READ_AT_ONCE && relay->cursor < relay->top)
        relay->cursor = relay->top;  /* looked back to the end: on from there */
    relay->read_us = count < READ_AT_ONCE || relay->memory_out ? now + LOOK_EVERY_US : 0;
    return true;
}

static void unblock(struct relay *relay)
{
    uint32_t unblocked = 0;
    int64_t now = now_us(relay), next = INT64_MAX;
    if (now < relay->unblock_us)
        return;
    next = relay_rows_unblock(&relay->rows, now, &unblocked);
    for (int i = 0; i < RELAY_TOPICS_BLOCKED; i++) {
        const struct blocked_topic *topic = &relay->topics[i];
        if (topic->len && topic->until_us > now)
            next = topic->until_us < next ? topic->until_us : next;
        else if (topic->len)
            unblocked++;
    }
    relay->unblock_us = next;
    if (unblocked > 0)
        look_everywhere(relay);      /* what was passed over is read now */
}

static void look_at_size(struct relay *relay)
{
    struct err err = {0};
    uint64_t rows = 0, oldest_ms = 0;
    if (now_us(relay) < relay->size_us)
        return;
    relay->size_us = now_us(relay) + SIZE_EVERY_US;
    if (relay->init.outbox->ops->size(relay->init.outbox->self, &rows, &oldest_ms, &err) != ERR_NONE) {
        failed(relay, &err);
        return;
    }
    atomic_store(&relay->init.counts->rows, rows);
    atomic_store(&relay->init.counts->oldest_ms, oldest_ms);
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* A flat object: its strings, numbers and words as texts. What is none is sent without headers but event_id. */
static uint32_t headers_of(struct relay *relay, const struct outbox_event *event, struct message_header *headers)
{
    struct parsed parsed = {.cause = CAUSE_BODY};
    uint32_t count = 0;
    headers[count++] = (struct message_header){BYTES_LIT("event_id"), event->id, false};
    if (!event->headers.len ||
        !relay->init.parser->parse(relay->init.parser->self, event->headers, &parsed) || parsed.cause != CAUSE_NONE)
        return count;
    for (uint32_t i = 1; i < parsed.doc->count && count < HEADERS_MAX; i = parsed.doc->nodes[i].next) {
        const struct doc_node *node = &parsed.doc->nodes[i];
        headers[count++] = (struct message_header){node->name, node->text, node->type == DOC_NULL};
    }
    return count;
}

static bool seq_is(void *context, const struct outbox_event *event)
{
    uint64_t *seq = context;
    if (event->seq == *seq)
        *seq = 0;
    return false;
}

/* One that was refused may have been discarded by hand meanwhile. */
static bool still_there(struct relay *relay, const struct relay_row *row)
{
    struct err err = {0};
    uint64_t seq = row->event.seq;
    uint32_t count;
    if (!row->told)
        return true;
    if (relay->init.outbox->ops->read(relay->init.outbox->self, seq - 1, 1, NULL, 0, seq_is, &seq, &count, &err) !=
        ERR_NONE)
        return true;
    return seq == 0;
}

/* false: no more now. */
static bool send_row(struct relay *relay, struct relay_row *row)
{
    struct err err = {0};
    struct delivery_report report = {0};
    struct message_header headers[HEADERS_MAX];
    struct message message = {.seq = row->event.seq, .topic = row->event.topic, .key = row->event.aggregate,
                              .value = row->event.payload, .headers = headers};
    if (!still_there(relay, row)) {
        relay_rows_remove(&relay->rows, row->event.seq);
        return true;
    }
    message.header_count = headers_of(relay, &row->event, headers);
    enum err_class class = relay->init.producer->ops->send(relay->init.producer->self, &message, &report, &err);
    if (class == ERR_NONE)
        return true;
    if (class == ERR_DATA) {
        take_report(relay, &report);
        return true;
    }
    relay_rows_wait(&relay->rows, row);
    if (class == ERR_RECONNECT)
        renew_producer(relay, &err);
    return false;
}

static void send_ready(struct relay *relay)
{
    struct relay_row *row;
    if (now_us(relay) < relay->send_us)
        return;
    while (relay->rows.sent < SENT_MAX && (row = relay_rows_next(&relay->rows)))
        if (!send_row(relay, row))
            return;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Nothing waits for us but what these moments say. */
static int64_t next_due(const struct relay *relay)
{
    int64_t due = earlier(relay->lease_due_us, relay->lease_until_us);
    if (relay->rows.done > 0)
        due = earlier(due, relay->done_us + REMOVE_AFTER_US);
    if (relay->rows.ready)
        due = earlier(due, relay->send_us);
    if (relay->rows.count < HELD_MAX && relay->rows.bytes < BYTES_MAX)
        due = earlier(due, relay->read_us);
    return earlier(due, relay->unblock_us);
}

int64_t relay_step(struct relay *relay, uint32_t wait_ms)
{
    take_reports(relay, wait_ms);
    if (relay->down_until_us > now_us(relay)) {
        if (relay->held && now_us(relay) >= relay->lease_until_us)
            lose(relay, "expired");
        return relay->down_until_us;
    }
    if (!keep_lease(relay))
        return relay->down_until_us > now_us(relay) ? relay->down_until_us : relay->lease_due_us;
    bool due = relay->rows.done >= REMOVE_AT_ONCE || now_us(relay) - relay->done_us >= REMOVE_AFTER_US;
    unblock(relay);
    if ((!due || remove_published(relay)) && relay->held && read_more(relay))
        look_at_size(relay);
    if (relay->held)
        send_ready(relay);
    if (relay->down_until_us > now_us(relay))
        return relay->down_until_us;
    return relay->held ? next_due(relay) : relay->lease_due_us;
}

bool relay_stop_step(struct relay *relay, uint32_t wait_ms, int64_t deadline_us)
{
    struct err err = {0};
    take_reports(relay, wait_ms);
    if (!relay->held)
        return true;
    bool late = now_us(relay) >= deadline_us || now_us(relay) >= relay->lease_until_us;
    if (relay->rows.sent > 0 && !late)
        return false;
    while (relay->held && relay->rows.done > 0)
        if (!remove_published(relay))
            break;
    relay->init.producer->ops->purge(relay->init.producer->self);
    if (relay->held)
        relay->init.outbox->ops->release(relay->init.outbox->self, &err);
    relay->held = false;
    say(relay, EVENT_RELAY_LEASE, LEVEL_INFO, "released", NULL, NULL);
    return true;
}
