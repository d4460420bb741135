# SPDX-License-Identifier: MIT
"""The shop that most system tests play with: tables, rules, records, and counting what came of them."""
import copy

from lib import Record

TOPIC_RULES = {
    "body": "json",
    "on_unmatched": "dead_letter",
    "rules": [
        {
            "name": "paid",
            "when": {"/status": ["SUCCESS", "FINISHED"]},
            "biz_type": "payment",
            "action": "pay",
            "key": ["header Idempotency-Key", "/order_no"],
            "biz_no": "/order_no",
            "identity": {"channel_txn": "/channel_txn"},
            "fields": {
                "amount": {"at": "/amount", "type": "decimal", "scale": 2},
                "currency": {"at": "/currency", "default": "CNY"},
            },
            "fingerprint": {"version": 1, "fields": ["/order_no", "amount", "currency", "/channel_txn"]},
            "ttl": "72h",
            "transition": {
                "table": "orders",
                "where": {"order_no": "/order_no"},
                "column": "status",
                "from": ["PENDING"],
                "to": "PAID",
                "early": ["CREATED"],
                "already": ["SHIPPED", "DONE", "REFUNDED"],
                "conflict": ["CLOSED", "FAILED"],
                "require": {"amount": "amount"},
                "set": {"paid_at": "now", "channel_txn": "/channel_txn"},
            },
            "insert": [
                {
                    "table": "payment_ledger",
                    "columns": {"order_no": "/order_no", "channel_txn": "/channel_txn", "amount": "amount"},
                    "unique": ["channel_txn"],
                }
            ],
            "events": [
                {
                    "topic": "order.paid", "aggregate": "order", "type": "OrderPaid", "key": "/order_no",
                    "payload": {"order_no": "/order_no", "amount": "amount"},
                }
            ],
            "on": {
                "applied_by_other": {
                    "events": [
                        {
                            "topic": "refund.due", "aggregate": "order", "type": "RefundDue", "key": "/order_no",
                            "payload": {"order_no": "/order_no", "channel_txn": "/channel_txn"},
                        }
                    ]
                }
            },
            "respond": {"code": "SUCCESS", "order_no": "/order_no"},
            "park": {"for": "0s"},
        },
        {
            "name": "refunded",
            "when": {"/type": "REFUND"},
            "biz_type": "refund",
            "action": "refund",
            "key": ["/refund_no"],
            "biz_no": "/order_no",
            "identity": {"refund_no": "/refund_no"},
            "fields": {"amount": {"at": "/refund_fen", "type": "decimal", "scale": 2, "minor": 2}},
            "fingerprint": {"version": 1, "fields": ["/refund_no", "amount"]},
            "ttl": "30d",
            "transitions": [
                {
                    "table": "refunds", "where": {"refund_no": "/refund_no"}, "column": "status",
                    "from": ["APPLIED"], "to": "REFUNDED", "conflict": ["REJECTED"],
                },
                {
                    "table": "orders", "where": {"order_no": "/order_no"}, "column": "status",
                    "from": ["PAID", "PART_REFUNDED"], "to": "PART_REFUNDED", "early": ["PENDING"], "self": True,
                },
            ],
            "statements": [
                {
                    "sql": "UPDATE orders SET refunded = refunded + :amount "
                           "WHERE order_no = :no AND refunded + :amount <= amount",
                    "params": {"no": "/order_no", "amount": "amount"},
                    "affected": 1,
                    "else": "state_conflict",
                }
            ],
            "park": {"for": "0s"},
        },
    ],
}

TABLES = """
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'PENDING',
  amount DECIMAL(20,2) NOT NULL, refunded DECIMAL(20,2) NOT NULL DEFAULT 0,
  channel_txn VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  paid_at DATETIME(3) NULL, UNIQUE KEY uk_no (order_no)) ENGINE=InnoDB;
CREATE TABLE payment_ledger (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  channel_txn VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  amount DECIMAL(20,2) NOT NULL, UNIQUE KEY uk_txn (channel_txn)) ENGINE=InnoDB;
CREATE TABLE refunds (
  refund_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  amount DECIMAL(20,2) NOT NULL) ENGINE=InnoDB;
"""


def rules(park=None):
    """A copy that a test may change. Nothing waits in it unless `park` says so."""
    made = copy.deepcopy(TOPIC_RULES)
    for rule in made["rules"]:
        rule["park"] = park or rule["park"]
    return made


def payment(no, amount="19.99", txn=None, key=None, partition=None, **more):
    """A payment callback of one order; the channel's transaction follows the order unless it is given."""
    headers = [] if key is None else [("Idempotency-Key", key)]
    value = {"order_no": no, "amount": amount, "currency": "CNY", "channel_txn": txn or "T" + no,
             "status": "SUCCESS", **more}
    return Record(key=no, value=value, headers=headers, partition=partition)


def refund(refund_no, no, fen, partition=None):
    return Record(key=no, value={"type": "REFUND", "refund_no": refund_no, "order_no": no, "refund_fen": fen},
                  partition=partition)


class Shop:
    """Database, topic and configuration of one test."""

    def __init__(self, world, partitions=1, topic_rules=None, tables=TABLES, group=None, **sections):
        self.world = world
        self.kafka = world.kafka
        self.db = world.create_database()
        self.topic = world.kafka.create_topic(partitions=partitions)
        self.db.script(tables)
        self.config = world.config(self.db, {self.topic: topic_rules or rules()}, group=group, **sections)
        self.group = self.config["kafka"]["group"]
        world.migrate(self.config)

    def orders(self, numbers, status="PENDING", amount="19.99"):
        numbers = list(numbers)
        for i in range(0, len(numbers), 1000):
            part = numbers[i:i + 1000]
            self.db.exec("INSERT INTO orders (order_no, status, amount) VALUES "
                         + ",".join(["(%s,%s,%s)"] * len(part)),
                         [v for no in part for v in (no, status, amount)])

    def send(self, *records):
        return self.kafka.produce(self.topic, list(records))

    def daemon(self, **more):
        daemon = self.world.daemon(self.config, **more)
        return daemon

    def order(self, no):
        return self.db.one("SELECT * FROM orders WHERE order_no = %s", [no])

    def record(self, key, biz_type="payment"):
        return self.db.one("SELECT * FROM idem_record WHERE bucket = 0 AND biz_type = %s AND idem_key = %s",
                           [biz_type, key])

    def letters(self):
        return self.db.query("SELECT * FROM idem_dead_letter ORDER BY id")

    def outbox(self, topic=None):
        return [r for r in self.db.query("SELECT * FROM idem_outbox ORDER BY seq")
                if topic is None or r["topic"] == topic.encode()]

    def counts(self):
        """Orders PAID, ledger rows, dedupe rows applied, order.paid events: the same number when all is well."""
        row = self.db.one(
            "SELECT (SELECT COUNT(*) FROM orders WHERE status = 'PAID') AS paid,"
            " (SELECT COUNT(*) FROM payment_ledger) AS ledger,"
            " (SELECT COUNT(*) FROM idem_record WHERE status = 1) AS records,"
            " (SELECT COUNT(*) FROM idem_outbox WHERE topic = 'order.paid') AS events")
        return row["paid"], row["ledger"], row["records"], row["events"]

    def finished(self, timeout=60):
        """Waits until the group has committed the end of the topic."""
        self.kafka.wait_committed(self.group, self.topic, None, timeout=timeout)
