# SPDX-License-Identifier: MIT
"""Dead letters with a way back, and parked records under the operator's hand."""
import json

from lib import Record, wait_until
from shop import Shop, payment, refund, rules
from test_parking import PARK, parked, said, wait_parked


def ctl(shop, *args):
    return shop.world.idemctl(shop.config, *args)


def test_a_closed_order_is_opened_and_paid_once(world):
    shop = Shop(world)
    shop.orders(["C1"], status="CLOSED")
    daemon = shop.daemon()
    shop.send(payment("C1"))
    daemon.wait_outcomes(1, outcome="state_conflict")
    letter = shop.letters()[0]
    shop.db.exec("UPDATE orders SET status = 'PENDING'")
    dry = ctl(shop, "dead-letter", "redrive", str(letter["id"]), "--dry-run")
    assert dry.code == 0 and "would be queued" in dry.stdout and not parked(shop)
    assert ctl(shop, "dead-letter", "redrive", str(letter["id"])).code == 0
    line = daemon.wait_outcomes(1, outcome="first")[0]
    assert (line["source"], line["key"], line["partition"]) == ("redrive", "payment:C1:pay", "-1")
    wait_parked(shop, 0)
    assert shop.counts() == (1, 1, 1, 1)
    row = shop.record("payment:C1:pay")
    assert (row["source"], row["partition_id"], row["attempts"], row["status"]) == ("redrive", -1, 2, 1)
    assert shop.letters()[0]["state"] == "resolved"
    again = ctl(shop, "dead-letter", "redrive", str(letter["id"]))
    assert again.code == 77 and "resolved" in again.stdout
    assert ctl(shop, "dead-letter", "redrive", str(letter["id"]), "--force").code == 0
    daemon.wait_outcomes(1, outcome="duplicate")
    wait_parked(shop, 0)
    assert shop.counts() == (1, 1, 1, 1)


def test_still_in_conflict_the_letter_counts_and_stays_open(world):
    shop = Shop(world)
    shop.orders(["C1"], status="CLOSED")
    daemon = shop.daemon()
    shop.send(payment("C1"))
    daemon.wait_outcomes(1)
    assert ctl(shop, "dead-letter", "redrive", str(shop.letters()[0]["id"])).code == 0
    daemon.wait_outcomes(2, outcome="state_conflict")
    wait_parked(shop, 0)
    letters = shop.letters()
    assert [(r["state"], r["attempts"], r["partition_id"]) for r in letters] == [("open", 2, 0)]


def test_by_filter_with_a_rate_and_refusals(world):
    shop = Shop(world)
    numbers = [f"F{i}" for i in range(10)]
    shop.orders(numbers, status="CLOSED")
    daemon = shop.daemon()
    shop.send(*[payment(no) for no in numbers], payment("NOBODY"), refund("R-1", "F1", "x"))
    daemon.wait_outcomes(12)
    shop.db.exec("UPDATE orders SET status = 'PENDING'")
    done = ctl(shop, "--json", "dead-letter", "redrive", "--filter", "outcome=state_conflict", "--rate", "50")
    assert done.code == 0 and done.json["queued"] == 10 and done.json["refused"] == 0
    daemon.wait_outcomes(10, outcome="first")
    wait_parked(shop, 0)
    assert shop.counts() == (10, 10, 10, 10)
    rest = ctl(shop, "--json", "dead-letter", "redrive", "--since", "1h")
    assert rest.code == 1
    why = {entry["why"] for entry in rest.json["letters"] if not entry["queued"]}
    assert why == {"it is still invalid: field_type"}
    daemon.wait_outcomes(2, outcome="not_found")
    assert ctl(shop, "dead-letter", "redrive", "999999").code == 66
    assert ctl(shop, "dead-letter", "redrive").code == 64


def test_an_invalid_letter_is_judged_by_todays_rules(world):
    topic_rules = rules()
    topic_rules["rules"][0]["fields"]["amount"]["scale"] = 0
    shop = Shop(world, topic_rules=topic_rules)
    shop.orders(["I1"])
    daemon = shop.daemon()
    shop.send(payment("I1"))
    daemon.wait_outcomes(1, outcome="invalid")
    daemon.stop()
    topic_rules["rules"][0]["fields"]["amount"]["scale"] = 2
    daemon = shop.daemon()
    daemon.wait_ready()
    assert ctl(shop, "dead-letter", "redrive", str(shop.letters()[0]["id"])).code == 0
    daemon.wait_outcomes(1, outcome="first")
    wait_parked(shop, 0)
    assert shop.counts() == (1, 1, 1, 1) and shop.letters()[0]["state"] == "resolved"


