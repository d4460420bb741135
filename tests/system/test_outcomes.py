# SPDX-License-Identifier: MIT
"""Every outcome of the contract, one record at a time and in one batch, on both worlds: log line, rows, letters, events."""
import json

from lib import Record
from shop import Shop, payment, refund


def letters_by_outcome(shop):
    return {(r["outcome"], r["cause"]): r for r in shop.letters()}


def test_first_then_duplicate_leave_one_payment_and_the_whole_row(world):
    shop = Shop(world)
    shop.orders(["ORD-1001"], amount="100.00")
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(payment("ORD-1001", amount="100", txn="4200001", key="payment:ORD-1001:pay"))
    first = daemon.wait_outcomes(1)[0]
    shop.send(payment("ORD-1001", amount="100.00", txn="4200001", key="payment:ORD-1001:pay"),
              payment("ORD-1001", amount=100.0, txn="4200001"))
    outcomes = daemon.wait_outcomes(3)
    assert [o["outcome"] for o in outcomes] == ["first", "duplicate", "duplicate"]
    assert outcomes[1]["first_outcome"] == "first"
    assert first["key"] == "payment:ORD-1001:pay" and first["biz_no"] == "ORD-1001"
    assert first["rule"] == "paid" and first["biz_type"] == "payment" and first["action"] == "pay"
    assert first["topic"] == shop.topic and first["partition"] == "0" and first["offset"] == "0"
    assert first["request_id"] == f"{shop.topic}/0/0"

    order = shop.order("ORD-1001")
    assert (order["status"], order["channel_txn"]) == ("PAID", "4200001") and order["paid_at"] is not None
    row = shop.record("payment:ORD-1001:pay")
    assert row["status"] == 1 and row["outcome"] == "first" and row["attempts"] == 1
    assert row["params_hash"].hex() == "419dd243d53ef6fa8061037c85e45d24e422db2b503df07d9670b273d4b5b4a0"
    assert row["identity_hash"].hex() == "a2fef407c4b18430914b6abfd19b7bb7"
    assert row["response"] == '{"code":"SUCCESS","order_no":"ORD-1001"}'
    assert row["request_id"] is None and row["source"] == "kafka" and row["kafka_offset"] == 0
    hours = shop.db.value("SELECT TIMESTAMPDIFF(SECOND, updated_at, expires_at) FROM idem_record")
    assert abs(hours - 72 * 3600) <= 1
    event = shop.outbox()
    assert len(event) == 1
    assert event[0]["id"] == "a40e1c3e703b4159a1c8dd8dcb36a818"
    assert event[0]["payload"] == '{"order_no":"ORD-1001","amount":"100.00"}'
    assert event[0]["aggregateid"] == b"ORD-1001" and event[0]["headers"] is None
    assert shop.counts() == (1, 1, 1, 1) and shop.letters() == []
    shop.finished()
    assert daemon.stop() == 0
    progress = shop.db.one("SELECT * FROM idem_progress")
    assert progress["next_offset"] == 3 and progress["last_offset"] == 2
    assert len(progress["last_hash"]) == 16


def test_already_applied_when_the_row_was_paid_with_the_same_transaction(world):
    shop = Shop(world)
    shop.orders(["A1"], status="SHIPPED")
    shop.db.exec("UPDATE orders SET channel_txn = 'TA1'")
    daemon = shop.daemon()
    shop.send(payment("A1"))
    line = daemon.wait_outcomes(1)[0]
    assert line["outcome"] == "already_applied" and "cause" not in line
    row = shop.record("payment:A1:pay")
    assert (row["status"], row["outcome"]) == (1, "already_applied")
    assert json.loads(row["response"]) == {"code": "SUCCESS", "order_no": "A1"}
    assert shop.outbox() == [] and shop.letters() == []
    assert shop.db.value("SELECT COUNT(*) FROM payment_ledger") == 0
    assert shop.order("A1")["status"] == "SHIPPED"


def test_second_payment_by_another_transaction_is_told_once_with_its_refund_event(world):
    shop = Shop(world)
    shop.orders(["B1", "B2"])
    daemon = shop.daemon()
    shop.send(payment("B1"), payment("B1", txn="OTHER", key="supplied-key-1"), payment("B1", txn="OTHER2"),
              payment("B1", txn="OTHER", key="supplied-key-1"), payment("B2"))
    lines = daemon.wait_outcomes(5)
    got = [(o["outcome"], o.get("cause")) for o in lines if o["biz_no"] == "B1"]
    assert got == [("first", None), ("applied_by_other", "identity_mismatch"),
                   ("applied_by_other", "identity_mismatch"), ("applied_by_other", "identity_mismatch")]
    letters = shop.letters()
    assert [(r["outcome"], r["attempts"]) for r in letters] == [("applied_by_other", 2), ("applied_by_other", 1)]
    state = json.loads(letters[0]["row_state"])
    assert list(state) == ["status", "order_no", "channel_txn", "amount"]
    assert state == {"status": "PAID", "order_no": "B1", "channel_txn": "TB1", "amount": "19.99"}
    assert [json.loads(r["payload"])["channel_txn"] for r in shop.outbox("refund.due")] == ["OTHER", "OTHER2"]
    assert shop.record("supplied-key-1")["status"] == 2
    assert shop.record("payment:B1:pay")["status"] == 1, "the other's row stays"
    assert shop.counts() == (2, 2, 2, 2)


