/* SPDX-License-Identifier: MIT */
/* test_config: the manual's example compiles, and every kind of mistake is told with its place, all in one run. */
#include "table.h"

#include "idem/adapter/config_load.h"

#include <stdlib.h>

static const char head[] =
    "version: 1\n"
    "kafka: {brokers: \"k1:9093\", group: payments}\n"
    "databases:\n"
    "  shop: {host: 127.0.0.1, database: shop, user: idemd, password: x}\n";

static const char rules[] =
    "topics:\n"
    "  payment.callback:\n"
    "    database: shop\n"
    "    rules:\n"
    "      - name: paid\n"
    "        when: {/trade_status: [TRADE_SUCCESS, TRADE_FINISHED], /refund_fee: {present: false}}\n"
    "        biz_type: payment\n"
    "        action: pay\n"
    "        key: [header Idempotency-Key, /order_no]\n"
    "        scope: /merchant_id\n"
    "        biz_no: /order_no\n"
    "        identity: {channel_txn: /channel_txn}\n"
    "        fields:\n"
    "          amount: {at: /amount, type: decimal, scale: 2}\n"
    "          currency: {at: /currency, default: CNY}\n"
    "        fingerprint: {version: 1, fields: [/order_no, amount, currency, /channel_txn]}\n"
    "        ttl: 72h\n"
    "        transition:\n"
    "          table: orders\n"
    "          where: {order_no: /order_no}\n"
    "          column: status\n"
    "          from: [PENDING]\n"
    "          to: PAID\n"
    "          early: [CREATED]\n"
    "          already: [SHIPPED, DONE, REFUNDED]\n"
    "          conflict: [CLOSED, FAILED]\n"
    "          require: {amount: amount}\n"
    "          set: {paid_at: now, channel_txn: /channel_txn}\n"
    "        insert:\n"
    "          - {table: payment_ledger, columns: {order_no: /order_no, channel_txn: /channel_txn, amount: amount},"
    " unique: [channel_txn]}\n"
    "        statements:\n"
    "          - {sql: \"UPDATE account SET balance = balance - :amount WHERE id = :id AND balance >= :amount\",\n"
    "             params: {id: /account_id, amount: amount}, affected: 1, else: state_conflict}\n"
    "        events:\n"
    "          - {topic: order.paid, aggregate: order, type: OrderPaid, key: /order_no,"
    " payload: {order_no: /order_no, amount: amount}}\n"
    "        respond: {code: SUCCESS, order_no: /order_no}\n"
    "        park: {for: 10m, attempts: 8, backoff: [1s, 60s], locked_after: 30s}\n";

static char text[16384];
static struct diagnostic list[64];

/* The file with one piece replaced; the mistakes as lines. Fails if `old` is not there. */
static void load(const char *old, const char *new, char *ret_lines, size_t size)
{
    char whole[16384];
    struct diagnostics mistakes = {.list = list, .size = COUNT_OF(list)};
    struct config *config = NULL;
    snprintf(whole, sizeof whole, "%s%s", head, rules);
    const char *at = strstr(whole, old);
    if (!at)
        fail_msg("\"%s\" is not in the file", old);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, new, at + strlen(old));
    bool good = config_text_load(bytes_text(text), "f.yaml", &config, &mistakes);
    struct buf buf;
    buf_init(&buf, ret_lines, size - 1);
    for (uint32_t i = 0; i < mistakes.count; i++) {
        diagnostic_write(&list[i], bytes_text("f.yaml"), &buf);
        buf_char(&buf, '\n');
    }
    ret_lines[buf.len] = '\0';
    assert_int_equal(good, mistakes.count == 0);
    config_free(config);
}

