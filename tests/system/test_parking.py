# SPDX-License-Identifier: MIT
"""Records that cannot be applied yet: parked in the database, tried again by the owner, in order, and given up."""
import json

import pytest

from lib import wait_until
from shop import Shop, payment, refund, rules

PARK = {"for": "60s", "attempts": 3, "backoff": ["200ms", "1s"], "locked_after": "2s"}
SHORT = {"for": "1500ms", "attempts": 2, "backoff": ["200ms", "400ms"], "locked_after": "2s"}


def parked(shop):
    return shop.db.query("SELECT * FROM idem_parked ORDER BY id")


def wait_parked(shop, count, timeout=20):
    wait_until(lambda: len(parked(shop)) == count, timeout, f"{count} parked rows, there are {len(parked(shop))}")


def said(daemon, **fields):
    return [(o["outcome"], o.get("cause", "")) for o in daemon.outcomes(**fields)]


def late_order(shop, no="L1"):
    """The order and its refund document come into the shop at last."""
    shop.db.exec("INSERT INTO refunds VALUES (%s, %s, 'APPLIED', 5)", ["R-" + no, no])
    shop.orders([no])


def test_refund_before_payment_before_order(world):
    shop = Shop(world, topic_rules=rules(PARK))
    shop.orders([f"N{i}" for i in range(50)])
    daemon = shop.daemon()
    shop.send(refund("R-L1", "L1", 500), payment("L1"), *[payment(f"N{i}") for i in range(50)])
    daemon.wait_outcomes(52)
    assert said(daemon, biz_no="L1") == [("parked", "not_found"), ("parked", "not_found")]
    assert len(daemon.outcomes(outcome="first")) == 50
    shop.finished()                                    # the offset has moved past what waits
    for row in parked(shop):
        assert row["reason"] == "not_found" and row["topic"] == shop.topic.encode() and row["dead_letter_id"] == 0
    row = shop.record("payment:L1:pay")
    assert (row["status"], row["outcome"], row["response"]) == (0, "parked", None)
    shop.send(payment("L1"))
    daemon.wait_outcomes(53)
    assert said(daemon, biz_no="L1")[2] == ("processing", "")
    late_order(shop)
    daemon.wait_outcomes(55)
    wait_parked(shop, 0)
    assert said(daemon, biz_no="L1")[3:] == [("first", ""), ("first", "")]
    assert [o["rule"] for o in daemon.outcomes(biz_no="L1")[3:]] == ["paid", "refunded"]
    assert shop.order("L1")["status"] == "PART_REFUNDED" and not shop.letters()
    row = shop.record("payment:L1:pay")
    assert (row["status"], row["outcome"], row["attempts"]) == (1, "first", 1)
    assert json.loads(row["response"])["order_no"] == "L1"
    assert [o["aggregateid"] for o in shop.outbox("order.paid")].count(b"L1") == 1
    shop.send(payment("L1"))
    assert daemon.wait_outcomes(56)[-1]["outcome"] == "duplicate"


def test_the_next_owner_goes_on(world):
    shop = Shop(world, topic_rules=rules(PARK))
    first = shop.daemon()
    shop.send(refund("R-L1", "L1", 500), payment("L1"))
    first.wait_outcomes(2)
    first.kill()
    second = shop.daemon()
    second.wait_ready()
    late_order(shop)
    second.wait_outcomes(2, outcome="first")
    wait_parked(shop, 0)
    assert [o["rule"] for o in second.outcomes(outcome="first")] == ["paid", "refunded"]
    assert {o["outcome"] for o in second.outcomes()} <= {"first", "processing", "duplicate"} and not shop.letters()
    assert shop.order("L1")["status"] == "PART_REFUNDED"


def test_two_instances_one_dies_while_records_wait(world):
    shop = Shop(world, partitions=4, topic_rules=rules(PARK))
    numbers = [f"W{i}" for i in range(40)]
    daemons = [shop.daemon() for _ in range(2)]
    for daemon in daemons:
        daemon.wait_ready()
    shop.send(*[r for no in numbers for r in (refund("R-" + no, no, 500), payment(no))])
    wait_parked(shop, 80)
    daemons[0].kill()
    for no in numbers:
        late_order(shop, no)
    wait_parked(shop, 0, timeout=90)
    shop.finished()
    rows = shop.db.query("SELECT status, COUNT(*) AS n FROM orders GROUP BY status")
    assert [(r["status"], r["n"]) for r in rows] == [("PART_REFUNDED", 40)]
    assert not shop.letters()
    assert shop.db.value("SELECT COUNT(*) FROM payment_ledger") == 40
    assert len(shop.outbox("order.paid")) == 40


