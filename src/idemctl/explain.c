/* SPDX-License-Identifier: MIT */
/* explain: idemctl explain. Evaluates one record as the daemon would, runs its transaction and rolls it back: what
 * would happen now, with the SQL. Waits for no lock and changes nothing. */
#include "print.h"

#include "idem/app/txn.h"
#include "idem/base/sha256.h"

#include "idem/adapter/clock.h"
#include "idem/adapter/json.h"
#include "idem/adapter/kafka_fetch.h"
#include "idem/adapter/mysql_migrate.h"
#include "idem/adapter/mysql_schema.h"
#include "idem/adapter/mysql_store.h"

#include <stdlib.h>

enum { ARENA_SIZE = 64 << 20, STATEMENTS_MAX = 64, HEADERS_MAX = 64, FETCH_MS = 10000 };

struct explain {
    struct ctl *ctl;
    const struct topic *topic;
    struct arena arena;
    struct item item;
    struct txn txn;
    struct bytes statements[STATEMENTS_MAX];
    uint32_t statement_count;
    uint32_t errors;
};

/* ---- the record -------------------------------------------------------------------------------------------------- */

static void put_u32(struct buf *buf, uint32_t number)
{
    uint8_t at[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number};
    buf_put(buf, at, sizeof at);
}

static void put_header(struct buf *buf, struct bytes name, struct bytes value)
{
    put_u32(buf, (uint32_t)name.len);
    buf_bytes(buf, name);
    put_u32(buf, (uint32_t)value.len);
    buf_bytes(buf, value);
}

/* The name of the header that supplies keys: the first of the topic's rules, or the usual one. */
static struct bytes key_header(const struct topic *topic)
{
    for (uint32_t i = 0; i < topic->rule_count; i++)
        for (uint32_t k = 0; k < topic->rules[i].key_count; k++) {
            const struct expr *expr = &topic->rules[i].exprs[topic->rules[i].keys[k]];
            if (expr->source == EXPR_HEADER)
                return expr->header;
        }
    return BYTES_LIT("Idempotency-Key");
}

/* Headers given by hand: --key and --header NAME=VALUE, in the stored form. */
static bool given_headers(struct explain *explain, struct bytes *ret)
{
    struct buf buf;
    size_t size = 1 << 20;
    void *block = arena_alloc(&explain->arena, size);
    uint32_t count = 0;
    if (!block)
        return false;
    buf_init(&buf, block, size);
    put_u32(&buf, 0);
    const char *key = ctl_option(explain->ctl, "--key");
    if (key) {
        put_header(&buf, key_header(explain->topic), bytes_text(key));
        count++;
    }
    for (const char *header; count < HEADERS_MAX && (header = ctl_option(explain->ctl, "--header")); count++) {
        const char *value = strchr(header, '=');
        if (!value)
            return false;
        put_header(&buf, bytes_of(header, (size_t)(value - header)), bytes_text(value + 1));
    }
    *ret = count ? buf_view(&buf) : (struct bytes){0};
    return !buf.overflow;
}

static int read_file(struct explain *explain, const char *path)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return ctl_fail(CTL_USAGE, "cannot read %s", path);
    size_t size = 16 << 20;
    uint8_t *block = arena_alloc(&explain->arena, size);
    size_t len = block ? fread(block, 1, size, file) : 0;
    fclose(file);
    struct record *record = &explain->item.record;
    record->has_value = true;
    record->value = bytes_of(block, len);
    record->partition = -1;
    record->offset = -1;
    record->timestamp_ms = -1;
    return CTL_GOOD;
}

static int read_kafka(struct explain *explain, const char *partition_text, const char *offset_text)
{
    uint64_t partition, offset;
    bool found = false;
    struct err err = {0};
    if (!partition_text || !offset_text || !ctl_number(partition_text, INT32_MAX, &partition) ||
        !ctl_number(offset_text, INT64_MAX, &offset))
        return CTL_USAGE;
    if (kafka_fetch_one(explain->ctl->config, explain->topic->name, (int32_t)partition, (int64_t)offset, FETCH_MS,
                        &explain->arena, &explain->item.record, &found, &err))
        return ctl_fail_err(&err);
    return found ? CTL_GOOD : ctl_fail(CTL_NOT_FOUND, "there is no record at %s/%s", partition_text, offset_text);
}

static int read_record(struct explain *explain)
{
    struct bytes headers = {0};
    const char *file = ctl_option(explain->ctl, "--file");
    const char *partition = ctl_option(explain->ctl, "--partition"), *offset = ctl_option(explain->ctl, "--offset");
    if (!given_headers(explain, &headers) || (file && partition) || !ctl_arguments(explain->ctl, 0))
        return CTL_USAGE;
    int code = file ? read_file(explain, file) : read_kafka(explain, partition, offset);
    if (code == CTL_GOOD && headers.len)
        explain->item.record.headers = headers;
    explain->item.record.topic = explain->topic->name;
    explain->item.record.source = SOURCE_REPLAY;     /* never the same origin as what is stored */
    return code;
}

