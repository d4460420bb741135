/* SPDX-License-Identifier: MIT */
/* test_decide: the decision table of the contract, row by row. */
#include "table.h"

#include "idem/core/decide.h"

/* ---- part K ------------------------------------------------------------------------------------------------------ */

enum { SAME = 0, OTHER = 1 };

static struct rule key_rule = {.fingerprint_version = 1, .identity_count = 1};

struct key_row {
    const char *name;
    enum record_status status;
    int origin, biz_no, identity, version, fingerprint;
    bool inserted, mine;
    enum verdict_kind kind;
    enum outcome outcome;
    enum cause cause;
    enum record_write write;
};

static const struct key_row key_rows[] = {
    {"K1", 0, OTHER, SAME, SAME, SAME, SAME, true, true, VERDICT_BUSINESS, 0, 0, WRITE_NONE},
    {"K2", 1, OTHER, SAME, SAME, SAME, SAME, false, true, VERDICT_FAULT, 0, 0, 0},
    {"K3", 2, SAME, SAME, SAME, SAME, SAME, false, false, VERDICT_DONE, OUTCOME_DUPLICATE, 0, 0},
    {"K3, other fingerprint", 2, SAME, SAME, SAME, SAME, OTHER, false, false, VERDICT_DONE, OUTCOME_DUPLICATE, 0, 0},
    {"K4", 2, SAME, SAME, OTHER, SAME, SAME, false, false, VERDICT_BUSINESS, 0, 0, WRITE_REPLACE},
    {"K5", 2, OTHER, SAME, SAME, SAME, SAME, false, false, VERDICT_BUSINESS, 0, 0, WRITE_REPLACE},
    {"K5, everything else", 2, OTHER, OTHER, OTHER, OTHER, OTHER, false, false, VERDICT_BUSINESS, 0, 0, WRITE_REPLACE},
    {"K7, parked", 0, OTHER, OTHER, SAME, SAME, SAME, false, false, VERDICT_DONE, OUTCOME_KEY_REUSED,
     CAUSE_BIZ_NO_MISMATCH, 0},
    {"K7, applied", 1, SAME, OTHER, OTHER, SAME, OTHER, false, false, VERDICT_DONE, OUTCOME_KEY_REUSED,
     CAUSE_BIZ_NO_MISMATCH, 0},
    {"K8", 0, OTHER, SAME, OTHER, SAME, OTHER, false, false, VERDICT_DONE, OUTCOME_KEY_REUSED,
    CAUSE_IDENTITY_MISMATCH, 0},
    {"K9", 0, OTHER, SAME, SAME, SAME, OTHER, false, false, VERDICT_DONE, OUTCOME_KEY_REUSED,
     CAUSE_FINGERPRINT_MISMATCH, 0},
    {"K10", 0, SAME, SAME, SAME, SAME, SAME, false, false, VERDICT_DONE, OUTCOME_PROCESSING, 0, 0},
    {"K10, version", 0, SAME, SAME, SAME, OTHER, OTHER, false, false, VERDICT_DONE, OUTCOME_PROCESSING, 0, 0},
    {"K11", 1, OTHER, SAME, OTHER, SAME, SAME, false, false, VERDICT_DONE, OUTCOME_APPLIED_BY_OTHER,
     CAUSE_IDENTITY_MISMATCH, 0},
    {"K11, same origin, other fingerprint", 1, SAME, SAME, OTHER, SAME, OTHER, false, false, VERDICT_DONE,
     OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_MISMATCH, 0},
    {"K12", 1, OTHER, SAME, SAME, SAME, OTHER, false, false, VERDICT_DONE, OUTCOME_KEY_REUSED,
     CAUSE_FINGERPRINT_MISMATCH, 0},
    {"K13", 1, OTHER, SAME, SAME, SAME, SAME, false, false, VERDICT_DONE, OUTCOME_DUPLICATE, 0, 0},
    {"K13, version", 1, OTHER, SAME, SAME, OTHER, OTHER, false, false, VERDICT_DONE, OUTCOME_DUPLICATE, 0, 0},
};