/* Good ones: host, port, surely loopback. */
static void listeners_are_taken_apart(void **state)
{
    static const struct {
        const char *http, *host;
        uint16_t port;
        bool loopback;
    } table[] = {
        {"", "127.0.0.1", 9464, true},
        {"http: {listen: \"127.8.9.1:0\"}\n", "127.8.9.1", 0, true},
        {"http: {listen: \"[::1]:9464\"}\n", "::1", 9464, true},
        {"http: {listen: \"LocalHost:1\"}\n", "LocalHost", 1, true},
        {"http: {listen: \"\"}\n", "", 0, false},
        {"http: {listen: \"0.0.0.0:80\", token_file: /t}\n", "0.0.0.0", 80, false},
        {"http: {listen: \"[fe80::1%eth0]:80\", token_file: /t}\n", "fe80::1%eth0", 80, false},
        {"http: {listen: \"metrics.example:65535\", token_file: /t}\n", "metrics.example", 65535, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct diagnostics mistakes = {.list = list, .size = COUNT_OF(list)};
        struct config *config = NULL;
        snprintf(text, sizeof text, "%s%s%s", head, table[i].http, rules);
        if (!config_text_load(bytes_text(text), "f.yaml", &config, &mistakes))
            fail_msg("%s: %s", table[i].http, list[0].message);
        check_text(config->http.host, table[i].host, table[i].http);
        assert_int_equal(config->http.port, table[i].port);
        assert_int_equal(config->http.loopback, table[i].loopback);
        config_free(config);
    }
}

static void the_example_of_the_manual_compiles(void **state)
{
    struct diagnostics mistakes = {.list = list, .size = COUNT_OF(list)};
    struct config *config = NULL;
    (void)state;
    snprintf(text, sizeof text, "%s%s", head, rules);
    if (!config_text_load(bytes_text(text), "f.yaml", &config, &mistakes))
        fail_msg("%u:%u %s: %s", list[0].line, list[0].column, list[0].path, list[0].message);
    const struct rule *rule = &config->topics[0].rules[0];
    assert_int_equal(config->batch_max, 500);
    assert_int_equal(config->start_timeout_ms, 60000);
    assert_int_equal(config->databases[0].connections, 4);
    assert_int_equal(config->databases[0].tls, TLS_OFF);
    check_text(config->topics[0].name, "payment.callback", "topic");
    assert_int_equal(rule->when_count, 2);
    assert_int_equal(rule->when[1].match, MATCH_ABSENT);
    assert_int_equal(rule->key_count, 2);
    assert_int_equal(rule->exprs[rule->keys[0]].source, EXPR_HEADER);
    check_text(rule->exprs[rule->keys[0]].header, "Idempotency-Key", "header");
    assert_int_equal(rule->exprs[rule->keys[1]].source, EXPR_POINTER);
    assert_true(rule->exprs[rule->biz_no].required);
    assert_int_equal(rule->ttl_s, 72 * 3600);
    assert_int_equal(rule->fingerprint_count, 4);
    assert_int_equal(rule->exprs[rule->fingerprint[1]].source, EXPR_FIELD);
    assert_true(rule->fields[1].has_default);
    check_text(rule->fields[1].fallback.text, "CNY", "default");
    assert_int_equal(rule->transitions[0].already_count, 3);
    assert_int_equal(rule->transitions[0].set_count, 2);
    assert_int_equal(rule->exprs[rule->transitions[0].set[0].expr].source, EXPR_NOW);
    assert_true(rule->reads_now);
    assert_int_equal(rule->inserts[0].unique_count, 1);
    assert_int_equal(rule->inserts[0].unique[0], 1);
    const struct statement *statement = &rule->statements[0];
    assert_int_equal(statement->param_count, 3);
    check_text(statement->text[0], "UPDATE account SET balance = balance - ", "piece");
    check_text(statement->text[3], "", "last piece");
    assert_int_equal(statement->params[0], statement->params[2]);
    assert_int_equal(rule->events.count, 1);
    assert_true(rule->has_respond);
    config_free(config);
}

static void every_mistake_is_told_with_its_place(void **state)
{
    static const struct {
        const char *old, *new, *wanted;
    } rows[] = {
        {"version: 1", "version: 2", "f.yaml:1:10: version: 2 is out of range (1..1)"},
        {"group: payments", "groop: payments", "f.yaml:2:29: kafka.groop: unknown key, did you mean \"group\"?"},
        {"user: idemd", "user: idemd, user: x", "repeated key"},
        {"ttl: 72h", "ttl: 72", "topics.payment.callback.rules.paid.ttl: \"72\" is not a time to live"},
        {"to: PAID", "to: PENDING", "state PENDING stands in to and in from"},
        {"conflict: [CLOSED, FAILED]", "conflict: [CLOSED, DONE]", "state DONE stands in already and in conflict"},
        {"identity: {channel_txn: /channel_txn}", "identity: {other: /channel_txn}", "neither where nor set"},
        {"        identity: {channel_txn: /channel_txn}\n", "", "identity: is required"},
        {", /channel_txn]}\n        ttl", "]}\n        ttl", "/channel_txn must stand in fingerprint.fields too"},
        {"biz_no: /order_no", "biz_no: order_no", "\"order_no\" is no pointer, header, meta or field"},
        {"biz_no: /order_no", "biz_no: now", "`now` cannot stand here"},
        {"[/order_no, amount, currency", "[/order_no, amout, currency",
        "\"amout\" is no pointer, header, meta or field"},
        {"type: decimal, scale: 2", "type: decimal, scale: 31", "scale"},
        {"database: shop\n    rules", "database: shoop\n    rules", "there is no database \"shoop\""},
        {"balance >= :amount", "balance >= :amont", ":amont is not in params"},
        {"id = :id AND", "id = 1 AND", "params: id is not used in sql"},
        {"UPDATE account SET balance = balance - :amount WHERE",
        "UPDATE account SET balance = balance - :amount; WHERE",
         "must be one statement"},
        {"UPDATE account SET", "SELECT account SET", "must be one UPDATE, INSERT INTO or DELETE FROM"},
        {"unique: [channel_txn]", "unique: [nothing]", "none of this insert's columns"},
        {"backoff: [1s, 60s]", "backoff: [61s, 60s]", "the first wait is longer than the longest"},
        {"backoff: [1s, 60s]", "backoff: [1s]", "must be two durations"},
        {"backoff: [1s, 60s]", "backoff: [1s, 2d]", "not a duration of 100ms..1d"},
        {"park: {for: 10m", "park: {for: 10x", "\"10x\" is not a duration"},
        {"attempts: 8", "attempts: 0", "out of range"},
        {"version: 1\n", "version: 1\ndead_letter: {topic: payment.callback}\n", "is consumed here"},
        {"version: 1\n", "version: 1\ndead_letter: {topic: \"a b\"}\n", "is not the name of a topic"},
        {"version: 1\n", "version: 1\nlimits: {dead_letter_share: 1.5}\n", "is not a share"},
        {"version: 1\n", "version: 1\nlimits: {dead_letter_share: 20%}\n", "is not a share"},
        {"version: 1\n", "version: 1\nlimits: {parked_max: 0}\n", "out of range"},
        {"    database: shop\n    rules", "    database: shop\n    body: form\n    rules", "not supported yet"},
        {"brokers: \"k1:9093\"", "brokers: \"${IDEM_NOT_SET}\"", "environment variable IDEM_NOT_SET is not set"},
        {"brokers: \"k1:9093\"", "brokers: \"x${HOME}\"", "must be the whole value"},
        {"group: payments", "group: payments, properties: {enable.auto.commit: true}", "cannot be set here"},
        {"table: orders", "table: \"orders; DROP\"", "is not the name of a table"},
        {"/refund_fee: {present: false}", "/refund_fee: {absent: true}", "neither present nor not"},
        {"version: 1", "version: 1\nmode: shadow", "not supported yet"},
        {"version: 1", "version: 1\nhttp: {ingress: true}", "f.yaml:2:17: http.ingress: \"true\" is not supported yet"},
        {"version: 1", "version: 1\nhttp: {listen: \"127.0.0.1\"}", "f.yaml:2:16: http.listen: \"127.0.0.1\" is no"},
        {"version: 1", "version: 1\nhttp: {listen: \"127.0.0.1:65536\"}", "is no address"},
        {"version: 1", "version: 1\nhttp: {listen: \"::1:9464\"}", "is no address"},
        {"version: 1", "version: 1\nhttp: {listen: \"[]:9464\"}", "is no address"},
        {"version: 1", "version: 1\nhttp: {listen: \":9464\"}", "is no address"},
        {"version: 1", "version: 1\nhttp: {listen: \"a b:9464\"}", "is no address"},
        {"version: 1", "version: 1\nhttp: {listen: \"0.0.0.0:9464\"}",
         "f.yaml:2:16: http.listen: a listener that is not loopback needs http.token_file"},
        {"version: 1", "version: 1\nhttp: {listen: \"127.0.0.256:9464\"}", "needs http.token_file"},
        {"version: 1", "version: 1\nhttp: {listen: \"127.evil.example:9464\"}", "needs http.token_file"},
        {"version: 1", "version: 1\nhttp: {listen: \"[::]:9464\"}", "needs http.token_file"},
        {"  payment.callback:", "  payment.callback: &a", "anchors and tags are not used here"},
        {"version: 1", "version: [1", "not YAML"},
        {"biz_type: payment", "biz_type: \"pay ment\"", "must match [A-Za-z0-9_.-]{1,32}"},
        {"require: {amount: amount}", "require: {amount: amount}\n          self: 1", "neither true nor false"},
    };
    char lines[8192];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        load(rows[i].old, rows[i].new, lines, sizeof lines);
        if (!strstr(lines, rows[i].wanted))
            fail_msg("%s -> %s: got\n%swanted %s", rows[i].old, rows[i].new, lines, rows[i].wanted);
    }
}

