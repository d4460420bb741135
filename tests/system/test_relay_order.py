# SPDX-License-Identifier: MIT
"""The outbox relay where order is hardest: late commits of lower numbers, refusals in a batch, locked neighbours."""
import json
import uuid

from lib import wait_until
from test_check import grant_least
from test_relay import by_aggregate, put, relaying, wait_empty


def hold(shop, aggregate, n):
    """A session that has inserted a row and not committed."""
    session = shop.db.connect()
    with session.cursor() as cursor:
        cursor.execute("INSERT INTO idem_outbox (id, topic, aggregatetype, aggregateid, type, payload) VALUES "
                       "(%s, %s, 'order', %s, 'Moved', %s)",
                       (uuid.uuid4().hex, shop.events, aggregate, json.dumps({"n": n})))
    return session


def test_a_late_lower_number_goes_before_the_next_of_its_aggregate(world):
    """As the engine writes: the business row is locked until the first commits, so the second comes after it."""
    shop = relaying(world)
    daemon = shop.daemon()
    daemon.wait_event("relay_lease", why="taken")
    for round_ in range(5):
        sessions = [hold(shop, f"L{i}", 2 * round_) for i in range(20)]
        put(shop, [(f"E{round_}", '{"n":0}')] * 200)
        wait_empty(shop)                               # what is not committed is not counted
        for i, session in enumerate(sessions):
            session.commit()
            put(shop, [(f"L{i}", json.dumps({"n": 2 * round_ + 1}))])
            session.close()
        wait_empty(shop)
    order = by_aggregate(world, shop.events)
    for i in range(20):
        assert order[f"L{i}".encode()] == list(range(10)), f"L{i}: {order[f'L{i}'.encode()]}"


def test_a_transaction_that_stays_open_holds_up_nobody(world):
    shop = relaying(world)
    daemon = shop.daemon()
    daemon.wait_event("relay_lease", why="taken")
    session = hold(shop, "OPEN", 0)
    for i in range(10):
        put(shop, [(f"A{i}", '{"n":0}')] * 3)
        wait_empty(shop, timeout=10)
    assert len(daemon.select("relay_lease")) == 1
    session.commit()
    session.close()
    wait_empty(shop)
    assert by_aggregate(world, shop.events)[b"OPEN"] == [0]


def test_the_grants_of_the_contract_suffice(world):
    """Of the outbox SELECT, INSERT, DELETE, and no UPDATE: the locks that the relay takes need none."""
    shop = relaying(world)
    grant_least(shop)
    daemon = shop.daemon()
    daemon.wait_event("relay_lease", why="taken")
    session = hold(shop, "G", 0)
    put(shop, [("H", '{"n":0}')])
    wait_empty(shop, timeout=20)

    def renewed(since):
        """The relay has worked for as long as it takes until it asks about a gap."""
        return shop.db.value("SELECT TIMESTAMPDIFF(SECOND, %s, until_at) FROM idem_lease", [since]) >= 8
    for _ in range(2):
        before = shop.db.value("SELECT until_at FROM idem_lease")
        wait_until(lambda since=before: renewed(since), 30, "the relay to ask about the gap")
        session.rollback()
    put(shop, [("G", '{"n":1}'), ("BIG", json.dumps({"n": 0, "x": "x" * 300_000}))])
    wait_empty(shop, timeout=20)
    assert by_aggregate(world, shop.events) == {b"G": [1], b"H": [0], b"BIG": [0]}
    assert len(daemon.select("relay_lease")) == 1
    session.close()


def test_neighbours_of_a_message_that_is_too_large_are_not_refused(world):
    """A broker refuses a whole batch for one large message in it."""
    shop = relaying(world)
    shop.events = world.kafka.create_topic(partitions=1, max_message_bytes=100_000)
    rows = [(f"N{i}", '{"n":0}') for i in range(300)]
    rows[150:150] = [("BIG", json.dumps({"n": 0, "x": "x" * 150_000})), ("BIG", '{"n":1}')]
    put(shop, rows)
    daemon = shop.daemon()
    wait_empty(shop, rows=2, timeout=30)
    assert [e["key"] for e in daemon.select("relay_refused")] == ["BIG"]
    put(shop, [(f"N{i}", '{"n":1}') for i in range(300)])
    wait_empty(shop, rows=2, timeout=30)
    order = by_aggregate(world, shop.events)
    assert len(order) == 300 and all(numbers == [0, 1] for numbers in order.values())


def test_batches_larger_than_a_topic_takes_are_sent_in_parts(world):
    shop = relaying(world)
    shop.events = world.kafka.create_topic(partitions=1, max_message_bytes=20_000)
    put(shop, [(f"N{i}", json.dumps({"n": 0, "x": "x" * 500})) for i in range(1000)])
    daemon = shop.daemon()
    wait_empty(shop, timeout=60)
    assert not daemon.select("relay_refused")
    assert len(by_aggregate(world, shop.events)) == 1000


def test_a_message_that_only_the_broker_can_judge_is_sent(world):
    """Larger than librdkafka's own default, and this topic takes it; several at once."""
    shop = relaying(world)
    shop.events = world.kafka.create_topic(partitions=1, max_message_bytes=10_000_000)
    put(shop, [(f"N{i % 5}", json.dumps({"n": i // 5, "x": "x" * 3_000_000})) for i in range(10)])
    daemon = shop.daemon()
    wait_empty(shop, timeout=60)
    assert not daemon.select("relay_refused")
    order = by_aggregate(world, shop.events)
    assert len(order) == 5 and all(numbers == [0, 1] for numbers in order.values())


def test_rows_of_a_topic_that_is_made_later_come_in_order(world):
    shop = relaying(world)
    name = f"later-{uuid.uuid4().hex[:8]}"
    put(shop, [(f"T{i % 10}", json.dumps({"n": i // 10})) for i in range(100)], topic=name)
    daemon = shop.daemon()
    daemon.wait_event("relay_refused", topic=name, timeout=40)
    put(shop, [("OTHER", '{"n":0}')])
    wait_empty(shop, rows=100, timeout=10)
    world.kafka.create_topic(name, partitions=3)
    put(shop, [(f"T{i}", '{"n":10}') for i in range(10)], topic=name)
    wait_empty(shop, timeout=100)
    shop.events = name
    order = by_aggregate(world, name)
    assert len(order) == 10 and all(numbers == list(range(11)) for numbers in order.values()), order


def test_what_was_discarded_by_hand_frees_its_aggregate(world):
    shop = relaying(world)
    shop.events = world.kafka.create_topic(partitions=1, max_message_bytes=10_000)
    put(shop, [("BIG", json.dumps({"n": 0, "x": "x" * 20_000})), ("BIG", '{"n":1}')])
    daemon = shop.daemon()
    daemon.wait_event("relay_refused")
    row_id = shop.db.value("SELECT id FROM idem_outbox ORDER BY seq LIMIT 1")
    done = world.idemctl(shop.config, "outbox", "discard", row_id, "--note", "too large", "--yes")
    assert done.code == 0, done
    wait_until(lambda: not shop.outbox(), 20, "the rest of the aggregate")
    assert by_aggregate(world, shop.events) == {b"BIG": [1]}
    assert len(daemon.select("relay_refused")) == 1
