# SPDX-License-Identifier: MIT
"""The first command of the README does what it says; it exits 1 by itself if any count is off."""
import os
import pathlib
import re
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


def test_the_demo_counts_right_and_cleans_up(world):
    if world.binaries.prefix:
        pytest.skip("the demo is this machine's world")
    # As a newcomer has it: not the tests' own build, which the demo would make anew without crash points.
    env = {name: value for name, value in os.environ.items() if not name.startswith("IDEMD_")}
    done = subprocess.run([TOP / "scripts/demo"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=env, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    for word in ("first", "duplicate", "applied_by_other", "key_reused", "not_found", "invalid"):
        assert word in done.stdout, f"{word} is not in the table of outcomes"
    folder = re.search(r"private, in (\S+)", done.stdout)[1]
    assert not pathlib.Path(folder).exists(), "it cleans up"