def test_identity_unknown_sends_no_refund_event(world):
    shop = Shop(world)
    shop.orders(["U1"], status="DONE")
    daemon = shop.daemon()
    shop.send(payment("U1"))
    line = daemon.wait_outcomes(1)[0]
    assert (line["outcome"], line["cause"]) == ("applied_by_other", "identity_unknown")
    assert shop.outbox() == [] and len(shop.letters()) == 1


def test_key_reused_with_other_number_and_with_other_fields(world):
    shop = Shop(world)
    shop.orders(["K1", "K2"])
    daemon = shop.daemon()
    shop.send(payment("K1", key="the-same-key"), payment("K2", key="the-same-key"),
              payment("K1", key="the-same-key", currency="USD"))
    lines = daemon.wait_outcomes(3)
    by = {(o["biz_no"], o["outcome"]): o.get("cause") for o in lines}
    assert by[("K1", "first")] is None
    assert by[("K2", "key_reused")] == "biz_no_mismatch"
    assert by[("K1", "key_reused")] == "fingerprint_mismatch"
    assert shop.order("K2")["status"] == "PENDING"
    assert len(shop.letters()) == 2 and shop.record("the-same-key")["biz_no"] == b"K1"


def test_state_conflicts_by_state_unknown_state_early_and_amount(world):
    shop = Shop(world)
    for no, status in (("S1", "CLOSED"), ("S2", "WEIRD"), ("S3", "CREATED"), ("S4", "PENDING")):
        shop.orders([no], status=status)
    daemon = shop.daemon()
    shop.send(payment("S1"), payment("S2"), payment("S3"), payment("S4", amount="19.98"))
    lines = daemon.wait_outcomes(4)
    assert {o["biz_no"]: (o["outcome"], o["cause"]) for o in lines} == {
        "S1": ("state_conflict", "state"), "S2": ("state_conflict", "unknown_state"),
        "S3": ("state_conflict", "early"), "S4": ("state_conflict", "amount_mismatch")}
    assert all(shop.record(f"payment:S{i}:pay")["status"] == 2 for i in range(1, 5))
    assert shop.record("payment:S1:pay")["response"] is None
    assert len(shop.letters()) == 4 and shop.counts() == (0, 0, 0, 0)


def test_closed_rows_are_judged_afresh_from_another_origin(world):
    shop = Shop(world)
    shop.orders(["F1"], status="CLOSED")
    daemon = shop.daemon()
    shop.send(payment("F1"))
    daemon.wait_outcomes(1)
    shop.send(payment("F1"))
    daemon.wait_outcomes(2)
    assert shop.record("payment:F1:pay")["attempts"] == 2
    assert [r["attempts"] for r in shop.letters()] == [2]
    shop.db.exec("UPDATE orders SET status = 'PENDING'")
    shop.send(payment("F1"), payment("F1"))
    lines = daemon.wait_outcomes(4)
    assert [o["outcome"] for o in lines] == ["state_conflict", "state_conflict", "first", "duplicate"]
    row = shop.record("payment:F1:pay")
    assert (row["status"], row["outcome"], row["attempts"], row["kafka_offset"]) == (1, "first", 3, 2)
    assert json.loads(row["response"]) == {"code": "SUCCESS", "order_no": "F1"}


def test_not_found_at_once_where_nothing_waits(world):
    shop = Shop(world)
    daemon = shop.daemon()
    shop.send(payment("NOBODY"))
    line = daemon.wait_outcomes(1)[0]
    assert (line["outcome"], line["cause"]) == ("not_found", "row_missing")
    letter = shop.letters()[0]
    assert letter["row_state"] is None and letter["idem_key"] == b"payment:NOBODY:pay"
    assert shop.record("payment:NOBODY:pay")["status"] == 2


def test_rejected_leaves_only_its_row_and_letter_and_spares_its_neighbours(world):
    shop = Shop(world)
    numbers = [f"R{i:03d}" for i in range(200)]
    shop.orders(numbers)
    bad = "x" * 65                                     # channel_txn VARCHAR(64)
    shop.send(*[payment(no, txn=bad if no == "R100" else None) for no in numbers])
    daemon = shop.daemon()
    lines = daemon.wait_outcomes(200)
    by = {o["biz_no"]: o["outcome"] for o in lines}
    assert by.pop("R100") == "rejected" and set(by.values()) == {"first"}
    letter = shop.letters()[0]
    assert (letter["outcome"], letter["cause"]) == ("rejected", "database") and letter["error_no"] == 1406
    assert shop.order("R100")["status"] == "PENDING"
    assert shop.record("payment:R100:pay")["status"] == 2
    assert shop.counts() == (199, 199, 199, 199)


