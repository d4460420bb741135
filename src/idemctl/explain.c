/* SPDX-License-Identifier: MIT */
/* explain: idemctl explain. Evaluates one record as the daemon would, runs its transaction and rolls it back: what
 * would happen now, with the SQL. Waits for no lock and changes nothing. */
#include "explain.h"

#include "idem/adapter/clock.h"
#include "idem/adapter/json.h"
#include "idem/adapter/mysql_migrate.h"
#include "idem/adapter/mysql_schema.h"
#include "idem/adapter/mysql_store.h"

#include <stdlib.h>

enum { ARENA_SIZE = 64 << 20, SCRATCH_SIZE = 32 << 20 };

/* ---- the transaction --------------------------------------------------------------------------------------------- */

static bool keep(struct explain *explain, struct bytes sql)
{
    if (explain->statement_count == explain->statement_size) {
        uint32_t size = 2 * explain->statement_size + 16;
        struct bytes *larger = realloc(explain->statements, size * sizeof *larger);
        if (!larger)
            return false;
        explain->statements = larger;
        explain->statement_size = size;
    }
    uint8_t *copy = malloc(sql.len + 1);
    if (!copy)
        return false;
    memcpy(copy, sql.at, sql.len);
    explain->statements[explain->statement_count++] = bytes_of(copy, sql.len);
    return true;
}

static void trace(void *context, struct bytes sql)
{
    struct explain *explain = context;
    explain->exhausted = !keep(explain, sql) || explain->exhausted;
}

static void free_statements(struct explain *explain)
{
    for (uint32_t i = 0; i < explain->statement_count; i++)
        free((void *)(uintptr_t)explain->statements[i].at);
    free(explain->statements);
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
    if (port->tx->open(port->self, &err) || port->tx->stands(port->self, explain->item.topic, &err) ||
        migrate_verify(conn, &newer, &err))
        return ctl_fail_err(&err);
    if (!txn_init(&explain->txn, port, &clock_env, 1, SCRATCH_SIZE))
        return ctl_fail(CTL_INTERNAL, "out of memory");
    conn_trace_set(conn, trace, explain);
    enum err_class class = txn_explain(&explain->txn, &explain->item, &err);
    conn_trace_set(conn, NULL, NULL);
    if (class == ERR_NONE && explain->exhausted)
        return ctl_fail(CTL_INTERNAL, "out of memory");
    return class ? ctl_fail_err(&err) : CTL_GOOD;
}

/* Columns have to be known before forms are judged: the schema is read first, then the record evaluated. */
static bool evaluate_record(struct explain *explain)
{
    struct parsed parsed = {.cause = CAUSE_BODY};
    struct record *record = &explain->item.record;
    if (!explain->json)
        explain->json = json_parser_create(explain->topic->max_bytes);
    if (!explain->json)
        return false;
    struct parser_port parser = json_parser_port(explain->json);
    bool good = true;
    if (record->has_value && record->value.len <= explain->topic->max_bytes)
        good = parser.parse(parser.self, record->value, &parsed);
    evaluate(explain->topic, record, &parsed, &explain->arena, &explain->item.eval);
    explain->item.topic = explain->topic;
    explain->item.partition = record->partition;
    return good && !explain->item.eval.fault;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int prepare_schema(struct explain *explain)
{
    int code = CTL_GOOD;
    struct err err = {0};
    struct conn *conn = ctl_connect(explain->ctl, explain->topic->database, true, &code);
    if (!conn)
        return code;
    if (schema_read(conn, explain->ctl->config, explain->topic->database, false, finding, explain, &err))
        code = ctl_fail_err(&err);
    conn_destroy(conn);
    if (code == CTL_GOOD && explain->errors)
        code = ctl_fail(CTL_CONFIG, "the rules do not fit the schema: see idemctl check");
    return code;
}

/* --key names the header of the rule that the record falls under, so it is evaluated once without. */
static int give_key(struct explain *explain)
{
    const struct rule *rule = explain->item.eval.rule;
    if (!explain->key)
        return CTL_GOOD;
    if (!rule) {
        fprintf(stderr, "idemctl: --key: no rule takes this record, so no header is its key\n");
        return CTL_GOOD;
    }
    if (!explain_give_key(explain, rule))
        return ctl_fail(CTL_USAGE, "--key: rule %.*s takes its key from the record, not from a header",
                        (int)rule->name.len, (const char *)rule->name.at);
    if (!evaluate_record(explain))
        return ctl_fail(CTL_INTERNAL, "out of memory");
    if (explain->item.eval.rule != rule)
        return ctl_fail(CTL_USAGE, "--key: with that header another rule than %.*s takes the record: use --header",
                        (int)rule->name.len, (const char *)rule->name.at);
    return CTL_GOOD;
}

static int explain_record(struct explain *explain)
{
    int code = explain_read_record(explain);
    if (code == CTL_GOOD)
        code = prepare_schema(explain);
    if (code == CTL_GOOD && !evaluate_record(explain))
        code = ctl_fail(CTL_INTERNAL, "out of memory");
    if (code == CTL_GOOD)
        code = give_key(explain);
    if (code != CTL_GOOD)
        return code;
    uint32_t database = explain->topic->database;
    if (explain->item.eval.outcome != OUTCOME_NONE) {        /* no transaction: it is refused or passed over */
        explain->item.outcome = explain->item.eval.outcome;
        explain->item.cause = explain->item.eval.cause;
        return explain_print(explain);
    }
    struct mysql_store *store = mysql_store_create(&explain->ctl->config->databases[database], explain->ctl->config);
    code = store ? run_transaction(explain, store) : ctl_fail(CTL_INTERNAL, "out of memory");
    mysql_store_destroy(store);
    return code == CTL_GOOD ? explain_print(explain) : code;
}

static int find_topic(struct explain *explain, const char *name)
{
    const struct ctl *ctl = explain->ctl;
    for (uint32_t i = 0; i < ctl->config->topic_count; i++)
        if (bytes_equal(ctl->config->topics[i].name, bytes_text(name)))
            explain->topic = &ctl->config->topics[i];
    if (!explain->topic)
        return ctl_fail(CTL_USAGE, "there is no topic \"%s\" in the file", name);
    if (explain->topic->database < ctl->first || explain->topic->database >= ctl->first + ctl->count)
        return ctl_fail(CTL_USAGE, "topic \"%s\" is of another database than that of --database", name);
    return CTL_GOOD;
}

int command_explain(struct ctl *ctl)
{
    const char *topic = ctl_option(ctl, "--topic");
    if (!topic)
        return CTL_USAGE;
    struct explain *explain = calloc(1, sizeof *explain);
    void *block = malloc(ARENA_SIZE);
    int code = explain && block ? CTL_GOOD : ctl_fail(CTL_INTERNAL, "out of memory");
    if (code == CTL_GOOD) {
        explain->ctl = ctl;
        arena_init(&explain->arena, block, ARENA_SIZE);
        code = find_topic(explain, topic);
        if (code == CTL_GOOD)
            code = explain_record(explain);
        txn_finish(&explain->txn);
        explain_free_record(explain);
        free_statements(explain);
        json_parser_destroy(explain->json);
    }
    free(explain);
    free(block);
    return code;
}
