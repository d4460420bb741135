# SPDX-License-Identifier: MIT
"""proxy: stands between idemd and its database and makes the network fail at a chosen statement.

It knows of the protocol only the packet frame (3 bytes length, 1 byte sequence) and the two
commands that carry SQL text. The connection must not be encrypted, which on loopback it is not.
"""
import dataclasses
import re
import socket
import struct
import threading

from .process import free_port
from .wait import wait_until

DELIVERED = "delivered"
NOT_DELIVERED = "not_delivered"
CLOSE_AFTER = "close_after"
HOLD = "hold"

_COM_QUERY = 0x03
# CLIENT_QUERY_ATTRIBUTES (MySQL's own client): no attributes, one set of them, before the statement.
_NO_ATTRIBUTES = b"\x00\x01"
_COM_STMT_PREPARE = 0x16


@dataclasses.dataclass(frozen=True)
class _Delay:
    seconds: float


@dataclasses.dataclass(frozen=True)
class _Error:
    number: int
    sqlstate: str
    text: str


def delay(seconds):
    return _Delay(seconds)


def error(number, sqlstate="HY000", text="refused by the proxy"):
    return _Error(number, sqlstate, text)


class Rule:
    """What happens to the next `times` matching statements after the first `skip`."""

    def __init__(self, proxy, text, action, times, skip, contains):
        self.proxy = proxy
        words = re.escape(text.encode() if isinstance(text, str) else text)
        self.pattern = re.compile(words if contains else rb"\s*" + words, re.I)
        self.contains = contains
        self.action = action
        self.times = times
        self.skip = skip
        self.hits = 0
        self.released = threading.Event()
        self.finished = 0

    def takes(self, statement):
        """Whether this statement is one of ours; counts it."""
        found = self.pattern.search(statement) if self.contains else self.pattern.match(statement)
        if not found or (self.times is not None and self.hits >= self.times):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.hits += 1
        return True

    def wait(self, timeout=30, hits=1):
        """Waits until the action was carried out `hits` times (for HOLD: until it began)."""
        def done():
            return (self.hits if self.action == HOLD else self.finished) >= hits
        wait_until(done, timeout, f"the proxy to meet {self.pattern.pattern!r}", 0.01)

    def release(self):
        self.released.set()

    def remove(self):
        with self.proxy.lock:
            if self in self.proxy.rules:
                self.proxy.rules.remove(self)
        self.release()


class _Link:
    """One client connection and its twin to the server."""

    def __init__(self, proxy, client):
        self.proxy = proxy
        self.client = client
        self.server = socket.create_connection(proxy.target, timeout=10)
        self.server.settimeout(None)
        for end in (self.client, self.server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.swallow = False
        self.answered = threading.Event()
        self.threads = [threading.Thread(target=self._upward, daemon=True),
                        threading.Thread(target=self._downward, daemon=True)]
        for thread in self.threads:
            thread.start()

    def close(self):
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
        self.answered.set()
        self.proxy.forget(self)

    def _downward(self):
        """Server to client, bytes as they come."""
        try:
            while True:
                data = self.server.recv(65536)
                if not data:
                    break
                self.proxy.thawed.wait()
                self.answered.set()
                if not self.swallow:
                    self.client.sendall(data)
        except OSError:
            pass
        self.close()

    def _packet(self, stream):
        head = stream.read(4)
        if len(head) < 4:
            return None
        body = stream.read(head[0] | head[1] << 8 | head[2] << 16)
        return head, body

    def _upward(self):
        """Client to server, packet by packet, with a look at each statement."""
        stream = self.client.makefile("rb")
        try:
            while True:
                packet = self._packet(stream)
                if packet is None:
                    break
                head, body = packet
                self.proxy.thawed.wait()
                rule = self._rule(head, body)
                if rule and not self._act(rule, head + body):
                    break
                if not rule:
                    self.server.sendall(head + body)
        except (OSError, ValueError):
            pass
        self.close()

    def _rule(self, head, body):
        # A command is the first packet of its exchange; the login's packets are numbered on.
        if head[3] != 0 or not body or body[0] not in (_COM_QUERY, _COM_STMT_PREPARE):
            return None
        text = body[1:]
        if body[0] == _COM_QUERY and text.startswith(_NO_ATTRIBUTES):
            text = text[len(_NO_ATTRIBUTES):]
        with self.proxy.lock:
            return next((r for r in self.proxy.rules if r.takes(text)), None)

    def _act(self, rule, packet):
        """Carries the action out; False ends the connection."""
        action = rule.action
        goes_on = True
        if action == DELIVERED:
            self.answered.clear()
            self.swallow = True
            self.server.sendall(packet)
            self.answered.wait(60)
            goes_on = False
        elif action == CLOSE_AFTER:
            self.swallow = True
            self.server.sendall(packet)
            goes_on = False
        elif action == NOT_DELIVERED:
            goes_on = False
        elif action == HOLD:
            rule.released.wait()
            self.server.sendall(packet)
        elif isinstance(action, _Delay):
            threading.Event().wait(action.seconds)
            self.server.sendall(packet)
        elif isinstance(action, _Error):
            text = action.sqlstate.encode() + action.text.encode()
            body = b"\xff" + struct.pack("<H", action.number) + b"#" + text
            self.client.sendall(struct.pack("<I", len(body))[:3] + b"\x01" + body)
        if not goes_on:
            self.close()
        rule.finished += 1
        return goes_on


class Proxy:
    """Listens on a loopback port of its own and passes everything on to `target`."""

    def __init__(self, host, port):
        self.target = (host, port)
        self.host = "127.0.0.1"
        self.port = free_port()
        self.lock = threading.Lock()
        self.rules = []
        self.thawed = threading.Event()
        self.thawed.set()
        self._links = set()
        self._refusing = False
        self._listener = socket.create_server((self.host, self.port), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refusing:
                client.close()
                continue
            try:
                link = _Link(self, client)
            except OSError:
                client.close()
                continue
            with self.lock:
                self._links.add(link)

    def forget(self, link):
        with self.lock:
            self._links.discard(link)

    @property
    def connections(self):
        with self.lock:
            return len(self._links)

    def on(self, text, action, times=1, skip=0, contains=False):
        """From now on: this action for statements that start with (or contain) the text."""
        rule = Rule(self, text, action, times, skip, contains)
        with self.lock:
            self.rules.append(rule)
        return rule

    def cut(self):
        """Closes every connection of this moment; how many there were."""
        with self.lock:
            links = list(self._links)
        for link in links:
            link.close()
        return len(links)

    def refuse(self, refusing):
        """Whether new connections are closed at once. Those that exist are not touched."""
        self._refusing = refusing

    def freeze(self):
        """Nothing goes through any more, nothing is closed."""
        self.thawed.clear()

    def thaw(self):
        self.thawed.set()

    def close(self):
        # shutdown wakes the thread in accept, close alone does not.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self.thaw()
        for rule in list(self.rules):
            rule.remove()
        self.cut()
