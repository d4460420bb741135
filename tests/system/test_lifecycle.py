# SPDX-License-Identifier: MIT
"""The life of the process: what systemd is told, exit codes, waiting for servers, stopping while the database is away."""
import signal
import socket

from lib import Record, wait_until
from shop import Shop, payment, rules


def test_systemd_hears_ready_and_stopping(world):
    shop = Shop(world)
    path = world.tmp / "notify"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(str(path))
    path.chmod(0o777)
    listener.settimeout(30)
    heard = []

    def hear(word):
        while not any(word in text for text in heard):
            heard.append(listener.recv(4096).decode())
        return True

    daemon = shop.daemon(env={"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "10000000"})
    assert hear("READY=1")
    daemon.wait_event("ready")
    assert hear("WATCHDOG=1")
    assert daemon.stop() == 0
    assert hear("STOPPING=1")
    assert [t for t in heard if "READY=1" in t] and heard[0].startswith("STATUS=waiting")
    listener.close()


def test_usage_and_mistakes_in_the_file(world):
    assert world.idemd_check("version: 1\n").code == 78
    done = world.binaries.run("idemd", "--nonsense")
    assert done.code == 64 and "usage: idemd" in done.stderr


def test_tables_that_are_missing_are_78(world):
    shop = Shop(world)
    shop.db.exec("DROP TABLE idem_schema")
    assert shop.daemon().wait_exit() == 78


def test_a_server_that_never_comes_is_69_and_a_stop_meanwhile_is_0(world):
    shop = Shop(world, start_timeout="2s")
    shop.config["databases"]["shop"]["port"] = 1
    assert shop.daemon().wait_exit() == 69
    shop.config["start_timeout"] = "60s"
    daemon = shop.daemon(name="stopped")
    daemon.wait_event("paused", why="unreachable")
    assert daemon.stop() == 0


def test_a_topic_that_is_missing_is_waited_for(world):
    shop = Shop(world, start_timeout="40s")
    name = shop.topic + "-late"
    shop.config["topics"] = {name: {"database": "shop", **rules()}}
    daemon = shop.daemon()
    daemon.wait_event("paused", why="unreachable")
    world.kafka.create_topic(name)
    daemon.wait_ready()
    assert daemon.stop() == 0


def test_a_wrong_password_at_start_is_78(world):
    shop = Shop(world)
    secret = world.tmp / "wrong"
    secret.write_text("wrong\n")
    secret.chmod(0o644)
    shop.config["databases"]["shop"]["password_file"] = str(secret)
    assert shop.daemon().wait_exit() == 78


def test_a_changed_password_is_read_again_without_a_restart(world):
    shop = Shop(world)
    shop.orders(["P1"])
    daemon = shop.daemon()
    daemon.wait_ready()
    shop.db.server.admin(f"ALTER USER {shop.db.user}@'%' IDENTIFIED BY 'another'")
    world.server.kill_sessions(shop.db.user)
    shop.send(payment("P1"))
    daemon.wait_event("paused", why="config")
    shop.db.password_file.write_text("another\n")
    assert daemon.wait_outcomes(1)[0]["outcome"] == "first"
    daemon.wait_event("resumed", why="config")


def test_term_under_load_finishes_what_it_has(world):
    shop = Shop(world, partitions=3)
    numbers = [f"T{i:05d}" for i in range(5000)]
    shop.orders(numbers)
    shop.send(*[payment(no, partition=i % 3) for i, no in enumerate(numbers)])
    daemon = shop.daemon()
    daemon.wait_outcomes(200)
    assert daemon.stop() == 0
    done = shop.counts()[0]
    committed = sum(world.kafka.committed(shop.group, shop.topic).values())
    assert committed == done, "offsets and payments agree to the record"
    again = shop.daemon(name="again")
    again.wait_ready()
    shop.finished()
    assert again.stop() == 0
    assert shop.counts() == (5000,) * 4
    assert not [o for o in again.outcomes() if o["outcome"] != "first"], "nothing was read twice"


def test_hangup_is_refused_and_does_no_harm(world):
    shop = Shop(world)
    shop.orders(["H1"])
    daemon = shop.daemon()
    daemon.wait_ready()
    daemon.signal(signal.SIGHUP)
    daemon.wait_event("reload_refused")
    shop.send(payment("H1"))
    assert daemon.wait_outcomes(1)[0]["outcome"] == "first"


def test_a_position_that_is_gone_stops_its_partition_and_skips_nothing(world):
    shop = Shop(world)
    shop.orders(["G1", "G2", "G3"])
    shop.send(payment("G1"), payment("G2"), payment("G3"))
    world.kafka.commit(shop.group, shop.topic, {0: 1})
    world.kafka.delete_records(shop.topic, {0: 2})
    daemon = shop.daemon()
    daemon.wait_event("paused", why="offset_gone")
    assert daemon.alive and shop.counts()[0] == 0


def test_memory_stays_small_over_large_records(world):
    shop = Shop(world)
    topic = world.kafka.create_topic(max_message_bytes=2 << 20)
    shop.topic = topic
    shop.config = world.config(shop.db, {topic: rules()})
    shop.group = shop.config["kafka"]["group"]
    shop.orders([f"B{i:03d}" for i in range(150)])
    for i in range(0, 150, 10):
        shop.send(*[Record(key=f"B{k:03d}", value={
            "order_no": f"B{k:03d}", "amount": "19.99", "channel_txn": f"TB{k:03d}", "status": "SUCCESS",
            "filler": "x" * 900000}) for k in range(i, i + 10)])
    daemon = shop.daemon()
    shop.finished(timeout=120)
    assert shop.counts() == (150,) * 4
    now, peak = daemon.rss_kib()
    assert peak < 300 * 1024, f"peak {peak} KiB"
    wait_until(lambda: len(daemon.outcomes()) == 150, what="150 outcomes")
