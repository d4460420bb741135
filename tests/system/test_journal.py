# SPDX-License-Identifier: MIT
"""Under systemd the log goes to the journal, a field of the entry for each field of the line. There is no journal here:
a socket stands in its place, in a mount namespace of its own, and reads the journal's native protocol."""
import os
import shutil
import socket
import stat
import struct
import subprocess
import threading

import pytest

from lib import wait_until
from lib.daemon import Binaries, Daemon
from shop import Shop, payment

WRAPPER = """#!/bin/sh
# The journal's socket becomes ours; standard error is what JOURNAL_STREAM says.
mkdir -p /run/systemd/journal && mount --bind "$JOURNAL_HERE" /run/systemd/journal || exit 99
export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2)
exec "$@"
"""


def entry_of(data):
    """One datagram: NAME=text lines, or NAME, 64-bit length, bytes (journal-native-protocol)."""
    fields = {}
    while data:
        name, _, rest = data.partition(b"\n")
        if b"=" in name:
            key, _, value = name.partition(b"=")
            data = rest
        else:
            size, = struct.unpack_from("<Q", rest)
            key, value, data = name, rest[8:8 + size], rest[8 + size + 1:]
        fields[key.decode()] = value.decode()
    return fields


class Journal:
    def __init__(self, folder):
        self.entries = []
        self.folder = folder / "journal"
        self.folder.mkdir()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.folder / "socket"))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            data = self.socket.recv(1 << 20)
            if not data:
                return
            self.entries.append(entry_of(data))

    def of(self, event):
        return [e for e in self.entries if e.get("IDEM_EVENT") == event]


def test_fields_of_the_journal(world):
    if world.binaries.prefix:
        pytest.skip("the wrapper does not nest in the second world's; the code is the same there")
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs the right to a mount namespace")
    shop = Shop(world)
    shop.orders(["J1"])
    journal = Journal(world.tmp)
    wrapper = world.tmp / "as-if-systemd"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    daemon = Daemon(Binaries(world.binaries.folder, ["unshare", "-m", wrapper]), shop.config, world.tmp,
                    env={"JOURNAL_HERE": journal.folder}, name="journal")
    daemon.start()
    try:
        wait_until(lambda: journal.of("ready"), 30, "ready in the journal")
        shop.send(payment("J1"), payment("J2", key="a b=\"c\""))
        wait_until(lambda: len(journal.of("outcome")) == 2, 30, "both outcomes in the journal")
        assert daemon.stop() == 0
        wait_until(lambda: journal.of("stop"), 10, "stop in the journal")
    finally:
        daemon.close()
    assert not daemon.lines, "nothing is said twice"
    first, bad = sorted(journal.of("outcome"), key=lambda e: e["IDEM_OFFSET"])
    assert first["IDEM_OUTCOME"] == "first" and first["IDEM_KEY"] == "payment:J1:pay"
    assert first["IDEM_BIZ_NO"] == "J1" and first["IDEM_RULE"] == "paid" and first["IDEM_TOPIC"] == shop.topic
    assert (first["PRIORITY"], first["SYSLOG_IDENTIFIER"]) == ("6", "idemd")
    assert first["MESSAGE"].startswith("ts=") and " outcome=first " in first["MESSAGE"]
    assert (bad["IDEM_OUTCOME"], bad["IDEM_CAUSE"], bad["PRIORITY"]) == ("invalid", "key_malformed", "4")
    known = {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER"}
    for entry in journal.entries:
        assert all(name in known or name.startswith("IDEM_") for name in entry), entry
        assert "19.99" not in str(entry), "never a payload"
    assert os.environ.get("JOURNAL_STREAM") is None
