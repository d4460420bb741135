# SPDX-License-Identifier: MIT
"""The test bed itself: do the servers, the proxy and the helpers do what tests rely on?"""
import subprocess
import sys
import threading
import time
import uuid

import pymysql
import pytest

from lib import (CLOSE_AFTER, DELIVERED, HOLD, NOT_DELIVERED, TOP, Binaries, Daemon, Record, delay,
                 dump_yaml, error, parse_logfmt, wait_until)
from lib.daemon import native_binaries


def through(db, port, autocommit=False):
    """A session of idemd's user over some port, a proxy's for instance."""
    return pymysql.connect(host="127.0.0.1", port=port, user=db.user, password=db.password,
                           database=db.name, autocommit=autocommit, connect_timeout=10,
                           read_timeout=20)


@pytest.fixture
def table(world):
    db = world.create_database()
    db.exec("CREATE TABLE t (a INT PRIMARY KEY)")
    return db


# Kafka

def test_records_come_back_as_they_were_sent(servers):
    kafka = servers.kafka
    topic = kafka.create_topic(partitions=3)
    sent = [Record(key="k1", value={"a": "订单1"}, headers={"Idempotency-Key": "x" * 20},
                   partition=2, timestamp=1764547200000),
            Record(key=None, value=None, partition=0),
            Record(key=b"\0\xff", value=b"", headers=[("h", b"\1"), ("h", None)], partition=0)]
    assert kafka.produce(topic, sent) == [(2, 0), (0, 0), (0, 1)]
    tombstone, empty, first = kafka.read(topic)
    assert (tombstone.key, tombstone.value) == (None, None)
    assert (empty.key, empty.value) == (b"\0\xff", b"")
    assert empty.headers == [("h", b"\1"), ("h", None)]
    assert first.json() == {"a": "订单1"} and first.timestamp == 1764547200000
    assert first.header("Idempotency-Key") == b"x" * 20
    assert kafka.end_offsets(topic) == {0: 2, 1: 0, 2: 1}


def test_a_five_megabyte_record_passes(servers):
    topic = servers.kafka.create_topic()
    servers.kafka.produce(topic, [Record(value=b"a" * (5 << 20))])
    assert len(servers.kafka.read(topic)[0].value) == 5 << 20


def test_offsets_are_written_and_read(servers):
    kafka = servers.kafka
    topic = kafka.create_topic(partitions=2)
    group = f"g-{uuid.uuid4().hex}"
    assert kafka.committed(group, topic) == {}
    kafka.produce(topic, [Record(value="x", partition=1)] * 3)
    kafka.commit(group, topic, {1: 3})
    assert kafka.committed(group, topic) == {1: 3}
    kafka.wait_committed(group, topic)
    assert kafka.members(group) == 0
    with pytest.raises(AssertionError):
        kafka.wait_committed(group, topic, {1: 2}, timeout=0.3)


def test_topics_grow_lose_records_and_go(servers):
    kafka = servers.kafka
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(value=str(n)) for n in range(5)])
    kafka.delete_records(topic, {0: 2})
    assert kafka.begin_offsets(topic) == {0: 2}
    assert [r.value for r in kafka.read(topic)] == [b"2", b"3", b"4"]
    kafka.add_partitions(topic, 3)
    assert kafka.partitions(topic) == [0, 1, 2]
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    assert kafka.end_offsets(topic) == {0: 0}


def test_kafka_keeps_records_over_a_crash_of_its_process(servers):
    kafka = servers.kafka
    topic = kafka.create_topic()
    kafka.produce(topic, [Record(value="kept")])
    kafka.kill()
    assert not kafka.alive
    kafka.start()
    assert [r.value for r in kafka.read(topic)] == [b"kept"]


# Databases

def test_the_server_is_the_one_of_its_world(world):
    version = world.server.admin("SELECT VERSION() AS v")[0]["v"]
    assert version.startswith("10.11.") if world.name == "mariadb" else version.startswith("9.")
    assert ("MariaDB" in version) == (world.name == "mariadb")


def test_commits_are_durable_by_setting(world):
    for name, wanted in (("innodb_flush_log_at_trx_commit", "1"), ("sync_binlog", "1"),
                         ("binlog_format", "ROW"), ("log_bin", "1")):
        assert world.server.get_global(name) == wanted, name


