# SPDX-License-Identifier: MIT
"""world: one database server with the programs built against its client library, and Kafka."""
import itertools
import os
import pathlib
import uuid

from .daemon import Daemon, native_binaries, world_binaries, write_config
from .database import MariaDb, MySql
from .kafka import Kafka
from .proxy import Proxy


class _Databases(dict):
    """Starts a database server when it is asked for first."""

    def __init__(self, folder):
        super().__init__()
        self._folder = folder

    def __missing__(self, name):
        server = {"mariadb": MariaDb, "mysql": MySql}[name](self._folder / name)
        server.start()
        self[name] = server
        return server


class Servers:
    """All servers of a session, made when they are asked for, in one temporary folder."""

    def __init__(self, tmp):
        self.tmp = pathlib.Path(tmp)
        self.db = _Databases(self.tmp)
        self._kafka = None

    @property
    def kafka(self):
        if not self._kafka:
            self._kafka = Kafka(self.tmp / "kafka")
            self._kafka.start()
        return self._kafka

    def binaries(self, name):
        return native_binaries() if name == "mariadb" else world_binaries(self.tmp)

    def close(self):
        # The folder goes anyway, so nobody needs to end in order.
        for server in [*self.db.values(), *([self._kafka] if self._kafka else [])]:
            server.kill()


class World:
    """What one test works with; close() ends all that the test started through it. `server`: another than the session's."""

    def __init__(self, servers, name, tmp, server=None):
        self.name = name
        self.servers = servers
        self.server = server or servers.db[name]
        self.binaries = servers.binaries(name)
        self.tmp = pathlib.Path(tmp)
        self._daemons = []
        self._databases = []
        self._proxies = []
        self._count = itertools.count(1)

    @property
    def kafka(self):
        return self.servers.kafka

    def create_database(self):
        db = self.server.create_database()
        self._databases.append(db)
        return db

    def config(self, db, topics, group=None, **sections):
        """A whole configuration for one database, named shop; sections replace ours."""
        base = {
            "version": 1,
            "kafka": {"brokers": self.kafka.bootstrap,
                      "group": group or f"g-{uuid.uuid4().hex[:12]}",
                      # A killed member is out of the group soon, so that tests need not wait long.
                      "properties": {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500}},
            "databases": {"shop": db.config()},
            "topics": {name: {"database": "shop", "body": "json", **topic}
                       for name, topic in topics.items()},
            "http": {"listen": ""},
            "control": {"socket": ""},
            "outbox": {"relay": False},      # most tests count its rows
        }
        return {**base, **sections}

    def daemon(self, config, env=None, args=(), name="idemd", start=True):
        """A daemon on this configuration; name must differ between those of one test."""
        if any(d.name == name for d in self._daemons):
            name = f"{name}-{next(self._count)}"
        daemon = Daemon(self.binaries, config, self.tmp, env, args, name)
        self._daemons.append(daemon)
        return daemon.start() if start else daemon

    def _file(self, config):
        if isinstance(config, Daemon):
            return config.config_path
        return write_config(self.tmp, f"ctl-{next(self._count)}", config)

    def idemctl(self, config, *args, timeout=60):
        """idemctl -c CONFIG ARGS; config as for daemon(), or a Daemon, whose file is taken."""
        return self.binaries.run("idemctl", "-c", self._file(config), *args, timeout=timeout)

    def idemd_check(self, config):
        return self.binaries.run("idemd", "-c", self._file(config), "--check")

    def migrate(self, config):
        done = self.idemctl(config, "migrate")
        assert done.code == 0, f"migrate: {done}"

    def proxy(self, target=None):
        target = target or self.server
        proxy = Proxy(target.host, target.port)
        self._proxies.append(proxy)
        return proxy

    def close(self):
        troubles = []
        for daemon in self._daemons:
            try:
                daemon.close()
            except AssertionError as trouble:
                troubles.append(str(trouble))
        for proxy in self._proxies:
            proxy.close()
        for db in self._databases:
            # Left in place for whoever wants to look, as the folder is.
            if self.server.alive and not os.environ.get("IDEMD_KEEP"):
                db.drop()
        assert not troubles, "\n".join(troubles)
