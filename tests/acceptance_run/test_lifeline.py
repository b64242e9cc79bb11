"""A suite whose watcher was killed ends by itself: nobody would count what it spends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
WATCHER = """
import subprocess, sys
from tests.acceptance.account.lifeline import lifeline
with lifeline() as file:
    words = [sys.executable, "-c", sys.argv[1], f"{file}"]
    suite = subprocess.Popen(words, pass_fds=(file,), start_new_session=True)
    suite.wait()
"""
SUITE = """
import sys, time
from tests.acceptance.account.lifeline import end_with
end_with(int(sys.argv[1]), longest_end_s={longest_end_s})
try:
    print("runs", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    {then}
"""


def told_by_suite(then: str, longest_end_s: float) -> list[str]:
    """Return what a suite says whose watcher is killed as soon as it runs, and does then when it is interrupted."""
    words = [sys.executable, "-c", WATCHER, SUITE.format(then=then, longest_end_s=longest_end_s)]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as watcher:
        assert watcher.stdout is not None
        told = [watcher.stdout.readline()]
        watcher.send_signal(signal.SIGKILL)
        return [*told, *watcher.stdout]  # to its end: the suite's output ends with the suite


def test_a_suite_is_interrupted_when_its_watcher_is_killed() -> None:
    assert told_by_suite('print("ended", flush=True)', 60.0) == ["runs\n", "interrupted\n", "ended\n"]


def test_a_suite_that_does_not_end_is_killed() -> None:
    assert told_by_suite("time.sleep(60)", 3.0) == ["runs\n", "interrupted\n"]