def test_a_database_has_its_own_user_who_sees_nothing_else(world):
    one, other = world.create_database(), world.create_database()
    other.exec("CREATE TABLE t (a INT)")
    with one.connect(admin=False) as session, session.cursor() as cursor:
        cursor.execute("CREATE TABLE t (a INT)")
        assert cursor.execute("INSERT INTO t VALUES (1), (2)") == 2
        session.commit()
        with pytest.raises(pymysql.err.OperationalError):
            cursor.execute(f"SELECT * FROM {other.name}.t")
    assert one.query("SELECT a FROM t ORDER BY a") == [{"a": 1}, {"a": 2}]
    assert one.value("SELECT COUNT(*) FROM t") == 2
    assert other.value("SELECT COUNT(*) FROM t") == 0


def test_a_script_is_run_statement_by_statement(world):
    db = world.create_database()
    db.script("-- a comment; with a semicolon\nCREATE TABLE t (a VARCHAR(9) DEFAULT 'x;y');\n"
              "INSERT INTO t VALUES ('%s'),\n (DEFAULT);\n")
    assert sorted(row["a"] for row in db.query("SELECT a FROM t")) == ["%s", "x;y"]


def test_a_second_session_holds_a_lock(table):
    table.exec("INSERT INTO t VALUES (1)")
    holder = table.connect()
    with holder.cursor() as cursor:
        cursor.execute("SELECT * FROM t WHERE a = 1 FOR UPDATE")
    with table.connect(admin=False) as session, session.cursor() as cursor:
        cursor.execute("SET innodb_lock_wait_timeout = 1")
        with pytest.raises(pymysql.err.OperationalError) as refused:
            cursor.execute("UPDATE t SET a = 2 WHERE a = 1")
        assert refused.value.args[0] == 1205
        holder.rollback()
        assert cursor.execute("UPDATE t SET a = 2 WHERE a = 1") == 1
    holder.close()


def test_sessions_of_a_user_can_be_killed(table):
    session = table.connect(admin=False)
    assert len(table.server.processlist(table.user)) == 1
    assert table.server.kill_sessions(table.user) == 1
    with pytest.raises(pymysql.err.Error):
        session.cursor().execute("SELECT 1")


def test_a_global_variable_is_set_and_set_back(world):
    before = world.server.get_global("innodb_lock_wait_timeout")
    world.server.set_global("innodb_lock_wait_timeout", 7)
    assert world.server.get_global("innodb_lock_wait_timeout") == "7"
    world.server.set_global("innodb_lock_wait_timeout", int(before))


def test_what_was_committed_survives_kill_and_restart(table):
    table.exec("INSERT INTO t VALUES (1)")
    table.server.kill()
    assert not table.server.alive
    table.server.start()
    table.exec("INSERT INTO t VALUES (2)")
    table.server.restart()
    assert table.value("SELECT COUNT(*) FROM t") == 2


# Proxy

def commit_through(db, port):
    """Inserts a row and commits; the error of the commit, or None."""
    session = through(db, port)
    try:
        with session.cursor() as cursor:
            cursor.execute("INSERT INTO t SELECT COUNT(*) FROM t")
        try:
            session.commit()
        except pymysql.err.Error as lost:
            return lost
        return None
    finally:
        session._force_close()


def rows(db):
    return db.value("SELECT COUNT(*) FROM t")


def test_the_proxy_passes_on_what_no_rule_names(world, table):
    proxy = world.proxy()
    assert commit_through(table, proxy.port) is None
    assert rows(table) == 1
    wait_until(lambda: proxy.connections == 0, 10, "the connection to end")


def test_an_answer_is_swallowed_after_the_commit(world, table):
    proxy = world.proxy()
    rule = proxy.on("COMMIT", DELIVERED)
    assert commit_through(table, proxy.port) is not None
    rule.wait()
    assert rows(table) == 1
    assert commit_through(table, proxy.port) is None
    assert (rule.hits, rows(table)) == (1, 2)


def test_a_request_is_swallowed_before_the_commit(world, table):
    proxy = world.proxy()
    rule = proxy.on("commit", NOT_DELIVERED)
    assert commit_through(table, proxy.port) is not None
    rule.wait()
    assert rows(table) == 0
    assert commit_through(table, proxy.port) is None
    assert rows(table) == 1


