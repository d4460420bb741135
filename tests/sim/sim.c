/* SPDX-License-Identifier: MIT */
/* sim: the real app floor on fakes, one thread, a virtual clock, seeded: who steps next and what goes wrong next.
 * After each
 * seed nothing may be lost or doubled. `sim --seed N` replays a seed exactly.
 *
 *     sim [--seeds N] [--from N] [--seed N] [--break FAULT]: offset-early, no-fence, double-apply, overtake,
 * failover-blind, progress-blind, worker-blind */
#include "world.h"

#include "idem/adapter/config_load.h"
#include "idem/adapter/json.h"

#include <stdio.h>
#include <stdlib.h>

enum { NOISY_STEPS = 700, CALM_STEPS = 60000 };

struct instance {
    bool alive, frozen;          /* frozen: runs nothing and is told nothing, until it thaws */
    struct fake_source source;
    struct fake_store stores[WORKERS];
    struct fake_ledger ledger;
    struct worker workers[WORKERS];
    struct keeper keeper;
    struct shared shared;
    atomic_uint_fast64_t commits[8], judged[8], database_commits, losses, server;
    atomic_int down[DOWN_WHY_COUNT], topic_down[2];
    struct report_port report;
    struct json_parser *json;
    struct parser_port parser;
    struct intake intake;
    struct fake_relay outbox;
    struct relay_counts counts;
    struct relay *relay;
};

static struct instance instances[INSTANCES_MAX];

/* ---- what is reported -------------------------------------------------------------------------------------------- */

/* Order is promised inside a partition: nothing is applied while an older record of its number waits there. */
static void check_nobody_overtaken(const struct item *item)
{
    for (uint32_t i = 0; i < world.db.parked_count; i++) {
        const struct db_parked *row = &world.db.parked[i];
        if (row->partition == item->record.partition && row->offset < item->record.offset &&
            !world_sent(row->partition, row->offset)->ended &&
            bytes_equal(bytes_text(row->biz_no), item->eval.biz_no) &&
            bytes_equal(bytes_text(row->biz_type), item->eval.rule->biz_type))
            world_fail("%d/%lld of %s was applied before parked %lld", row->partition,
                       (long long)item->record.offset, row->biz_no, (long long)row->offset);
    }
}

/* `processing` is the end of a record unless it is the parked one itself, delivered again. */
static bool waits_itself(const struct item *item)
{
    for (uint32_t i = 0; i < world.db.parked_count; i++)
        if (world.db.parked[i].partition == item->record.partition && world.db.parked[i].offset == item->record.offset)
            return item->outcome == OUTCOME_PROCESSING;
    return false;
}

static void report_outcome(void *self, const struct item *item, int64_t took_us, uint32_t worker)
{
    (void)self, (void)took_us, (void)worker;
    struct sent *sent = world_sent(item->record.partition, item->record.offset);
    if (item->outcome == OUTCOME_NONE)
        world_fail("outcome %s was reported", outcome_name(item->outcome));
    if (item->outcome == OUTCOME_FIRST)
        check_nobody_overtaken(item);
    if (sent->reported && sent->outcome == OUTCOME_FIRST && item->outcome == OUTCOME_FIRST)
        world_fail("%d/%lld was first twice", item->record.partition, (long long)item->record.offset);
    if (!sent->reported || item->outcome != OUTCOME_DUPLICATE)
        sent->outcome = item->outcome, sent->cause = item->cause;
    sent->reported = sent->ever = true;
    sent->ended = sent->ended || (item->outcome != OUTCOME_PARKED && !waits_itself(item));
    if (world.verbose)
        printf("  %d/%lld %s %s\n", item->record.partition, (long long)item->record.offset, outcome_name(item->outcome),
               cause_name(item->cause));
}

static void report_event(void *self, enum report_event event, const struct report_fields *fields)
{
    (void)self;
    if (world.verbose)
        printf("  event %d partition %lld offset %lld generation %lld %s\n", event, (long long)fields->partition,
               (long long)fields->offset, (long long)fields->generation, fields->why ? fields->why : "");
}

static void report_transaction(void *self, uint32_t database, enum report_tx result, uint32_t records, int64_t took_us)
{
    (void)self, (void)database, (void)result;
    if (records == 0 || took_us < 0)
        world_fail("a transaction of %u records that took %lld us", (unsigned)records, (long long)took_us);
}