def test_a_cut_payload_and_a_changed_rule_are_refused(world):
    topic_rules = rules()
    shop = Shop(world, topic_rules=topic_rules, dead_letter={"payload_max": "1KiB"})
    shop.orders(["P1", "P2"], status="CLOSED")
    daemon = shop.daemon()
    shop.send(payment("P1", more="x" * 5000), payment("P2"))
    daemon.wait_outcomes(2)
    cut, whole = [str(r["id"]) for r in shop.letters()]
    done = ctl(shop, "dead-letter", "redrive", cut)
    assert done.code == 77 and "cut" in done.stdout
    topic_rules["rules"][0]["fingerprint"]["version"] = 2
    done = ctl(shop, "dead-letter", "redrive", whole)
    assert done.code == 77 and "another fact" in done.stdout
    assert not parked(shop)


def test_a_redrive_goes_before_what_comes_later(world):
    """While it waits for its order, a live record of the number queues behind it; the same record again is processing."""
    shop = Shop(world, topic_rules=rules(PARK))
    shop.orders(["Q1"], status="CLOSED")
    daemon = shop.daemon()
    shop.send(payment("Q1"))
    daemon.wait_outcomes(1)
    shop.db.exec("UPDATE orders SET status = 'CREATED'")
    assert ctl(shop, "dead-letter", "redrive", str(shop.letters()[0]["id"])).code == 0
    wait_until(lambda: parked(shop)[0]["reason"] == "state", 10, "the redrive was tried")
    assert shop.record("payment:Q1:pay")["status"] == 0
    assert ctl(shop, "dead-letter", "redrive", str(shop.letters()[0]["id"])).code == 77
    shop.send(payment("Q1"), payment("Q1", txn="OTHER", key="another-key-of-Q1"))
    daemon.wait_outcomes(3)
    assert said(daemon)[1:] == [("processing", ""), ("parked", "behind")]
    shop.db.exec("UPDATE orders SET status = 'PENDING'")
    daemon.wait_outcomes(5)
    assert said(daemon)[3:] == [("first", ""), ("applied_by_other", "identity_mismatch")]
    wait_parked(shop, 0)
    letters = {(r["outcome"], r["state"]) for r in shop.letters()}
    assert letters == {("state_conflict", "resolved"), ("applied_by_other", "open")}


def test_discard_needs_a_note_and_a_yes(world):
    shop = Shop(world)
    daemon = shop.daemon()
    shop.send(payment("D1"), payment("D2"))
    daemon.wait_outcomes(2)
    ids = [str(r["id"]) for r in shop.letters()]
    assert ctl(shop, "dead-letter", "discard", *ids, "--yes").code == 64
    assert ctl(shop, "dead-letter", "discard", *ids, "--note", "test orders").code == 77
    assert ctl(shop, "dead-letter", "discard", *ids, "999", "--note", "test orders", "--yes").code == 66
    assert ctl(shop, "dead-letter", "discard", *ids, "--note", "test orders", "--yes").code == 0
    assert [(r["state"], r["note"]) for r in shop.letters()] == [("discarded", b"test orders")] * 2
    assert ctl(shop, "dead-letter", "redrive", ids[0]).code == 77
    shop.send(payment("D1"))
    daemon.wait_outcomes(3)
    letter = next(r for r in shop.letters() if r["biz_no"] == b"D1")
    assert (letter["state"], letter["attempts"]) == ("discarded", 2), "it stays discarded"


