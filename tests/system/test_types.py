# SPDX-License-Identifier: MIT
"""Typed values: MySQL must never compare as DOUBLE or by collation and pay a stranger."""
import pytest

from lib import Record
from shop import Shop, TABLES, payment, rules

BIG = [9007199254740992, 9007199254740993, 9007199254740994, 1000000000000000005, 1000000000000000006,
       9223372036854775807]


def orders_table(column):
    """The shop's tables with another type of orders.order_no."""
    old = "order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,\n  status"
    assert old in TABLES
    tables = TABLES.replace(old, f"order_no {column} NOT NULL,\n  status", 1)
    return tables.replace("order_no VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL",
                          "order_no VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")


def paid(shop):
    return [r["order_no"] for r in shop.db.query("SELECT order_no FROM orders WHERE status = 'PAID' ORDER BY order_no")]


@pytest.mark.parametrize("column", ["BIGINT", "BIGINT UNSIGNED", "DECIMAL(20,0)"])
def test_numbers_of_nineteen_digits_do_not_fall_together(world, column):
    shop = Shop(world, tables=orders_table(column))
    shop.orders(BIG)
    daemon = shop.daemon()
    chosen = BIG[1::2]
    # As JSON numbers and as texts, two of each wave's neighbours left alone.
    shop.send(*[Record(key=str(no), value='{"order_no":%s,"amount":"19.99","channel_txn":"T%d","status":"SUCCESS"}'
                       % (no if i % 2 else f'"{no}"', no)) for i, no in enumerate(chosen)])
    lines = daemon.wait_outcomes(3)
    assert [o["outcome"] for o in lines] == ["first"] * 3
    assert [int(n) for n in paid(shop)] == sorted(chosen)
    assert shop.record(f"payment:{chosen[0]}:pay") is not None


def test_text_that_is_no_number_touches_no_row_of_a_number_column(world):
    shop = Shop(world, tables=orders_table("BIGINT UNSIGNED"))
    shop.orders([0, 1, 12, 123])
    daemon = shop.daemon()
    texts = ["abc", "12abc", "1e2", "0x0c", " 12", "012", "-0", "99999999999999999999", "12.0", "+1"]
    shop.send(*[payment(t) for t in texts])
    lines = daemon.wait_outcomes(len(texts))
    assert {o["outcome"] for o in lines} <= {"invalid", "not_found"}
    assert {o["biz_no"]: o["outcome"] for o in lines}["99999999999999999999"] == "not_found"
    assert paid(shop) == []


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_unicode_ci"])
def test_twins_of_a_collation_are_not_paid_for_each_other(world, collation):
    shop = Shop(world, tables=orders_table(f"VARCHAR(64) CHARACTER SET utf8mb4 COLLATE {collation}"))
    shop.orders(["pay-1", "other-1"])
    daemon = shop.daemon()
    twins = ["PAY-1", "pay-1 ", "páy-1", "Pay-1"]
    shop.send(*[payment(t, txn=f"TW{i}") for i, t in enumerate(twins)])
    lines = daemon.wait_outcomes(len(twins))
    assert {o["outcome"] for o in lines} == {"not_found"}
    assert paid(shop) == []
    shop.send(payment("pay-1"))
    assert daemon.wait_outcomes(5)[-1]["outcome"] == "first"
    assert paid(shop) == ["pay-1"]


def test_keys_that_a_collation_would_merge_are_keys_of_their_own(world):
    shop = Shop(world)
    shop.orders(["C1", "C2", "C3"])
    daemon = shop.daemon()
    shop.send(payment("C1", key="order-key-a"), payment("C2", key="ORDER-KEY-A"), payment("C3", key="Order-Key-A"))
    assert [o["outcome"] for o in daemon.wait_outcomes(3)] == ["first"] * 3
    assert shop.counts() == (3,) * 4


