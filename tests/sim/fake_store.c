/* SPDX-License-Identifier: MIT */
/* fake_store: the store port over the simulated database. A transaction is the database as it was before; rolling back
 * puts it back. Faults come from the seed. tests/contract holds it against the real adapter. */
#include "world.h"

#include "idem/core/key.h"
#include "idem/core/letter.h"

#include <stdio.h>

#define SELF struct fake_store *store = self

void fake_copy(char *target, size_t size, struct bytes text)
{
    size_t len = text.len < size - 1 ? text.len : size - 1;
    if (len)
        memcpy(target, text.at, len);
    memset(target + len, 0, size - len);
}

static enum err_class broken(struct fake_store *store, struct err *err)
{
    store->open = false;
    if (store->in_transaction)
        world.db = store->before;        /* the server notices and rolls back */
    store->in_transaction = false;
    return err_set(err, ERR_RECONNECT, 2013, "sim", "lost connection");
}

/* What was ordered, or what the seed says: one in `of`. */
static enum strike draw(uint32_t of)
{
    static const enum strike any[] = {STRIKE_DEADLOCK, STRIKE_LOCK_WAIT, STRIKE_LOST};
    enum strike strike = world.strike;
    world.strike = STRIKE_NONE;
    if (strike == STRIKE_NONE && world.faults && world_chance(of))
        strike = any[world_random() % 3];
    return strike;
}

/* What may go wrong with any statement. */
enum err_class fake_fault(struct fake_store *store, struct err *err)
{
    world_may_crash();
    switch (world.outage || store->server != world.server ? STRIKE_LOST : draw(120)) {
    case STRIKE_DEADLOCK: return err_set(err, ERR_RETRY, 1213, "sim", "deadlock");
    case STRIKE_LOCK_WAIT: return err_set(err, ERR_LOCKED, 1205, "sim", "lock wait");
    case STRIKE_LOST:
    case STRIKE_ANSWER_LOST: return broken(store, err);
    case STRIKE_NONE: break;
    }
    return ERR_NONE;
}

/* ---- transaction ------------------------------------------------------------------------------------------------- */

static enum err_class store_open(void *self, struct err *err)
{
    SELF;
    if (world.outage)
        return err_set(err, ERR_RECONNECT, 2002, "sim", "nobody answers");
    if (!store->open)
        store->server = world.server;
    store->open = true;
    return ERR_NONE;
}

static enum err_class stands(void *self, const struct topic *topic, struct err *err)
{
    (void)self;
    if (world.lost_index && bytes_equal(topic->name, bytes_text(world_topic(world.victim))))
        return err_set(err, ERR_SCHEMA, 0, "sim", "the unique index is gone");
    return ERR_NONE;
}

static void store_close(void *self)
{
    SELF;
    store->open = false;
}

static enum err_class begin(void *self, const struct fence *fences, uint32_t count, bool *ret_current, struct err *err)
{
    SELF;
    enum err_class class = fake_fault(store, err);
    if (class != ERR_NONE)
        return class;
    if (!store->open || store->in_transaction)
        world_fail("begin without an idle session");
    for (uint32_t i = 0; i < count && world.breakage != BREAK_WORKER_BLIND; i++)
        if (fences[i].server != world_server()) {
            store->open = false;
            return err_set(err, ERR_WRONG_SERVER, 0, "sim", "taken over elsewhere");
        }
    store->before = world.db;
    store->in_transaction = true;
    store->saved = false;
    *ret_current = true;
    for (uint32_t i = 0; i < count && world.breakage != BREAK_NO_FENCE; i++)
        if (!world_has(fences[i].topic, fences[i].partition) ||
            world.db.generation[fences[i].partition] != fences[i].generation)
            *ret_current = false;
    return ERR_NONE;
}

static enum err_class now(void *self, char ret_text[20], struct err *err)
{
    SELF;
    snprintf(ret_text, 20, "2026-12-01 03:00:00");
    return fake_fault(store, err);
}

static enum err_class savepoint(void *self, struct err *err)
{
    SELF;
    store->savepoint = world.db;
    store->saved = true;
    return fake_fault(store, err);
}

static enum err_class undo(void *self, struct err *err)
{
    SELF;
    if (!store->saved)
        world_fail("undo without a savepoint");
    world.db = store->savepoint;
    /* It waits for nobody; only the connection can go. */
    return world.outage || draw(300) == STRIKE_LOST ? broken(store, err) : ERR_NONE;
}