static void report_flush(void *self)
{
    (void)self;
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static void step_worker(struct instance *instance, uint32_t index)
{
    worker_step(&instance->workers[index]);
}

/* While intake waits, the others of its process go on. */
static void wait_hook(void *context, uint32_t timeout_ms)
{
    struct instance *instance = context;
    world.now_us += (int64_t)(world_random() % (timeout_ms + 1)) * 1000 + 50;
    step_worker(instance, (uint32_t)world_random() % WORKERS);
    keeper_step(&instance->keeper);
}

static void instance_start(int slot)
{
    struct instance *instance = &instances[slot];
    memset(instance, 0, sizeof *instance);
    instance->alive = true;
    instance->shared = (struct shared){.rule_commits = instance->commits,
                                       .rule_judged = instance->judged, .commits = &instance->database_commits,
                                       .losses = &instance->losses, .topic_down = instance->topic_down,
                                       .down = instance->down, .servers = &instance->server};
    instance->report = (struct report_port){instance, report_outcome, report_event, report_transaction,
                                           report_flush};
    fake_source_init(&instance->source, slot);
    fake_ledger_init(&instance->ledger);
    keeper_init(&instance->keeper, BYTES_LIT("shop"), &instance->ledger.port, world_env(), &instance->report,
                &instance->server);
    keeper_watch(&instance->keeper, 2000, NULL);
    instance->json = json_parser_create(1 << 16);
    instance->parser = json_parser_port(instance->json);
    struct intake_init init = {
        .config = world.config, .source = &instance->source.port, .env = world_env(), .report = &instance->report,
        .parser = &instance->parser, .workers = instance->workers, .worker_count = WORKERS,
            .keepers = &instance->keeper,
        .shared = &instance->shared, .assign_wait_ms = 2000, .wait = wait_hook, .context = instance};
    if (!intake_init(&instance->intake, &init))
        world_fail("out of memory");
    for (uint32_t i = 0; i < WORKERS; i++) {
        fake_store_init(&instance->stores[i]);
        struct worker_init worker = {.index = i, .config = world.config, .store = &instance->stores[i].port,
                                     .env = world_env(), .report = &instance->report, .shared = &instance->shared,
                                     .done = &instance->intake.done};
        if (!worker_init(&instance->workers[i], &worker))
            world_fail("out of memory");
    }
    instance->source.events = intake_events(&instance->intake);
    fake_relay_init(&instance->outbox);
    instance->counts.topic_count = 1;
    struct relay_init relay = {.database = BYTES_LIT("shop"), .lease_ms = 3000, .outbox = &instance->outbox.outbox,
                               .producer = &instance->outbox.producer, .parser = &instance->parser,
                               .env = world_env(), .report = &instance->report, .counts = &instance->counts};
    instance->relay = relay_create(&relay);
    if (!instance->relay)
        world_fail("out of memory");
}

/* Whatever it had not committed is gone with it; its memory too. */
static void instance_die(int slot)
{
    struct instance *instance = &instances[slot];
    for (uint32_t i = 0; i < WORKERS; i++) {
        if (instance->stores[i].in_transaction)
            world.db = instance->stores[i].before;
        worker_finish(&instance->workers[i]);
    }
    keeper_finish(&instance->keeper);
    intake_finish(&instance->intake);
    relay_destroy(instance->relay);
    fake_relay_flush(&instance->outbox);
    json_parser_destroy(instance->json);
    instance->alive = false;
    for (int i = 0; i < PARTITIONS; i++)
        if (world.logs[i].owner == slot)
            world.logs[i].owner = -1;
}

static int alive_count(void)
{
    int count = 0;
    for (int i = 0; i < INSTANCES_MAX; i++)
        count += instances[i].alive;
    return count;
}

/* Runs a step of the instance; it may die in it. */
static void guarded(int slot, void (*step)(int slot))
{
    volatile int dying = slot;
    world.may_crash = world.faults;
    if (setjmp(world.crash) == 0)
        step(slot);
    else
        instance_die(dying);
    world.may_crash = false;
}

static void step_intake(int slot)
{
    struct err err = {0};
    if (!intake_step(&instances[slot].intake, 0, &err))
        world_fail("intake gave up: %s", err.text);
    if (atomic_load(&instances[slot].shared.fatal))
        world_fail("an internal fault");
}

static void step_any_worker(int slot)
{
    step_worker(&instances[slot], (uint32_t)world_random() % WORKERS);
}

static void step_keeper(int slot)
{
    keeper_step(&instances[slot].keeper);
}

static void step_relay(int slot)
{
    relay_step(instances[slot].relay, 0);
}

static void step_stop(int slot)
{
    int64_t deadline_us = world.now_us + 30000000;
    intake_stop(&instances[slot].intake, 30000);
    while (!relay_stop_step(instances[slot].relay, 0, deadline_us))
        world.now_us += 10000;
}

/* ---- the group --------------------------------------------------------------------------------------------------- */

static bool mine[PARTITIONS];
static bool lost;

static void step_revoke(int slot)
{
    fake_source_revoke(&instances[slot].source, lost);
}

static void step_assign(int slot)
{
    fake_source_assign(&instances[slot].source, mine);
}

/* Eager: all members give up, then each gets its share. A frozen one is not told: its partitions go to others. */
static void rebalance(void)
{
    int members[INSTANCES_MAX], count = 0, turn = (int)(world_random() % 7);
    bool died = false;
    lost = false;
    for (int i = 0; i < INSTANCES_MAX; i++)
        if (instances[i].alive && !instances[i].frozen)
            guarded(i, step_revoke);
    for (int i = 0; i < INSTANCES_MAX; i++)
        if (instances[i].alive && !instances[i].frozen)
            members[count++] = i;
    for (int i = 0; i < PARTITIONS; i++)
        world.logs[i].owner = -1;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < PARTITIONS; k++)
            mine[k] = (k + turn) % count == i;
        if (instances[members[i]].alive)
            guarded(members[i], step_assign);
        died = died || !instances[members[i]].alive;
    }
    if (died && count > 1)
        rebalance();
}

