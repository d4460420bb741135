/* SPDX-License-Identifier: MIT */
/* fake_store: the store and ledger ports over the simulated database. A transaction is the database as it was before;
 * rolling back puts it back. Faults come from the seed. */
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

/* What may go wrong with any statement. */
enum err_class fake_fault(struct fake_store *store, struct err *err)
{
    world_may_crash();
    if (world.outage)
        return broken(store, err);
    if (!world.faults || !world_chance(120))
        return ERR_NONE;
    switch (world_random() % 3) {
    case 0: return err_set(err, ERR_RETRY, 1213, "sim", "deadlock");
    case 1: return err_set(err, ERR_LOCKED, 1205, "sim", "lock wait");
    default: return broken(store, err);
    }
}

/* ---- transaction ------------------------------------------------------------------------------------------------- */

static enum err_class store_open(void *self, struct err *err)
{
    SELF;
    if (world.outage)
        return err_set(err, ERR_RECONNECT, 2002, "sim", "nobody answers");
    store->open = true;
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
    store->before = world.db;
    store->in_transaction = true;
    store->saved = false;
    *ret_current = true;
    for (uint32_t i = 0; i < count && world.breakage != BREAK_NO_FENCE; i++)
        if (world.db.generation[fences[i].partition] != fences[i].generation)
            *ret_current = false;
    return ERR_NONE;
}

static enum err_class now(void *self, char ret_text[20], struct err *err)
{
    (void)self, (void)err;
    snprintf(ret_text, 20, "2026-12-01 03:00:00");
    return ERR_NONE;
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
    (void)err;
    if (!store->saved)
        world_fail("undo without a savepoint");
    world.db = store->savepoint;
    return ERR_NONE;
}

