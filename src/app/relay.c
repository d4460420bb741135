/* SPDX-License-Identifier: MIT */
/* relay: see idem/app/relay.h. The lease, sending, what becomes of a message, deleting. Which rows are read, and when,
 * is relay_read.c's. */
#include "relay_self.h"

#include "idem/core/retry.h"

#include <stdlib.h>

enum {
    SENT_MAX = 5000, SENT_BYTES_MAX = 32 << 20, REMOVE_AT_ONCE = 500,
    ALONE_BYTES = 256 << 10,         /* such a message fills a request by itself */
    APART_FOR_US = 60000000,
    REFUSED_FOR_US = 60000000,       /* details 1, "Relay refusals": retried at most every 60 s */
    REMOVE_AFTER_US = 5000,          /* reports come in swarms: one DELETE for many */
    ASK_EVERY_US = 1000000,          /* somebody else's lease: he may give it back any time */
    FULL_PAUSE_US = 10000,           /* the producer's queue is full */
    DOWN_BASE_MS = 100, DOWN_CAP_MS = 5000, AGAIN_BASE_MS = 100, AGAIN_CAP_MS = 5000,
    HEADERS_MAX = 64
};

static int64_t now_us(const struct relay *relay)
{
    return relay_now(relay);
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

/* ---- topics that take nothing ------------------------------------------------------------------------------------ */

/* Passed over for a while; told once. Without a free place only the aggregate waits. */
static bool block_topic(struct relay *relay, struct relay_row *row, const struct err *err)
{
    int64_t until = now_us(relay) + REFUSED_FOR_US;
    bool is_new;
    if (!relay_topics_set(&relay->blocked, row->event.topic, until, &is_new))
        return false;
    if (is_new)
        say(relay, EVENT_RELAY_REFUSED, LEVEL_ERR, "topic", &row->event, err);
    if (until < relay->unblock_us)
        relay->unblock_us = until;
    return true;
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
    struct relay_topic *topic = relay_topics_find(&relay->blocked, row->event.topic);
    if (topic && topic->active)
        relay_look_again(relay);     /* what was passed over comes before what was not seen yet */
    if (topic)
        *topic = (struct relay_topic){0};
    if (relay->rows.done == 0)
        relay->done_us = now_us(relay);
    relay->agains = 0;
    atomic_fetch_add(&count_of(relay, row->event.topic)->published, 1);
    relay_rows_publish(&relay->rows, row);
}

/* A broker refuses a batch as a whole: each of its messages is asked about alone before it is believed. */
static void refused(struct relay *relay, struct relay_row *row, const struct err *err)
{
    int64_t until = now_us(relay) + REFUSED_FOR_US;
    bool is_new;
    if (!row->alone) {
        row->alone = true;
        if (relay_topics_set(&relay->apart, row->event.topic, now_us(relay) + APART_FOR_US, &is_new) &&
            relay->unblock_us > now_us(relay) + APART_FOR_US)
            relay->unblock_us = now_us(relay) + APART_FOR_US;
        relay_rows_wait(&relay->rows, row);
        return;
    }
    atomic_fetch_add(&count_of(relay, row->event.topic)->refused, 1);
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
            const struct relay_topic *topic = relay_topics_find(&relay->blocked, row->event.topic);
            relay_rows_wait(&relay->rows, row);
            relay_rows_drop_topic(&relay->rows, bytes_of(topic->name, topic->len));      /* the row goes, too */
        } else {
            row->alone = true;
            refused(relay, row, &err);
        }
        return;
    case DELIVERY_REFUSED:
        refused(relay, row, &err);
    }
}

/* A producer that is lost takes what was on its way with it: sent again by the next. */
static void renew_producer(struct relay *relay, const struct err *why)
{
    struct err err = {0};
    say(relay, EVENT_RELAY_REFUSED, LEVEL_WARNING, "producer", NULL, why);
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
    atomic_store(&relay->init.counts->rows, 0);
    atomic_store(&relay->init.counts->oldest_ms, 0);
    say(relay, EVENT_RELAY_LEASE, LEVEL_WARNING, why, NULL, NULL);
}

/* The keeper of this database tells that it is gone. */
void relay_failed(struct relay *relay)
{
    const struct env_port *env = relay->init.env;
    relay->init.outbox->ops->close(relay->init.outbox->self);
    relay->down_until_us = now_us(relay) + (int64_t)retry_delay_ms(++relay->tries, DOWN_BASE_MS, DOWN_CAP_MS,
                                                                   env->random(env->self)) * 1000;
    relay->lease_due_us = 0;         /* whatever server answers next has to say that it is ours */
}