def test_parked_list_retry_and_give_up(world):
    slow = {"for": "1h", "attempts": 8, "backoff": ["1h", "1h"]}
    shop = Shop(world, topic_rules=rules(slow))
    shop.orders(["E1"], status="CREATED")
    daemon = shop.daemon()
    shop.send(payment("L1"), payment("L2"), payment("L2", txn="OTHER", key="another-key-of-L2"), payment("E1"))
    daemon.wait_outcomes(4)
    rows = ctl(shop, "--json", "parked", "list").json["parked"]
    assert [(r["biz_no"], r["reason"], r["attempts"], r["offset"])
            for r in sorted(rows, key=lambda row: row["offset"])] == [
        ("L1", "not_found", 0, 0), ("L2", "not_found", 0, 1), ("L2", "behind", 0, 2), ("E1", "state", 0, 3)]
    assert set(rows[0]) >= {"id", "topic", "partition", "rule", "biz_type", "idem_key", "next_attempt_at", "give_up_at"}
    assert len(ctl(shop, "--json", "parked", "list", "--biz-no", "L2").json["parked"]) == 2
    shop.orders(["L1"])
    assert ctl(shop, "parked", "retry", "payment", "L1").code == 0
    daemon.wait_outcomes(1, outcome="first")
    assert ctl(shop, "parked", "retry", "payment", "L1").code == 66
    assert ctl(shop, "parked", "give-up", "payment", "L2").code == 77
    assert ctl(shop, "parked", "give-up", "payment", "L2", "--yes").code == 0
    assert ctl(shop, "parked", "give-up", "payment", "E1", "--yes").code == 0
    assert ctl(shop, "parked", "give-up", "payment", "E1", "--yes").code == 66
    assert not parked(shop)
    letters = {r["idem_key"].decode(): (r["outcome"], r["cause"]) for r in shop.letters()}
    assert letters == {"payment:L2:pay": ("not_found", "given_up"),
                       "another-key-of-L2": ("state_conflict", "given_up"),
                       "payment:E1:pay": ("state_conflict", "early")}
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE status = 2") == 3
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE status = 0") == 0


def test_an_orphan_is_given_up(world):
    topic_rules = rules(PARK)
    shop = Shop(world, topic_rules=topic_rules)
    daemon = shop.daemon()
    shop.send(payment("L1"))
    daemon.wait_outcomes(1)
    daemon.stop()
    topic_rules["rules"][0]["key"] = ["/channel_txn"]
    daemon = shop.daemon()
    daemon.wait_event("orphaned")
    assert ctl(shop, "parked", "give-up", "payment", "L1", "--yes").code == 0
    assert [(r["outcome"], r["cause"], r["idem_key"]) for r in shop.letters()] == [
        ("not_found", "given_up", b"payment:L1:pay")]
    assert shop.record("payment:L1:pay")["status"] == 2 and not parked(shop)


def test_new_letters_are_published_through_the_outbox(world):
    shop = Shop(world, dead_letter={"topic": "payment.dead"})
    shop.orders(["C1"], status="CLOSED")
    daemon = shop.daemon()
    shop.send(payment("C1"), payment("C1"), Record(value=b"{broken"), payment("X1", amount="1.234"))
    daemon.wait_outcomes(4)
    rows = shop.outbox("payment.dead")
    assert sorted(r["type"] for r in rows) == ["invalid", "invalid", "state_conflict"], "a letter is told once"
    letters = {bytes(r["origin_hash"][:16]).hex(): r for r in shop.letters()}
    for row in rows:
        letter, told = letters[row["id"]], json.loads(row["payload"])
        assert row["aggregatetype"] == "dead_letter" and row["headers"] is None
        assert (told["outcome"], told["cause"], told["offset"]) == (
            letter["outcome"], letter["cause"], letter["kafka_offset"])
        assert told["payload"].encode() == letter["payload"]
        assert row["aggregateid"] == (letter["biz_no"] or f"{shop.topic}/0/{told['offset']}".encode())


def test_a_flood_of_letters_pauses_the_topic(world):
    shop = Shop(world, limits={"inflight": 50, "dead_letter_share": 0.2}, batch={"max": 50})
    shop.orders([f"N{i}" for i in range(200)])
    daemon = shop.daemon()
    shop.send(*[payment(f"N{i}") for i in range(100)], *[payment(f"UNKNOWN{i}") for i in range(2000)])
    event = daemon.wait_event("paused", why="flood")
    assert event["topic"] == shop.topic and daemon.select("dead_letter_flood")[0]["topic"] == shop.topic
    assert len(daemon.outcomes(outcome="first")) == 100
    assert daemon.stop() == 0
    letters = len(shop.letters())
    assert 25 <= letters < 500, "it stops soon after one fifth"
    shop.orders([f"UNKNOWN{i}" for i in range(2000)])      # somebody found out why
    again = shop.daemon()
    again.wait_outcomes(2000 - letters, outcome="first")
    done = shop.world.idemctl(shop.config, "dead-letter", "redrive", "--outcome", "not_found")
    assert done.code == 0
    again.wait_outcomes(2000, outcome="first")
    wait_parked(shop, 0)
    assert shop.counts() == (2100, 2100, 2100, 2100)


def test_one_bad_record_is_no_flood(world):
    shop = Shop(world, limits={"dead_letter_share": 0.2})
    shop.orders(["N1"])
    daemon = shop.daemon()
    shop.send(*[payment(f"UNKNOWN{i}") for i in range(60)], payment("N1"))
    daemon.wait_outcomes(1, outcome="first")
    assert not daemon.select("paused")
