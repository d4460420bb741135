# SPDX-License-Identifier: MIT
"""Health and metrics over HTTP: what is counted is what happened, readiness follows the servers, and nothing that a
client of the listener does disturbs the work."""
import collections
import http.client
import json
import random
import signal
import socket
import subprocess
import threading

import pytest

from lib import Exposition, Record, free_port, wait_until
from shop import Shop, payment, rules

ON = {"listen": "127.0.0.1:0"}
# Of the contract, what is built by now.
FAMILIES = {
    "idem_records_total": "counter", "idem_cause_total": "counter", "idem_apply_seconds": "histogram",
    "idem_tx_seconds": "histogram", "idem_batch_records": "histogram", "idem_tx_total": "counter",
    "idem_tx_retries_total": "counter", "idem_bisect_total": "counter", "idem_lag": "gauge",
    "idem_oldest_unfinished_seconds": "gauge", "idem_commit_offset": "gauge", "idem_inflight": "gauge",
    "idem_outbox_rows": "gauge", "idem_outbox_oldest_seconds": "gauge", "idem_outbox_published_total": "counter",
    "idem_parked": "gauge", "idem_parked_oldest_seconds": "gauge",
    "idem_dead_letters_open": "gauge", "idem_fingerprint_skipped_total": "counter", "idem_paused": "gauge",
    "idem_fenced_total": "counter", "idem_rewound_total": "counter", "idem_ready": "gauge",
    "idem_config_reloads_total": "counter", "idem_build_info": "gauge"}
OUTCOMES = {"first", "duplicate", "processing", "key_reused", "already_applied", "applied_by_other", "state_conflict",
            "parked", "not_found", "rejected", "invalid", "ignored"}


