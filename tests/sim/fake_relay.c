/* SPDX-License-Identifier: MIT */
/* fake_relay: the outbox, its lease and a producer over the simulated database. Messages of an instance that dies or
 * freezes may still arrive. */
#include "world.h"

#include "idem/app/relay.h"

static int64_t now_us(void)
{
    return world.now_us;
}

/* ---- outbox ------------------------------------------------------------------------------------------------------ */

static enum err_class trouble(struct err *err)
{
    world_may_crash();
    if (world.outage || (world.faults && world_chance(40)))
        return err_set(err, ERR_RECONNECT, 2013, "sim", "lost connection");
    return ERR_NONE;
}

static enum err_class open_session(void *self, struct err *err)
{
    (void)self;
    return world.outage ? err_set(err, ERR_RECONNECT, 2002, "sim", "nobody answers") : ERR_NONE;
}

static void close_session(void *self)
{
    (void)self;
}

/* Somebody else's, and not over. */
static bool is_taken(const struct fake_relay *relay)
{
    return world.db.lease_owner > 0 && world.db.lease_owner != relay->instance &&
           world.db.lease_until_us > now_us();
}

static enum err_class lease(void *self, uint32_t for_ms, struct outbox_lease *ret, struct err *err)
{
    struct fake_relay *relay = self;
    enum err_class class = trouble(err);
    if (class != ERR_NONE)
        return class;
    bool taken = is_taken(relay) && world.breakage != BREAK_RELAY_BLIND;
    *ret = (struct outbox_lease){.held = !taken, .wait_ms = 500, .step = 1};
    if (!taken) {
        world.db.lease_generation += world.db.lease_owner != relay->instance;
        world.db.lease_owner = relay->instance;
        world.db.lease_until_us = now_us() + (int64_t)for_ms * 1000;
    }
    ret->generation = world.db.lease_generation;
    relay->server = world.server;
    return ERR_NONE;
}

static enum err_class release(void *self, struct err *err)
{
    struct fake_relay *relay = self;
    enum err_class class = trouble(err);
    if (class == ERR_NONE && world.db.lease_owner == relay->instance)
        world.db.lease_until_us = now_us();
    return class;
}

static bool is_wanted(const struct gaps *gaps, uint64_t seq)
{
    if (seq > gaps->high || (seq > gaps->again && seq <= gaps->again_end))
        return true;
    for (uint32_t i = 0; i < gaps->count; i++)
        if (seq >= gaps->list[i].from && seq <= gaps->list[i].to)
            return true;
    return false;
}

static bool give(const struct db_event *row, bool (*take)(void *context, const struct outbox_event *event),
                 void *context)
{
    struct outbox_event event = {.seq = row->seq, .size = 2, .id = bytes_of(row->id, EVENT_ID_LEN),
                                 .topic = bytes_text(row->topic), .aggregate = bytes_text(row->key),
                                 .payload = BYTES_LIT("{}")};
    return take(context, &event);
}

/* The next number that is there; events are not in the order of their numbers after a failover. */
static const struct db_event *next_event(uint64_t after)
{
    const struct db_event *next = NULL;
    for (uint32_t i = 0; i < world.db.event_count; i++) {
        const struct db_event *event = &world.db.events[i];
        if (!event->deleted && event->seq > after && (!next || event->seq < next->seq))
            next = event;
    }
    return next;
}

static enum err_class read_rows(void *self, const struct gaps *gaps, uint32_t limit, const struct bytes *bare,
                                uint32_t bare_count, bool (*take)(void *context, const struct outbox_event *event),
                                void *context, uint32_t *ret_count, struct err *err)
{
    (void)self, (void)bare, (void)bare_count;
    enum err_class class = trouble(err);
    *ret_count = 0;
    const struct db_event *event = class == ERR_NONE ? next_event(0) : NULL;
    for (; event && *ret_count < limit; event = next_event(event->seq)) {
        if (!is_wanted(gaps, event->seq))
            continue;
        ++*ret_count;
        if (!give(event, take, context))
            break;
    }
    return class;
}

static enum err_class fetch(void *self, uint64_t seq, bool (*take)(void *context, const struct outbox_event *event),
                            void *context, bool *ret_found, struct err *err)
{
    (void)self;
    enum err_class class = trouble(err);
    const struct db_event *event = class == ERR_NONE ? next_event(seq - 1) : NULL;
    *ret_found = event && event->seq == seq;
    if (*ret_found)
        give(event, take, context);
    return class;
}

static enum err_class is_open(void *self, const struct gap *gap, bool *ret_open, struct err *err)
{
    (void)self;
    const struct db_event *event = next_event(gap->from - 1);
    *ret_open = event && event->seq <= gap->to;
    return trouble(err);
}

static bool is_published(const char *id)
{
    for (uint32_t i = 0; i < world.published_count; i++)
        if (memcmp(world.published[i], id, EVENT_ID_LEN) == 0)
            return true;
    return false;
}

