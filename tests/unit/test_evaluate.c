/* SPDX-License-Identifier: MIT */
/* test_evaluate: records through the real parser and the rules: key, number, outcome, cause, values. */
#include "table.h"

#include "idem/adapter/config_load.h"
#include "idem/adapter/json.h"
#include "record_rules.h"

#include <stdlib.h>

static struct config *config;
static struct json_parser *json;
static uint8_t memory[1 << 20];
static struct arena arena;

static int load_rules(void **state)
{
    static struct diagnostic list[8];
    struct diagnostics mistakes = {.list = list, .size = 8};
    (void)state;
    if (!config_text_load(bytes_text(record_rules), "rules", &config, &mistakes)) {
        print_error("%u: %s: %s\n", list[0].line, list[0].path, list[0].message);
        return -1;
    }
    json = json_parser_create(1 << 20);
    return json ? 0 : -1;
}

static int free_rules(void **state)
{
    (void)state;
    json_parser_destroy(json);
    config_free(config);
    return 0;
}

static void put_header(struct buf *buf, const char *name, struct bytes value)
{
    uint32_t name_len = (uint32_t)strlen(name), len = (uint32_t)value.len;
    const uint8_t lengths[8] = {0, 0, 0, (uint8_t)name_len, 0, 0, (uint8_t)(len >> 8), (uint8_t)len};
    buf_put(buf, lengths, 4);
    buf_text(buf, name);
    buf_put(buf, lengths + 4, 4);
    buf_bytes(buf, value);
}

static struct evaluation run(struct record *record)
{
    struct parser_port parser = json_parser_port(json);
    struct parsed parsed = {.cause = CAUSE_BODY};
    struct evaluation eval;
    arena_init(&arena, memory, sizeof memory);
    record->topic = bytes_text("t");
    if (record->has_value)
        assert_true(parser.parse(parser.self, record->value, &parsed));
    evaluate(&config->topics[0], record, &parsed, &arena, &eval);
    assert_false(eval.fault);
    return eval;
}

static struct evaluation run_body(const char *body)
{
    struct record record = {.has_value = true, .value = bytes_text(body), .timestamp_ms = -1};
    return run(&record);
}

#define PAID "{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"10\",\"txn\":\"T1\"%s}"

static void bodies_have_their_outcome(void **state)
{
    static const struct {
        const char *body;
        enum cause cause;
    } rows[] = {
        {"", CAUSE_BODY}, {"x", CAUSE_BODY}, {"[]", CAUSE_BODY}, {"\"a\"", CAUSE_BODY}, {"{\"a\":1}{", CAUSE_BODY},
        {"{\"a\":\"\xff\"}", CAUSE_UTF8}, {"{\"a\":\"\\ud800\"}", CAUSE_UTF8},
        {"{\"a\":1,\"a\":1}", CAUSE_DUPLICATE_NAME},
        {"{\"x\":[{\"a\":1,\"\\u0061\":2}]}", CAUSE_DUPLICATE_NAME}, {"{}", CAUSE_UNMATCHED},
        {"{\"status\":\"success\"}", CAUSE_UNMATCHED}, {"{\"status\":1.0}", CAUSE_UNMATCHED},
        {"{\"status\":\"SUCCESS\",\"kind\":\"test\"}", CAUSE_UNMATCHED},
        {"{\"status\":\"SUCCESS\"}", CAUSE_KEY_MISSING},
        {"{\"status\":\"SUCCESS\",\"order_no\":null}", CAUSE_KEY_MISSING},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"\"}", CAUSE_FIELD_MISSING},
        {"{\"status\":\"SUCCESS\",\"order_no\":[1]}", CAUSE_FIELD_TYPE},
        {"{\"status\":\"SUCCESS\",\"order_no\":true}", CAUSE_FIELD_TYPE},
        {"{\"status\":\"SUCCESS\",\"order_no\":1.5}", CAUSE_FIELD_TYPE},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"a\\u0000b\"}", CAUSE_KEY_MALFORMED},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\"}", CAUSE_FIELD_MISSING},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"x\",\"txn\":\"T\"}", CAUSE_FIELD_TYPE},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":1.001,\"txn\":\"T\"}", CAUSE_SCALE},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":1e400,\"txn\":\"T\"}", CAUSE_TOO_LONG},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"1\"}", CAUSE_FIELD_MISSING},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"1\",\"txn\":\"\"}", CAUSE_FIELD_MISSING},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"1\",\"txn\":\"T\",\"count\":\"01\"}",
        CAUSE_FIELD_TYPE},
        {"{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"1\",\"txn\":\"T\",\"at\":\"noon\"}",
        CAUSE_FIELD_TYPE},
        {"{\"status\":\"SUCCESS\",\"items\":[]}", CAUSE_BATCH},
        {"{\"status\":\"SUCCESS\",\"items\":[1,2]}", CAUSE_BATCH},
        {"{\"status\":\"SUCCESS\",\"order_no\":"
         "\"12345678901234567890123456789012345678901234567890123456789012345\"}", CAUSE_TOO_LONG},
        {"{\"type\":\"REFUND\",\"refund_no\":\"R\",\"fen\":100}", CAUSE_FIELD_MISSING},
        {"{\"type\":\"REFUND\",\"refund_no\":\"R\",\"shop\":\"S\",\"fen\":100}", CAUSE_FIELD_MISSING},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct evaluation eval = run_body(rows[i].body);
        if (eval.outcome != OUTCOME_INVALID || eval.cause != rows[i].cause)
            fail_msg("%s: %s %s", rows[i].body, outcome_name(eval.outcome), cause_name(eval.cause));
    }
}

