# SPDX-License-Identifier: MIT
"""daemon: running idemd and idemctl, and reading what they say."""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import threading

from .process import TOP, end, spawn
from .text import dump_yaml, parse_logfmt
from .wait import wait_until

_SANITIZER = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer",
              "runtime error:")

# Details, section 5, "Levels": any other level of an outcome line is a mistake, whatever the test looks for.
_LEVELS = {"err": {"state_conflict", "rejected", "applied_by_other"},
           "warning": {"parked", "key_reused", "not_found", "invalid"},
           "info": {"first", "duplicate", "processing", "already_applied", "ignored"}}


@dataclasses.dataclass
class Result:
    """What a finished program left."""
    code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


class Binaries:
    """The built programs of one world; argv() is how one of them is started there."""

    def __init__(self, folder, prefix=()):
        self.folder = folder
        self.prefix = [str(word) for word in prefix]

    def argv(self, program, *args):
        return [*self.prefix, f"{self.folder}/{program}", *map(str, args)]

    def run(self, program, *args, timeout=60, env=None):
        done = subprocess.run(self.argv(program, *args), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                              env={**os.environ, **(env or {})}, check=False)
        return Result(done.returncode, done.stdout.decode(errors="replace"),
                      done.stderr.decode(errors="replace"))


def native_binaries():
    """World (a): what scripts/build made for this machine."""
    folder = pathlib.Path(os.environ.get("IDEMD_BUILD", TOP / "build")).absolute()
    return Binaries(folder, os.environ.get("IDEMD_RUN", "").split())


def world_binaries(share):
    """World (b): what scripts/build --world made; `share` is visible inside under its own path."""
    twin = "-test" if os.environ.get("IDEMD_BUILD", "").rstrip("/").endswith("-test") else ""
    folder = os.environ.get("IDEMD_BUILD_WORLD", f"/srv/idemd/build{twin}")
    return Binaries(folder, [TOP / "scripts/world", "run", "--share", share, "--"])


def write_config(folder, name, config):
    """The configuration as a file: a dict, YAML text, or a file that is there already."""
    if isinstance(config, pathlib.Path):
        return config
    path = pathlib.Path(folder) / f"{name}.yaml"
    path.write_text(config if isinstance(config, str) else dump_yaml(config))
    return path


class Daemon:
    """One idemd process. Its stderr is read by a thread into `lines` and `events`."""

    def __init__(self, binaries, config, folder, env=None, args=(), name="idemd"):
        self.name = name
        self.binaries = binaries
        self.folder = pathlib.Path(folder)
        self.config_path = write_config(folder, name, config)
        self.env = {key: str(value) for key, value in (env or {}).items()}
        self.args = args
        self.process = None
        self.lines = []
        self.events = []
        self._news = threading.Condition()
        self._reader = None

    # Running

    def start(self):
        """Starts it; also again after it ended. Lines of all runs stay in one list."""
        assert not self.alive, f"{self.name} runs already"
        self.process = spawn(self.binaries.argv("idemd", "-c", self.config_path, *self.args),
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             cwd=self.folder, env={**os.environ, **self.env})
        self._reader = threading.Thread(target=self._read, args=(self.process.stderr,),
                                        daemon=True)
        self._reader.start()
        return self

    def _read(self, pipe):
        with open(self.folder / f"{self.name}.log", "ab") as log, pipe:
            for raw in pipe:
                log.write(raw)
                log.flush()
                line = raw.decode(errors="replace").rstrip("\n")
                fields = parse_logfmt(line)
                with self._news:
                    self.lines.append(line)
                    if "event" in fields:
                        self.events.append(fields)
                    self._news.notify_all()

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def signal(self, sig):
        self.process.send_signal(sig)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def stop(self, timeout=60):
        """SIGTERM; the exit code. A daemon that does not go within the time fails the test."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait_exit(timeout)

    def kill(self):
        """SIGKILL, as a crash."""
        end(self.process, signal.SIGKILL)
        self._reader.join(10)

    def wait_exit(self, timeout=60):
        """The exit code once it ended by itself; minus the signal if one ended it."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._fail(f"{self.name} did not end within {timeout} s")
        end(self.process)
        self._reader.join(10)
        return self.process.returncode

    def close(self):
        """Ends it if it still runs, and complains about a sanitizer's report."""
        if self.process:
            if self.alive:
                self.thaw()
                end(self.process, signal.SIGTERM, 20)
            self._reader.join(10)
        reports = [line for line in self.lines if any(word in line for word in _SANITIZER)]
        assert not reports, f"{self.name}: {reports[:3]}\n{self.tail(60)}"

    # Reading

    def mark(self):
        """Now, as a position for `after=`."""
        with self._news:
            return len(self.events)

    def select(self, event, after=0, **fields):
        """All events of that name so far whose fields match."""
        with self._news:
            seen = self.events[after:]
        return [e for e in seen if e["event"] == event and _matches(e, fields)]

    def outcomes(self, after=0, **fields):
        return self.select("outcome", after, **fields)

    def _wait(self, check, timeout, what):
        def look():
            found = check()
            # A daemon that ended says nothing more; what it said before is still coming in.
            if not found and not self.alive and not self._reader.is_alive():
                found = check()
                if not found:
                    self._fail(f"{self.name} ended ({self.process.returncode}) before {what}")
            return found
        try:
            return wait_until(look, timeout, what, 0.02)
        except AssertionError as late:
            if self.tail() in str(late):
                raise
            raise AssertionError(f"{late}\n{self.tail()}") from None

    def wait_event(self, event, timeout=30, after=0, **fields):
        """The first such event since `after`."""
        return self._wait(lambda: self.select(event, after, **fields), timeout,
                          f"event={event} {fields or ''}")[0]

    def wait_outcomes(self, count, timeout=60, after=0, **fields):
        """At least `count` outcomes that match."""
        def enough():
            found = self.outcomes(after, **fields)
            return found if len(found) >= count else None
        if count == 0:
            return self.outcomes(after, **fields)
        try:
            found = self._wait(enough, timeout, f"{count} outcomes {fields or ''}")
        except AssertionError as late:
            have = len(self.outcomes(after, **fields))
            raise AssertionError(f"{have} of {count} outcomes {fields or ''}; {late}") from None
        wrong = [o for o in found if o["outcome"] not in _LEVELS.get(o["level"], ())]
        assert not wrong, f"not the contract's level: {wrong[0]}"
        return found

    def wait_ready(self, timeout=60, after=None):
        """event=ready of the present run."""
        pid = str(self.pid)

        def ready():
            with self._news:
                events = list(self.events)
            begin = max((i for i, e in enumerate(events)
                         if e["event"] == "start" and e.get("pid") == pid),
                        default=after or 0)
            return [e for e in events[begin:] if e["event"] == "ready"]
        return self._wait(ready, timeout, "event=ready")[0]

    def tail(self, lines=40):
        with self._news:
            return "\n".join(self.lines[-lines:])

    def rss_kib(self):
        """Resident memory in KiB: (now, highest ever)."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        found = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        return int(found["VmRSS"].split()[0]), int(found["VmHWM"].split()[0])

    def _fail(self, why):
        raise AssertionError(f"{why}\n{self.tail()}")


def _matches(event, fields):
    for name, wanted in fields.items():
        have = event.get(name)
        if callable(wanted):
            if not wanted(have):
                return False
        elif wanted is None:
            if have is not None:
                return False
        elif have != str(wanted):
            return False
    return True