static void every_row_of_part_k(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(key_rows); i++) {
        const struct key_row *row = &key_rows[i];
        struct item item = {.record = {.source = SOURCE_KAFKA, .topic = bytes_text("t"), .partition = 1, .offset = 7},
                            .eval = {.rule = &key_rule, .biz_no = bytes_text("A")}};
        item.known = (struct known_row){
            .present = true, .mine = row->mine, .status = row->status, .outcome = OUTCOME_FIRST,
            .fingerprint_version = (uint16_t)(1 + row->version), .biz_no = bytes_text(row->biz_no ? "B" : "A"),
            .source = SOURCE_KAFKA, .topic = bytes_text("t"), .partition = 1, .offset = row->origin ? 6 : 7};
        item.known.params_hash[0] = (uint8_t)row->fingerprint;
        item.known.identity_hash[0] = (uint8_t)row->identity;
        struct verdict verdict = decide_key(&item, row->inserted);
        bool version_skipped = row->kind == VERDICT_DONE && row->version && row->status != RECORD_CLOSED &&
                               !row->biz_no && !row->identity;
        if (verdict.kind != row->kind || verdict.outcome != row->outcome || verdict.cause != row->cause ||
            verdict.write != row->write || verdict.fingerprint_skipped != version_skipped)
            fail_msg("%s: kind %d outcome %s cause %s", row->name, verdict.kind, outcome_name(verdict.outcome),
                     cause_name(verdict.cause));
        if (verdict.outcome == OUTCOME_DUPLICATE)
            assert_int_equal(verdict.first_outcome, OUTCOME_FIRST);
    }
}

/* K6, and what a changed rule makes of it. */
static void a_parked_record_judges_its_own_row(void **state)
{
    static const struct {
        const char *name;
        int biz_no, identity, version, fingerprint;
        enum verdict_kind kind;
    } rows[] = {{"K6", SAME, SAME, SAME, SAME, VERDICT_BUSINESS}, {"number", OTHER, SAME, SAME, SAME, VERDICT_ORPHANED},
                {"identity", SAME, OTHER, SAME, SAME, VERDICT_ORPHANED},
                {"version", SAME, SAME, OTHER, SAME, VERDICT_ORPHANED},
                {"fingerprint", SAME, SAME, SAME, OTHER, VERDICT_ORPHANED}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct item item = {.record = {.source = SOURCE_KAFKA, .topic = bytes_text("t"), .partition = 1, .offset = 7},
                            .eval = {.rule = &key_rule, .biz_no = bytes_text("A")}, .parked = {.id = 3}};
        item.known = (struct known_row){
            .present = true, .status = RECORD_PROCESSING, .outcome = OUTCOME_PARKED,
            .fingerprint_version = (uint16_t)(1 + rows[i].version), .biz_no = bytes_text(rows[i].biz_no ? "B" : "A"),
            .source = SOURCE_KAFKA, .topic = bytes_text("t"), .partition = 1, .offset = 7};
        item.known.params_hash[0] = (uint8_t)rows[i].fingerprint;
        item.known.identity_hash[0] = (uint8_t)rows[i].identity;
        struct verdict verdict = decide_key(&item, false);
        if (verdict.kind != rows[i].kind || verdict.write != (i == 0 ? WRITE_RETRY : WRITE_NONE))
            fail_msg("%s: kind %d write %d", rows[i].name, verdict.kind, verdict.write);
    }
}

static void a_replay_is_never_the_same_origin(void **state)
{
    struct item item = {.record = {.source = SOURCE_REPLAY, .topic = bytes_text("t"), .partition = 1, .offset = 7},
                        .eval = {.rule = &key_rule, .biz_no = bytes_text("A")}};
    (void)state;
    item.known = (struct known_row){.present = true, .status = RECORD_CLOSED, .source = SOURCE_REPLAY,
                                    .topic = bytes_text("t"), .partition = 1, .offset = 7};
    assert_int_equal(decide_key(&item, false).kind, VERDICT_BUSINESS);
}

/* ---- part B ------------------------------------------------------------------------------------------------------ */

static const struct bytes from[] = {{(const uint8_t *)"PENDING", 7}}, already[] = {{(const uint8_t *)"SHIPPED", 7}},
                          early[] = {{(const uint8_t *)"CREATED", 7}}, conflict[] = {{(const uint8_t *)"CLOSED", 6}};
