# SPDX-License-Identifier: MIT
"""Several instances on one group: rolling restarts, members that freeze, a database that hangs. Nothing is lost or
doubled, what is told of one order is applied in its sequence, the committed offset never goes back."""
import itertools
import json
import threading
import time

import confluent_kafka
import pytest

from lib import wait_until
from shop import Shop, payment, refund, rules

PARK = {"for": "5m", "attempts": 8, "backoff": ["200ms", "1s"], "locked_after": "2s"}
MEMBERS = 3
ORDERS = {"range": 14000}        # 21 000 records; the others get by with less
FEWER_ORDERS = 6000

STRATEGIES = {
    "range": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "static": {"partition.assignment.strategy": "range", "group.instance.id": "idemd-{}"},
    "kip848": {"group.protocol": "consumer"},
}


def told(topic_rules):
    """Refunds are told, too: numbers of the outbox are given under the order's lock, so they have its order."""
    topic_rules["rules"][1]["events"] = [
        {"topic": "order.refunded", "aggregate": "order", "type": "OrderRefunded", "key": "/order_no",
         "payload": {"order_no": "/order_no", "refund_no": "/refund_no"}}]
    return topic_rules


def properties_of(world, strategy):
    if strategy == "kip848" and not world.binaries.prefix:
        pytest.skip("librdkafka 2.0 does not know the protocol; the second world's does")
    return STRATEGIES[strategy]


def shop_of(world, properties, partitions=6):
    shop = Shop(world, partitions=partitions, topic_rules=told(rules(PARK)))
    base = dict(shop.config["kafka"]["properties"])
    if "group.protocol" in properties:                 # the broker says when a member is gone
        base = {}
    shop.config["kafka"]["properties"] = {**base, **properties}
    return shop


def member(shop, number, name):
    """One instance; a static member has a name of its own."""
    config = {**shop.config, "kafka": {**shop.config["kafka"]}}
    config["kafka"]["properties"] = {key: value.format(number) if isinstance(value, str) else value
                                     for key, value in shop.config["kafka"]["properties"].items()}
    return shop.world.daemon(config, name=name)


class Offsets:
    """Looks at the group's offsets all the time: none may ever go back."""

    def __init__(self, shop):
        self.shop, self.seen, self.back, self.looks, self._over = shop, {}, [], 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._over.wait(0.3):
            try:
                now = self.shop.kafka.committed(self.shop.group, self.shop.topic)
            except confluent_kafka.KafkaException:     # the coordinator is busy with the group
                continue
            self.looks += 1
            for partition, offset in now.items():
                if offset < self.seen.get(partition, 0):
                    self.back.append((partition, self.seen[partition], offset))
                self.seen[partition] = max(offset, self.seen.get(partition, 0))

    def finish(self):
        """Also fails if it did not look: a watch that broke off has seen nothing go back."""
        before = self.looks
        wait_until(lambda: self.looks > before, 30, "the group's offsets are looked at to the end")
        self._over.set()
        self._thread.join(30)
        assert not self.back, f"(partition, before, after): {self.back}"


def load(shop, numbers):
    """Payments, three in ten twice; every tenth order has a refund before its payment and one after it."""
    records = []
    for i, no in enumerate(numbers):
        if i % 10 == 0:
            records.append(refund("R1-" + no, no, 500))
        records.append(payment(no))
        if i % 10 < 3:
            records.append(payment(no))
        if i % 10 == 0:
            records.append(refund("R2-" + no, no, 300))
    refunds = [[name + no, no, "APPLIED", amount] for no in numbers[::10] for name, amount in (("R1-", 5), ("R2-", 3))]
    for i in range(0, len(refunds), 1000):
        part = refunds[i:i + 1000]
        shop.db.exec("INSERT INTO refunds VALUES " + ",".join(["(%s,%s,%s,%s)"] * len(part)),
                     [value for row in part for value in row])
    return records