static void a_tombstone_is_ignored_and_a_large_body_is_too_large(void **state)
{
    struct record record = {.timestamp_ms = -1};
    (void)state;
    struct evaluation eval = run(&record);
    assert_int_equal(eval.outcome, OUTCOME_IGNORED);
    assert_int_equal(eval.cause, CAUSE_TOMBSTONE);
    char *large = calloc(1, 70000);
    memset(large, ' ', 69999);
    record = (struct record){.has_value = true, .value = bytes_text(large), .timestamp_ms = -1};
    eval = run(&record);
    assert_int_equal(eval.cause, CAUSE_TOO_LARGE);
    free(large);
}

static void nesting_has_its_limit(void **state)
{
    (void)state;
    for (int depth = 60; depth <= 70; depth++) {
        char body[400];
        int at = snprintf(body, sizeof body, "{\"x\":");
        for (int i = 1; i < depth; i++)
            body[at++] = '[';
        for (int i = 1; i < depth; i++)
            body[at++] = ']';
        snprintf(body + at, sizeof body - (size_t)at, "}");
        assert_int_equal(run_body(body).cause, depth <= 64 ? CAUSE_UNMATCHED : CAUSE_TOO_DEEP);
    }
}

static void keys_come_from_the_first_source_that_is_there(void **state)
{
    static const struct {
        const char *first, *second, *key;
        enum cause cause;
    } rows[] = {
        {"supplied-key", NULL, "supplied-key", CAUSE_NONE},
        {"supplied-key", "supplied-key", "supplied-key", CAUSE_NONE},
        {"supplied-key", "another-key", NULL, CAUSE_KEY_CONFLICT}, {"short", NULL, NULL, CAUSE_KEY_MALFORMED},
        {"", NULL, NULL, CAUSE_KEY_MALFORMED}, {"with blank in it", NULL, NULL, CAUSE_KEY_MALFORMED},
        {NULL, NULL, "payment:O1:pay", CAUSE_NONE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char block[512], body[256];
        struct buf headers;
        buf_init(&headers, block, sizeof block);
        buf_put(&headers, "\0\0\0\1", 4);
        if (rows[i].first)
            put_header(&headers, "idempotency-KEY", bytes_text(rows[i].first));
        if (rows[i].second)
            put_header(&headers, "Idempotency-Key", bytes_text(rows[i].second));
        snprintf(body, sizeof body, PAID, "");
        struct record record = {.has_value = true, .value = bytes_text(body), .timestamp_ms = -1,
                                .headers = buf_view(&headers)};
        struct evaluation eval = run(&record);
        if (eval.cause != rows[i].cause)
            fail_msg("row %zu: %s", i, cause_name(eval.cause));
        if (rows[i].key)
            check_text(eval.key, rows[i].key, "key");
    }
}

static void retries_have_one_fingerprint_however_they_are_written(void **state)
{
    static const char *const bodies[] = {
        "{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"10\",\"txn\":\"T1\"}",
        "{\"txn\":\"\\u00541\",\"amount\":10.00,\"order_no\":\"O1\",\"status\":1,\"currency\":\"CNY\"}",
        "{\"status\":true,\"order_no\":\"O1\",\"amount\":1e1,\"txn\":\"T1\",\"currency\":null,\"more\":[1,{\"a\":2}]}"};
    uint8_t first[PARAMS_HASH_LEN];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        struct evaluation eval = run_body(bodies[i]);
        assert_int_equal(eval.outcome, OUTCOME_NONE);
        if (i == 0)
            memcpy(first, eval.params_hash, sizeof first);
        assert_memory_equal(eval.params_hash, first, sizeof first);
    }
    struct evaluation other =
        run_body("{\"status\":\"SUCCESS\",\"order_no\":\"O1\",\"amount\":\"10.01\",\"txn\":\"T1\"}");
    assert_memory_not_equal(other.params_hash, first, sizeof first);
}

