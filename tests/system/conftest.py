# SPDX-License-Identifier: MIT
"""Fixtures of the system tests: servers for the session, a world and a folder for each test."""
import os
import pathlib
import shutil
import signal
import tempfile

import pytest

from lib import Servers, World


def pytest_addoption(parser):
    parser.addoption("--world", choices=("mariadb", "mysql"),
                     help="only the tests of this world; those of no world run with mariadb")


def pytest_collection_modifyitems(config, items):
    chosen = config.getoption("--world")
    if not chosen:
        return
    kept, left = [], []
    for item in items:
        params = item.callspec.params if hasattr(item, "callspec") else {}
        (kept if params.get("world", "mariadb") == chosen else left).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def pytest_configure(config):
    config.addinivalue_line("markers", "sanitize: run again on daemons with sanitizers")
    config.addinivalue_line("markers", "deadline(seconds): other than the usual 300 s")
    # A terminated session must still end its servers.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """No test hangs: at its deadline it fails, wherever it is."""
    marker = item.get_closest_marker("deadline")
    seconds = marker.args[0] if marker else 300

    def late(*_):
        raise AssertionError(f"the test did not end within {seconds} s")
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def servers(request):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="idemd-test-"))
    # Servers run as users of their own and must reach their folders in it.
    folder.chmod(0o755)
    made = Servers(folder)
    yield made
    made.close()
    if request.session.testsfailed or os.environ.get("IDEMD_KEEP"):
        reporter = request.config.pluginmanager.getplugin("terminalreporter")
        if reporter:
            reporter.write_line(f"\nservers' logs and the tests' files stay in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def tmp(servers, request):
    """A folder for this test, visible in both worlds."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)[:60]
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=servers.tmp))
    folder.chmod(0o755)
    return folder


@pytest.fixture(params=["mariadb", "mysql"])
def world(request, servers, tmp):
    made = World(servers, request.param, tmp)
    yield made
    made.close()
