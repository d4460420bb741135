# SPDX-License-Identifier: MIT
"""The server's disk fills up under load and is freed again: nothing is lost, nothing doubled, and the daemon goes on by
itself. What shall fill up lies on a small file system of its own, mounted for the test."""
import collections
import os
import subprocess

import pytest

from lib import World, wait_until
from lib.database import MariaDb, MySql
from shop import Shop, payment

SERVERS = {"mariadb": MariaDb, "mysql": MySql}


@pytest.fixture(name="disk")
def small_disk(servers):
    """A folder on a file system of a few MiB; .ballast in it is what fills it."""
    folder = servers.tmp / "small"
    if os.geteuid() != 0:
        pytest.skip("a file system can be mounted by root only")
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400m,mode=777", "none", folder],
                             capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
        folder.rmdir()


def start(servers, flavor, data, logs):
    """A server of this test, whose tables and binary log lie in folders of their own."""
    for folder in (data.parent, logs):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o777)
    base = SERVERS[flavor]

    class Parted(base):
        def initialize(self):
            self.data = data
            super().initialize()

        def _options(self):
            return [*super()._options(), f"--log-bin={logs}/bin"]

        def _prefix(self):
            return [*super()._prefix()[:-1], "--share", data.parent, "--share", logs, "--"]
    server = Parted(servers.tmp / f"server-of-{logs.name}-{flavor}")
    server.start()
    return server


@pytest.fixture(name="run")
def run_fixture(servers, disk, tmp):
    """run(flavor, data, logs) makes a world with a server of its own."""
    made = []

    def run(flavor, data, logs):
        made.append(start(servers, flavor, data, logs))
        made.append(World(servers, flavor, tmp, made[0]))
        return made[1]
    yield run
    (disk / "ballast").unlink(missing_ok=True)
    for one in reversed(made):
        one.close() if isinstance(one, World) else one.kill()


def fill(disk):
    """Takes what is left, to the last block."""
    with open(disk / "ballast", "ab", buffering=0) as ballast:
        for size in (1 << 20, 4096):
            try:
                while ballast.write(b"x" * size):
                    pass
            except OSError:
                continue


class Load:
    """4 000 payments, 500 of them applied before the disk is full."""

    def __init__(self, world):
        self.shop = Shop(world, partitions=3)
        self.numbers = [f"D{i:05d}" for i in range(4000)]
        self.shop.orders(self.numbers)
        self.daemon = self.shop.daemon()
        self.daemon.wait_ready()
        self.send(0, 500)
        self.daemon.wait_outcomes(500)
        self.shop.finished()

    def send(self, start, end):
        self.shop.send(*[payment(no, partition=i % 3) for i, no in enumerate(self.numbers[start:end])])

    def ends_well(self):
        self.daemon.wait_outcomes(4000, timeout=240)
        self.shop.finished(timeout=120)
        assert not self.daemon.select("bisect"), "a full disk is nobody's fault"
        assert self.daemon.stop() == 0
        assert self.shop.counts() == (4000,) * 4 and self.shop.letters() == []
        assert collections.Counter(o["outcome"] for o in self.daemon.outcomes()) == {"first": 4000}


@pytest.mark.deadline(600)
@pytest.mark.parametrize("world", ["mariadb", "mysql"])
def test_no_room_for_the_binary_log(world, servers, disk, run):
    """COMMIT waits in the server for space, longer than we wait for its answer: it is in doubt, and its session must be
    left alone, for a KILL there ruins the binary log."""
    load = Load(run(world, servers.tmp / f"tables-{world}" / "data", disk / "logs"))
    daemon = load.daemon
    fill(disk)
    load.send(500, 4000)
    wait_until(lambda: fill(disk) or daemon.select("tx_in_doubt"), 120, "a COMMIT in doubt")
    wait_until(lambda: fill(disk) or daemon.select("paused", why="unreachable"), 120, "the daemon to say so")
    (disk / "ballast").unlink()
    daemon.wait_event("tx_settled", timeout=180)
    load.ends_well()


@pytest.mark.deadline(600)
@pytest.mark.parametrize("world", ["mariadb", "mysql"])
def test_no_room_for_the_tables(world, servers, disk, run):
    """Statements are refused (1114), and the server itself may end: as a supervisor would, the test starts it again."""
    made = run(world, disk / "tables" / "data", servers.tmp / f"logs-{world}")
    load = Load(made)
    fill(disk)
    load.send(500, 4000)
    wait_until(lambda: fill(disk) or load.daemon.select("paused", why="unreachable"), 120, "the daemon to say so")
    (disk / "ballast").unlink()
    if not made.server.alive:
        made.server.start()
    load.ends_well()
