# SPDX-License-Identifier: MIT
"""The outbox relay: every row is published and deleted, in order by aggregate, by one relay of several, whatever dies."""
import json
import signal
import uuid

import pytest

from lib import wait_until
from shop import Shop, payment

LEASE = "3s"


def relaying(world, **more):
    """A shop whose relay publishes; its events go to a topic of the test's own."""
    topic = world.kafka.create_topic(partitions=4)
    shop = Shop(world, outbox={"relay": True, "lease": LEASE}, **more)
    shop.events = topic
    return shop


def put(shop, rows, topic=None, headers=None):
    """Rows of the outbox as the engine would write them: (aggregate, payload)."""
    rows = list(rows)
    for i in range(0, len(rows), 2000):
        part = rows[i:i + 2000]
        shop.db.exec("INSERT INTO idem_outbox (id, topic, aggregatetype, aggregateid, type, payload, headers) VALUES "
                     + ",".join(["(%s,%s,'order',%s,'Moved',%s,%s)"] * len(part)),
                     [v for aggregate, payload in part
                      for v in (uuid.uuid4().hex, topic or shop.events, aggregate, payload, headers)])


def left(shop):
    return shop.db.value("SELECT COUNT(*) FROM idem_outbox")


def wait_empty(shop, timeout=60, rows=0):
    wait_until(lambda: left(shop) == rows, timeout, f"{rows} rows left in the outbox")


def by_aggregate(world, topic):
    """Payloads in the order of each partition, repeats (same event_id) only once."""
    seen, order = set(), {}
    for record in world.kafka.read(topic):
        event_id = record.header("event_id")
        if event_id in seen:
            continue
        seen.add(event_id)
        order.setdefault(record.key, []).append(json.loads(record.value)["n"])
    return order


def check_order(world, shop, aggregates, each):
    order = by_aggregate(world, shop.events)
    assert len(order) == aggregates
    for key, numbers in order.items():
        assert numbers == list(range(each)), f"{key}: {numbers[:20]}"


def test_what_the_engine_writes_is_published(world):
    shop = relaying(world)
    shop.config["topics"][shop.topic]["rules"][0]["events"][0]["topic"] = shop.events
    shop.config["topics"][shop.topic]["rules"][0]["events"][0]["headers"] = {"kind": "paid", "no": "/order_no"}
    shop.orders(["E1"])
    daemon = shop.daemon()
    shop.send(payment("E1"))
    daemon.wait_outcomes(1)
    wait_empty(shop)
    record, = world.kafka.read(shop.events)
    assert record.key == b"E1" and record.json() == {"order_no": "E1", "amount": "19.99"}
    assert record.header("kind") == b"paid" and record.header("no") == b"E1"
    assert len(record.header("event_id")) == 32
    assert daemon.select("relay_lease", why="taken")
    assert daemon.stop() == 0
    assert daemon.select("relay_lease", why="released")


