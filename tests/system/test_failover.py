# SPDX-License-Identifier: MIT
"""Failover: the primary goes, a replica that is three seconds behind takes its place, on both worlds; and what else may
be known or forgotten of where a partition goes on."""
import threading

import pytest

from lib import wait_until
from lib.replication import Pair
from shop import Shop, payment, refund

PARTITIONS = 3


@pytest.fixture
def pair(world, tmp):
    made = Pair(world.name, tmp, delay=3)
    yield made
    made.close()


def replicated_shop(world, pair, orders):
    """A shop on the pair; the replica knows its tables and orders."""
    world.server = pair.primary
    shop = Shop(world, partitions=PARTITIONS)
    shop.config["databases"]["shop"].update(host=pair.hosts, connections=4)
    numbers = [f"F{i:05d}" for i in range(orders)]
    shop.orders(numbers)
    for i in range(0, orders, 10):
        for k in range(2):
            shop.db.exec("INSERT INTO refunds VALUES (%s, %s, 'APPLIED', 1.00)", [f"R{i}-{k}", numbers[i]])
    pair.has(orders, "SELECT id FROM orders", shop.db.name)
    pair.has(2 * len(range(0, orders, 10)), "SELECT refund_no FROM refunds", shop.db.name)
    return shop, numbers


def records_of(numbers):
    """A payment for each, two refunds for every tenth right behind it."""
    records = []
    for i, number in enumerate(numbers):
        at = i % PARTITIONS
        records.append(payment(number, partition=at))
        if i % 10 == 0:
            records += [refund(f"R{i}-{k}", number, 100, partition=at) for k in range(2)]
    return records


class Load:
    """Sends the records a hundred at a time, in a thread."""

    def __init__(self, shop, records):
        self._shop, self._records = shop, records
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        for i in range(0, len(self._records), 100):
            self._shop.send(*self._records[i:i + 100])
            self._idle.wait(0.05)

    def finish(self):
        self._thread.join(240)
        assert not self._thread.is_alive()


def progress(server, shop):
    rows = server.execute("SELECT partition_id, next_offset FROM idem_progress", None, shop.db.name)[0]
    return {row["partition_id"]: row["next_offset"] for row in rows}


def wait_finished(shop, timeout=120):
    """Kafka's offsets may be ahead of what the database knows, so both have to be there."""
    ends = shop.kafka.end_offsets(shop.topic)
    wait_until(lambda: progress(shop.db.server, shop) == ends, timeout, f"idem_progress to be {ends}", 0.2)
    shop.finished(timeout)


def check_everything_once(shop, numbers):
    refunded = len(range(0, len(numbers), 10))
    one = shop.db.value
    assert one("SELECT COUNT(*) FROM orders WHERE status = 'PAID'") == len(numbers) - refunded
    assert one("SELECT COUNT(*) FROM orders WHERE status = 'PART_REFUNDED' AND refunded = 2.00") == refunded
    assert one("SELECT COUNT(*) FROM payment_ledger") == len(numbers)
    assert one("SELECT COUNT(*) FROM idem_record WHERE status = 1 AND outcome = 'first'") \
        == len(numbers) + 2 * refunded
    assert one("SELECT COUNT(DISTINCT id) FROM idem_outbox WHERE topic = 'order.paid'") == len(numbers)
    assert one("SELECT COUNT(*) FROM idem_outbox") == len(numbers)
    assert shop.letters() == []
    late = shop.db.query(
        "SELECT a.biz_no FROM idem_record a JOIN idem_record b ON b.bucket = a.bucket AND b.biz_no = a.biz_no"
        " AND b.partition_id = a.partition_id AND b.kafka_offset > a.kafka_offset AND b.created_at < a.created_at")
    assert late == [], "a later record of a number was applied first"


def go_over(pair, shop):
    """From now on the replica is the shop's database."""
    shop.db.server = pair.replica