static enum err_class remove_rows(void *self, const uint64_t *seqs, const struct bytes *ids, uint32_t count,
                                  uint64_t generation, bool *ret_held, struct err *err)
{
    struct fake_relay *relay = self;
    enum err_class class = trouble(err);
    *ret_held = world.db.lease_owner == relay->instance && world.db.lease_generation == generation;
    for (uint32_t i = 0; i < world.db.event_count && *ret_held && class == ERR_NONE; i++)
        for (uint32_t k = 0; k < count; k++) {
            struct db_event *event = &world.db.events[i];
            if (event->seq != seqs[k] || !bytes_equal(ids[k], bytes_of(event->id, EVENT_ID_LEN)))
                continue;
            if (!is_published(event->id))
                world_fail("event %llu is deleted and was never published", (unsigned long long)event->seq);
            event->deleted = true;
        }
    return class;
}

static enum err_class count_rows(void *self, uint64_t *after, uint32_t limit, uint32_t *ret_rows,
                                 uint64_t *ret_oldest_ms, struct err *err)
{
    (void)self, (void)after, (void)limit;
    *ret_rows = 0;
    *ret_oldest_ms = 0;
    return trouble(err);
}

/* ---- producer ---------------------------------------------------------------------------------------------------- */

static const struct db_event *event_of(const char *id)
{
    for (uint32_t i = 0; i < world.db.event_count; i++)
        if (memcmp(world.db.events[i].id, id, EVENT_ID_LEN) == 0)
            return &world.db.events[i];
    return NULL;                     /* a failover lost it; it comes again, or the order was closed meanwhile */
}

/* The first time that an event arrives, everything of its aggregate with a lower number has arrived. */
static void check_order(const char *id)
{
    const struct db_event *now = event_of(id);
    for (uint32_t i = 0; now && i < world.db.event_count; i++) {
        const struct db_event *before = &world.db.events[i];
        if (before->seq < now->seq && strcmp(before->key, now->key) == 0 && strcmp(before->topic, now->topic) == 0 &&
            !is_published(before->id))
            world_fail("event %llu of %s arrived before %llu", (unsigned long long)now->seq, now->key,
                       (unsigned long long)before->seq);
    }
}

static void arrive(const char *id)
{
    if (is_published(id))
        return;
    check_order(id);
    if (world.published_count == PUBLISHED_MAX)
        world_fail("too many events");
    memcpy(world.published[world.published_count++], id, EVENT_ID_LEN);
}

static enum err_class send_message(void *self, const struct message *message, struct delivery_report *ret_report,
                                   struct err *err)
{
    struct fake_relay *relay = self;
    (void)ret_report;
    world_may_crash();
    if (is_taken(relay) && relay->server == world.server)
        world_fail("instance %d publishes while %d holds the lease", relay->instance, world.db.lease_owner);
    if (world.faults && world_chance(200))
        return err_set(err, ERR_RECONNECT, -150, "sim", "a fatal error of the producer");
    if (relay->queued == QUEUED_MAX)
        return err_set(err, ERR_RETRY, -184, "sim", "the queue is full");
    relay->queue[relay->queued].seq = message->seq;
    memcpy(relay->queue[relay->queued++].id, message->headers[0].value.at, EVENT_ID_LEN);
    return ERR_NONE;
}

static enum err_class poll_reports(void *self, uint32_t timeout_ms,
                                   void (*take)(void *context, const struct delivery_report *), void *context,
                                   struct err *err)
{
    struct fake_relay *relay = self;
    (void)timeout_ms, (void)err;
    for (; relay->queued > 0; relay->queued--) {
        const struct fake_message *message = &relay->queue[relay->queued - 1];
        bool arrives = !world.faults || !world_chance(30), known = !world.faults || !world_chance(30);
        if (arrives)
            arrive(message->id);
        struct delivery_report report = {message->seq, arrives && known ? DELIVERY_DONE : DELIVERY_AGAIN, 0, "sim"};
        take(context, &report);
    }
    return ERR_NONE;
}

void fake_relay_flush(struct fake_relay *relay)
{
    for (; relay->queued > 0; relay->queued--)
        if (world_chance(2))
            arrive(relay->queue[relay->queued - 1].id);
}

static void purge(void *self)
{
    fake_relay_flush(self);
}

static enum err_class renew(void *self, struct err *err)
{
    (void)err;
    fake_relay_flush(self);
    return ERR_NONE;
}

void fake_relay_init(struct fake_relay *relay)
{
    static const struct outbox_ops outbox = {
        .open = open_session, .close = close_session, .lease = lease, .release = release, .read = read_rows,
        .fetch = fetch, .is_open = is_open, .remove = remove_rows, .count = count_rows};
    static const struct producer_ops producer = {.send = send_message, .poll = poll_reports, .purge = purge,
                                                 .renew = renew};
    memset(relay, 0, sizeof *relay);
    relay->outbox = (struct outbox_port){relay, &outbox};
    relay->producer = (struct producer_port){relay, &producer};
    relay->instance = ++world.members;
}

bool fake_relay_is_drained(void)
{
    return next_event(0) == NULL;
}