def test_given_up_in_the_end(world):
    shop = Shop(world, topic_rules=rules(SHORT))
    shop.orders(["E1"], status="CREATED")
    daemon = shop.daemon()
    shop.send(payment("NOBODY"), payment("E1"))
    daemon.wait_outcomes(4)
    assert said(daemon, biz_no="NOBODY") == [("parked", "not_found"), ("not_found", "given_up")]
    assert said(daemon, biz_no="E1") == [("parked", "state"), ("state_conflict", "early")]
    wait_parked(shop, 0)
    letters = {r["biz_no"]: (r["outcome"], r["cause"], r["kafka_offset"]) for r in shop.letters()}
    assert letters == {b"NOBODY": ("not_found", "given_up", 0), b"E1": ("state_conflict", "early", 1)}
    assert shop.record("payment:NOBODY:pay")["status"] == 2
    shop.orders(["NOBODY"])                            # a later delivery is judged afresh
    shop.send(payment("NOBODY"))
    assert daemon.wait_outcomes(5)[-1]["outcome"] == "first"


def test_behind_the_head_in_order(world):
    shop = Shop(world, topic_rules=rules(PARK))
    shop.orders(["E1"], status="CREATED")
    daemon = shop.daemon()
    shop.send(payment("E1", key="supplied-key-1"), payment("E1", txn="OTHER", key="supplied-key-2"))
    daemon.wait_outcomes(2)
    assert said(daemon) == [("parked", "state"), ("parked", "behind")]
    shop.send(payment("E1", txn="OTHER", key="supplied-key-2"))
    daemon.wait_outcomes(3)
    assert said(daemon)[2] == ("processing", "")
    shop.db.exec("UPDATE orders SET status = 'PENDING'")
    daemon.wait_outcomes(5)
    assert said(daemon)[3:] == [("first", ""), ("applied_by_other", "identity_mismatch")]
    assert [o["key"] for o in daemon.outcomes()[3:]] == ["supplied-key-1", "supplied-key-2"]
    wait_parked(shop, 0)
    assert len(shop.outbox("refund.due")) == 1


def test_a_held_order_is_parked_and_its_neighbours_go_on(world):
    shop = Shop(world, topic_rules=rules(PARK))
    numbers = [f"H{i:03d}" for i in range(200)]
    shop.orders(numbers)
    shop.config["databases"]["shop"]["lock_wait"] = "1s"
    held = shop.db.connect()
    with held.cursor() as cursor:
        cursor.execute("SELECT * FROM orders WHERE order_no = 'H100' FOR UPDATE")
    daemon = shop.daemon()
    shop.send(*[payment(no) for no in numbers], payment("H100", txn="OTHER", key="another-key-of-H100"))
    daemon.wait_outcomes(201)
    assert said(daemon, biz_no="H100") == [("parked", "locked"), ("parked", "behind")]
    assert shop.counts() == (199, 199, 199, 199)
    assert len(daemon.select("set_aside")) >= 1
    mark = daemon.mark()
    shop.orders(["M1"])
    shop.send(payment("M1"))
    assert int(daemon.wait_outcomes(1, after=mark, biz_no="M1")[0]["took_us"]) < 2_000_000
    attempts = parked(shop)[0]["attempts"]
    assert attempts == 0                               # time under somebody's lock does not count
    held.rollback()
    daemon.wait_outcomes(2, after=mark, biz_no="H100")
    assert said(daemon, biz_no="H100")[2:] == [("first", ""), ("applied_by_other", "identity_mismatch")]
    wait_parked(shop, 0)
    assert shop.counts() == (201, 201, 201, 201)
    held.close()