static enum err_class commit(void *self, struct err *err)
{
    SELF;
    enum err_class class = fake_fault(store, err);
    if (class == ERR_RECONNECT)
        return err_set(err, ERR_IN_DOUBT, 2013, "sim", "the answer to COMMIT is lost; it did not happen");
    if (class != ERR_NONE)
        return class;
    store->in_transaction = false;
    if (world.faults && world_chance(40)) {
        store->open = false;
        return err_set(err, ERR_IN_DOUBT, 2013, "sim", "the answer to COMMIT is lost; it did happen");
    }
    return ERR_NONE;
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
    for (uint32_t i = 0; i < count; i++) {
        const struct db_record *record = items[i]->eval.rule ? find(items[i]) : NULL;
        if (record && memcmp(record->claim, claim, CLAIM_LEN) == 0)
            *ret_committed = true;
    }
    return ERR_NONE;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void know(struct item *item, const struct db_record *record, const uint8_t *claim)
{
    item->known = (struct known_row){
        .present = true, .status = record->status, .outcome = record->outcome, .fingerprint_version = record->version,
        .biz_no = bytes_text(record->biz_no), .source = SOURCE_KAFKA, .topic = item->record.topic,
        .partition = record->partition, .offset = record->offset, .attempts = record->attempts};
    item->known.mine = claim && memcmp(record->claim, claim, CLAIM_LEN) == 0;
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
        if (record && record->status == RECORD_APPLIED) {
            know(items[i], record, NULL);
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
}

static enum err_class claim_rows(void *self, struct item *const *items, uint32_t count, const uint8_t claim[CLAIM_LEN],
                                 struct arena *scratch, struct err *err)
{
    SELF;
    for (uint32_t i = 0; i < count; i++) {
        const struct db_record *known = find(items[i]);
        if (known) {
            know(items[i], known, claim);
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
    for (uint32_t i = 0; i < ORDERS; i++)
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
    if (bytes_equal(name, BYTES_LIT("txn")))
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

static enum err_class update(void *self, const struct rule *rule, uint32_t index, struct item *const *items,
                             uint32_t count, uint64_t *ret_affected, struct err *err)
{
    SELF;
    const struct transition *transition = &rule->transitions[index];
    *ret_affected = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct db_order *order = order_of(items[i]);
        if (!order)
            continue;
        if (world.held[order - world.db.orders])
            return err_set(err, ERR_LOCKED, 1205, "sim", "the shop holds it");
        if (!holds(transition, items[i], order) && world.breakage != BREAK_DOUBLE_APPLY)
            continue;
        for (uint32_t k = 0; k < transition->set_count; k++) {
            struct bytes text = items[i]->eval.values[transition->set[k].expr].text;
            if (text.len > 20)
                return err_set(err, ERR_DATA, 1406, "sim", "too long");
            fake_copy(order->txn, TEXT, text);
            order->has_txn = true;
        }
        fake_copy(order->status, TEXT, transition->to);
        ++*ret_affected;
    }
    return fake_fault(store, err);
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
    for (uint32_t i = 0; i < count; i++) {
        struct db_order *order = order_of(items[i]);
        if (!order)
            continue;
        bool is_held = world.held[order - world.db.orders];
        if (is_held && !skip_locked)
            return err_set(err, ERR_LOCKED, 1205, "sim", "the shop holds it");
        if (!is_held)
            foreign_change(order);
        view(items[i], index, order, scratch);
        items[i]->rows[index].locked = is_held;
    }
    return fake_fault(store, err);
}

static enum err_class look(void *self, struct item *item, struct arena *scratch, struct err *err)
{
    SELF;
    struct db_order *order = order_of(item);
    item->rows = arena_calloc(scratch, item->eval.rule->transition_count, sizeof *item->rows);
    if (order)
        view(item, 0, order, scratch);
    return fake_fault(store, err);
}

/* ---- effects ----------------------------------------------------------------------------------------------------- */

static struct bytes txn_of(const struct item *item)
{
    return item->eval.values[item->eval.rule->inserts[0].columns[1].expr].text;
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
        fake_copy(row->number, TEXT, items[i]->eval.biz_no);
        fake_copy(row->txn, TEXT, txn_of(items[i]));
    }
    return fake_fault(store, err);
}

static enum err_class insert_known(void *self, const struct rule *rule, uint32_t index, struct item *item,
                                   bool *ret_same,
                                   struct err *err)
{
    SELF;
    (void)rule, (void)index;
    const struct db_ledger *row = ledger_row(txn_of(item));
    *ret_same = row && bytes_equal(bytes_text(row->number), item->eval.biz_no);
    return fake_fault(store, err);
}

/* refunded + 500 <= amount in cents. */
static enum err_class statement(void *self, const struct rule *rule, uint32_t index, struct item *item,
                                uint64_t *ret_affected, struct err *err)
{
    SELF;
    (void)rule, (void)index;
    struct db_order *order = order_of(item);
    *ret_affected = order && order->refunded + 500 <= 1999;
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
    (void)row_state;
    letter_origin(item, origin);
    *ret_new = true;
    for (uint32_t i = 0; i < world.db.letter_count; i++) {
        struct db_letter *row = &world.db.letters[i];
        if (memcmp(row->origin, origin, sizeof origin) != 0)
            continue;
        *ret_new = false;
        row->attempts += !(row->partition == item->record.partition && row->offset == item->record.offset);
        row->cause = item->cause;
        return fake_fault(store, err);
    }
    struct db_letter *row = &world.db.letters[world.db.letter_count++];
    *row = (struct db_letter){.outcome = item->outcome, .cause = item->cause, .attempts = 1,
                              .partition = item->record.partition, .offset = item->record.offset};
    memcpy(row->origin, origin, sizeof origin);
    return fake_fault(store, err);
}

static enum err_class records(void *self, struct item *const *items, uint32_t count, const uint8_t claim[CLAIM_LEN],
                              struct err *err)
{
    SELF;
    for (uint32_t i = 0; i < count; i++) {
        struct db_record *record = find(items[i]);
        if (!record)
            world_fail("a final form for a row that is not there");
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
            record->response[0] = '\0';
    }
    return fake_fault(store, err);
}

void fake_store_init(struct fake_store *store)
{
    static const struct store_tx_ops tx = {store_open, store_close, begin, now, savepoint, undo, commit, rollback,
        settle};
    static const struct store_row_ops row = {probe, claim_rows, update, lock, look};
    static const struct store_effect_ops effect = {insert, insert_known, statement, events, letter, records};
    memset(store, 0, sizeof *store);
    store->port = (struct store_port){store, &tx, &row, &effect, &fake_park_table};
}

/* ---- ledger ------------------------------------------------------------------------------------------------------ */

static enum err_class ledger_open(void *self, struct err *err)
{
    struct fake_ledger *ledger = self;
    if (world.outage)
        return err_set(err, ERR_RECONNECT, 2002, "sim", "nobody answers");
    ledger->open = true;
    return ERR_NONE;
}

static void ledger_close(void *self)
{
    struct fake_ledger *ledger = self;
    ledger->open = false;
}

static enum err_class take_over(void *self, struct ledger_partition *partitions, uint32_t count, struct err *err)
{
    (void)self;
    world_may_crash();
    if (world.faults && world_chance(20))
        return err_set(err, ERR_RETRY, 1213, "sim", "deadlock");
    for (uint32_t i = 0; i < count; i++) {
        partitions[i].generation = ++world.db.generation[partitions[i].partition];
        partitions[i].next_offset = world.db.progress[partitions[i].partition];
        partitions[i].last_offset = -1;
    }
    return ERR_NONE;
}

static void check_passed(int32_t partition, int64_t offset, const char *what)
{
    const struct log *log = &world.logs[partition];
    for (uint32_t i = 0; i < log->count; i++)
        if (log->records[i].offset < offset && !log->records[i].reported)
            world_fail("%s of partition %d passed unfinished offset %lld", what, partition,
                       (long long)log->records[i].offset);
}

static enum err_class progress(void *self, struct ledger_partition *partitions, uint32_t count, struct err *err)
{
    (void)self;
    world_may_crash();
    if (world.faults && world_chance(20))
        return err_set(err, ERR_LOCKED, 1205, "sim", "lock wait");
    for (uint32_t i = 0; i < count; i++) {
        int32_t number = partitions[i].partition;
        partitions[i].current = world.db.generation[number] == partitions[i].generation ||
                                world.breakage == BREAK_NO_FENCE;
        if (!partitions[i].current)
            continue;
        check_passed(number, partitions[i].next_offset, "idem_progress");
        /* It may go back: a new owner starts at the lower of the two offsets and reports from there. */
        world.db.progress[number] = partitions[i].next_offset;
    }
    return ERR_NONE;
}

static enum err_class ping(void *self, struct err *err)
{
    return ledger_open(self, err);
}

void fake_ledger_init(struct fake_ledger *ledger)
{
    static const struct ledger_ops ops = {ledger_open, ledger_close, take_over, progress, fake_ledger_parked, ping};
    memset(ledger, 0, sizeof *ledger);
    ledger->port = (struct ledger_port){ledger, &ops};
}
