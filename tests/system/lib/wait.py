# SPDX-License-Identifier: MIT
"""wait: waiting with a deadline. Tests never sleep for a guess; they wait for something."""
import time


def wait_until(check, timeout=30, what="the condition", interval=0.05):
    """Calls check() until it returns something truthy, and returns that.

    AssertionError at the deadline."""
    deadline = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {timeout} s in vain for {what}; last: {value!r}")
        time.sleep(interval)