def test_one_lock_wait_is_enough_to_be_careful(world):
    """Somebody holds five orders, met one after the other: only the first costs a lock wait."""
    shop = Shop(world, topic_rules=rules(PARK))
    shop.config["databases"]["shop"]["lock_wait"] = "1s"
    shop.config["databases"]["shop"]["connections"] = 1
    numbers = [f"C{i}" for i in range(5)]
    shop.orders(numbers + [f"N{i}" for i in range(100)])
    held = shop.db.connect()
    with held.cursor() as cursor:
        cursor.execute("SELECT * FROM orders WHERE order_no IN ('C0','C1','C2','C3','C4') FOR UPDATE")
    daemon = shop.daemon()
    for i, no in enumerate(numbers):
        shop.send(payment(no), *[payment(f"N{k}") for k in range(i * 20, i * 20 + 20)])
        daemon.wait_outcomes(20 * (i + 1), outcome="first")
    assert len(daemon.select("tx_retry", errno="1205")) == 1
    held.rollback()
    held.close()
    daemon.wait_outcomes(105, outcome="first")
    wait_parked(shop, 0)
    assert shop.counts() == (105, 105, 105, 105)


def test_a_changed_rule_leaves_an_orphan(world):
    topic_rules = rules(PARK)
    shop = Shop(world, topic_rules=topic_rules)
    first = shop.daemon()
    shop.send(payment("L1"))
    first.wait_outcomes(1)
    first.stop()
    topic_rules["rules"][0]["fingerprint"]["version"] = 2
    second = shop.daemon()
    event = second.wait_event("orphaned")
    assert event["key"] == "payment:L1:pay"
    shop.orders(["L1", "L2"])
    shop.send(payment("L2"))
    second.wait_outcomes(1)
    wait_until(lambda: len(parked(shop)) == 1, 5, "the orphan stays")
    assert len(second.select("orphaned")) == 1 and shop.order("L1")["status"] == "PENDING"
    second.stop()
    topic_rules["rules"][0]["fingerprint"]["version"] = 1
    shop.db.exec("UPDATE idem_parked SET next_attempt_at = UTC_TIMESTAMP(3)")
    third = shop.daemon()
    assert third.wait_outcomes(1)[0]["outcome"] == "first"


@pytest.mark.parametrize("point", ["after_fence", "after_claim", "after_update", "after_insert", "after_outbox",
                                   "before_commit", "after_commit"])
def test_killed_while_it_tries_again(world, point):
    """The order has come; the daemon dies at a step of the transaction that applies what waited."""
    shop = Shop(world, topic_rules=rules(PARK))
    daemon = shop.daemon()
    shop.send(refund("R-L1", "L1", 500), payment("L1"), payment("L1", txn="OTHER", key="second-payment-of-L1"))
    daemon.wait_outcomes(3)
    shop.finished()
    assert daemon.stop() == 0
    late_order(shop)
    shop.db.exec("UPDATE idem_parked SET next_attempt_at = UTC_TIMESTAMP(3) WHERE reason = 'not_found'")
    dying = shop.daemon(name="dying", env={"IDEMD_CRASH": point})
    assert dying.wait_exit() == -9, "the crash point was not passed"
    again = shop.daemon(name="again")
    wait_parked(shop, 0)
    assert again.stop() == 0
    assert shop.order("L1")["status"] == "PART_REFUNDED" and shop.order("L1")["refunded"] == 5
    assert shop.db.value("SELECT COUNT(*) FROM payment_ledger") == 1
    assert len(shop.outbox("order.paid")) == 1 and len(shop.outbox("refund.due")) == 1
    assert [(r["outcome"], r["attempts"]) for r in shop.letters()] == [("applied_by_other", 1)]
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE status = 0") == 0


def test_a_full_park_pauses_its_partition_only(world):
    shop = Shop(world, partitions=2, topic_rules=rules(PARK), limits={"parked_max": 20, "inflight": 10},
                batch={"max": 10})
    shop.orders([f"N{i}" for i in range(50)])
    daemon = shop.daemon()
    shop.send(*[payment(f"F{i:03d}", partition=0) for i in range(200)])
    event = daemon.wait_event("paused", why="full")
    assert (event["topic"], event["partition"]) == (shop.topic, "0")
    shop.send(*[payment(f"N{i}", partition=1) for i in range(50)])
    daemon.wait_outcomes(50, outcome="first")
    waiting = len(parked(shop))
    assert 20 <= waiting <= 40, "no more than was on its way is parked beyond the limit"
    shop.orders([f"F{i:03d}" for i in range(200)])
    daemon.wait_outcomes(250, outcome="first")
    daemon.wait_event("resumed", why="full")
    wait_parked(shop, 0)
    assert shop.counts() == (250, 250, 250, 250)
