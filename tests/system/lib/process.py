# SPDX-License-Identifier: MIT
"""process: a server of the tests: a child process with a log file and a port on loopback.

Ended by its own process id, never by name. Every living child is in `_alive`, and is killed when
the interpreter ends, however the session went.
"""
import atexit
import os
import pathlib
import random
import signal
import socket
import subprocess

from .wait import wait_until

TOP = pathlib.Path(__file__).resolve().parents[3]
_alive = set()
_given = set()


def free_port():
    """A loopback port that nobody listens on; never the same twice in one session."""
    # Below the range from which the kernel picks client ports, so that no connection takes it.
    low, high = (int(x) for x in os.environ.get("IDEMD_TEST_PORTS", "20000-29999").split("-"))
    for port in random.sample(range(low, high + 1), high - low + 1):
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port
    raise RuntimeError(f"no free port in {low}-{high}")


def end(process, sig=signal.SIGKILL, timeout=60):
    """Sends the signal, waits, kills what does not go. Returns the exit code."""
    if process.poll() is None:
        process.send_signal(sig)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    _alive.discard(process)
    return process.returncode


def spawn(argv, **options):
    process = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL,
                               start_new_session=True, **options)
    _alive.add(process)
    return process


@atexit.register
def _end_all():
    for process in list(_alive):
        end(process)


class Server:
    """Base of the servers; a subclass gives command() and answers()."""
    name = "server"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.log_path = self.folder / "log"
        self.host = "127.0.0.1"
        self.port = free_port()
        self.process = None

    def command(self):
        raise NotImplementedError

    def answers(self):
        raise NotImplementedError

    @property
    def alive(self):
        return self.process is not None and self.process.poll() is None

    def tail(self, lines=40):
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def start(self, timeout=90):
        """Starts the server and waits until it answers. Same port and data as before."""
        assert not self.alive, f"{self.name} runs already"
        with open(self.log_path, "ab") as log:
            self.process = spawn(self.command(), stdout=log, stderr=log)

        def up():
            assert self.alive, f"{self.name} ended at start:\n{self.tail()}"
            return self.answers()
        try:
            wait_until(up, timeout, f"{self.name} to answer", 0.1)
        except AssertionError as late:
            self.kill()
            raise AssertionError(f"{late}\n{self.tail()}") from None

    def stop(self, timeout=60):
        """Ends it in order."""
        if self.process:
            end(self.process, signal.SIGTERM, timeout)

    def kill(self):
        """SIGKILL, as a crash."""
        if self.process:
            end(self.process, signal.SIGKILL)

    def restart(self):
        self.stop()
        self.start()

    def freeze(self):
        """Alive, and answers nothing any more."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