static void thaw(int slot)
{
    instances[slot].frozen = false;
    fake_relay_flush(&instances[slot].outbox);       /* its library goes on before it does */
    /* It does a few things in good faith before it hears that it is out. */
    for (int i = 0; i < 6 && instances[slot].alive; i++)
        guarded(slot, world_chance(2) ? step_any_worker : world_chance(2) ? step_keeper : step_intake);
    if (!instances[slot].alive)
        return;
    lost = true;
    guarded(slot, step_revoke);
    rebalance();
}

/* ---- one seed ---------------------------------------------------------------------------------------------------- */

static void make_world(uint64_t seed, bool faults, uint32_t records)
{
    struct config *config = world.config;
    enum breakage breakage = world.breakage;
    bool verbose = world.verbose;
    memset(&world, 0, sizeof world);
    world.config = config;
    world.breakage = breakage;
    world.verbose = verbose;
    world.seed = seed;
    world.random = seed * 0x9e3779b97f4a7c15u + 1;
    world.now_us = 1000000;
    world.server = 1;
    replica_forget();
    world.victim = PARTITIONS - 1;
    for (int i = 0; i < ORDERS; i++) {
        snprintf(world.db.orders[i].number, TEXT, "O%d", i);
        snprintf(world.db.orders[i].status, TEXT, "%s", i % 9 == 8 && i < 20 ? "CLOSED" : "PENDING");
        snprintf(world.db.orders[i].amount, TEXT, "19.99");
        world.db.orders[i].missing = i % 5 == 3 && i < ORDERS - RESERVED;
    }
    for (int i = 0; i < PARTITIONS; i++) {
        world.logs[i].committed = world.logs[i].progress_ever = -1;
        world.logs[i].owner = -1;
        world.db.progress[i] = world.db.last_offset[i] = -1;
    }
    world.refunds = faults;
    for (uint32_t i = 0; i < records; i++)
        customers_send();
    world.faults = faults;
}

