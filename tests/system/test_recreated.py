# SPDX-License-Identifier: MIT
"""A topic that was deleted and made again under its name is noticed by the last record that was finished."""
import pytest

from shop import Shop, payment


def drained(world, numbers, **more):
    """A shop whose first records are applied, and whose daemon has stopped."""
    shop = Shop(world, **more)
    shop.orders(numbers)
    daemon = shop.daemon()
    shop.send(*[payment(no) for no in numbers[:3]])
    daemon.wait_outcomes(3)
    shop.finished()
    assert daemon.stop() == 0
    return shop


def again(world, shop, *records):
    world.kafka.delete_topic(shop.topic)
    world.kafka.create_topic(shop.topic, partitions=1)
    if records:
        shop.send(*records)


NUMBERS = [f"R{i}" for i in range(6)]


@pytest.mark.parametrize("count", [3, 6], ids=["as_long", "longer"])
def test_another_log_under_the_same_name(world, count):
    shop = drained(world, NUMBERS)
    again(world, shop, *[payment(no) for no in reversed(NUMBERS)][:count])
    daemon = shop.daemon()
    event = daemon.wait_event("recreated")
    assert (event["topic"], event["partition"], event["offset"], event["level"]) == (shop.topic, "0", "2", "err")
    shop.send(payment("R5"))
    assert daemon.stop() == 0
    assert not daemon.outcomes() and shop.counts() == (3, 3, 3, 3), "nothing of it is applied, nothing skipped"


def test_a_shorter_log_has_no_such_position(world):
    shop = drained(world, NUMBERS)
    again(world, shop, payment("R5"))
    daemon = shop.daemon()
    daemon.wait_event("paused", why="offset_gone")
    assert not daemon.outcomes() and daemon.alive


def test_one_record_shorter_is_seen_when_the_next_comes(world):
    shop = drained(world, NUMBERS)
    again(world, shop, payment("R5"), payment("R4"))
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(payment("R3"))
    daemon.wait_event("recreated")
    assert not daemon.outcomes()


def test_the_same_log_restored_goes_on(world):
    shop = drained(world, NUMBERS)
    again(world, shop, *[payment(no) for no in NUMBERS[:4]])
    daemon = shop.daemon()
    assert daemon.wait_outcomes(1)[0]["biz_no"] == "R3"
    assert not daemon.select("recreated") and shop.counts() == (4, 4, 4, 4)


def test_retention_is_no_objection(world):
    shop = drained(world, NUMBERS)
    shop.send(payment("R3"))
    world.kafka.delete_records(shop.topic, {0: 3})     # the last finished record is gone, the next is not
    daemon = shop.daemon()
    assert daemon.wait_outcomes(1)[0]["biz_no"] == "R3"
    assert not daemon.select("paused") and not daemon.select("recreated")
    assert daemon.stop() == 0
    world.kafka.delete_records(shop.topic, {0: 4})     # everything is
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(payment("R4"))
    assert daemon.wait_outcomes(1)[0]["biz_no"] == "R4"
    assert not daemon.select("paused")


def test_what_was_not_read_yet_and_is_gone_stops_the_partition(world):
    shop = drained(world, NUMBERS)
    shop.send(payment("R3"), payment("R4"))
    world.kafka.delete_records(shop.topic, {0: 4})
    daemon = shop.daemon()
    event = daemon.wait_event("paused", why="offset_gone")
    assert event["offset"] == "3"
    assert not daemon.outcomes() and daemon.alive


def test_kafka_behind_the_database_reads_from_there(world):
    shop = drained(world, NUMBERS)
    world.kafka.commit(shop.group, shop.topic, {0: 1})
    daemon = shop.daemon()
    shop.send(payment("R3"))
    daemon.wait_outcomes(3)
    assert [(o["offset"], o["outcome"]) for o in daemon.outcomes()] == [
        ("1", "duplicate"), ("2", "duplicate"), ("3", "first")]