static void all_mistakes_are_told_in_one_run_in_the_order_of_the_file(void **state)
{
    char lines[8192];
    (void)state;
    load("        ttl: 72h\n        transition:\n          table: orders\n",
         "        ttl: never\n        tll: 1h\n        transition:\n          tabel: orders\n", lines, sizeof lines);
    const char *one = strstr(lines, "\"never\" is not a time to live"), *two = strstr(lines, "did you mean \"ttl\"?"),
               *three = strstr(lines, "did you mean \"table\"?");
    assert_non_null(one);
    assert_non_null(two);
    assert_non_null(three);
    assert_true(one < two && two < three);
    assert_non_null(strstr(lines, "table: is required"));
}

static void a_rule_that_can_never_be_reached_is_a_mistake(void **state)
{
    char lines[8192];
    (void)state;
    load("    rules:\n",
         "    rules:\n      - {name: all, biz_type: x, action: y, key: /a, biz_no: /a, ttl: forever,\n"
         "         fingerprint: {version: 1, fields: [/a]}, insert: [{table: t, columns: {a: /a}}]}\n",
         lines, sizeof lines);
    assert_non_null(strstr(lines, "can never be reached: rule \"all\""));
}

static void tables_locked_in_a_circle_are_a_mistake(void **state)
{
    char lines[8192];
    (void)state;
    load("    rules:\n",
         "    rules:\n      - {name: back, when: {/x: y}, biz_type: x, action: y, key: /a, biz_no: /a, ttl: forever,\n"
         "         fingerprint: {version: 1, fields: [/a]}, insert: [{table: account, columns: {a: /a}},\n"
         "         {table: orders, columns: {a: /a}}]}\n",
         lines, sizeof lines);
    assert_non_null(strstr(lines, "in different orders"));
}