static void some_trouble(void)
{
    int slot = (int)(world_random() % INSTANCES_MAX);
    switch (world_random() % 60) {
    case 0: rebalance(); break;
    case 1: world.outage = !world.outage; break;
    case 2: world.held[world_random() % ORDERS] = true; break;
    case 3: memset(world.held, 0, sizeof world.held); break;
    case 4:
        if (instances[slot].alive && alive_count() > 1) {
            instance_die(slot);
            rebalance();
        }
        break;
    case 5:
        if (!instances[slot].alive) {
            instance_start(slot);
            rebalance();
        }
        break;
    case 6:
        if (instances[slot].alive && !instances[slot].frozen) {
            instances[slot].frozen = true;
            rebalance();
        }
        break;
    case 7:
        if (instances[slot].alive && instances[slot].frozen)
            thaw(slot);
        break;
    case 10: world.revoked = !world.revoked; break;
    case 11: world.lost_index = !world.lost_index; break;
    case 12: case 13: replica_copy(); break;
    case 14: replica_takes_over(); break;
    case 8:
        if (instances[slot].alive && !instances[slot].frozen) {
            guarded(slot, step_stop);
            if (instances[slot].alive)
                instance_die(slot);
            rebalance();
        }
        break;
    case 9: world.db.orders[world_random() % ORDERS].missing = false; break;
    default: break;
    }
}

static void step_somebody(void)
{
    int slot = (int)(world_random() % INSTANCES_MAX);
    world.now_us += (int64_t)(world_random() % 20000);
    if (world_chance(50))
        world.now_us += 1000000;
    if (!instances[slot].alive || instances[slot].frozen)
        return;
    switch (world_random() % 5) {
    case 0: guarded(slot, step_intake); break;
    case 1: guarded(slot, step_keeper); break;
    case 2: guarded(slot, step_relay); break;
    default: guarded(slot, step_any_worker);
    }
    if (!instances[slot].alive)
        rebalance();
}

static bool first_read(int partitions)
{
    for (int i = 0; i < partitions; i++) {
        const struct log *log = &world.logs[i];
        int64_t end = log->count > 0 ? log->records[log->count - 1].offset + 1 : 0;
        if (log->count > 0 && (log->committed != end || world.db.progress[i] != end))
            return false;
    }
    return true;
}

static bool all_done(void)
{
    return first_read(PARTITIONS) && world.db.parked_count == 0;
}

static bool drained(int partitions)
{
    return partitions == PARTITIONS ? all_done() : first_read(partitions);
}

/* Whether the steps sufficed. A poison record is known by others of its rule that are committed between its failures:
 * late customers. */
static bool drain(int partitions)
{
    for (int i = 0; i < CALM_STEPS && !drained(partitions); i++) {
        if (i % 3000 == 2999 && world.late < RESERVED) {
            customers_send_paying(world.late % partitions, ORDERS - RESERVED + world.late);
            world.late++;
        }
        step_somebody();
    }
    return drained(partitions);
}

/* No worker keeps anything back, and everybody was told that the topics are up again. */
static bool nothing_waits(void)
{
    for (int i = 0; i < INSTANCES_MAX; i++) {
        if (!instances[i].alive)
            continue;
        const struct shared *shared = &instances[i].shared;
        if (atomic_load(&shared->held) || atomic_load(&shared->held_bytes) || atomic_load(&shared->topic_down[0]) ||
            atomic_load(&shared->topic_down[1]))
            return false;
        for (int k = 0; k < PARTITIONS; k++)
            if (instances[i].source.started[k] && instances[i].source.paused[k])
                return false;
    }
    return true;
}

static void calm_down(void)
{
    world.faults = false;
    world.outage = false;
    memset(world.held, 0, sizeof world.held);
    for (int i = 0; i < ORDERS; i += 2)          /* the others never come: their records are given up */
        world.db.orders[i].missing = false;
    for (int i = 0; i < INSTANCES_MAX; i++)
        if (instances[i].alive && instances[i].frozen)
            thaw(i);
    if (alive_count() == 0)
        instance_start(0);
    rebalance();
    if ((world.revoked || world.lost_index) && !drain(PARTITIONS - 1))
        world_fail("a topic that waits for its schema holds up the other");
    world.revoked = world.lost_index = false;
    drain(PARTITIONS);
    for (int i = 0; i < PARTITIONS && world.verbose; i++)
        printf("  partition %d owner %d committed %lld progress %lld end %lld\n", i, world.logs[i].owner,
               (long long)world.logs[i].committed, (long long)world.db.progress[i],
               (long long)world.logs[i].records[world.logs[i].count - 1].offset + 1);
    if (!all_done())
        world_fail("the topic was not drained");
    for (int i = 0; i < CALM_STEPS && !(nothing_waits() && fake_relay_is_drained()); i++)
        step_somebody();
    if (!fake_relay_is_drained())
        world_fail("the outbox was not published");
    if (!nothing_waits())
        world_fail("a topic is still down, or a partition paused, though nothing is wrong any more");
}