/* ---- the transaction --------------------------------------------------------------------------------------------- */

static void trace(void *context, struct bytes sql)
{
    struct explain *explain = context;
    if (explain->statement_count < STATEMENTS_MAX)
        explain->statements[explain->statement_count++] = arena_copy(&explain->arena, sql);
}

static void finding(void *context, enum severity severity, const char *code, const char *path, const char *message)
{
    struct explain *explain = context;
    if (severity != SEVERITY_ERROR)
        return;
    explain->errors++;
    fprintf(stderr, "idemctl: %s %s: %s\n", code, path, message);
}

static int run_transaction(struct explain *explain, struct mysql_store *store)
{
    struct err err = {0};
    bool newer;
    struct conn *conn = mysql_store_conn(store);
    const struct store_port *port = mysql_store_port(store);
    struct conn_options options = {.lock_wait_s = 1};
    conn_options_set(conn, &options);
    if (port->tx->open(port->self, &err) || migrate_verify(conn, &newer, &err))
        return ctl_fail_err(&err);
    if (!txn_init(&explain->txn, port, &clock_env, 1, 32 << 20))
        return ctl_fail(CTL_INTERNAL, "out of memory");
    conn_trace_set(conn, trace, explain);
    enum err_class class = txn_explain(&explain->txn, &explain->item, &err);
    conn_trace_set(conn, NULL, NULL);
    return class ? ctl_fail_err(&err) : CTL_GOOD;
}

/* Columns have to be known before forms are judged: the schema is read first, then the record evaluated. */
static bool evaluate_record(struct explain *explain)
{
    struct parsed parsed = {.cause = CAUSE_BODY};
    struct record *record = &explain->item.record;
    struct json_parser *json = json_parser_create(explain->topic->max_bytes);
    if (!json)
        return false;
    struct parser_port parser = json_parser_port(json);
    bool good = true;
    if (record->has_value && record->value.len <= explain->topic->max_bytes)
        good = parser.parse(parser.self, record->value, &parsed);
    evaluate(explain->topic, record, &parsed, &explain->arena, &explain->item.eval);
    explain->item.topic = explain->topic;
    /* The parser lives on until the process ends: the evaluation's views lie in its memory. */
    return good && !explain->item.eval.fault;
}

/* ---- printing ---------------------------------------------------------------------------------------------------- */

static void member(FILE *to, const char *name, struct bytes text, bool is_null)
{
    fprintf(to, ",\"%s\":", name);
    if (is_null)
        fputs("null", to);
    else
        print_string(text, to);
}

static void hex_member(FILE *to, const char *name, const uint8_t *at, size_t len, bool is_null)
{
    char hex[2 * SHA256_LEN];
    bytes_hex(bytes_of(at, len), hex);
    member(to, name, bytes_of(hex, 2 * len), is_null);
}

static void identity_member(FILE *to, const struct evaluation *eval)
{
    fputs(",\"identity\":{", to);
    for (uint32_t i = 0; eval->rule && eval->values && i < eval->rule->identity_count; i++) {
        const struct value *value = &eval->values[eval->rule->identity[i].expr];
        fputs(i ? "," : "", to);
        print_string(eval->rule->identity[i].column, to);
        fputc(':', to);
        print_string(value->text, to);
    }
    fputc('}', to);
}

static struct bytes row_state(struct explain *explain)
{
    struct row_layout layout;
    struct buf buf;
    const struct item *item = &explain->item;
    if (!item->rows || !item->rows[0].found || item->rows[0].locked)
        return (struct bytes){0};
    row_layout(item->eval.rule, 0, &layout);
    void *block = arena_alloc(&explain->arena, 1 << 20);
    buf_init(&buf, block, block ? 1 << 20 : 0);
    row_write_json(&layout, &item->rows[0], &buf);
    return buf_view(&buf);
}

