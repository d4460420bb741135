# SPDX-License-Identifier: MIT
"""database: the private MariaDB and MySQL servers, and the databases that tests make on them."""
import os
import re
import subprocess
import threading
import uuid

import pymysql
import pymysql.cursors

from .process import TOP, Server

# As durable as in production: a commit that the server confirmed survives a crash.
_COMMON = ["--bind-address=127.0.0.1", "--skip-name-resolve", "--server-id=1",
           "--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1", "--binlog-format=ROW",
           "--innodb-buffer-pool-size=96M", "--max-allowed-packet=64M", "--max-connections=400",
           "--max-connect-errors=100000000", "--log-bin-trust-function-creators=1"]


class DbServer(Server):
    """One database server; `admin` and the rest speak as its root over the socket."""

    def __init__(self, folder):
        super().__init__(folder)
        self.data = self.folder / "data"
        self.socket = self.folder / "sock"
        self.log_path = self.folder / "log"
        self._root = None
        self._lock = threading.Lock()
        self.initialize()

    def initialize(self):
        raise NotImplementedError

    def _options(self):
        return [f"--datadir={self.data}", f"--socket={self.socket}", f"--port={self.port}",
                f"--pid-file={self.folder}/pid", f"--log-bin={self.data}/bin", *_COMMON]

    def _run(self, argv):
        with open(self.folder / "init.log", "ab") as log:
            done = subprocess.run([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log, check=False, timeout=120)
        assert done.returncode == 0, (self.folder / "init.log").read_text(errors="replace")[-3000:]

    def root(self, database=None, autocommit=True):
        """A new session of the server's root."""
        return pymysql.connect(unix_socket=str(self.socket), user="root", database=database,
                               autocommit=autocommit, charset="utf8mb4", connect_timeout=10,
                               cursorclass=pymysql.cursors.DictCursor)

    def answers(self):
        try:
            self.root().close()
            return True
        except pymysql.err.OperationalError:
            return False

    def execute(self, sql, args=None, database=None):
        """(rows, affected) of one statement on the shared root session, remade if it is lost."""
        with self._lock:
            if self._root:
                try:
                    self._root.ping(reconnect=False)
                except pymysql.err.Error:
                    self._root = None
            if not self._root:
                self._root = self.root()
            with self._root.cursor() as cursor:
                if database:
                    self._root.select_db(database)
                affected = cursor.execute(sql, args)
                return list(cursor.fetchall()), affected

    def admin(self, sql, args=None):
        return self.execute(sql, args)[0]

    def set_global(self, name, value):
        assert re.fullmatch(r"\w+", name)
        self.execute(f"SET GLOBAL {name} = %s", (value,))

    def get_global(self, name):
        assert re.fullmatch(r"\w+", name)
        return str(self.admin(f"SELECT @@GLOBAL.{name} AS value")[0]["value"])

    def processlist(self, user=None):
        rows = [{key.lower(): value for key, value in row.items()}
                for row in self.admin("SHOW FULL PROCESSLIST")]
        return [row for row in rows if user is None or row["user"] == user]

    def kill_sessions(self, user):
        """KILL CONNECTION for every session of that user; how many there were."""
        count = 0
        for row in self.processlist(user):
            try:
                self.admin(f"KILL CONNECTION {int(row['id'])}")
                count += 1
            except pymysql.err.OperationalError as gone:
                if gone.args[0] != 1094:
                    raise
        return count

    def create_database(self):
        return Db(self)


class MariaDb(DbServer):
    name = flavor = "mariadb"

    def _user(self):
        return ["--user=mysql"] if os.geteuid() == 0 else []

    def initialize(self):
        # Forced, because a machine may be unable to look up its own name, which matters nothing.
        self._run(["mariadb-install-db", "--no-defaults", *self._user(), "--skip-test-db",
                   "--force", "--skip-name-resolve", "--auth-root-authentication-method=normal",
                   f"--datadir={self.data}"])
        self._hand_over()

    def _hand_over(self):
        # The server makes its socket and pid file in the folder.
        if os.geteuid() == 0:
            self._run(["chown", "mysql", self.folder])

    def command(self):
        return ["mariadbd", "--no-defaults", *self._user(), *self._options(),
                "--innodb-log-file-size=64M"]


class MySql(DbServer):
    name = flavor = "mysql"

    def _prefix(self):
        return [TOP / "scripts/world", "run", "--share", self.folder, "--"]

    def initialize(self):
        self._run([TOP / "scripts/world", "up"])
        self._run([*self._prefix(), "chown", "mysql", self.folder])
        self._run([*self._prefix(), "mysqld", "--no-defaults", "--initialize-insecure",
                   "--user=mysql", f"--datadir={self.data}"])

    def command(self):
        return [*self._prefix(), "mysqld", "--no-defaults", "--user=mysql", *self._options(),
                "--mysqlx=OFF", "--innodb-redo-log-capacity=128M"]


class Db:
    """A fresh database with a user of its own that may do anything in it, and nothing elsewhere."""

    def __init__(self, server):
        word = uuid.uuid4().hex[:12]
        self.server = server
        self.name = f"shop_{word}"
        self.user = f"idemd_{word}"
        self.password = uuid.uuid4().hex
        self.password_file = server.folder / f"{self.user}.secret"
        self.password_file.write_text(self.password + "\n")
        server.admin(f"CREATE DATABASE {self.name} DEFAULT CHARACTER SET utf8mb4")
        server.admin(f"CREATE USER {self.user}@'%%' IDENTIFIED BY %s", (self.password,))
        server.admin(f"GRANT ALL ON {self.name}.* TO {self.user}@'%'")

    @property
    def host(self):
        return self.server.host

    @property
    def port(self):
        return self.server.port

    def exec(self, sql, args=None):
        """One statement as root, committed at once; the number of affected rows."""
        return self.server.execute(sql, args, self.name)[1]

    def script(self, text):
        """Statements that end with ";" at the end of a line; -- comment lines are skipped."""
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
        for statement in re.split(r";[ \t]*(?:\n|\Z)", "\n".join(lines)):
            if statement.strip():
                self.exec(statement)

    def query(self, sql, args=None):
        return self.server.execute(sql, args, self.name)[0]

    def one(self, sql, args=None):
        """The only row of a query that must give exactly one."""
        rows = self.query(sql, args)
        assert len(rows) == 1, f"{sql} {args or ''}: {len(rows)} rows: {rows[:5]}"
        return rows[0]

    def value(self, sql, args=None):
        return next(iter(self.one(sql, args).values()))

    def connect(self, autocommit=False, admin=True):
        """A second session, for instance to hold a lock; as root, or as idemd's user."""
        if admin:
            return self.server.root(self.name, autocommit)
        return pymysql.connect(host=self.host, port=self.port, user=self.user,
                               password=self.password, database=self.name, charset="utf8mb4",
                               autocommit=autocommit, connect_timeout=10,
                               cursorclass=pymysql.cursors.DictCursor)

    def config(self, **more):
        """An entry of `databases:` in idemd's configuration."""
        entry = {"host": self.host, "port": self.port, "database": self.name, "user": self.user,
                 "password_file": str(self.password_file), "time_zone": "+08:00",
                 "connections": 2, "lock_wait": "1s"}
        return {**entry, **more}

    def drop(self):
        self.server.kill_sessions(self.user)
        self.server.admin(f"DROP DATABASE IF EXISTS {self.name}")
        self.server.admin(f"DROP USER IF EXISTS {self.user}@'%'")
