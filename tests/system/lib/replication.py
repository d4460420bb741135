# SPDX-License-Identifier: MIT
"""replication: a primary and a replica that applies everything some seconds late, on one port of two loopback
addresses, as a configuration's list of hosts wants them."""
from .database import MariaDb, MySql
from .process import free_port
from .wait import wait_until

_USER, _PASSWORD = "copier", "copied-Word-1"
_SOURCE = {
    "mariadb": "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}',"
               " MASTER_PASSWORD='{password}', MASTER_LOG_FILE='bin.000001', MASTER_LOG_POS=4, MASTER_DELAY={delay}",
    "mysql": "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='{user}',"
             " SOURCE_PASSWORD='{password}', SOURCE_LOG_FILE='bin.000001', SOURCE_LOG_POS=4, SOURCE_DELAY={delay},"
             " GET_SOURCE_PUBLIC_KEY=1",
}
_WORD = {"mariadb": "SLAVE", "mysql": "REPLICA"}


def _member(base, folder, host, number, port, more=()):
    class Member(base):
        def _options(self):
            return [*super()._options(), f"--bind-address={host}", f"--server-id={number}",
                    f"--relay-log={self.data}/relay", *more]

    made = Member(folder)
    made.host, made.port = host, port
    return made


class Pair:
    """The replica is read-only until promote()."""

    def __init__(self, name, folder, delay):
        base = {"mariadb": MariaDb, "mysql": MySql}[name]
        self.name = name
        port = free_port()
        self.primary = _member(base, folder / "primary", "127.0.0.1", 11, port)
        self.replica = _member(base, folder / "replica", "127.0.0.2", 12, port,
                               ["--read-only=1" if name == "mariadb" else "--super-read-only=1"])
        self.hosts = [self.primary.host, self.replica.host]
        self.primary.start()
        self.replica.start()
        self.primary.admin(f"CREATE USER {_USER}@'%%' IDENTIFIED BY %s", (_PASSWORD,))
        self.primary.admin(f"GRANT REPLICATION SLAVE ON *.* TO {_USER}@'%'")
        self.replica.admin(_SOURCE[name].format(port=port, user=_USER, password=_PASSWORD, delay=delay))
        self.replica.admin(f"START {_WORD[name]}")

    def has(self, count, sql, database, timeout=60):
        """Waits until the replica has so many rows of the query."""
        def there():
            try:
                return len(self.replica.execute(sql, None, database)[0]) == count
            except Exception:      # pylint: disable=broad-except
                return False       # not even the table
        wait_until(there, timeout, f"the replica to have {count} rows of {sql}", 0.1)

    def cut(self):
        """The replica takes nothing more."""
        self.replica.admin(f"STOP {_WORD[self.name]}")

    def promote(self):
        """It is the primary from now on."""
        self.cut()
        self.replica.admin(f"RESET {_WORD[self.name]} ALL")
        self.replica.set_global("read_only", 0)     # MySQL: super_read_only goes with it

    def demote(self):
        """The primary lives on, but takes no writes."""
        self.primary.set_global("read_only" if self.name == "mariadb" else "super_read_only", 1)

    def close(self):
        self.primary.kill()
        self.replica.kill()