def check(shop, numbers):
    wait_until(lambda: shop.db.value("SELECT COUNT(*) FROM idem_parked") == 0, 60, "nothing is parked")
    by_status = {r["status"]: r["n"] for r in shop.db.query("SELECT status, COUNT(*) AS n FROM orders GROUP BY status")}
    refunded = len(numbers[::10])
    assert by_status == {"PAID": len(numbers) - refunded, "PART_REFUNDED": refunded}
    assert shop.db.value("SELECT COUNT(*) FROM orders WHERE refunded = 8") == refunded
    assert shop.db.value("SELECT COUNT(*) FROM payment_ledger") == len(numbers)
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE status = 1") == len(numbers) + 2 * refunded
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE status <> 1") == 0
    assert shop.letters() == []
    told_of = {no: [] for no in numbers}
    for row in shop.outbox():
        said = json.loads(row["payload"])
        told_of[said["order_no"]].append(said.get("refund_no", "paid"))
    wanted = {no: ["paid", "R1-" + no, "R2-" + no] if i % 10 == 0 else ["paid"] for i, no in enumerate(numbers)}
    wrong = {no: events for no, events in told_of.items() if events != wanted[no]}
    assert not wrong, f"{len(wrong)} orders, some of them: {dict(list(wrong.items())[:5])}"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rolling_restarts(world, strategy):
    shop = shop_of(world, properties_of(world, strategy))
    numbers = [f"G{i:05d}" for i in range(ORDERS.get(strategy, FEWER_ORDERS))]
    shop.orders(numbers)
    records = load(shop, numbers)
    names = itertools.count()
    members = [member(shop, i, f"m{i}-{next(names)}") for i in range(MEMBERS)]
    for daemon in members:
        daemon.wait_ready()
    watch = Offsets(shop)
    part = len(records) // 6 + 1
    for round_ in range(6):
        shop.send(*records[round_ * part:(round_ + 1) * part])
        old = members[round_ % MEMBERS]
        assert old.stop() == 0
        members[round_ % MEMBERS] = member(shop, round_ % MEMBERS, f"m{round_ % MEMBERS}-{next(names)}")
        members[round_ % MEMBERS].wait_ready()
    shop.finished(timeout=120)
    check(shop, numbers)
    watch.finish()
    for daemon in members:
        assert daemon.stop() == 0


def test_a_member_that_freezes_within_a_transaction(world):
    """It holds the fence's lock when it is stopped, past session and poll timeouts, and goes on in good faith."""
    shop = shop_of(world, {"session.timeout.ms": 6000, "max.poll.interval.ms": 6000})
    numbers = [f"Z{i:04d}" for i in range(1200)]
    shop.orders(numbers)
    shop.config["databases"]["shop"]["lock_wait"] = "5s"
    held = shop.db.connect()
    with held.cursor() as cursor:
        cursor.execute("SELECT * FROM orders WHERE order_no = 'Z0000' FOR UPDATE")
    frozen = member(shop, 0, "frozen")
    frozen.wait_ready()
    watch = Offsets(shop)
    records = load(shop, numbers)
    shop.send(*records)
    wait_until(lambda: shop.world.server.admin(
        "SELECT COUNT(*) AS n FROM information_schema.PROCESSLIST WHERE USER = %s AND INFO LIKE 'UPDATE%%'",
        [shop.db.user])[0]["n"] > 0, 30, "a worker waits for the order within its transaction")
    frozen.freeze()
    held.rollback()
    other = member(shop, 1, "other")
    shop.finished(timeout=120)
    check(shop, numbers)
    frozen.thaw()
    frozen.wait_event("revoke", timeout=60)
    shop.orders(["LAST1", "LAST2"])
    shop.send(payment("LAST1"), payment("LAST2"))
    shop.finished(timeout=60)
    watch.finish()
    assert shop.order("LAST1")["status"] == shop.order("LAST2")["status"] == "PAID"
    assert shop.db.value("SELECT COUNT(*) FROM payment_ledger") == len(numbers) + 2
    assert frozen.stop() in (0, 75) and other.stop() == 0
    held.close()