static void took(struct relay *relay, uint64_t generation)
{
    relay->held = true;
    relay->generation = generation;
    relay->unblock_us = 0;
    relay->blocked = relay->apart = (struct relay_topics){0};
    relay_read_anew(relay);
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
        relay_failed(relay);
        return false;
    }
    bool recovered = relay->tries > 0;
    relay->tries = 0;
    if (relay->held && (!lease.held || lease.generation != relay->generation))
        lose(relay, "lost");
    if (!lease.held) {
        int64_t wait = (int64_t)lease.wait_ms * 1000;
        relay->lease_due_us = before + (wait < ASK_EVERY_US ? wait + 1000 : ASK_EVERY_US);
        return false;
    }
    relay->lease_until_us = before + length - length / 5;
    relay->lease_due_us = before + length / 3;
    if (!relay->held)
        took(relay, lease.generation);
    else if (recovered)
        relay_look_again(relay);     /* it may be another server, whose numbers are not those that were seen */
    if (lease.step > 0)
        relay->reading.gaps.step = lease.step;
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
        relay_failed(relay);
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

/* ---- what was refused gets another chance ------------------------------------------------------------------------ */

static void unblock(struct relay *relay)
{
    uint32_t unblocked = 0;
    int64_t now = now_us(relay), next_topic, next_apart;
    if (now < relay->unblock_us)
        return;
    relay->unblock_us = relay_rows_unblock(&relay->rows, now, &unblocked);
    unblocked += relay_topics_end(&relay->blocked, now, &next_topic);
    (void)relay_topics_end(&relay->apart, now, &next_apart);
    if (next_topic < relay->unblock_us)
        relay->unblock_us = next_topic;
    if (next_apart < relay->unblock_us)
        relay->unblock_us = next_apart;
    if (unblocked > 0)
        relay_look_again(relay);     /* what was passed over is read now */
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

struct sending {
    struct relay *relay;
    struct relay_row *row;
    enum err_class class;
    struct delivery_report report;
    struct err err;
};

/* The event may be the row's own, or a whole one that was fetched. */
static bool send_event(void *context, const struct outbox_event *event)
{
    struct sending *sending = context;
    struct relay *relay = sending->relay;
    struct message_header headers[HEADERS_MAX];
    struct message message = {
        .seq = event->seq, .topic = event->topic, .key = event->aggregate, .value = event->payload, .headers = headers,
        .header_count = headers_of(relay, event, headers)};
    sending->row->alone = sending->row->alone || event->size > ALONE_BYTES ||
                          relay_topics_active(&relay->apart, event->topic);
    message.alone = sending->row->alone;
    sending->class = relay->init.producer->ops->send(relay->init.producer->self, &message, &sending->report,
                                                     &sending->err);
    return false;
}

/* What is large was not read yet; what was refused may have been discarded by hand. false: the database is gone, or
 * the row is: then it is forgotten. */
static bool fetch_and_send(struct sending *sending)
{
    struct relay *relay = sending->relay;
    const struct outbox_port *outbox = relay->init.outbox;
    uint64_t seq = sending->row->event.seq;
    bool found = false;
    if (outbox->ops->fetch(outbox->self, seq, send_event, sending, &found, &sending->err) != ERR_NONE) {
        relay_rows_wait(&relay->rows, sending->row);
        relay_failed(relay);
        return false;
    }
    if (!found)
        relay_rows_remove(&relay->rows, seq);
    return found;
}

/* false: no more now. */
static bool send_row(struct relay *relay, struct relay_row *row)
{
    struct sending sending = {.relay = relay, .row = row};
    if (row->event.size <= OUTBOX_INLINE_MAX && !row->told)
        send_event(&sending, &row->event);
    else if (!fetch_and_send(&sending))
        return relay->down_until_us <= now_us(relay);
    switch ((int)sending.class) {
    case ERR_NONE:
        return true;
    case ERR_DATA:
        take_report(relay, &sending.report);
        return true;
    default:
        relay_rows_wait(&relay->rows, row);
        relay->send_us = now_us(relay) + FULL_PAUSE_US;
        if (sending.class == ERR_RECONNECT)
            renew_producer(relay, &sending.err);
        return false;
    }
}

static bool may_send(const struct relay *relay)
{
    return relay->rows.ready && relay->rows.sent < SENT_MAX && relay->rows.sent_bytes < SENT_BYTES_MAX;
}

static void send_ready(struct relay *relay)
{
    if (now_us(relay) < relay->send_us)
        return;
    while (may_send(relay))
        if (!send_row(relay, relay_rows_next(&relay->rows)))
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
    if (may_send(relay))
        due = earlier(due, relay->send_us);
    if (relay_has_room(relay))
        due = earlier(due, relay->reading.due_us);
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
    bool good = (!due || remove_published(relay)) && relay->held && relay_read(relay);
    if (good && relay_close_gaps(relay) && relay_look_at_refused(relay) && relay_count(relay))
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
