/* SPDX-License-Identifier: MIT */
/* record_rules: the rules that records are evaluated by in the unit tests and the fuzz harness: one of every kind
 * of value. */
#ifndef IDEM_UNIT_RECORD_RULES_H
#define IDEM_UNIT_RECORD_RULES_H

static const char record_rules[] =
    "version: 1\n"
    "kafka: {brokers: \"k1:9093\", group: g}\n"
    "databases:\n"
    "  shop: {host: 127.0.0.1, database: shop, user: idemd, password: x}\n"
    "topics:\n"
    "  t:\n"
    "    database: shop\n"
    "    max_bytes: 64KiB\n"
    "    exactly_one: [/items]\n"
    "    rules:\n"
    "      - name: paid\n"
    "        when: {/status: [SUCCESS, 1, true], /kind: {not: [test]}}\n"
    "        biz_type: payment\n"
    "        action: pay\n"
    "        key: [header Idempotency-Key, /order_no]\n"
    "        biz_no: /order_no\n"
    "        identity: {txn: /txn}\n"
    "        fields:\n"
    "          amount: {at: /amount, type: decimal, scale: 2}\n"
    "          currency: {at: /currency, default: CNY}\n"
    "          count: {at: /count, type: integer, default: \"1\"}\n"
    "          at: {at: /at, type: time, format: rfc3339, default: \"2026-01-01T00:00:00Z\"}\n"
    "        fingerprint: {version: 1, fields: [/order_no, amount, currency, /txn]}\n"
    "        ttl: 72h\n"
    "        transition: {table: orders, where: {order_no: /order_no}, column: status, from: [A], to: B,\n"
    "          set: {txn: /txn, at: at}}\n"
    "        respond: {code: OK, no: /order_no, amount: amount, count: count, raw: /raw, note: /note, when: now}\n"
    "      - name: minor\n"
    "        when: {/type: REFUND}\n"
    "        biz_type: refund\n"
    "        action: refund\n"
    "        key: [meta key, /refund_no]\n"
    "        scope: /shop\n"
    "        biz_no: /refund_no\n"
    "        fields: {amount: {at: /fen, type: decimal, scale: 2, minor: {by: /cur, JPY: 0, default: 2}}}\n"
    "        fingerprint: {version: 2, fields: [/refund_no, amount, /flag]}\n"
    "        ttl: forever\n"
    "        insert: [{table: refunds, columns: {no: /refund_no, amount: amount, topic: meta topic}}]\n";

#endif