def test_a_database_that_hangs_costs_no_membership(world):
    shop = shop_of(world, {"session.timeout.ms": 6000, "max.poll.interval.ms": 6000})
    numbers = [f"D{i:04d}" for i in range(500)]
    shop.orders(numbers)
    daemon = member(shop, 0, "only")
    daemon.wait_ready()
    mark = daemon.mark()
    lock = shop.world.server.root()
    with lock.cursor() as cursor:
        cursor.execute("FLUSH TABLES WITH READ LOCK")
        shop.send(*load_payments(numbers))
        until = time.monotonic() + 13                  # twice max.poll.interval.ms, and a little
        wait_until(lambda: time.monotonic() > until, 20, "the database hung long enough")
        cursor.execute("UNLOCK TABLES")
    lock.close()
    daemon.wait_outcomes(500, outcome="first")
    assert not daemon.select("revoke", after=mark) and not daemon.select("assign", after=mark)
    assert shop.counts() == (500, 500, 500, 500)
    assert daemon.stop() == 0


def load_payments(numbers):
    return [payment(no) for no in numbers]


def test_a_partition_that_is_added_is_read_from_its_beginning(world):
    shop = shop_of(world, {"topic.metadata.refresh.interval.ms": 5000}, partitions=1)
    shop.orders(["A1", "A2"])
    daemon = member(shop, 0, "only")
    daemon.wait_ready()
    shop.kafka.add_partitions(shop.topic, 2)
    shop.send(payment("A1", partition=0), payment("A2", partition=1))
    daemon.wait_outcomes(2, outcome="first", timeout=30)
    assert {(o["partition"], o["offset"]) for o in daemon.outcomes()} == {("0", "0"), ("1", "0")}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_that_was_stopped_outright_is_followed(world, strategy):
    """SIGSTOP without any transaction: its partitions go on elsewhere, its late commit changes nothing."""
    properties = properties_of(world, strategy)
    shop = shop_of(world, {**properties, "max.poll.interval.ms": 6000})
    numbers = [f"S{i:04d}" for i in range(300)]
    shop.orders(numbers)
    first, second = member(shop, 0, "first"), member(shop, 1, "second")
    for daemon in (first, second):
        daemon.wait_ready()
    wait_until(lambda: first.select("assign") and second.select("assign"), 30, "each has its partitions")
    watch = Offsets(shop)
    first.freeze()
    shop.send(*load_payments(numbers), *load_payments(numbers[:100]))
    shop.finished(timeout=90)
    mark = first.mark()
    first.thaw()
    # It comes back, or it knows that it cannot and ends to be started again.
    wait_until(lambda: first.select("assign", after=mark) or not first.alive, 60, "it is a member again")
    if not first.alive:
        assert first.wait_exit() == 75
        first = member(shop, 0, "first again")
        first.wait_ready()
    shop.orders(["LAST1", "LAST2"])
    shop.send(payment("LAST1"), payment("LAST2"))
    shop.finished(timeout=60)
    watch.finish()
    assert shop.counts() == (302, 302, 302, 302)
    assert first.stop() == 0 and second.stop() == 0


def test_a_static_member_that_was_replaced_ends(world):
    """Another process took its name while it was frozen: the group will never have it again. It ends at once."""
    shop = shop_of(world, STRATEGIES["static"])
    numbers = [f"I{i:04d}" for i in range(300)]
    shop.orders(numbers)
    frozen = member(shop, 0, "frozen")
    frozen.wait_ready()
    frozen.wait_event("assign")
    frozen.freeze()
    other = member(shop, 0, "other")
    shop.send(*load_payments(numbers))
    shop.finished(timeout=60)
    frozen.thaw()
    assert frozen.wait_exit(timeout=15) == 75
    assert shop.counts() == (300, 300, 300, 300)
    assert other.stop() == 0