static void no_prefix_of_the_file_crashes_the_loader(void **state)
{
    (void)state;
    snprintf(text, sizeof text, "%s%s", head, rules);
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i += 7) {
        struct diagnostics mistakes = {.list = list, .size = COUNT_OF(list)};
        struct config *config = NULL;
        if (config_text_load(bytes_of(text, i), "f.yaml", &config, &mistakes))
            config_free(config);
        else
            assert_true(mistakes.count > 0);
    }
}

static void the_shipped_files_load(void **state)
{
    static const char *const names[] = {"idemd", "channels/stripe", "channels/adyen", "channels/paypal",
                                        "channels/wechatpay", "channels/square", "channels/checkout",
                                        "channels/razorpay"};
    const char *folder = getenv("IDEM_CONFIG_DIR");
    (void)state;
    assert_non_null(folder);
    setenv("CREDENTIALS_DIRECTORY", "/run/credentials", 1);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[512];
        struct diagnostics mistakes = {.list = list, .size = COUNT_OF(list)};
        struct config *config = NULL;
        snprintf(path, sizeof path, "%s/%s.yaml", folder, names[i]);
        if (!config_file_load(path, &config, &mistakes))
            fail_msg("%s:%u:%u: %s: %s", path, list[0].line, list[0].column, list[0].path, list[0].message);
        config_free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_manual_compiles),
        cmocka_unit_test(listeners_are_taken_apart),
        cmocka_unit_test(every_mistake_is_told_with_its_place),
        cmocka_unit_test(all_mistakes_are_told_in_one_run_in_the_order_of_the_file),
        cmocka_unit_test(a_rule_that_can_never_be_reached_is_a_mistake),
        cmocka_unit_test(tables_locked_in_a_circle_are_a_mistake),
        cmocka_unit_test(no_prefix_of_the_file_crashes_the_loader),
        cmocka_unit_test(the_shipped_files_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