class Web:
    """The listener of one daemon."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.address = daemon.wait_event("start")["http"]
        host, port = self.address.rsplit(":", 1)
        self.host, self.port = host.strip("[]"), int(port)

    def request(self, path, method="GET", headers=(), body=None):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def healthy(self):
        return self.request("/healthz")[0]

    def ready(self):
        """(status, reasons)"""
        status, headers, body = self.request("/readyz")
        assert headers["Content-Type"] == "application/json"
        told = json.loads(body)
        assert told["ready"] is (status == 200) and status in (200, 503), (status, body)
        return status, told.get("reasons", [])

    def wait_ready(self, status, *reasons, timeout=30):
        wanted = (status, list(reasons))
        wait_until(lambda: self.ready() == wanted, timeout, f"/readyz to say {wanted}")

    def metrics(self, **more):
        status, headers, body = self.request("/metrics", **more)
        assert status == 200 and headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return Exposition(body.decode())


def test_every_series_is_there_at_0_and_then_counts_what_happened(world):
    shop = Shop(world, partitions=2, http=ON, topic_rules=rules({"for": "10m"}))
    shop.orders([f"M{i}" for i in range(40)])
    daemon = shop.daemon()
    assert daemon.wait_ready()["http"]
    web = Web(daemon)
    before = web.metrics()
    assert {name: family.kind for name, family in before.families.items()} == FAMILIES
    for name, family in before.families.items():
        wrong = {k: v for k, v in family.samples.items()
                 if v != (1 if name in ("idem_ready", "idem_build_info") else 0)}
        assert not wrong, wrong
    for rule in ("paid", "refunded"):
        assert {s["outcome"] for s, _ in before.series("idem_records_total", topic=shop.topic, rule=rule,
                                                       mode="apply")} == OUTCOMES
    assert len(before.series("idem_lag", topic=shop.topic)) == 2
    assert {s["outcome"] for s, _ in before.series("idem_dead_letters_open", topic=shop.topic)} == {
        "key_reused", "applied_by_other", "state_conflict", "not_found", "rejected", "invalid"}
    shop.send(*[payment(f"M{i}", partition=i % 2) for i in range(40)],
              *[payment(f"M{i}", partition=i % 2) for i in range(15)],
              *[payment(f"N{i}", partition=0) for i in range(4)],
              *[payment(f"M{i}", txn=f"other{i}", key=f"second-{i}", partition=1) for i in range(3)],
              payment("M1", amount="1.00", key="key-of-another-amount", partition=0),
              Record(key="x", value="{nonsense", partition=0), Record(key="x", value="[]", partition=1),
              Record(key="x", value={"status": "OTHER"}, partition=1), Record(key="x", value=None, partition=0))
    total = 40 + 15 + 4 + 3 + 1 + 3 + 1
    lines = daemon.wait_outcomes(total)
    shop.finished()
    wait_until(lambda: web.metrics().total("idem_commit_offset") == total, what="the commit point to arrive")
    after = web.metrics()
    counted = {(s["rule"], s["outcome"]): n for s, n in after.series("idem_records_total") if n}
    assert counted == collections.Counter((o.get("rule", ""), o["outcome"]) for o in lines)
    causes = {(s["rule"], s["outcome"], s["cause"]): n for s, n in after.series("idem_cause_total") if n}
    assert causes == collections.Counter((o.get("rule", ""), o["outcome"], o["cause"]) for o in lines if "cause" in o)
    # The tombstone needs no transaction, but may share one.
    assert after.value("idem_batch_records_sum", database="shop") in (total - 1, total)
    assert after.value("idem_batch_records_count") == after.value("idem_tx_total", result="committed")
    assert after.value("idem_tx_seconds_count") == after.total("idem_tx_total")
    assert after.value("idem_apply_seconds_count", topic=shop.topic) == total - 1
    assert after.value("idem_apply_seconds_sum", topic=shop.topic) > 0
    committed = world.kafka.committed(shop.group, shop.topic)
    for partition in (0, 1):
        assert after.value("idem_commit_offset", partition=partition) == committed[partition]
        assert after.value("idem_lag", partition=partition) == 0
    assert after.value("idem_inflight", topic=shop.topic) == 0 and after.total("idem_paused") == 0
    # Counts in the database, which are made every 5 and every 30 s.
    wait_until(lambda: web.metrics().value("idem_parked", topic=shop.topic, reason="not_found") == 4, 20, "four parked")
    assert web.metrics().total("idem_parked") == 4
    wait_until(lambda: web.metrics().value("idem_parked_oldest_seconds", topic=shop.topic) > 0, 20, "their age")
    letters = collections.Counter(l["outcome"] for l in shop.letters())
    wait_until(lambda: {s["outcome"]: n for s, n in web.metrics().series("idem_dead_letters_open") if n} == letters,
               60, f"the open letters {letters}", 0.5)
    assert daemon.stop() == 0


def test_readiness_follows_an_idle_database(world):
    shop = Shop(world, http=ON)
    daemon = shop.daemon()
    daemon.wait_ready()
    web = Web(daemon)
    web.wait_ready(200)
    world.server.stop()
    web.wait_ready(503, "unreachable:shop")
    assert web.healthy() == 200
    told = web.metrics()
    assert told.value("idem_ready") == 0 and told.value("idem_paused", why="unreachable") == 1
    daemon.wait_event("paused", why="unreachable", database="shop")
    world.server.start()
    web.wait_ready(200)
    daemon.wait_event("resumed", why="unreachable", database="shop")
    # One that is there and answers nothing: nobody is told, but silence is noticed.
    world.server.freeze()
    try:
        web.wait_ready(503, "unreachable:shop")
        assert web.healthy() == 200
    finally:
        world.server.thaw()
    web.wait_ready(200)
    shop.db.server.admin(f"ALTER USER {shop.db.user}@'%' IDENTIFIED BY 'another'")
    world.server.kill_sessions(shop.db.user)
    web.wait_ready(503, "config:shop")
    assert web.metrics().value("idem_paused", why="config") == 1
    shop.db.password_file.write_text("another\n")
    web.wait_ready(200)
    shop.orders(["R1"])
    shop.send(payment("R1"))
    assert daemon.wait_outcomes(1)[0]["outcome"] == "first"
    told = web.metrics()
    assert told.value("idem_ready") == 1 and told.total("idem_paused") == 0


def test_waiting_at_start_is_healthy_and_not_ready(world):
    shop = Shop(world, http=ON, start_timeout="60s")
    shop.config["databases"]["shop"]["port"] = 1
    daemon = shop.daemon()
    web = Web(daemon)
    daemon.wait_event("paused", why="unreachable")
    assert web.ready() == (503, ["starting"]) and web.healthy() == 200
    told = web.metrics()
    assert told.value("idem_ready") == 0
    assert told.value("idem_records_total", rule="paid", outcome="first") == 0
    assert daemon.stop() == 0


@pytest.fixture
def held(world):
    """Row locks that are let go before the database is dropped, however the test ends."""
    sessions = []

    def hold(db, sql):
        sessions.append(db.connect())
        sessions[-1].cursor().execute(sql)
        return sessions[-1]
    yield hold
    for session in sessions:
        session.close()


def test_term_turns_readiness_off_at_once(world, held):
    shop = Shop(world, http=ON)
    shop.orders(["T1"])
    holder = held(shop.db, "SELECT * FROM orders WHERE order_no = 'T1' FOR UPDATE")
    daemon = shop.daemon()
    daemon.wait_ready()
    web = Web(daemon)
    shop.send(payment("T1"))
    wait_until(lambda: web.metrics().value("idem_inflight") == 1, what="the record in flight")
    wait_until(lambda: web.metrics().value("idem_oldest_unfinished_seconds") > 0.5, what="its age")
    told = web.metrics()
    assert told.value("idem_lag") == 1 and told.value("idem_commit_offset") == 0
    daemon.signal(signal.SIGTERM)
    wait_until(lambda: "stopping" in web.ready()[1], 2, "/readyz to say stopping", 0.01)
    assert daemon.alive and web.healthy() == 200 and web.metrics().value("idem_ready") == 0
    holder.rollback()
    assert daemon.wait_exit() == 0
    assert web_is_closed(web)


def web_is_closed(web):
    try:
        web.healthy()
    except OSError:
        return True
    return False


def test_the_default_address_that_is_taken_is_done_without(world):
    """Two instances of one file on a machine: the second works, and says that nobody can ask it."""
    shop = Shop(world)
    del shop.config["http"]
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", 9464))
            taken.listen()
        except OSError:
            pass                                       # somebody else has it: as good
        shop.orders(["U1"])
        daemon = shop.daemon()
        assert "http" not in daemon.wait_ready()
        assert daemon.select("check", code="http")[0]["level"] == "warning"
        shop.send(payment("U1"))
        assert daemon.wait_outcomes(1)[0]["outcome"] == "first"
        assert daemon.stop() == 0


def test_two_on_one_address_is_78_and_says_so(world):
    port = free_port()
    shop = Shop(world, http={"listen": f"127.0.0.1:{port}"})
    daemon = shop.daemon()
    daemon.wait_ready()
    assert Web(daemon).port == port
    second = shop.daemon(name="second")
    assert second.wait_exit() == 78
    told = second.wait_event("paused", why="config")
    assert "in use" in told["error"] and str(port) in told["error"]
    # Its own port is free again for the next run, though connections of the last are in TIME_WAIT.
    assert Web(daemon).ready()[0] == 200
    assert daemon.stop() == 0
    mark = daemon.mark()
    daemon.start()
    daemon.wait_event("ready", after=mark)
    assert daemon.stop() == 0


def test_a_listener_for_the_network_needs_its_token(world):
    secret = world.tmp / "token"
    secret.write_text("correct horse\n")
    secret.chmod(0o644)
    shop = Shop(world, http={"listen": "0.0.0.0:0", "token_file": str(secret)})
    daemon = shop.daemon()
    daemon.wait_ready()
    web = Web(daemon)
    web.host = "127.0.0.1"

    def ask(path, shown):
        return web.request(path, headers=[("Authorization", shown)] if shown else [])

    for path in ("/healthz", "/readyz", "/metrics", "/nothing"):
        for shown in (None, "", "Bearer", "Bearer ",
                      "Bearer correct hors", "Bearer correct horses", "Basic correct horse",
                      "Bearer " + "x" * 5000):
            status, headers, body = ask(path, shown)
            assert (status, headers["WWW-Authenticate"], body) == (401, "Bearer", b""), (path, shown)
    assert ask("/readyz", "Bearer correct horse")[0] == 200
    assert ask("/nothing", "bearer correct horse")[0] == 404
    secret.write_text("battery staple\n")
    assert ask("/readyz", "Bearer correct horse")[0] == 401
    assert ask("/readyz", "Bearer battery staple")[0] == 200
    secret.unlink()
    assert ask("/readyz", "Bearer battery staple")[0] == 401, "no token, nobody comes in"
    missing = shop.daemon(name="missing")
    assert missing.wait_exit() == 78 and "token_file" in missing.wait_event("paused", why="config")["error"]
    del shop.config["http"]["token_file"]
    done = world.idemd_check(shop.config)
    assert done.code == 78 and "http.listen: a listener that is not loopback needs http.token_file" in done.stderr


def test_only_get_and_head_and_no_body(world):
    shop = Shop(world, http={"listen": "[::1]:0"})
    daemon = shop.daemon()
    daemon.wait_ready()
    web = Web(daemon)
    assert web.address.startswith("[::1]:")
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "NONSENSE"):
        status, headers, _ = web.request("/metrics", method=method, body=b"x" * 100000 if method == "PUT" else None)
        assert (status, headers["Allow"]) == (405, "GET, HEAD"), method
    status, headers, body = web.request("/readyz", method="HEAD")
    assert status == 200 and body == b"" and int(headers["Content-Length"]) == len('{"ready":true}')
    assert web.request("/readyz?verbose=1")[0] == 200
    assert web.request("/readyz", body=b"some body")[0] == 413
    for path in ("/", "/v1/keys/payment/x", "/readyz/", "/%2e%2e/metrics", "*"):
        assert web.request(path)[0] == 404, path
    kept = http.client.HTTPConnection(web.host, web.port, timeout=10)
    for _ in range(5):
        kept.request("GET", "/healthz")
        answer = kept.getresponse()
        assert (answer.status, answer.read()) == (200, b'{"alive":true}')
    kept.close()
    daemon.signal(signal.SIGHUP)
    daemon.wait_event("reload_refused")
    wait_until(lambda: web.metrics().value("idem_config_reloads_total", result="refused") == 1, what="the reload")


def test_a_stopped_partition_is_not_ready(world):
    shop = Shop(world, partitions=2, http=ON)
    shop.send(*[payment(f"S{i}", partition=0) for i in range(3)])
    world.kafka.commit(shop.group, shop.topic, {0: 1})
    world.kafka.delete_records(shop.topic, {0: 2})
    daemon = shop.daemon()
    web = Web(daemon)
    daemon.wait_event("paused", why="offset_gone")
    web.wait_ready(503, f"offset_gone:{shop.topic}/0")
    told = web.metrics()
    assert told.value("idem_paused", partition=0, why="offset_gone") == 1
    assert told.total("idem_paused") == 1 and web.healthy() == 200


def test_a_flood_of_letters_is_not_ready_and_a_topic_without_its_index_neither(world):
    shop = Shop(world, partitions=2, http=ON)
    daemon = shop.daemon()
    daemon.wait_ready()
    web = Web(daemon)
    web.wait_ready(200)
    shop.send(*[Record(key=str(i), value="{nonsense", partition=i % 2) for i in range(150)])
    web.wait_ready(503, f"flood:{shop.topic}")
    told = web.metrics()
    assert told.total("idem_paused", why="flood") == 2 and told.total("idem_paused") == 2 and web.healthy() == 200
    assert daemon.stop() == 0
    second = Shop(world, http=ON)
    other = second.daemon(name="other")
    other.wait_ready()
    web = Web(other)
    second.db.exec("ALTER TABLE orders DROP KEY uk_no")
    second.orders(["F1"])
    world.server.kill_sessions(second.db.user)       # looked at again with each connection
    second.send(payment("F1"))
    web.wait_ready(503, f"config:{second.topic}")
    assert web.metrics().value("idem_paused", why="config") == 1
    second.db.exec("ALTER TABLE orders ADD UNIQUE KEY uk_no (order_no)")
    assert other.wait_outcomes(1, timeout=90)[0]["outcome"] == "first"
    web.wait_ready(200)


def test_series_of_partitions_come_and_go_with_them(world):
    shop = Shop(world, partitions=4, http=ON)
    one = shop.daemon(name="one")
    one.wait_ready()
    web = Web(one)
    wait_until(lambda: len(web.metrics().series("idem_lag")) == 4, what="all four partitions")
    two = shop.daemon(name="two")
    two.wait_ready()
    other = Web(two)

    def parted():
        have = [{s["partition"] for s, _ in w.metrics().series("idem_commit_offset")} for w in (web, other)]
        return len(have[0]) == len(have[1]) == 2 and not have[0] & have[1]
    wait_until(parted, 60, "each to have two partitions", 0.2)
    assert two.stop() == 0
    wait_until(lambda: len(web.metrics().series("idem_lag")) == 4, 60, "all four partitions again", 0.2)


class Pest:
    """Clients as bad as they come, each in its thread, until told to end."""

    def __init__(self, web, seed):
        self.web, self.random = web, random.Random(seed)
        self.over = threading.Event()
        self.opened = 0
        self.threads = [threading.Thread(target=self._run, args=(kind,)) for kind in
                        (self._drip, self._garbage, self._huge, self._body, self._silent, self._rude)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(30)

    def _run(self, kind):
        held = []
        while not self.over.is_set():
            try:
                client = socket.create_connection((self.web.host, self.web.port), timeout=2)
                client.settimeout(0.2)
                self.opened += 1
                kind(client)
                held.append(client)
            except OSError:
                pass
            while len(held) > 150:
                held.pop(0).close()
        for client in held:
            client.close()

    def _drip(self, client):
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        for _ in range(10):
            client.sendall(b"a")
            self.over.wait(0.005)

    def _garbage(self, client):
        client.sendall(bytes(self.random.randrange(256) for _ in range(self.random.randrange(1, 4000))) + b"\r\n\r\n")
        client.recv(4096)

    def _huge(self, client):
        client.sendall(b"GET /" + b"x" * 200000 + b" HTTP/1.1\r\n" + b"A: " + b"y" * 200000 + b"\r\n\r\n")
        client.recv(4096)

    def _body(self, client):
        client.sendall(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n" + b"z" * 100000)

    def _silent(self, client):
        self.over.wait(0.002)

    def _rude(self, client):
        # Asks for much and takes nothing.
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 50)


@pytest.mark.sanitize
def test_bad_clients_and_a_thousand_scrapes_disturb_nothing(world):
    shop = Shop(world, partitions=3, http=ON)
    numbers = [f"L{i:05d}" for i in range(4000)]
    shop.orders(numbers)
    daemon = shop.daemon()
    daemon.wait_ready()
    web = Web(daemon)
    last, scrapes = 0, 0
    with Pest(web, 1) as pest:
        sender = threading.Thread(target=shop.send, args=[
            payment(no, partition=i % 3) for i, no in enumerate(numbers)] + [
            payment(no, partition=i % 3) for i, no in enumerate(numbers)])
        sender.start()
        while scrapes < 1000:
            try:
                told = web.metrics()
            except (ConnectionError, http.client.HTTPException):
                continue             # the oldest of too many connections: it may be ours
            done = told.total("idem_records_total")
            assert done >= last, "a counter went back"
            last, scrapes = done, scrapes + 1
        sender.join(60)
        shop.finished(timeout=120)
        assert web.healthy() == 200
    assert pest.opened > 200
    wait_until(lambda: web.metrics().total("idem_records_total") == 8000, what="all to be counted")
    told = web.metrics()
    assert told.value("idem_records_total", rule="paid", outcome="first") == 4000
    assert told.value("idem_records_total", rule="paid", outcome="duplicate") == 4000
    assert shop.counts() == (4000,) * 4 and shop.letters() == []
    assert len(subprocess.run(["ls", f"/proc/{daemon.pid}/fd"], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.split()) < 150
    assert daemon.stop() == 0