static const struct column text = {.kind = COLUMN_TEXT, .utf8mb4 = true}, money = {.kind = COLUMN_DECIMAL, .scale = 2};
static const struct column_value where[] = {{{(const uint8_t *)"no", 2}, 0, {.kind = COLUMN_TEXT}}};
static const struct column_value identity[] = {{{(const uint8_t *)"txn", 3}, 1, {.kind = COLUMN_TEXT}}};
static const struct column_value require[] = {{{(const uint8_t *)"amount", 6}, 2, {.kind = COLUMN_DECIMAL,
.scale = 2}}};
static const struct field fields[] = {{.type = FIELD_DECIMAL, .scale = 2}};
static const struct expr exprs[] = {{.source = EXPR_POINTER}, {.source = EXPR_POINTER},
{.source = EXPR_FIELD, .field = 0}};

static struct transition transitions[2];
static struct rule rule = {.exprs = exprs, .expr_count = 3, .fields = fields, .field_count = 1, .identity = identity,
                           .identity_count = 1, .transitions = transitions, .transition_count = 1};

static const struct value values[] = {{.tag = VALUE_TEXT, .text = {(const uint8_t *)"A", 1}},
                                      {.tag = VALUE_TEXT, .text = {(const uint8_t *)"T1", 2}},
                                      {.tag = VALUE_DECIMAL, .text = {(const uint8_t *)"19.99", 5}}};

static void set_up(uint32_t count)
{
    for (int i = 0; i < 2; i++)
        transitions[i] = (struct transition){
            .column = bytes_text("status"), .column_type = text, .where = where, .where_count = 1, .from = from,
            .from_count = 1, .to = bytes_text("PAID"), .already = already, .already_count = 1, .early = early,
            .early_count = 1, .conflict = conflict, .conflict_count = 1, .require = require, .require_count = 1};
    (void)money;
    rule.transition_count = count;
}

/* status, no, txn, amount; NULL txn or status by a null pointer, "?" = missing row, "!" = locked. */
static struct row_view row_of(struct stored *columns, const char *status, const char *txn, const char *amount,
bool first)
{
    if (status && status[0] == '?')
        return (struct row_view){0};
    uint32_t at = 0;
    columns[at++] = (struct stored){bytes_text(status), status == NULL};
    columns[at++] = (struct stored){bytes_text("A"), false};
    if (first)
        columns[at++] = (struct stored){bytes_text(txn), txn == NULL};
    columns[at++] = (struct stored){bytes_text(amount), amount == NULL};
    return (struct row_view){.found = true, .locked = status && status[0] == '!', .columns = columns};
}

static void every_row_of_part_b(void **state)
{
    static const struct {
        const char *name, *status, *txn, *amount;
        enum verdict_kind kind;
        enum outcome outcome;
        enum cause cause;
    } rows[] = {
        {"B1", "?", NULL, NULL, VERDICT_DONE, OUTCOME_NOT_FOUND, CAUSE_ROW_MISSING},
        {"B2", "PENDING", NULL, "19.99", VERDICT_APPLY, OUTCOME_FIRST, 0},
        {"B2, identity is not compared in from", "PENDING", "T9", "19.99", VERDICT_APPLY, OUTCOME_FIRST, 0},
        {"B3", "PENDING", NULL, "19.98", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_AMOUNT_MISMATCH},
        {"B3, NULL fails", "PENDING", NULL, NULL, VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_AMOUNT_MISMATCH},
        {"B4, to", "PAID", "T1", "0.00", VERDICT_DONE, OUTCOME_ALREADY_APPLIED, 0},
        {"B4, already", "SHIPPED", "T1", "0.00", VERDICT_DONE, OUTCOME_ALREADY_APPLIED, 0},
        {"B5", "PAID", "T2", "19.99", VERDICT_DONE, OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_MISMATCH},
        {"B5, case", "PAID", "t1", "19.99", VERDICT_DONE, OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_MISMATCH},
        {"B6", "PAID", NULL, "19.99", VERDICT_DONE, OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_UNKNOWN},
        {"B8", "CREATED", NULL, "19.99", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_EARLY},
        {"B9", "CLOSED", NULL, "19.99", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_STATE},
        {"B10", "pending", NULL, "19.99", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_UNKNOWN_STATE},
        {"B10, NULL", NULL, NULL, "19.99", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_UNKNOWN_STATE},
        {"B11", "!", NULL, NULL, VERDICT_WAIT, 0, CAUSE_LOCKED},
    };
    (void)state;
    set_up(1);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct stored columns[ROW_COLUMNS_MAX];
        struct row_view row = row_of(columns, rows[i].status, rows[i].txn, rows[i].amount, true);
        struct verdict verdict = decide_business(&rule, values, &row);
        if (verdict.kind != rows[i].kind || verdict.outcome != rows[i].outcome || verdict.cause != rows[i].cause)
            fail_msg("%s: kind %d outcome %s cause %s", rows[i].name, verdict.kind, outcome_name(verdict.outcome),
                     cause_name(verdict.cause));
    }
}

