/* SPDX-License-Identifier: MIT */
/* fuzz_evaluate: bytes -> a record -> the real parser and evaluation. The first byte says how many of the following are
 * headers in their stored form; the rest is the body. Any answer is right as long as it is the same twice. */
#include "idem/adapter/config_load.h"
#include "idem/adapter/json.h"
#include "record_rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct config *config;
static struct json_parser *json;

static void set_up(void)
{
    static struct diagnostic list[4];
    struct diagnostics mistakes = {.list = list, .size = 4};
    if (!config_text_load(bytes_text(record_rules), "rules", &config, &mistakes))
        abort();
    json = json_parser_create(1 << 20);
    if (!json)
        abort();
}

static struct evaluation run(const struct record *record, void *memory, size_t size)
{
    struct parser_port parser = json_parser_port(json);
    struct parsed parsed = {.cause = CAUSE_BODY};
    struct evaluation eval;
    struct arena arena;
    char block[1 << 16];
    struct buf buf;
    arena_init(&arena, memory, size);
    if (!parser.parse(parser.self, record->value, &parsed))
        abort();
    evaluate(&config->topics[0], record, &parsed, &arena, &eval);
    if (eval.fault || eval.outcome != OUTCOME_NONE)
        return eval;
    if (eval.key.len == 0 || eval.key.len > KEY_MAX || eval.biz_no.len == 0 || eval.biz_no.len > BIZ_NO_MAX)
        abort();
    buf_init(&buf, block, sizeof block);
    template_write(&eval.rule->respond, eval.rule, eval.values, BYTES_LIT("2026-12-01 03:00:00"), &buf);
    return eval;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t first_memory[1 << 20], second_memory[1 << 20];
    if (!config)
        set_up();
    if (size == 0)
        return 0;
    size_t header_len = data[0] < size ? data[0] : size - 1;
    struct record record = {.topic = BYTES_LIT("t"), .timestamp_ms = -1, .has_value = true, .has_key = true,
                            .key = bytes_of(data, header_len), .headers = bytes_of(data + 1, header_len),
                            .value = bytes_of(data + 1 + header_len, size - 1 - header_len)};
    struct evaluation a = run(&record, first_memory, sizeof first_memory);
    struct evaluation b = run(&record, second_memory, sizeof second_memory);
    if (a.outcome != b.outcome || a.cause != b.cause || a.fault != b.fault || !bytes_equal(a.key, b.key) ||
        memcmp(a.params_hash, b.params_hash, sizeof a.params_hash) != 0)
        abort();
    run(&record, first_memory, 700);         /* a small arena is a fault, never a crash */
    return 0;
}