def test_a_connection_closed_right_after_the_request(world, table):
    proxy = world.proxy()
    proxy.on("COMMIT", CLOSE_AFTER)
    assert commit_through(table, proxy.port) is not None
    wait_until(lambda: not table.server.processlist(table.user), 20, "the session to end")
    assert rows(table) in (0, 1)


def test_skip_and_times_choose_the_passage(world, table):
    proxy = world.proxy()
    rule = proxy.on("INSERT", error(1213, "40001"), times=2, skip=1)
    numbers = []
    for _ in range(4):
        try:
            numbers.append(commit_through(table, proxy.port))
        except pymysql.err.Error as refused:
            numbers.append(refused.args[0])
    assert numbers == [None, 1213, 1213, None]
    assert (rule.hits, rows(table)) == (2, 2)


def test_a_made_up_error_leaves_the_session_alive(world, table):
    proxy = world.proxy()
    proxy.on("into t", error(1205), contains=True)
    session = through(table, proxy.port)
    with session.cursor() as cursor:
        with pytest.raises(pymysql.err.OperationalError) as refused:
            cursor.execute("INSERT INTO t VALUES (1)")
        assert refused.value.args[0] == 1205
        assert cursor.execute("INSERT INTO t VALUES (1)") == 1
    session.commit()
    session.close()
    assert rows(table) == 1


def test_a_statement_is_held_until_released(world, table):
    proxy = world.proxy()
    rule = proxy.on("COMMIT", HOLD)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(commit_through(table, proxy.port)))
    thread.start()
    rule.wait()
    assert (rows(table), ended) == (0, [])
    rule.release()
    thread.join(20)
    assert (rows(table), ended) == (1, [None])


def test_a_statement_is_delayed(world, table):
    proxy = world.proxy()
    proxy.on("COMMIT", delay(0.5))
    begin = time.monotonic()
    assert commit_through(table, proxy.port) is None
    assert time.monotonic() - begin >= 0.5


def test_the_proxy_cuts_refuses_and_freezes(world, table):
    proxy = world.proxy()
    session = through(table, proxy.port, autocommit=True)
    assert proxy.connections == 1
    assert proxy.cut() == 1
    with pytest.raises(pymysql.err.Error):
        session.cursor().execute("SELECT 1")
    proxy.refuse(True)
    with pytest.raises(pymysql.err.Error):
        through(table, proxy.port)
    proxy.refuse(False)
    session = through(table, proxy.port, autocommit=True)
    proxy.freeze()
    done = []
    thread = threading.Thread(
        target=lambda: done.append(session.cursor().execute("INSERT INTO t VALUES (9)")))
    thread.start()
    thread.join(0.3)
    assert (done, rows(table)) == ([], 0)
    proxy.thaw()
    thread.join(20)
    assert (done, rows(table)) == ([1], 1)
    session.close()


# Formats and the daemon's handling, on a stand-in that speaks as idemd does

def test_logfmt_is_read():
    line = 'ts=2026-01-01T00:00:00Z level=info event=outcome key="a \\"b\\"=c\\n" empty= x="y\\x41"'
    assert parse_logfmt(line) == {"ts": "2026-01-01T00:00:00Z", "level": "info",
                                  "event": "outcome", "key": 'a "b"=c\n', "empty": "", "x": "yA"}
    assert parse_logfmt("no fields here") == {}


def test_yaml_is_written_as_people_write_it():
    text = dump_yaml({"version": 1, "a": {"from": ["PENDING"], "on": True, "t": "true"},
                      "list": [{"name": "x", "when": {"/a": "1", "/b": {"present": False}}}],
                      "lock_wait": "3s", "empty": {}, "word": "a: b"})
    assert text == ('version: 1\na:\n  from: [PENDING]\n  "on": true\n  t: "true"\nlist:\n'
                    '  - name: x\n    when:\n      /a: "1"\n      /b:\n        present: false\n'
                    'lock_wait: 3s\nempty: {}\nword: "a: b"\n')


STAND_IN = """\
import os, signal, sys, time
def say(text):
    print(text, file=sys.stderr, flush=True)
def stop(*_):
    say("level=info event=stop")
    sys.exit(int(os.environ.get("CODE", 0)))
signal.signal(signal.SIGTERM, stop)
say(f"level=info event=start pid={os.getpid()}")
say("level=info event=ready")
for n in range(3):
    say(f"level=info event=outcome outcome=first key=k{n}")
say(os.environ.get("LAST", "level=info event=outcome outcome=duplicate key=k0"))
if os.environ.get("ENDS"):
    sys.exit(70)
while True:
    time.sleep(60)
"""