static enum err_class commit(void *self, struct err *err)
{
    SELF;
    bool answer_lost = world.strike == STRIKE_ANSWER_LOST || (world.faults && world_chance(40));
    if (answer_lost)
        world.strike = STRIKE_NONE;
    enum err_class class = answer_lost ? ERR_NONE : fake_fault(store, err);
    if (class == ERR_RECONNECT)
        return err_set(err, ERR_IN_DOUBT, 2013, "sim", "the answer to COMMIT is lost; it did not happen");
    if (class != ERR_NONE)
        return class;
    store->in_transaction = false;
    if (!answer_lost)
        return ERR_NONE;
    store->open = false;
    return err_set(err, ERR_IN_DOUBT, 2013, "sim", "the answer to COMMIT is lost; it did happen");
}

static void rollback(void *self)
{
    SELF;
    if (store->in_transaction)
        world.db = store->before;
    store->in_transaction = false;
}

static struct db_record *find(const struct item *item)
{
    for (uint32_t i = 0; i < world.db.record_count; i++)
        if (bytes_equal(bytes_text(world.db.records[i].key), item->eval.key) &&
            bytes_equal(bytes_text(world.db.records[i].biz_type), item->eval.rule->biz_type))
            return &world.db.records[i];
    return NULL;
}

static enum err_class settle(void *self, struct item *const *items, uint32_t count, const uint8_t claim[CLAIM_LEN],
                             bool *ret_committed, struct err *err)
{
    SELF;
    *ret_committed = false;
    if (world.outage)
        return err_set(err, ERR_RECONNECT, 2002, "sim", "nobody answers");
    store->open = true;
    store->server = world.server;
    for (uint32_t i = 0; i < count; i++) {
        bool wrote = items[i]->claimed || items[i]->write == WRITE_REPLACE || items[i]->write == WRITE_RETRY;
        const struct db_record *record = wrote ? find(items[i]) : NULL;
        if (record && memcmp(record->claim, claim, CLAIM_LEN) == 0)
            *ret_committed = true;
    }
    return ERR_NONE;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void know(struct item *item, const struct db_record *record)
{
    item->known = (struct known_row){
        .present = true, .status = record->status, .outcome = record->outcome, .fingerprint_version = record->version,
        .biz_no = bytes_text(record->biz_no), .source = SOURCE_KAFKA,
        .topic = bytes_text(world_topic(record->partition)),
        .partition = record->partition, .offset = record->offset, .attempts = record->attempts};
    memcpy(item->known.params_hash, record->params_hash, PARAMS_HASH_LEN);
    memcpy(item->known.identity_hash, record->identity_hash, IDENTITY_HASH_LEN);
}

/* Views of a row must outlive a later change of it: they are copied. */
static void own_number(struct item *item, struct arena *scratch)
{
    item->known.biz_no = arena_copy(scratch, item->known.biz_no);
}

static enum err_class probe(void *self, struct item *const *items, uint32_t count, struct arena *scratch,
                            struct err *err)
{
    SELF;
    for (uint32_t i = 0; i < count; i++) {
        const struct db_record *record = find(items[i]);
        items[i]->known = (struct known_row){0};
        if (record && record->status == RECORD_APPLIED) {
            know(items[i], record);
            own_number(items[i], scratch);
        }
    }
    return fake_fault(store, err);
}

static void fill(struct db_record *record, const struct item *item, const uint8_t claim[CLAIM_LEN])
{
    fake_copy(record->biz_type, TEXT, item->eval.rule->biz_type);
    fake_copy(record->key, TEXT, item->eval.key);
    fake_copy(record->biz_no, TEXT, item->eval.biz_no);
    fake_copy(record->response, sizeof record->response, item->response);
    memcpy(record->params_hash, item->eval.params_hash, PARAMS_HASH_LEN);
    memcpy(record->identity_hash, item->eval.identity_hash, IDENTITY_HASH_LEN);
    memcpy(record->claim, claim, CLAIM_LEN);
    record->version = item->eval.rule->fingerprint_version;
    record->partition = item->record.partition;
    record->offset = item->record.offset;
    record->has_request_id = item->eval.request_id.len > 0;
}

/* Within a partition the records of a number are claimed in their order; what was parked was claimed before. */
static void check_order(const struct item *item)
{
    for (uint32_t i = 0; i < world.db.record_count; i++) {
        const struct db_record *row = &world.db.records[i];
        if (row->partition == item->record.partition && row->offset > item->record.offset &&
            bytes_equal(bytes_text(row->biz_no), item->eval.biz_no) &&
            bytes_equal(bytes_text(row->biz_type), item->eval.rule->biz_type))
            world_fail("%d/%lld of %s is judged after %lld", row->partition, (long long)item->record.offset,
                       row->biz_no, (long long)row->offset);
    }
}

static enum err_class claim_rows(void *self, struct item *const *items, uint32_t count, const uint8_t claim[CLAIM_LEN],
                                 struct arena *scratch, struct err *err)
{
    SELF;
    for (uint32_t i = 0; i < count; i++) {
        const struct db_record *known = find(items[i]);
        items[i]->known = (struct known_row){0};
        items[i]->claimed = false;
        if (bytes_equal(items[i]->eval.key, bytes_text(world.held_key)))
            return err_set(err, ERR_LOCKED, 1205, "sim", "another session claims it");
        if (!known)
            check_order(items[i]);
        if (known && memcmp(known->claim, claim, CLAIM_LEN) == 0)
            return err_set(err, ERR_FATAL, 0, "sim", "a key claimed twice by one attempt");
        if (known) {
            know(items[i], known);
            own_number(items[i], scratch);
            continue;
        }
        if (world.db.record_count == ROWS_MAX)
            world_fail("too many rows");
        struct db_record *record = &world.db.records[world.db.record_count++];
        *record = (struct db_record){.status = RECORD_APPLIED, .outcome = OUTCOME_FIRST, .attempts = 1};
        fill(record, items[i], claim);
        items[i]->claimed = true;
    }
    return fake_fault(store, err);
}

static struct db_order *order_of(const struct item *item)
{
    const struct transition *transition = &item->eval.rule->transitions[0];
    struct bytes number = item->eval.values[transition->where[0].expr].text;
    for (uint32_t i = 0; i < ORDERS && number.len > 0; i++)
        if (!world.db.orders[i].missing && bytes_equal(bytes_text(world.db.orders[i].number), number))
            return &world.db.orders[i];
    return NULL;
}

static struct stored column(const struct db_order *order, struct bytes name)
{
    if (bytes_equal(name, BYTES_LIT("status")))
        return (struct stored){bytes_text(order->status), false};
    if (bytes_equal(name, BYTES_LIT("amount")))
        return (struct stored){bytes_text(order->amount), false};
    if (bytes_equal(name, BYTES_LIT("channel_txn")))
        return (struct stored){bytes_text(order->txn), !order->has_txn};
    return (struct stored){bytes_text(order->number), false};
}

static bool holds(const struct transition *transition, const struct item *item, const struct db_order *order)
{
    if (transition_class(transition, bytes_text(order->status), false) != STATE_FROM)
        return false;
    for (uint32_t i = 0; i < transition->require_count; i++) {
        struct stored stored = column(order, transition->require[i].column);
        if (!column_equals(&transition->require[i].type, stored.text,
                           &item->eval.values[transition->require[i].expr]))
            return false;
    }
    return true;
}

/* The shop's own session changes an order between two of our statements. */
static void foreign_change(struct db_order *order)
{
    if (world.faults && world_chance(60) && strcmp(order->status, "PENDING") == 0)
        snprintf(order->status, TEXT, "CLOSED");
}

static enum err_class set_columns(const struct transition *transition, const struct item *item, struct db_order *order,
                                  struct err *err)
{
    for (uint32_t i = 0; i < transition->set_count; i++) {
        struct bytes text = item->eval.values[transition->set[i].expr].text;
        if (bytes_equal(transition->set[i].column, BYTES_LIT("paid_at"))) {
            order->is_paid = true;
            continue;
        }
        if (text.len > 20)
            return err_set(err, ERR_DATA, 1406, "sim", "too long");
        fake_copy(order->txn, TEXT, text);
        order->has_txn = true;
    }
    fake_copy(order->status, TEXT, transition->to);
    return ERR_NONE;
}

/* Grants are asked before any row is looked at. */
static bool may_write(struct item *const *items)
{
    return !(world.revoked && bytes_equal(items[0]->topic->name, bytes_text(world_topic(world.victim))));
}

/* Counts what changed, as the server does: a row that has all its values already is found, not changed. */
static enum err_class update(void *self, const struct rule *rule, uint32_t index, struct item *const *items,
                             uint32_t count, uint64_t *ret_affected, struct err *err)
{
    SELF;
    const struct transition *transition = &rule->transitions[index];
    *ret_affected = 0;
    if (!may_write(items))
        return err_set(err, ERR_SCHEMA, 1142, "sim", "UPDATE is denied");
    for (uint32_t i = 0; i < count; i++) {
        struct db_order *order = order_of(items[i]), was;
        if (!order)
            continue;
        if (world.held[order - world.db.orders])
            return err_set(err, ERR_LOCKED, 1205, "sim", "the shop holds it");
        if (!holds(transition, items[i], order) && world.breakage != BREAK_DOUBLE_APPLY)
            continue;
        was = *order;
        enum err_class class = set_columns(transition, items[i], order, err);
        if (class != ERR_NONE)
            return class;
        *ret_affected += memcmp(&was, order, sizeof was) != 0 || world.breakage == BREAK_DOUBLE_APPLY;
    }
    return fake_fault(store, err);
}

/* item->rows, made at the first read of any of its transitions. */
static struct row_view *row_of(struct item *item, uint32_t index, struct arena *scratch)
{
    if (!item->rows)
        item->rows = arena_calloc(scratch, item->eval.rule->transition_count, sizeof *item->rows);
    item->rows[index] = (struct row_view){0};
    return &item->rows[index];
}

static void view(struct item *item, uint32_t index, const struct db_order *order, struct arena *scratch)
{
    struct row_layout layout;
    row_layout(item->eval.rule, index, &layout);
    struct stored *columns = arena_calloc(scratch, layout.count, sizeof *columns);
    for (uint32_t i = 0; i < layout.count; i++) {
        columns[i] = column(order, layout.names[i]);
        columns[i].text = arena_copy(scratch, columns[i].text);
    }
    item->rows[index] = (struct row_view){.found = true, .columns = columns};
}

static enum err_class lock(void *self, const struct rule *rule, uint32_t index, struct item *const *items,
                           uint32_t count,
                           bool skip_locked, struct arena *scratch, struct err *err)
{
    SELF;
    (void)rule;
    if (!may_write(items))
        return err_set(err, ERR_SCHEMA, 1142, "sim", "SELECT is denied");
    for (uint32_t i = 0; i < count; i++) {
        struct db_order *order = order_of(items[i]);
        struct row_view *row = row_of(items[i], index, scratch);
        if (!order)
            continue;
        bool is_held = world.held[order - world.db.orders];
        if (is_held && !skip_locked)
            return err_set(err, ERR_LOCKED, 1205, "sim", "the shop holds it");
        if (!is_held)
            foreign_change(order);
        view(items[i], index, order, scratch);
        row->locked = is_held;
    }
    return fake_fault(store, err);
}

static enum err_class look(void *self, struct item *item, struct arena *scratch, struct err *err)
{
    SELF;
    struct db_order *order = order_of(item);
    row_of(item, 0, scratch);
    if (order)
        view(item, 0, order, scratch);
    return fake_fault(store, err);
}

/* ---- effects ----------------------------------------------------------------------------------------------------- */

static struct bytes inserted(const struct item *item, struct bytes column)
{
    const struct insert *insert = &item->eval.rule->inserts[0];
    for (uint32_t i = 0; i < insert->column_count; i++)
        if (bytes_equal(insert->columns[i].column, column))
            return item->eval.values[insert->columns[i].expr].text;
    world_fail("the rule inserts no %.*s", (int)column.len, (const char *)column.at);
}

static struct bytes txn_of(const struct item *item)
{
    return inserted(item, BYTES_LIT("channel_txn"));
}

static const struct db_ledger *ledger_row(struct bytes txn)
{
    for (uint32_t i = 0; i < world.db.ledger_count; i++)
        if (bytes_equal(bytes_text(world.db.ledger[i].txn), txn))
            return &world.db.ledger[i];
    return NULL;
}

static bool is_poison(const struct item *item)
{
    return memmem(item->record.value.at, item->record.value.len, "POISON", 6) != NULL;
}

static enum err_class insert(void *self, const struct rule *rule, uint32_t index, struct item *const *items,
                             uint32_t count, struct err *err)
{
    SELF;
    (void)rule, (void)index;
    for (uint32_t i = 0; i < count; i++) {
        if (is_poison(items[i]))
            return err_set(err, ERR_UNKNOWN, 1105, "sim", "some engine's own trouble");
        if (ledger_row(txn_of(items[i])))
            return err_set(err, ERR_UNIQUE, 1062, "sim", "duplicate entry");
        struct db_ledger *row = &world.db.ledger[world.db.ledger_count++];
        fake_copy(row->number, TEXT, inserted(items[i], BYTES_LIT("order_no")));
        fake_copy(row->txn, TEXT, txn_of(items[i]));
        fake_copy(row->amount, TEXT, inserted(items[i], BYTES_LIT("amount")));
    }
    return fake_fault(store, err);
}

static enum err_class insert_known(void *self, const struct rule *rule, uint32_t index, struct item *item,
                                   bool *ret_same, struct err *err)
{
    SELF;
    (void)rule, (void)index;
    const struct db_ledger *row = ledger_row(txn_of(item));
    *ret_same = row && bytes_equal(bytes_text(row->number), inserted(item, BYTES_LIT("order_no"))) &&
                bytes_equal(bytes_text(row->amount), inserted(item, BYTES_LIT("amount")));
    return fake_fault(store, err);
}

/* As its text says: 5 more while that leaves 20 or less. */
static enum err_class statement(void *self, const struct rule *rule, uint32_t index, struct item *item,
                                uint64_t *ret_affected, struct err *err)
{
    SELF;
    (void)rule, (void)index;
    struct db_order *order = order_of(item);
    *ret_affected = order && order->refunded + 500 <= 2000;
    if (*ret_affected)
        order->refunded += 500;
    return fake_fault(store, err);
}

static enum err_class events(void *self, const struct outbox_row *rows, uint32_t count, struct bytes now_text,
                             struct err *err)
{
    SELF;
    (void)now_text;
    for (uint32_t i = 0; i < count; i++) {
        const struct evaluation *eval = &rows[i].item->eval;
        struct db_event *event = &world.db.events[world.db.event_count++];
        event->seq = ++world.db.event_next;
        event->deleted = false;
        fake_copy(event->topic, TEXT, rows[i].event->topic);
        fake_copy(event->key, TEXT, eval->values[rows[i].event->key].text);
        event_id(eval->rule->biz_type, eval->key, eval->identity_hash, bytes_text(outcome_name(rows[i].outcome)),
                 rows[i].index, event->id);
    }
    return fake_fault(store, err);
}

static enum err_class letter(void *self, const struct item *item, struct bytes row_state, bool *ret_new,
                             struct err *err)
{
    SELF;
    uint8_t origin[32];
    size_t most = world.config->dead_letter.payload_max;
    letter_origin(item, origin);
    *ret_new = true;
    for (uint32_t i = 0; i < world.db.letter_count; i++) {
        struct db_letter *row = &world.db.letters[i];
        if (memcmp(row->origin, origin, sizeof origin) != 0)
            continue;
        *ret_new = false;
        row->attempts += !(row->partition == item->record.partition && row->offset == item->record.offset);
        row->cause = item->cause;
        fake_copy(world.db.row_states[i], sizeof world.db.row_states[i], row_state);
        if (row->state == LETTER_RESOLVED)
            row->state = LETTER_OPEN;
        return fake_fault(store, err);
    }
    uint32_t at = world.db.letter_count++;
    struct db_letter *row = &world.db.letters[at];
    *row = (struct db_letter){.outcome = item->outcome, .cause = item->cause, .attempts = 1,
                              .partition = item->record.partition, .offset = item->record.offset,
                              .payload_bytes = (uint32_t)item->record.value.len};
    row->payload_len = (uint32_t)(item->record.value.len < most ? item->record.value.len : most);
    fake_copy(world.db.row_states[at], sizeof world.db.row_states[at], row_state);
    memcpy(row->origin, origin, sizeof origin);
    return fake_fault(store, err);
}

static enum err_class records(void *self, struct item *const *items, uint32_t count, const uint8_t claim[CLAIM_LEN],
                              struct err *err)
{
    SELF;
    for (uint32_t i = 0; i < count; i++) {
        struct db_record *record = find(items[i]);
        const bool closes = items[i]->write == WRITE_CLOSE && items[i]->outcome != OUTCOME_FIRST;
        if (!closes && items[i]->write != WRITE_REPLACE && items[i]->write != WRITE_RETRY)
            continue;
        if (!record || (closes && memcmp(record->claim, claim, CLAIM_LEN) != 0))
            return err_set(err, ERR_FATAL, 0, "sim", "a final form for a row that is not there");
        if (items[i]->write == WRITE_REPLACE) {
            record->attempts++;
            fill(record, items[i], claim);
        }
        if (items[i]->write == WRITE_RETRY) {
            memcpy(record->claim, claim, CLAIM_LEN);
            fake_copy(record->response, sizeof record->response, items[i]->response);
        }
        record->outcome = items[i]->outcome;
        record->status = outcome_row(items[i]->outcome)->status;
        if (record->status != RECORD_APPLIED)
            memset(record->response, 0, sizeof record->response);
    }
    return fake_fault(store, err);
}

void fake_store_init(struct fake_store *store)
{
    static const struct store_tx_ops tx = {store_open, stands, store_close, begin, now, savepoint, undo, commit,
        rollback, settle};
    static const struct store_row_ops row = {probe, claim_rows, update, lock, look};
    static const struct store_effect_ops effect = {insert, insert_known, statement, events, letter, records};
    memset(store, 0, sizeof *store);
    store->port = (struct store_port){store, &tx, &row, &effect, &fake_park_table};
}