def test_characters_that_a_charset_cannot_hold_match_no_row(world):
    shop = Shop(world, tables=orders_table("VARCHAR(64) CHARACTER SET latin1 COLLATE latin1_swedish_ci"))
    shop.orders(["??1", "A1"])
    daemon = shop.daemon()
    shop.send(payment("订单1", txn="T1"), payment("A1"))
    lines = daemon.wait_outcomes(2)
    assert {o["biz_no"]: o["outcome"] for o in lines} == {"订单1": "not_found", "A1": "first"}
    assert paid(shop) == ["A1"]


def test_unicode_numbers_work_where_the_column_can_hold_them(world):
    shop = Shop(world, tables=orders_table("VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
    shop.orders(["订单1", "订单2"])
    daemon = shop.daemon()
    shop.send(payment("订单1", txn="T1"))
    line = daemon.wait_outcomes(1)[0]
    assert line["outcome"] == "first" and line["key"] == "payment:%E8%AE%A2%E5%8D%951:pay"
    assert paid(shop) == ["订单1"]


@pytest.mark.parametrize("amount", ["99999999999999999.99", "0.01", "123456789012345678.90"])
def test_money_keeps_its_digits(world, amount):
    shop = Shop(world)
    shop.orders(["M1"], amount=amount)
    daemon = shop.daemon()
    shop.send(Record(key="M1", value='{"order_no":"M1","amount":%s,"channel_txn":"TM1","status":"SUCCESS"}' % amount))
    assert daemon.wait_outcomes(1)[0]["outcome"] == "first"
    assert str(shop.db.value("SELECT amount FROM payment_ledger")) == amount
    assert f'"amount":"{amount}"' in shop.outbox()[0]["payload"]


def test_states_are_compared_bytewise(world):
    tables = TABLES.replace("status VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'PENDING'",
                            "status VARCHAR(16) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NOT NULL")
    shop = Shop(world, tables=tables)
    shop.orders(["B1"], status="pending")
    shop.orders(["B2"], status="PENDING")
    daemon = shop.daemon()
    shop.send(payment("B1"), payment("B2"))
    lines = daemon.wait_outcomes(2)
    assert {o["biz_no"]: (o["outcome"], o.get("cause")) for o in lines} == {
        "B1": ("state_conflict", "unknown_state"), "B2": ("first", None)}


@pytest.mark.parametrize("change", [
    "ALTER TABLE orders DROP INDEX uk_no", "HIDE", "ALTER TABLE orders DROP INDEX uk_no, ADD INDEX k_no (order_no)"])
def test_a_rule_without_its_unique_index_is_refused(world, change):
    shop = Shop(world)
    shop.orders(["X1"])
    if change == "HIDE":
        change = ("ALTER TABLE orders ALTER INDEX uk_no IGNORED" if world.name == "mariadb"
                  else "ALTER TABLE orders ALTER INDEX uk_no INVISIBLE")
    shop.db.exec(change)
    shop.send(payment("X1"))
    daemon = shop.daemon()
    assert daemon.wait_exit() == 78
    assert shop.order("X1")["status"] == "PENDING"
    checked = world.idemctl(shop.config, "--json", "check")
    assert checked.code == 1
    assert "no_unique_index" in [f["code"] for f in checked.json["findings"]]


def test_a_strict_server_mode_is_set_even_where_the_server_is_lax(world):
    shop = Shop(world)
    shop.orders(["S1"])
    before = world.server.get_global("sql_mode")
    world.server.set_global("sql_mode", "")
    try:
        daemon = shop.daemon()
        shop.send(payment("S1", txn="y" * 65))
        line = daemon.wait_outcomes(1)[0]
        assert (line["outcome"], line["cause"]) == ("rejected", "database")
        assert shop.order("S1")["status"] == "PENDING"
        assert daemon.stop() == 0
    finally:
        world.server.set_global("sql_mode", before)


def test_integer_and_boolean_identity_and_time_columns(world):
    changed = rules()
    rule = changed["rules"][0]
    rule["fields"]["paid_time"] = {"at": "/paid_at", "type": "time", "format": "rfc3339"}
    rule["transition"]["set"] = {"paid_at": "paid_time", "channel_txn": "/channel_txn"}
    shop = Shop(world, topic_rules=changed)
    shop.orders(["T1"])
    daemon = shop.daemon()
    shop.send(payment("T1", paid_at="2026-12-01T03:00:00.125+08:00"))
    assert daemon.wait_outcomes(1)[0]["outcome"] == "first"
    zone = shop.config["databases"]["shop"].get("time_zone", "+00:00")
    expected = {"+00:00": "2026-11-30 19:00:00.125", "+08:00": "2026-12-01 03:00:00.125"}[zone]
    assert str(shop.order("T1")["paid_at"])[:23] == expected


def test_the_identity_is_a_moment_in_the_shops_zone(world):
    """Stored as the shop's local time, compared as the moment that it is, whatever zone the callback is written in."""
    changed = rules()
    rule = changed["rules"][0]
    rule["key"] = ["header Idempotency-Key"]
    rule["fields"]["at"] = {"at": "/paid_at", "type": "time", "format": "rfc3339"}
    rule["identity"] = {"paid_at": "at"}
    rule["fingerprint"]["fields"] = ["/order_no", "amount", "at"]
    rule["transition"]["set"] = {"paid_at": "at"}
    rule["insert"] = []
    shop = Shop(world, topic_rules=changed)
    shop.config["databases"]["shop"]["time_zone"] = "+08:00"
    shop.orders(["Z1"])
    daemon = shop.daemon()
    shop.send(payment("Z1", key="first-key", paid_at="2026-12-01T03:00:00.125+08:00"),
              payment("Z1", key="same-moment", paid_at="2026-11-30T19:00:00.125Z"),
              payment("Z1", key="another-moment", paid_at="2026-12-01T03:00:00.126+08:00"))
    daemon.wait_outcomes(3)
    got = {o["key"]: (o["outcome"], o.get("cause", "")) for o in daemon.outcomes()}
    assert got == {"first-key": ("first", ""), "same-moment": ("already_applied", ""),
                   "another-moment": ("applied_by_other", "identity_mismatch")}
    assert str(shop.order("Z1")["paid_at"])[:23] == "2026-12-01 03:00:00.125"


def test_a_date_is_no_moment(world):
    changed = rules()
    rule = changed["rules"][0]
    rule["fields"]["at"] = {"at": "/paid_at", "type": "time", "format": "rfc3339"}
    rule["transition"]["require"] = {"paid_on": "at"}
    shop = Shop(world, topic_rules=changed)
    shop.db.exec("ALTER TABLE orders ADD paid_on DATE NULL")
    found = shop.world.idemctl(shop.config, "--json", "check").json["findings"]
    assert [f["code"] for f in found if f["severity"] == "error"] == ["column_type"]
    daemon = shop.daemon()
    assert daemon.wait_exit() == 78


def test_a_unique_index_lost_while_running_pauses_and_touches_no_stranger(world):
    shop = Shop(world)
    shop.orders(["L1"])
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.db.exec("ALTER TABLE orders DROP INDEX uk_no, ADD INDEX uk_no (order_no)")
    shop.db.exec("INSERT INTO orders (order_no, status, amount) VALUES ('L1', 'PENDING', 19.99)")
    world.server.kill_sessions(shop.db.user)           # a new connection looks at the indexes first
    shop.send(payment("L1"))
    daemon.wait_event("paused", why="config")
    assert paid(shop) == [] and daemon.alive and shop.letters() == []
    shop.db.exec("DELETE FROM orders ORDER BY id DESC LIMIT 1")
    shop.db.exec("ALTER TABLE orders DROP INDEX uk_no, ADD UNIQUE INDEX uk_no (order_no)")
    daemon.wait_event("resumed", why="config")
    assert daemon.wait_outcomes(1)[0]["outcome"] == "first"
    assert paid(shop) == ["L1"]
