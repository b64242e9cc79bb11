"""How the tests are run: examples without a time limit, and which files stay together when processes share them."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from tests.command_line import CommandLine

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from xdist.remote import Producer

ROOT = Path(__file__).parent
LONGEST_FIRST = (
    "acceptance/",
    "laptop/",
    "e2e/test_gate_",
    "e2e/test_gitops.py",
    "e2e/",
    "docs/test_tutorial.py",
    "e2e/test_demo.py",
    "laptop/test_lifecycle.py",
    "stacks/",
    "e2e/test_probe.py",
    "examples/",
    "e2e/test_examples.py",
    "repository/",
    "client/",
    "faults/",
    "acceptance_run/test_run.py",
    "demo/test_signals.py",
    "e2e/test_synth.py",
    "stage/",
    "e2e/test_interrupt.py",
    "constructs/",
    "demo/test_embedded_aws.py",
    "engines/test_template_sandbox.py",
    "report/test_browser.py",
    "e2e/test_updates.py",
)
"""Beginnings of the paths of tests that take long or share something slow: an embedded AWS, a synthesis, a browser.

Tests whose paths begin alike run in one process, one after the other; the longest beginning counts. What has an entry
of its own within `e2e/` or `laptop/` has an embedded AWS of its own, or needs none.
"""

# How long an example takes is measured in benchmarks/, never judged by a test on a machine that does other things.
# The gate draws the same 40 examples each time; `--hypothesis-profile random` draws 100 new ones. So the constants of
# the code, which Hypothesis draws from too, stay out: they grow with each module that another test loads.
# Nor is how long it takes to draw one: `too_slow` fails a test of a machine that does other things.
NOT_TIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", NOT_TIMED, derandomize=False)
settings.register_profile("seatrial", NOT_TIMED, derandomize=True, max_examples=40)
settings.load_profile("seatrial")


def pytest_configure(config: pytest.Config) -> None:
    """Draw examples from no constants of the modules that are loaded: these depend on the tests that ran before."""
    if config.getoption("--hypothesis-profile") != "random":
        none = providers._local_constants  # noqa: SLF001 (Hypothesis has no setting for it)
        providers._get_local_constants = lambda: none  # noqa: SLF001


# The CDK's own check of templates takes longer than a synthesis. `e2e/test_synth.py` makes it once, of every committed
# endpoint; elsewhere cfn-lint looks at the templates. CDK_VALIDATION=true makes it everywhere.
os.environ.setdefault("CDK_VALIDATION", "false")

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup, what the tests start would ignore it
signal.signal(signal.SIGINT, signal.default_int_handler)  # likewise in the background of a shell


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which `make test-flaky` repeats each test."""
    parser.addoption("--times", type=int, default=1, help="how often each test is run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make of each test as many as `--times` asks for."""
    if (times := metafunc.config.getoption("--times")) > 1:
        metafunc.fixturenames.append("turn")
        metafunc.parametrize("turn", range(times), ids=lambda turn: f"turn {turn + 1}")


@pytest.fixture
def turn(request: pytest.FixtureRequest) -> object:
    """Return how often this test was run before."""
    return request.param


def group_of(path: str) -> str:
    """Return what the tests of one process have in common: their file, or the beginning of the paths that share more.

    Args:
        path: The path of their file, below the repository's root.
    """
    name = path.rpartition("tests/")[2] if not path.startswith("tests/") else path.removeprefix("tests/")
    return max((shared for shared in LONGEST_FIRST if name.startswith(shared)), key=len, default=name)


class GroupScheduling(LoadScopeScheduling):
    """Gives each process whole groups of tests, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.partition("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling:
    """Tell `make test` what stays together (xdist's own marks of groups have no effect since pytest 9.2)."""
    return GroupScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what is imported and collected out of each garbage collection, also of those in forks."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long groups first."""
    groups = [group_of(item.path.relative_to(ROOT).as_posix()) for item in items]
    ranks = {group: rank for rank, group in enumerate(LONGEST_FIRST)}
    order = sorted(range(len(items)), key=lambda each: ranks.get(groups[each], len(ranks)))
    items[:] = [items[each] for each in order]


@pytest.fixture(scope="session")
def command_line() -> Iterator[CommandLine]:
    """Start the process whose forks run the commands of all tests."""
    with CommandLine.started() as started:
        yield started