@pytest.mark.deadline(420)
def test_commits_that_a_failover_lost_are_applied_again(world, pair):
    shop, numbers = replicated_shop(world, pair, 6000)
    daemon = shop.daemon()
    daemon.wait_ready()
    load = Load(shop, records_of(numbers))

    def behind():
        there = progress(pair.replica, shop)
        return len(there) == PARTITIONS and all(o > 50 for o in there.values())
    wait_until(behind, 60, "the replica to know how far the partitions are", 0.1)
    pair.primary.kill()
    pair.cut()
    mark = daemon.mark()
    daemon.wait_event("paused", why="unreachable")
    known = progress(pair.replica, shop)
    told = shop.kafka.committed(shop.group, shop.topic)
    assert all(told[p] > known[p] for p in known), f"nothing was lost: {known} {told}"
    # It finds one server gone and the other read-only for a while.
    paused = daemon.mark()
    pair.promote()
    go_over(pair, shop)
    for partition, offset in known.items():
        event = daemon.wait_event("rewound", after=mark, partition=partition)
        assert (event["offset"], event["level"]) == (str(offset), "err")
    load.finish()
    wait_finished(shop)
    assert daemon.alive and not daemon.select("paused", why="config")
    assert not daemon.select("paused", after=paused, why="config")
    check_everything_once(shop, numbers)
    assert len(daemon.select("rewound")) == PARTITIONS
    assert daemon.stop() == 0


@pytest.mark.deadline(420)
def test_a_failover_is_noticed_when_nothing_comes_any_more(world, pair):
    shop, numbers = replicated_shop(world, pair, 600)
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(*records_of(numbers[:300]))
    shop.finished()
    ends = shop.kafka.end_offsets(shop.topic)
    wait_until(lambda: progress(pair.replica, shop) == ends, 60, "the replica to have the first half", 0.1)
    shop.send(*records_of(numbers)[len(records_of(numbers[:300])):])
    shop.finished()
    assert progress(pair.replica, shop) == ends
    pair.cut()
    pair.primary.kill()
    pair.promote()
    go_over(pair, shop)
    for partition in range(PARTITIONS):
        daemon.wait_event("rewound", partition=partition, offset=ends[partition])
    wait_finished(shop)
    check_everything_once(shop, numbers)
    assert daemon.stop() == 0


@pytest.mark.deadline(420)
@pytest.mark.parametrize("how", ["killed", "read-only"])
def test_a_failover_that_lost_nothing_alarms_nobody(world, pair, how):
    shop, numbers = replicated_shop(world, pair, 600)
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(*records_of(numbers[:300]))
    shop.finished()
    if how == "read-only":
        pair.demote()
    ends = shop.kafka.end_offsets(shop.topic)
    wait_until(lambda: progress(pair.replica, shop) == ends, 60, "the replica to have all", 0.1)
    if how == "killed":
        pair.primary.kill()
    pair.promote()
    go_over(pair, shop)
    mark = daemon.mark()
    shop.send(*records_of(numbers)[len(records_of(numbers[:300])):])
    wait_finished(shop)
    check_everything_once(shop, numbers)
    assert not daemon.select("rewound") and not daemon.select("paused", why="config")
    assert {o["outcome"] for o in daemon.outcomes(after=mark)} == {"first"}
    assert daemon.stop() == 0


# What is known of where to go on

def test_group_offsets_that_expired_are_in_the_database(world):
    shop = Shop(world, partitions=2)
    numbers = [f"E{i}" for i in range(20)]
    shop.orders(numbers)
    shop.send(*[payment(no, partition=i % 2) for i, no in enumerate(numbers[:10])])
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.finished()
    assert daemon.stop() == 0
    shop.kafka.forget(shop.group)
    assert shop.kafka.committed(shop.group, shop.topic) == {}
    shop.send(*[payment(no, partition=i % 2) for i, no in enumerate(numbers[10:])])
    mark = daemon.mark()
    daemon.start()
    shop.finished()
    assert {e["offset"] for e in daemon.select("assign", after=mark)} == {"5"}
    assert [o["outcome"] for o in daemon.wait_outcomes(10, after=mark)] == ["first"] * 10
    assert shop.counts() == (20,) * 4


def test_a_partition_whose_position_is_gone_stops_alone(world):
    shop = Shop(world, partitions=2)
    shop.orders(["G0", "G1", "G2"])
    shop.send(payment("G0", partition=0), payment("G1", partition=0), payment("G2", partition=1))
    shop.kafka.commit(shop.group, shop.topic, {0: 0, 1: 0})
    shop.kafka.delete_records(shop.topic, {0: 1})
    daemon = shop.daemon()
    event = daemon.wait_event("paused", why="offset_gone")
    assert (event["partition"], event["level"]) == ("0", "err")
    assert daemon.wait_outcomes(1)[0]["biz_no"] == "G2"
    shop.kafka.wait_committed(shop.group, shop.topic, {0: 0, 1: 1})
    assert shop.counts() == (1,) * 4 and daemon.alive