static void minor_units_follow_their_currency(void **state)
{
    static const struct {
        const char *body, *amount;
    } rows[] = {
        {"{\"type\":\"REFUND\",\"refund_no\":\"R1\",\"shop\":\"S/1\",\"fen\":1999,\"cur\":\"CNY\"}", "19.99"},
        {"{\"type\":\"REFUND\",\"refund_no\":\"R1\",\"shop\":\"S/1\",\"fen\":\"1999\",\"cur\":\"JPY\"}", "1999.00"},
        {"{\"type\":\"REFUND\",\"refund_no\":\"R1\",\"shop\":\"S/1\",\"fen\":1999.0,\"cur\":\"EUR\"}", "19.99"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct evaluation eval = run_body(rows[i].body);
        assert_int_equal(eval.outcome, OUTCOME_NONE);
        check_text(eval.key, "S%2F1:refund:R1:refund", "key");
        check_text(eval.values[eval.rule->inserts[0].columns[1].expr].text, rows[i].amount, "amount");
    }
}

static void answers_keep_tokens_and_types(void **state)
{
    char body[512], json_text[512];
    struct buf buf;
    (void)state;
    snprintf(body, sizeof body, PAID, ", \"raw\": {\"b\" : [1.50, \"\\u0041\", null]}, \"note\": \"caf\\u00e9\"");
    struct evaluation eval = run_body(body);
    assert_int_equal(eval.outcome, OUTCOME_NONE);
    buf_init(&buf, json_text, sizeof json_text);
    template_write(&eval.rule->respond, eval.rule, eval.values, bytes_text("2026-12-01 03:00:00"), &buf);
    check_text(buf_view(&buf),
               "{\"code\":\"OK\",\"no\":\"O1\",\"amount\":\"10.00\",\"count\":1,"
               "\"raw\":{\"b\":[1.50,\"\\u0041\",null]},"
               "\"note\":\"caf\\u00e9\",\"when\":\"2026-12-01 03:00:00\"}",
               "answer");
}

static void a_small_arena_is_a_fault_and_never_a_wrong_answer(void **state)
{
    struct parser_port parser = json_parser_port(json);
    char body[512];
    (void)state;
    snprintf(body, sizeof body, PAID, ", \"raw\": [1,2,3]");
    struct record record = {.has_value = true, .value = bytes_text(body), .timestamp_ms = -1, .topic = bytes_text("t")};
    struct evaluation whole = run(&record);
    for (size_t size = 0; size < 4096; size += 16) {
        struct parsed parsed;
        struct evaluation eval;
        struct arena small;
        arena_init(&small, memory, size);
        assert_true(parser.parse(parser.self, record.value, &parsed));
        evaluate(&config->topics[0], &record, &parsed, &small, &eval);
        if (!eval.fault) {
            assert_int_equal(eval.outcome, OUTCOME_NONE);
            assert_memory_equal(eval.params_hash, whole.params_hash, PARAMS_HASH_LEN);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_have_their_outcome),
        cmocka_unit_test(a_tombstone_is_ignored_and_a_large_body_is_too_large),
        cmocka_unit_test(nesting_has_its_limit),
        cmocka_unit_test(keys_come_from_the_first_source_that_is_there),
        cmocka_unit_test(retries_have_one_fingerprint_however_they_are_written),
        cmocka_unit_test(minor_units_follow_their_currency),
        cmocka_unit_test(answers_keep_tokens_and_types),
        cmocka_unit_test(a_small_arena_is_a_fault_and_never_a_wrong_answer),
    };
    return cmocka_run_group_tests(tests, load_rules, free_rules);
}
