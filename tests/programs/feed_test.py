#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""feed_test: sends through feed into mockbroker and looks at exit codes and what they printed.

    feed_test.py MOCKBROKER FEED
"""
import subprocess
import sys

mockbroker, feed = sys.argv[1:3]
failures = []


def check(what, condition):
    if not condition:
        failures.append(what)
        print(f"FAILED: {what}")


def send(bootstrap, topic, text, *more):
    return subprocess.run([feed, "--brokers", bootstrap, "--topic", topic, *more], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=50, check=False)


with subprocess.Popen([mockbroker, "--brokers", "1", "--topic", "pay:3", "--topic", "x:1"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
    line = broker.stdout.readline().decode().strip()
    check("mockbroker names its address", line.startswith("bootstrap=") and ":" in line)
    at = line.partition("=")[2]
    if not at:
        sys.exit(1)

    lines = [b"-\tk1\t\t{\"a\": 1}", b"0\t\\N\tIdempotency-Key=abc\\;d;n=\\N\t\\N",
             b"2\t\\x00\\xff\t\t", b"1\t\th\\==\\t\\n\\\\\tv"]
    done = send(at, "pay", b"\n".join(lines))
    check(f"all kinds of fields are taken: {done}", (done.returncode, done.stdout) ==
          (0, b"sent=4\n"))
    many = b"".join(b"-\tk%d\t\t{\"n\": %d}\n" % (n, n) for n in range(20000))
    done = send(at, "pay", many)
    check(f"many records are all reported: {done.stdout}", done.stdout == b"sent=20000\n")
    check("nothing to send is no error", send(at, "pay", b"").returncode == 0)

    for bad in (b"-\tk\tv", b"-\tk\t\tv\tw", b"p\tk\t\tv", b"-1\tk\t\tv", b"\tk\t\tv",
                b"-\t\\q\t\tv", b"-\tk\tnovalue\tv", b"-\tk\t=v\tv", b"-\tk\t\t\\x1"):
        done = send(at, "x", b"-\tk\t\tv\n" + bad + b"\n")
        check(f"a bad line is named: {bad!r} {done}",
              done.returncode == 65 and b"line 2" in done.stderr)
    done = send(at, "x", b"9\tk\t\tv\n")
    check(f"a partition that is not there fails: {done}", done.returncode == 1)
    check("usage", subprocess.run([feed], stderr=subprocess.DEVNULL, check=False).returncode == 64)
    check("usage of mockbroker", subprocess.run(
        [mockbroker, "--topic", "x:0"], stderr=subprocess.DEVNULL, check=False).returncode == 64)

    broker.stdin.close()
    check("mockbroker ends with its input", broker.wait(20) == 0)

sys.exit(1 if failures else 0)