/* B1 and B8 of a rule that lets its records wait; the rest of the table is the same for it. */
static void a_missing_or_early_row_waits(void **state)
{
    struct stored columns[ROW_COLUMNS_MAX];
    (void)state;
    set_up(1);
    rule.park.for_ms = 1;
    struct row_view row = row_of(columns, "?", NULL, NULL, true);
    struct verdict verdict = decide_business(&rule, values, &row);
    assert_int_equal(verdict.outcome, OUTCOME_PARKED);
    assert_int_equal(verdict.cause, CAUSE_NOT_FOUND);
    row = row_of(columns, "CREATED", NULL, "19.99", true);
    verdict = decide_business(&rule, values, &row);
    assert_int_equal(verdict.outcome, OUTCOME_PARKED);
    assert_int_equal(verdict.cause, CAUSE_STATE);
    row = row_of(columns, "CLOSED", NULL, "19.99", true);
    assert_int_equal(decide_business(&rule, values, &row).outcome, OUTCOME_STATE_CONFLICT);
    rule.park.for_ms = 0;
}

static void several_transitions_are_one_verdict(void **state)
{
    static const struct {
        const char *first, *txn, *second;
        enum verdict_kind kind;
        enum outcome outcome;
        enum cause cause;
    } rows[] = {
        {"PENDING", NULL, "PENDING", VERDICT_APPLY, OUTCOME_FIRST, 0},
        {"PAID", "T1", "PAID", VERDICT_DONE, OUTCOME_ALREADY_APPLIED, 0},
        {"PAID", "T2", "PAID", VERDICT_DONE, OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_MISMATCH},
        {"PENDING", NULL, "CLOSED", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_STATE},
        {"?", NULL, "CLOSED", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_STATE},
        {"!", NULL, "?", VERDICT_WAIT, 0, CAUSE_LOCKED},
        {"?", NULL, "CREATED", VERDICT_DONE, OUTCOME_NOT_FOUND, CAUSE_ROW_MISSING},
        {"PAID", "T2", "CREATED", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_EARLY},
        {"PAID", "T2", "PENDING", VERDICT_DONE, OUTCOME_APPLIED_BY_OTHER, CAUSE_IDENTITY_MISMATCH},
        {"PAID", "T1", "PENDING", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_HALF_APPLIED},
        {"PENDING", NULL, "PAID", VERDICT_DONE, OUTCOME_STATE_CONFLICT, CAUSE_HALF_APPLIED},
    };
    (void)state;
    set_up(2);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct stored a[ROW_COLUMNS_MAX], b[ROW_COLUMNS_MAX];
        struct row_view views[2] = {row_of(a, rows[i].first, rows[i].txn, "19.99", true),
                                    row_of(b, rows[i].second, NULL, "19.99", false)};
        struct verdict verdict = decide_business(&rule, values, views);
        if (verdict.kind != rows[i].kind || verdict.outcome != rows[i].outcome || verdict.cause != rows[i].cause)
            fail_msg("row %zu: kind %d outcome %s cause %s", i, verdict.kind, outcome_name(verdict.outcome),
                     cause_name(verdict.cause));
    }
}

static void a_row_is_written_in_the_order_of_the_contract(void **state)
{
    struct stored columns[ROW_COLUMNS_MAX];
    struct row_layout layout;
    char json[256];
    struct buf buf;
    (void)state;
    set_up(1);
    struct row_view row = row_of(columns, "PAID", NULL, "10.00", true);
    row_layout(&rule, 0, &layout);
    buf_init(&buf, json, sizeof json);
    row_write_json(&layout, &row, &buf);
    check_text(buf_view(&buf), "{\"status\":\"PAID\",\"no\":\"A\",\"txn\":null,\"amount\":\"10.00\"}", "row_state");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_part_k),
        cmocka_unit_test(a_parked_record_judges_its_own_row),
        cmocka_unit_test(a_replay_is_never_the_same_origin),
        cmocka_unit_test(every_row_of_part_b),
        cmocka_unit_test(a_missing_or_early_row_waits),
        cmocka_unit_test(several_transitions_are_one_verdict),
        cmocka_unit_test(a_row_is_written_in_the_order_of_the_contract),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
