/* SPDX-License-Identifier: MIT */
/* again: see again.h. Everything that an evaluation points to is copied: the next record uses the parser again. */
#include "again.h"

#include "idem/adapter/json.h"
#include "idem/adapter/mysql_schema.h"
#include "idem/core/evaluate.h"

#include <stdlib.h>

enum { MEMORY = 64 << 20 };

struct again {
    struct config *config;
    uint32_t database;
    struct json_parser *json;
    struct arena arena;
    uint32_t errors;
};

static void finding(void *context, enum severity severity, const char *code, const char *path, const char *message)
{
    struct again *again = context;
    if (severity != SEVERITY_ERROR)
        return;
    again->errors++;
    fprintf(stderr, "idemctl: %s %s: %s\n", code, path, message);
}

static int read_schema(const struct ctl *ctl, struct again *again)
{
    int code = CTL_GOOD;
    struct err err = {0};
    struct conn *conn = ctl_connect(ctl, again->database, true, &code);
    if (!conn)
        return code;
    if (schema_read(conn, again->config, again->database, false, finding, again, &err))
        code = ctl_fail_database(ctl, again->database, &err);
    conn_destroy(conn);
    if (code == CTL_GOOD && again->errors)
        code = ctl_fail(CTL_CONFIG, "the rules do not fit the schema: see idemctl check");
    return code;
}

static uint32_t largest_body(const struct config *config)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < config->topic_count; i++)
        if (config->topics[i].max_bytes > largest)
            largest = config->topics[i].max_bytes;
    return largest;
}

struct again *again_open(const struct ctl *ctl, uint32_t database, int *ret_code)
{
    struct again *again = calloc(1, sizeof *again);
    void *block = malloc(MEMORY);
    if (again) {
        again->config = ctl->config;
        again->database = database;
        again->json = json_parser_create(largest_body(ctl->config));
        arena_init(&again->arena, block, block ? MEMORY : 0);
    }
    if (!again || !block || !again->json)
        *ret_code = ctl_fail(CTL_INTERNAL, "out of memory");
    else
        *ret_code = read_schema(ctl, again);
    if (*ret_code == CTL_GOOD)
        return again;
    if (again && again->arena.base != block)
        free(block);
    again_close(again);
    return NULL;
}

void again_close(struct again *again)
{
    if (!again)
        return;
    json_parser_destroy(again->json);
    free(again->arena.base);
    free(again);
}

void again_reset(struct again *again)
{
    arena_reset(&again->arena, 0);
    again->arena.exhausted = false;
}

struct arena *again_arena(struct again *again)
{
    return &again->arena;
}

static const struct topic *topic_of(const struct again *again, struct bytes name)
{
    for (uint32_t i = 0; i < again->config->topic_count; i++)
        if (again->config->topics[i].database == again->database && bytes_equal(again->config->topics[i].name, name))
            return &again->config->topics[i];
    return NULL;
}

static void own_evaluation(struct arena *arena, struct evaluation *eval)
{
    eval->key = arena_copy(arena, eval->key);
    eval->biz_no = arena_copy(arena, eval->biz_no);
    eval->request_id = arena_copy(arena, eval->request_id);
    if (!eval->rule || !eval->values)
        return;
    struct value *values = arena_alloc(arena, eval->rule->expr_count * sizeof *values);
    for (uint32_t i = 0; i < eval->rule->expr_count && values; i++) {
        values[i] = eval->values[i];
        values[i].text = arena_copy(arena, values[i].text);
        values[i].token = arena_copy(arena, values[i].token);
    }
    eval->values = values;
}

struct item *again_judge(struct again *again, const struct record *record, bool *ret_known)
{
    struct parsed parsed = {.cause = CAUSE_TOO_LARGE};
    struct parser_port parser = json_parser_port(again->json);
    const struct topic *topic = topic_of(again, record->topic);
    *ret_known = topic != NULL;
    struct item *item = topic ? arena_calloc(&again->arena, 1, sizeof *item) : NULL;
    if (!item)
        return NULL;
    item->topic = topic;
    item->record = *record;
    item->record.topic = topic->name;
    item->record.key = arena_copy(&again->arena, record->key);
    item->record.value = arena_copy(&again->arena, record->value);
    item->record.headers = arena_copy(&again->arena, record->headers);
    item->partition = record->partition;
    if (record->has_value && record->value.len <= topic->max_bytes &&
        !parser.parse(parser.self, item->record.value, &parsed))
        return NULL;
    evaluate(topic, &item->record, &parsed, &again->arena, &item->eval);
    own_evaluation(&again->arena, &item->eval);
    return item->eval.fault || again->arena.exhausted ? NULL : item;
}