def test_one_channel_transaction_for_two_orders_is_a_unique_conflict(world):
    shop = Shop(world)
    shop.orders(["Q1", "Q2"])
    daemon = shop.daemon()
    shop.send(payment("Q1", txn="SAME"), payment("Q2", txn="SAME"))
    lines = daemon.wait_outcomes(2)
    got = sorted((o["outcome"], o.get("cause", "")) for o in lines)
    assert got == [("first", ""), ("rejected", "unique_conflict")]
    assert shop.counts() == (1, 1, 1, 1)


def test_ledger_row_of_this_same_event_counts_as_done(world):
    shop = Shop(world)
    shop.orders(["L1"])
    shop.db.exec("INSERT INTO payment_ledger (order_no, channel_txn, amount) VALUES ('L1', 'TL1', 19.99)")
    daemon = shop.daemon()
    shop.send(payment("L1"))
    assert daemon.wait_outcomes(1)[0]["outcome"] == "first"
    assert shop.counts() == (1, 1, 1, 1)


def test_refunds_up_to_the_amount_and_not_beyond(world):
    shop = Shop(world)
    shop.orders(["P1"], status="PAID", amount="10.00")
    for i in range(1, 5):
        shop.db.exec("INSERT INTO refunds VALUES (%s, 'P1', 'APPLIED', 4.00)", [f"RF{i}"])
    daemon = shop.daemon()
    shop.send(refund("RF1", "P1", 400), refund("RF2", "P1", 400), refund("RF3", "P1", 400), refund("RF1", "P1", 400),
              refund("RF4", "P1", 200))
    lines = daemon.wait_outcomes(5)
    got = [(o["key"], o["outcome"], o.get("cause")) for o in sorted(lines, key=lambda o: int(o["offset"]))]
    assert got == [("refund:RF1:refund", "first", None), ("refund:RF2:refund", "first", None),
                   ("refund:RF3:refund", "state_conflict", "statement_count"),
                   ("refund:RF1:refund", "duplicate", None), ("refund:RF4:refund", "first", None)]
    order = shop.order("P1")
    assert (order["status"], str(order["refunded"])) == ("PART_REFUNDED", "10.00")
    status = {r["refund_no"]: r["status"] for r in shop.db.query("SELECT * FROM refunds")}
    assert status == {"RF1": "REFUNDED", "RF2": "REFUNDED", "RF3": "APPLIED", "RF4": "REFUNDED"}
    assert len(shop.letters()) == 1


def test_invalid_and_ignored_records_have_an_outcome_each(world):
    shop = Shop(world)
    shop.orders(["I1"])
    daemon = shop.daemon()
    shop.send(
        Record(key="k", value=b"{broken", partition=0), Record(key="k", value=b"", partition=0),
        Record(key="k", value=None, partition=0), Record(key="k", value={"status": "SUCCESS"}, partition=0),
        Record(key="k", value={"nothing": "known"}, partition=0), payment("I1", amount="19.991"), payment("I1"))
    lines = sorted(daemon.wait_outcomes(7), key=lambda o: int(o["offset"]))
    assert [(o["outcome"], o.get("cause")) for o in lines] == [
        ("invalid", "body"), ("invalid", "body"), ("ignored", "tombstone"), ("invalid", "key_missing"),
        ("invalid", "unmatched"), ("invalid", "scale"), ("first", None)]
    letters = shop.letters()
    assert len(letters) == 5
    assert letters[0]["payload"] == b"{broken" and letters[0]["idem_key"] == b""
    shop.finished()


def test_one_order_s_records_in_one_batch_are_judged_in_their_order(world):
    """Everything is in the topic before the daemon starts, so that one batch sees it all."""
    shop = Shop(world)
    shop.orders(["W1", "W2", "W3"])
    shop.db.exec("UPDATE orders SET status = 'CLOSED' WHERE order_no = 'W3'")
    shop.db.exec("INSERT INTO refunds VALUES ('RW1', 'W1', 'APPLIED', 5.00)")
    shop.send(
        payment("W1", key="first-key-w1"), payment("W1", key="first-key-w1"), payment("W1", key="second-key-w1"),
        payment("W1", txn="ELSE", key="third-key-w1"), refund("RW1", "W1", 500),
        payment("W2", amount="1.00", key="wrong-key-w2"), payment("W2", key="right-key-w2"),
        payment("W3"), payment("W3"), payment("W3", txn="ELSE"))
    daemon = shop.daemon()
    lines = sorted(daemon.wait_outcomes(10), key=lambda o: int(o["offset"]))
    assert [(o["outcome"], o.get("cause")) for o in lines] == [
        ("first", None), ("duplicate", None), ("already_applied", None),
        ("applied_by_other", "identity_mismatch"), ("first", None),
        ("state_conflict", "amount_mismatch"), ("first", None),
        ("state_conflict", "state"), ("state_conflict", "state"), ("state_conflict", "state")]
    assert shop.record("payment:W3:pay")["attempts"] == 3
    attempts = {(r["idem_key"], r["params_hash"] if "params_hash" in r else r["id"]): r["attempts"]
                for r in shop.letters() if r["biz_no"] == b"W3"}
    assert sorted(attempts.values()) == [1, 2]