static void print_json(struct explain *explain)
{
    FILE *to = explain->ctl->out;
    const struct evaluation *eval = &explain->item.eval;
    const struct rule *rule = eval->rule;
    struct bytes none = {0}, state = row_state(explain);
    bool invalid = eval->outcome != OUTCOME_NONE;
    fputs("{\"topic\":", to);
    print_string(explain->topic->name, to);
    member(to, "rule", rule ? rule->name : none, !rule);
    member(to, "biz_type", rule ? rule->biz_type : none, !rule);
    member(to, "key", eval->key, eval->key.len == 0);
    member(to, "biz_no", eval->biz_no, eval->biz_no.len == 0);
    member(to, "action", rule ? rule->action : none, !rule);
    identity_member(to, eval);
    hex_member(to, "identity_hash", eval->identity_hash, IDENTITY_HASH_LEN, invalid);
    fprintf(to, ",\"fingerprint_version\":%u", rule ? rule->fingerprint_version : 0u);
    hex_member(to, "params_hash", eval->params_hash, PARAMS_HASH_LEN, invalid);
    member(to, "outcome", bytes_text(outcome_name(explain->item.outcome)), false);
    member(to, "cause", bytes_text(cause_name(explain->item.cause)), explain->item.cause == CAUSE_NONE);
    fprintf(to, ",\"row_state\":%.*s", state.len ? (int)state.len : 4, state.len ? (const char *)state.at : "null");
    fputs(",\"sql\":[", to);
    for (uint32_t i = 0; i < explain->statement_count; i++) {
        fputs(i ? ",{\"text\":" : "{\"text\":", to);
        print_string(explain->statements[i], to);
        fputs(",\"params\":[]}", to);
    }
    fputs("]}\n", to);
}

static void line(FILE *to, const char *name, struct bytes text)
{
    if (text.len)
        fprintf(to, "%-12s %.*s\n", name, (int)text.len, (const char *)text.at);
}

static void print_text(struct explain *explain)
{
    FILE *to = explain->ctl->out;
    const struct evaluation *eval = &explain->item.eval;
    line(to, "topic", explain->topic->name);
    if (eval->rule) {
        line(to, "rule", eval->rule->name);
        line(to, "biz_type", eval->rule->biz_type);
    }
    line(to, "key", eval->key);
    line(to, "biz_no", eval->biz_no);
    if (eval->rule)
        line(to, "action", eval->rule->action);
    line(to, "row", row_state(explain));
    line(to, "outcome", bytes_text(outcome_name(explain->item.outcome)));
    line(to, "cause", bytes_text(cause_name(explain->item.cause)));
    fputs("\nthe SQL, rolled back:\n", to);
    for (uint32_t i = 0; i < explain->statement_count; i++)
        fprintf(to, "  %.*s;\n", (int)explain->statements[i].len, (const char *)explain->statements[i].at);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int prepare_schema(struct explain *explain)
{
    int code = CTL_GOOD;
    struct err err = {0};
    struct conn *conn = ctl_connect(explain->ctl, explain->ctl->first, true, &code);
    if (!conn)
        return code;
    if (schema_read(conn, explain->ctl->config, explain->ctl->first, false, finding, explain, &err))
        code = ctl_fail_err(&err);
    conn_destroy(conn);
    if (code == CTL_GOOD && explain->errors)
        code = ctl_fail(CTL_CONFIG, "the rules do not fit the schema: see idemctl check");
    return code;
}

static int explain_record(struct explain *explain)
{
    int code = read_record(explain);
    if (code == CTL_GOOD)
        code = prepare_schema(explain);
    if (code != CTL_GOOD)
        return code;
    if (!evaluate_record(explain))
        return ctl_fail(CTL_INTERNAL, "out of memory");
    if (explain->item.eval.outcome != OUTCOME_NONE) {        /* no transaction: it is refused or passed over */
        explain->item.outcome = explain->item.eval.outcome;
        explain->item.cause = explain->item.eval.cause;
    } else {
        struct mysql_store *store = mysql_store_create(&explain->ctl->config->databases[explain->ctl->first],
                                                       explain->ctl->config);
        code = store ? run_transaction(explain, store) : ctl_fail(CTL_INTERNAL, "out of memory");
        mysql_store_destroy(store);
    }
    if (code == CTL_GOOD && explain->ctl->json)
        print_json(explain);
    else if (code == CTL_GOOD)
        print_text(explain);
    return code;
}

int command_explain(struct ctl *ctl)
{
    const char *topic = ctl_option(ctl, "--topic");
    struct explain *explain = calloc(1, sizeof *explain);
    void *block = malloc(ARENA_SIZE);
    int code = CTL_USAGE;
    if (!explain || !block)
        code = ctl_fail(CTL_INTERNAL, "out of memory");
    else if (topic) {
        explain->ctl = ctl;
        arena_init(&explain->arena, block, ARENA_SIZE);
        for (uint32_t i = 0; i < ctl->config->topic_count; i++)
            if (bytes_equal(ctl->config->topics[i].name, bytes_text(topic)))
                explain->topic = &ctl->config->topics[i];
        if (explain->topic) {
            ctl->first = explain->topic->database;
            code = explain_record(explain);
        } else {
            code = ctl_fail(CTL_USAGE, "there is no topic \"%s\" in the file", topic);
        }
        txn_finish(&explain->txn);
    }
    free(explain);
    free(block);
    return code;
}
