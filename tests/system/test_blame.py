# SPDX-License-Identifier: MIT
"""Who is to blame: a record that ends its sessions or fails alone, or the server that fails everybody."""
import pytest

from lib import NOT_DELIVERED, error, wait_until
from shop import Shop, payment


def behind_proxy(world, connections=2, **more):
    shop = Shop(world, **more)
    proxy = world.proxy()
    shop.config["databases"]["shop"].update(port=proxy.port, connections=connections)
    return shop, proxy


@pytest.mark.parametrize("number", [1114, 1040, 1206])
def test_a_server_without_room_is_nobodys_fault(world, number):
    shop, proxy = behind_proxy(world)
    numbers = [f"R{i:03d}" for i in range(300)]
    shop.orders(numbers)
    daemon = shop.daemon()
    daemon.wait_ready()
    rule = proxy.on("INSERT INTO idem_record", error(number, text="no room"), times=8)
    shop.send(*[payment(no) for no in numbers])
    daemon.wait_event("paused", why="unreachable", errno=number)
    wait_until(lambda: rule.hits >= 8, what="eight refusals")
    daemon.wait_outcomes(300)
    daemon.wait_event("resumed", why="unreachable")
    shop.finished()
    assert daemon.stop() == 0
    assert not daemon.select("bisect") and shop.counts() == (300,) * 4 and shop.letters() == []


@pytest.mark.parametrize("connections", [1, 2])
def test_a_record_that_ends_its_sessions_holds_up_no_neighbour(world, connections):
    shop, proxy = behind_proxy(world, connections)
    numbers = [f"K{i:03d}" for i in range(100)]
    shop.orders(numbers)
    daemon = shop.daemon()
    daemon.wait_ready()
    rule = proxy.on("TKILLER", NOT_DELIVERED, times=1000000, contains=True)
    shop.send(*[payment(no, txn="TKILLER" if no == "K050" else None) for no in numbers])
    wait_until(lambda: shop.counts()[0] == 99, timeout=120, what="99 neighbours paid")
    daemon.wait_event("set_aside", timeout=60, offset=50)
    assert shop.letters() == [], "a lost connection is no refusal"
    rule.remove()
    daemon.wait_outcomes(100, timeout=90)
    shop.finished()
    assert daemon.stop() == 0 and shop.counts() == (100,) * 4 and shop.letters() == []


def test_a_number_in_no_list_is_poison_once_another_of_its_rule_was_applied(world):
    shop, proxy = behind_proxy(world)
    shop.orders(["P1", "P2", "P3"])
    shop.db.exec("UPDATE orders SET status = 'CLOSED' WHERE order_no = 'P2'")
    daemon = shop.daemon()
    daemon.wait_ready()
    rule = proxy.on("'TPOISON'", error(1105, text="an engine's own trouble"), times=1000000, contains=True)
    shop.send(payment("P1", txn="TPOISON"))
    daemon.wait_event("set_aside", offset=0)
    # Judged and committed, but it never went where the other fails.
    shop.send(payment("P2"))
    daemon.wait_outcomes(1, outcome="state_conflict")
    hits = rule.hits
    wait_until(lambda: rule.hits > hits, what="another try")
    assert not daemon.outcomes(outcome="rejected")
    shop.send(payment("P3"))
    daemon.wait_outcomes(1, outcome="first")
    assert daemon.wait_outcomes(1, timeout=90, outcome="rejected")[0]["biz_no"] == "P1"
    shop.finished()
    assert daemon.stop() == 0
    assert sorted(letter["outcome"] for letter in shop.letters()) == ["rejected", "state_conflict"]
    assert shop.order("P1")["status"] == "PENDING"


def test_a_record_whose_letter_is_refused_too_waits_and_stops_nobody(world):
    shop, proxy = behind_proxy(world, connections=1)
    shop.orders(["L1", "L2", "L3"])
    daemon = shop.daemon()
    daemon.wait_ready()
    rule = proxy.on("TPOISON", error(1105, text="an engine's own trouble"), times=1000000, contains=True)
    shop.send(payment("L1", txn="TPOISON"))
    daemon.wait_event("set_aside", offset=0)
    shop.send(payment("L2"))
    daemon.wait_outcomes(1)
    daemon.wait_event("set_aside", offset=0, attempt=2)
    shop.send(payment("L3"))
    daemon.wait_outcomes(2)
    daemon.wait_event("set_aside", offset=0, attempt=3)
    rule.remove()
    daemon.wait_outcomes(3)
    shop.finished()
    assert daemon.stop() == 0 and shop.counts() == (3,) * 4 and shop.letters() == []


def test_a_number_in_no_list_that_fails_everybody_empties_no_topic(world):
    shop, proxy = behind_proxy(world)
    numbers = [f"E{i:02d}" for i in range(20)]
    shop.orders(numbers)
    daemon = shop.daemon()
    daemon.wait_ready()
    rule = proxy.on("UPDATE", error(1105, text="an engine's own trouble"), times=1000000)
    shop.send(*[payment(no) for no in numbers])
    wait_until(lambda: len({e["offset"] for e in daemon.select("set_aside", attempt=2)}) == 20, timeout=90,
               what="every record to fail twice")
    assert daemon.outcomes() == []
    rule.remove()
    daemon.wait_outcomes(20, timeout=90)
    assert shop.counts() == (20,) * 4 and shop.letters() == []