@pytest.fixture
def stand_in(tmp):
    program = tmp / "idemd"
    program.write_text(f"#!{sys.executable}\n{STAND_IN}")
    program.chmod(0o755)
    made = []

    def make(**env):
        made.append(Daemon(Binaries(tmp), {"version": 1}, tmp, env, name=f"d{len(made)}"))
        return made[-1].start()
    yield make
    for daemon in made:
        if daemon.alive:
            daemon.kill()


def test_a_daemon_is_watched_and_ended(stand_in):
    daemon = stand_in(CODE=3)
    daemon.wait_ready(20)
    assert len(daemon.wait_outcomes(3, 20, outcome="first")) == 3
    assert daemon.wait_event("outcome", 20, outcome="duplicate")["key"] == "k0"
    assert [o["key"] for o in daemon.outcomes(key=lambda k: k > "k0")] == ["k1", "k2"]
    with pytest.raises(AssertionError, match="3 of 4 outcomes"):
        daemon.wait_outcomes(4, 0.2, outcome="first")
    now, peak = daemon.rss_kib()
    assert 0 < now <= peak
    mark = daemon.mark()
    assert daemon.stop(20) == 3
    assert daemon.wait_event("stop", 5, after=mark)
    daemon.start()
    daemon.wait_ready(20)
    daemon.kill()
    assert daemon.wait_exit() == -9
    daemon.close()


def test_a_daemon_that_ends_early_fails_the_wait_at_once(stand_in):
    daemon = stand_in(ENDS=1)
    begin = time.monotonic()
    with pytest.raises(AssertionError, match=r"ended \(70\) before"):
        daemon.wait_event("drain", 60)
    assert time.monotonic() - begin < 20


def test_a_sanitizer_report_is_a_failure(stand_in):
    daemon = stand_in(LAST="x.c:1:2: runtime error: signed integer overflow")
    wait_until(lambda: "runtime error" in daemon.tail(), 20, "the report")
    with pytest.raises(AssertionError, match="runtime error"):
        daemon.close()


def test_programs_of_either_world_see_checkout_and_folder_in_place(world):
    (world.tmp / "x").write_text("outside")
    inside = Binaries("/bin", world.binaries.prefix)
    assert inside.run("cat", world.tmp / "x").stdout == "outside"
    assert inside.run("ls", TOP / "meson.build").code == 0
    assert inside.run("sh", "-c", "exit 70").code == 70
    assert inside.run("sh", "-c", "echo $MARK", env={"MARK": "here"}).stdout == "here\n"
    if world.name == "mysql":
        assert inside.run("touch", TOP / "not-here").code != 0
        assert not (TOP / "not-here").exists()


def test_feed_sends_any_bytes(servers):
    feed = native_binaries().folder / "tests/programs/feed"
    if not feed.exists():
        pytest.skip(f"{feed} is not built")
    topic = servers.kafka.create_topic(partitions=2)
    lines = (b"1\tk\\t\t\tv;=\\\\\n"
             b"1\t\\N\ta\\;=\\N;b=\\x01;c=\t\\N\n" b"1\t\\xff\\0\t\t\n")
    done = subprocess.run([feed, "--brokers", servers.kafka.bootstrap, "--topic", topic],
                          input=lines, stdout=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"sent=3\n")
    found = [(r.partition, r.key, r.headers, r.value) for r in servers.kafka.read(topic)]
    assert found == [(1, b"k\t", [], b"v;=\\"),
                     (1, None, [("a;", None), ("b", b"\1"), ("c", b"")], None),
                     (1, b"\xff\0", [], b"")]


def test_servers_gives_a_command_its_addresses():
    done = subprocess.run(
        [TOP / "scripts/servers", "--db", "mariadb", "--", "sh", "-c",
         'mariadb -h "$IDEMD_TEST_DB_HOST" -P "$IDEMD_TEST_DB_PORT" -u "$IDEMD_TEST_DB_USER" '
         '-p"$IDEMD_TEST_DB_PASSWORD" -N -e "SELECT DATABASE()" "$IDEMD_TEST_DB_NAME"; exit 7'],
        stdout=subprocess.PIPE, text=True, timeout=100, check=False)
    assert done.returncode == 7 and done.stdout.startswith("shop_")
