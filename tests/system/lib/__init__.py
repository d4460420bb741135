# SPDX-License-Identifier: MIT
"""What system tests use; README.md beside this folder lists it."""
from .daemon import Binaries, Daemon, Result
from .database import Db, DbServer
from .exposition import Exposition
from .kafka import Kafka, Record
from .process import TOP, free_port
from .proxy import CLOSE_AFTER, DELIVERED, HOLD, NOT_DELIVERED, Proxy, delay, error
from .text import dump_yaml, parse_logfmt
from .wait import wait_until
from .world import Servers, World

__all__ = ["Binaries", "CLOSE_AFTER", "DELIVERED", "Daemon", "Db", "DbServer", "Exposition", "HOLD", "Kafka",
           "NOT_DELIVERED", "Proxy", "Record", "Result", "Servers", "TOP", "World", "delay",
           "dump_yaml", "error", "free_port", "parse_logfmt", "wait_until"]
