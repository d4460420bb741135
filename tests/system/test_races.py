# SPDX-License-Identifier: MIT
"""Races on real servers: instances against each other, sessions against sessions, connections cut at the worst moment."""
import threading

import pytest

from lib import DELIVERED, NOT_DELIVERED, Record, error, wait_until
from shop import Shop, payment


def test_a_hundred_producers_with_one_key_pay_once(world):
    shop = Shop(world, partitions=4)
    shop.orders(["ONE"])
    daemon = shop.daemon()
    daemon.wait_ready()
    threads = [threading.Thread(target=lambda i=i: shop.send(payment("ONE", key="one-key-for-all", partition=i % 4)))
               for i in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    lines = daemon.wait_outcomes(100)
    assert sorted(o["outcome"] for o in lines) == ["duplicate"] * 99 + ["first"]
    assert shop.counts() == (1, 1, 1, 1)


def test_three_instances_on_one_group_with_the_same_orders_in_every_partition(world):
    shop = Shop(world, partitions=6)
    numbers = [f"G{i:04d}" for i in range(1500)]
    shop.orders(numbers)
    daemons = [shop.daemon(name=f"instance{i}") for i in range(3)]
    for daemon in daemons:
        daemon.wait_ready()
    shop.send(*[payment(no, partition=p) for p in (0, 3, 5) for no in numbers])
    shop.finished(timeout=120)
    for daemon in daemons:
        assert daemon.stop() == 0
    firsts = [o["key"] for d in daemons for o in d.outcomes(outcome="first")]
    assert len(firsts) == len(set(firsts)) == 1500
    assert shop.counts() == (1500, 1500, 1500, 1500) and shop.letters() == []


def test_instances_come_and_go_and_nothing_is_lost_or_doubled(world):
    shop = Shop(world, partitions=6)
    numbers = [f"H{i:05d}" for i in range(6000)]
    shop.orders(numbers)
    first = shop.daemon(name="a")
    first.wait_ready()
    for i in range(0, 6000, 1000):
        shop.send(*[payment(no, partition=k % 6) for k, no in enumerate(numbers[i:i + 1000])])
        other = shop.daemon(name=f"b{i}")
        other.wait_ready()
        shop.send(*[payment(no, partition=k % 6) for k, no in enumerate(numbers[i:i + 1000]) if k % 3 == 0])
        assert other.stop() == 0
    shop.finished(timeout=120)
    assert first.stop() == 0
    assert shop.counts() == (6000,) * 4 and shop.letters() == []


def test_a_session_that_holds_one_order_holds_no_neighbour(world):
    shop = Shop(world)
    numbers = [f"L{i:03d}" for i in range(200)]
    shop.orders(numbers)
    holder = shop.db.connect()
    with holder.cursor() as cursor:
        cursor.execute("SELECT * FROM orders WHERE order_no = 'L050' FOR UPDATE")
    daemon = shop.daemon()
    shop.send(*[payment(no) for no in numbers])
    lines = daemon.wait_outcomes(199)
    assert "L050" not in [o["biz_no"] for o in lines]
    daemon.wait_event("set_aside")
    wait_until(lambda: shop.counts()[0] == 199, what="199 neighbours paid")
    committed = world.kafka.committed(shop.group, shop.topic)
    assert committed.get(0, 0) <= 50, "its offset waits"
    assert shop.db.value("SELECT COUNT(*) FROM idem_record WHERE biz_no = 'L050'") == 0
    shop.send(payment("L050"), payment("L050", key="another-key-of-it"))
    holder.rollback()
    holder.close()
    lines = daemon.wait_outcomes(202)
    of_it = [o["outcome"] for o in lines if o["biz_no"] == "L050"]
    assert of_it == ["first", "duplicate", "already_applied"]
    shop.finished()


def test_killed_connections_in_the_middle_of_transactions(world):
    shop = Shop(world, partitions=3)
    numbers = [f"X{i:05d}" for i in range(6000)]
    shop.orders(numbers)
    shop.send(*[payment(no, partition=i % 3) for i, no in enumerate(numbers)])
    daemon = shop.daemon()
    daemon.wait_ready()
    killed = 0
    for _ in range(8):
        killed += world.server.kill_sessions(shop.db.user)
        count = shop.counts()[0]
        wait_until(lambda: shop.counts()[0] > count or shop.counts()[0] == 6000, what="progress after a kill")
    assert killed > 0
    shop.finished()
    assert daemon.stop() == 0
    assert shop.counts() == (6000,) * 4 and shop.letters() == []
    firsts = [o["key"] for o in daemon.outcomes(outcome="first")]
    assert len(firsts) == len(set(firsts)) == 6000


@pytest.mark.parametrize("fate", [DELIVERED, NOT_DELIVERED], ids=["delivered", "not_delivered"])
def test_the_answer_to_commit_is_swallowed(world, fate):
    shop = Shop(world)
    proxy = world.proxy()
    shop.config["databases"]["shop"]["port"] = proxy.port
    shop.config["databases"]["shop"]["connections"] = 1
    numbers = [f"D{i:03d}" for i in range(100)]
    shop.orders(numbers)
    daemon = shop.daemon()
    daemon.wait_ready()
    rule = proxy.on("COMMIT", fate)
    shop.send(*[payment(no) for no in numbers])
    rule.wait()
    daemon.wait_outcomes(100)
    shop.finished()
    assert daemon.stop() == 0
    lines = daemon.outcomes()
    assert [o["outcome"] for o in lines] == ["first"] * 100, "its own commit is no duplicate"
    assert shop.counts() == (100,) * 4


def test_deadlocks_in_the_middle_of_a_batch_are_run_again(world):
    shop = Shop(world)
    numbers = [f"E{i:03d}" for i in range(100)]
    shop.orders(numbers)
    proxy = world.proxy()
    shop.config["databases"]["shop"]["port"] = proxy.port
    deadlock = proxy.on("UPDATE", error(1213, "40001", "Deadlock found when trying to get lock"), times=3)
    shop.send(*[payment(no) for no in numbers])
    daemon = shop.daemon()
    daemon.wait_event("tx_retry")
    shop.finished()
    assert deadlock.hits == 3
    assert shop.counts() == (100,) * 4 and shop.letters() == []
    assert daemon.stop() == 0


def test_a_real_deadlock_with_the_shop_s_own_session(world):
    shop = Shop(world)
    shop.orders(["M1", "M2"])
    holder = shop.db.connect()
    with holder.cursor() as cursor:
        cursor.execute("UPDATE orders SET amount = amount WHERE order_no = 'M2'")
        cursor.execute("SELECT * FROM orders WHERE order_no = 'M2' FOR UPDATE")
    daemon = shop.daemon()
    shop.send(payment("M1"), payment("M2"))
    # The daemon now holds M1 or waits for M2; asking for M1 may close the circle. Whoever loses, nothing is lost.
    try:
        with holder.cursor() as cursor:
            cursor.execute("SELECT * FROM orders WHERE order_no = 'M1' FOR UPDATE")
        holder.commit()
    except Exception:
        holder.rollback()
    holder.close()
    daemon.wait_outcomes(2)
    shop.finished()
    assert shop.counts() == (2,) * 4


def test_read_only_just_before_commit_commits_nothing_and_comes_back(world):
    shop = Shop(world)
    numbers = [f"Z{i:03d}" for i in range(50)]
    shop.orders(numbers)
    proxy = world.proxy()
    shop.config["databases"]["shop"]["port"] = proxy.port
    refused = proxy.on("COMMIT", error(1290, "HY000", "The server is running with the --read-only option"), times=1)
    shop.send(*[payment(no) for no in numbers])
    daemon = shop.daemon()
    refused.wait()
    shop.finished()
    assert shop.counts() == (50,) * 4
    assert daemon.stop() == 0


def test_read_only_flipped_on_the_server_pauses_and_resumes(world):
    shop = Shop(world)
    shop.orders(["RO1", "RO2"])
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(payment("RO1"))
    daemon.wait_outcomes(1)
    # The daemon's account has no SUPER or READ_ONLY ADMIN: it is refused as any other.
    world.server.set_global("read_only", "ON")
    try:
        shop.send(payment("RO2"))
        daemon.wait_event("paused", timeout=60, why="unreachable")
        assert daemon.alive and shop.order("RO2")["status"] == "PENDING"
    finally:
        world.server.set_global("read_only", "OFF")
    daemon.wait_outcomes(2)
    assert shop.counts() == (2,) * 4 and shop.letters() == []


@pytest.mark.parametrize("spread", ["one_batch", "two_batches", "two_instances"])
def test_two_payments_of_one_order(world, spread):
    shop = Shop(world, partitions=2)
    shop.orders(["TWO"])
    one, other = payment("TWO", key="payment-one", partition=0), payment("TWO", txn="OTHER", key="payment-two", partition=1)
    if spread == "one_batch":
        shop.send(one, other)
        daemons = [shop.daemon()]
    elif spread == "two_batches":
        daemons = [shop.daemon()]
        shop.send(one)
        daemons[0].wait_outcomes(1)
        shop.send(other)
    else:
        daemons = [shop.daemon(name="a"), shop.daemon(name="b")]
        for daemon in daemons:
            daemon.wait_ready()
        shop.send(one, other)
    wait_until(lambda: sum(len(d.outcomes()) for d in daemons) >= 2, what="two outcomes")
    outcomes = sorted(o["outcome"] for d in daemons for o in d.outcomes())
    assert outcomes == ["applied_by_other", "first"]
    assert shop.counts() == (1, 1, 1, 1) and len(shop.outbox("refund.due")) == 1


def test_configuration_faults_pause_and_empty_no_topic(world):
    shop = Shop(world)
    numbers = [f"N{i:03d}" for i in range(20)]
    shop.orders(numbers)
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.db.exec("RENAME TABLE payment_ledger TO payment_ledger_away")
    shop.send(*[payment(no) for no in numbers])
    daemon.wait_event("paused", why="config")
    assert daemon.alive and daemon.outcomes() == [] and shop.letters() == []
    shop.db.exec("RENAME TABLE payment_ledger_away TO payment_ledger")
    daemon.wait_outcomes(20)
    daemon.wait_event("resumed", why="config")
    assert shop.counts() == (20,) * 4 and shop.letters() == []


def test_database_down_for_a_while_loses_nothing(world):
    shop = Shop(world)
    numbers = [f"V{i:03d}" for i in range(300)]
    shop.orders(numbers)
    proxy = world.proxy()
    shop.config["databases"]["shop"]["port"] = proxy.port
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(*[payment(no) for no in numbers[:100]])
    daemon.wait_outcomes(100)
    proxy.refuse(True)
    proxy.cut()
    shop.send(*[payment(no) for no in numbers[100:]])
    daemon.wait_event("paused", why="unreachable")
    assert daemon.alive and world.kafka.members(shop.group) == 1
    proxy.refuse(False)
    daemon.wait_event("resumed", why="unreachable")
    daemon.wait_outcomes(300)
    shop.finished()
    assert shop.counts() == (300,) * 4


def test_offsets_never_pass_unfinished_work_while_the_database_is_away(world):
    shop = Shop(world)
    shop.orders(["Y1", "Y2"])
    proxy = world.proxy()
    shop.config["databases"]["shop"]["port"] = proxy.port
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.send(payment("Y1"))
    shop.finished()
    proxy.refuse(True)
    proxy.cut()
    shop.send(payment("Y2"))
    daemon.wait_event("paused")
    assert daemon.stop() == 0
    assert world.kafka.committed(shop.group, shop.topic) == {0: 1}
    proxy.refuse(False)
    again = shop.daemon(name="again")
    assert again.wait_outcomes(1)[0]["biz_no"] == "Y2"
    assert shop.counts() == (2,) * 4