@pytest.mark.sanitize
def test_many_rows_in_order_by_aggregate(world):
    shop = relaying(world)
    put(shop, ((f"A{i % 500}", json.dumps({"n": i // 500})) for i in range(50000)))
    daemon = shop.daemon()
    wait_empty(shop, timeout=120)
    check_order(world, shop, 500, 100)
    assert daemon.stop() == 0


def test_a_lower_number_that_is_committed_later_is_sent(world):
    shop = relaying(world)
    daemon = shop.daemon()
    daemon.wait_event("relay_lease", why="taken")
    late = shop.db.connect()
    with late.cursor() as cursor:
        cursor.execute("INSERT INTO idem_outbox (id, topic, aggregatetype, aggregateid, type, payload) VALUES "
                       "(%s, %s, 'order', 'LATE', 'Moved', '{\"n\":0}')", (uuid.uuid4().hex, shop.events))
    put(shop, [("EARLY", '{"n":0}')] * 100)
    wait_empty(shop)
    late.commit()
    wait_empty(shop)
    late.close()
    assert b"LATE" in by_aggregate(world, shop.events)


def test_one_that_cannot_be_sent_blocks_its_aggregate_only(world):
    shop = relaying(world)
    shop.events = world.kafka.create_topic(partitions=4, max_message_bytes=1_000_000)
    big = json.dumps({"n": 0, "x": "x" * 2_000_000})
    put(shop, [("BIG", big), ("BIG", '{"n":1}'), ("OK", '{"n":0}'), ("OK", '{"n":1}')])
    daemon = shop.daemon()
    wait_empty(shop, rows=2)
    event = daemon.wait_event("relay_refused")
    assert (event["key"], event["level"], event["topic"]) == ("BIG", "err", shop.events)
    put(shop, [("OK", '{"n":2}')])
    wait_empty(shop, rows=2)
    assert by_aggregate(world, shop.events) == {b"OK": [0, 1, 2]}
    rows = shop.world.idemctl(shop.config, "--json", "outbox", "list").json["outbox"]
    assert [(r["aggregate_id"], r["topic"]) for r in rows] == [("BIG", shop.events)] * 2
    first = str(rows[0]["seq"])
    assert shop.world.idemctl(shop.config, "outbox", "discard", first, "--note", "too large").code == 77
    assert shop.world.idemctl(shop.config, "outbox", "discard", first, "--yes").code == 64
    assert shop.world.idemctl(shop.config, "outbox", "discard", first, "--note", "too large", "--yes").code == 0
    assert shop.world.idemctl(shop.config, "outbox", "discard", first, "--note", "too large", "--yes").code == 66
    assert daemon.stop() == 0
    assert len(daemon.select("relay_refused")) == 1
    again = shop.daemon()                              # or within the minute, by itself
    wait_empty(shop)
    assert by_aggregate(world, shop.events) == {b"OK": [0, 1, 2], b"BIG": [1]}
    assert again.stop() == 0


def test_a_topic_that_may_not_be_written_holds_up_no_other(world):
    shop = relaying(world)
    put(shop, [(f"X{i}", '{"n":0}') for i in range(50)], topic="not a topic's name")
    put(shop, [(f"Y{i}", '{"n":0}') for i in range(50)])
    daemon = shop.daemon()
    wait_empty(shop, rows=50)
    daemon.wait_event("relay_refused")
    put(shop, [(f"Z{i}", '{"n":0}') for i in range(50)])
    wait_empty(shop, rows=50)
    assert len(daemon.select("relay_refused")) == 1, "once for all of them"


def test_the_broker_dies_and_comes_back(world):
    shop = relaying(world)
    daemon = shop.daemon()
    daemon.wait_ready()
    put(shop, ((f"A{i % 50}", json.dumps({"n": i // 50})) for i in range(2000)))
    world.kafka.kill()
    put(shop, ((f"A{i % 50}", json.dumps({"n": 40 + i // 50})) for i in range(1000)))
    world.kafka.start()
    wait_empty(shop, timeout=120)
    check_order(world, shop, 50, 60)
    assert daemon.alive


@pytest.mark.sanitize
@pytest.mark.parametrize("how", ["killed", "stopped_for_a_while"])
def test_the_next_relay_takes_over(world, how):
    shop = relaying(world)
    first = shop.daemon()
    first.wait_event("relay_lease", why="taken")
    second = shop.daemon()
    second.wait_ready()
    put(shop, ((f"A{i % 100}", json.dumps({"n": i // 100})) for i in range(5000)))
    wait_until(lambda: left(shop) < 4000, 30, "some rows are gone")
    if how == "killed":
        first.kill()
    else:
        first.signal(signal.SIGSTOP)
    second.wait_event("relay_lease", why="taken", timeout=30)
    wait_empty(shop)
    if how != "killed":
        put(shop, ((f"A{i % 100}", json.dumps({"n": 50 + i // 100})) for i in range(1000)))
        first.signal(signal.SIGCONT)
        first.wait_event("relay_lease", why="expired", timeout=30)
        wait_empty(shop)
    lease = shop.db.one("SELECT * FROM idem_lease")
    assert lease["name"] == "relay" and lease["generation"] == 2
    check_order(world, shop, 100, 50 if how == "killed" else 60)


def test_the_columns_serve_debezium(world):
    """Switched off, the table is Debezium's outbox as it stands: docs/outbox.md names these columns to its router."""
    shop = Shop(world)
    shop.orders(["D1"])
    daemon = shop.daemon()
    shop.send(payment("D1"))
    daemon.wait_outcomes(1)
    row = shop.outbox()[0]
    assert daemon.stop() == 0 and not daemon.select("relay_lease")
    assert (row["aggregatetype"], row["type"], row["topic"]) == ("order", "OrderPaid", b"order.paid")
    assert row["aggregateid"] == b"D1" and len(row["id"]) == 32 and json.loads(row["payload"])["order_no"] == "D1"
    kinds = {r["name"]: r["kind"] for r in shop.db.query(
        "SELECT column_name AS name, data_type AS kind FROM information_schema.columns "
        "WHERE table_schema = DATABASE() AND table_name = 'idem_outbox'")}
    assert kinds["seq"] == "bigint" and kinds["id"] == "char" and kinds["payload"] == "mediumtext"