static void run_seed(uint64_t seed)
{
    make_world(seed, true, 60 + (uint32_t)(seed % 120));
    instance_start(0);
    if (world_chance(2))
        instance_start(1);
    rebalance();
    for (int i = 0; i < NOISY_STEPS; i++) {
        some_trouble();
        step_somebody();
    }
    calm_down();
    invariants_hold();
    for (int i = 0; i < INSTANCES_MAX; i++)
        if (instances[i].alive)
            instance_die(i);
}

/* ---- batching is invisible --------------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct db_record *x = a, *y = b;
    int order = strcmp(x->biz_type, y->biz_type);
    return order ? order : strcmp(x->key, y->key);
}

static int by_origin(const void *a, const void *b)
{
    return memcmp(a, b, 32);
}

static int by_event(const void *a, const void *b)
{
    return memcmp(((const struct db_event *)a)->id, ((const struct db_event *)b)->id, EVENT_ID_LEN);
}

/* hindered: the topic's schema is broken and mended again and again, which must not show either. */
static void drain_alone(uint64_t seed, uint32_t batch_max, bool hindered)
{
    world.config->batch_max = batch_max;
    world.config->databases[0].connections = 1;      /* orders in two workers have no order between them */
    make_world(seed, false, 150);
    /* One partition: there delivery order is all the order there is. */
    for (int i = 1; i < PARTITIONS; i++)
        world.logs[i].count = 0;
    /* When a poison record is known as such depends on who else is committed meanwhile. */
    for (uint32_t i = 0; i < world.logs[0].count; i++) {
        char *poison = strstr(world.logs[0].records[i].body, "POISON");
        if (poison)
            memcpy(poison, "potion", 6);
    }
    instance_start(0);
    rebalance();
    world.victim = 0;
    for (int i = 0; i < CALM_STEPS && !all_done(); i++) {
        world.revoked = hindered && i < CALM_STEPS / 2 && world_chance(3);
        guarded(0, step_intake);
        for (uint32_t k = 0; k < WORKERS; k++)
            step_worker(&instances[0], k);
        guarded(0, step_keeper);
        world.now_us += first_read(PARTITIONS) ? 700000 : 5000;  /* all are there before the first is given up */
    }
    if (!all_done())
        world_fail("the topic was not drained (batch %u)", batch_max);
    instance_die(0);
    struct db *db = &world.db;
    for (uint32_t i = 0; i < db->record_count; i++)
        memset(db->records[i].claim, 0, CLAIM_LEN);
    qsort(db->records, db->record_count, sizeof *db->records, by_key);
    qsort(db->letters, db->letter_count, sizeof *db->letters, by_origin);
    for (uint32_t i = 0; i < db->event_count; i++)
        db->events[i].seq = 0;
    qsort(db->events, db->event_count, sizeof *db->events, by_event);
    qsort(db->ledger, db->ledger_count, sizeof *db->ledger, (int (*)(const void *, const void *))strcmp);
}

static void compare_batches(uint64_t seed)
{
    static struct db one;
    static struct log log;
    uint32_t usual = world.config->batch_max;
    drain_alone(seed, 1, false);
    one = world.db;
    log = world.logs[0];
    drain_alone(seed, 500, false);
    invariants_same(&one, &log);
    drain_alone(seed, 7, true);
    world.config->batch_max = usual;
    world.config->databases[0].connections = WORKERS;
    invariants_same(&one, &log);
}

int main(int argc, char **argv)
{
    uint64_t from = 1, seeds = 1500;
    world_load_rules();
    for (int i = 1; i + 1 < argc; i += 2) {
        uint64_t number = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seeds") == 0)
            seeds = number;
        else if (strcmp(argv[i], "--from") == 0)
            from = number;
        else if (strcmp(argv[i], "--seed") == 0)
            from = number, seeds = 1, world.verbose = true;
        else if (strcmp(argv[i], "--break") == 0)
            world.breakage = world_breakage(argv[i + 1]);
        else
            return 64;
    }
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        run_seed(seed);
        if (world.breakage == BREAK_NOTHING)
            compare_batches(seed);
    }
    printf("%llu seeds, nothing lost, nothing doubled\n", (unsigned long long)seeds);
    config_free(world.config);
    return 0;
}
