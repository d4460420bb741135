#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""count: how many tests passed and failed, for scripts/test. Prints `PASSED FAILED`.

    count.py meson LOG.json STATUS      meson's test log (one JSON object a line)
    count.py junit FILE.xml STATUS      pytest's report
    count.py suite BUILD_DIR NAME       how many tests of that suite meson knows

STATUS is the runner's exit code: not 0 always counts as at least one failure, whatever was written.
"""
import json
import pathlib
import re
import sys
import xml.etree.ElementTree


def of_output(text, good):
    """Cases inside one test program: cmocka's or TAP's; else the program is one test."""
    passed = sum(map(int, re.findall(r"^\[  PASSED  \] (\d+) test", text, re.M)))
    failed = sum(map(int, re.findall(r"^\[  FAILED  \] (?:tests: )?(\d+) test", text, re.M)))
    if not passed and not failed:
        # A program that died has no summary, but what it finished is finished.
        passed = len(re.findall(r"^\[       OK \] ", text, re.M))
    if not passed and not failed:
        passed = len(re.findall(r"^ok \d+(?! .*# SKIP)", text, re.M))
        failed = len(re.findall(r"^not ok \d+(?! .*# TO" r"DO)", text, re.M))
    if good and not failed:
        return max(passed, 1), 0
    return passed, max(failed, 1)


def of_meson(path):
    passed = failed = 0
    for line in pathlib.Path(path).read_text(errors="replace").splitlines():
        test = json.loads(line)
        if test["result"] in ("SKIP", "IGNORED"):
            continue
        good = test["result"] in ("OK", "EXPECTEDFAIL")
        text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
        one_passed, one_failed = of_output(text, good)
        passed += one_passed
        failed += one_failed
    return passed, failed


def of_junit(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    passed = failed = 0
    for suite in suites:
        bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        failed += bad
        passed += max(int(suite.get("tests", 0)) - bad - int(suite.get("skipped", 0)), 0)
    return passed, failed


def in_suite(folder, name):
    tests = json.loads(pathlib.Path(folder, "meson-info/intro-tests.json").read_text())
    return sum(any(s.split(":")[-1] == name for s in test["suite"]) for test in tests)


def main(kind, path, last):
    if kind == "suite":
        print(in_suite(path, last))
        return
    try:
        passed, failed = (of_meson if kind == "meson" else of_junit)(path)
    except (OSError, ValueError, xml.etree.ElementTree.ParseError):
        passed = failed = 0
    if last != "0" and not failed:
        failed = 1
    print(passed, failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
