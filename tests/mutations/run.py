"""Runs the nearest tests of mutations, and tells which of them nobody noticed.

    python -m tests.mutations.run [--processes N] [--file PART]                      the table (`make test-mutants`)
    python -m tests.mutations.run --draw COUNT [--seed SEED] [--file PART] …         of what decides (`make mutants`)

No file gets a wrong line: a module gets it when it is imported. Tests run in a copy of the tree, where a mutant may
write what it wants. Exit code 1 when fewer than 95 % are killed, when the tests fail without any mutation, or when a
mutant changed the copy, which may have killed the next one.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from xml.etree import ElementTree as ET

from tests.mutations.draw import drawn, why_equivalent
from tests.mutations.mutated_import import VARIABLE
from tests.mutations.mutations import ROOT, Mutation, all_mutations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LEAST_KILLED: Final = 0.95
LONGEST_S: Final = 900.0
"""Of a run of tests whose usual time is not known."""
_START_S: Final = 30.0
_PATIENCE: Final = 5.0
"""A mutant may never end: it has so many times as long as its tests take without it, and the start beside."""
_FIRST: Final = 3
"""Files of tests, the nearest, that are run before the others are collected: most mutants go no further."""
_NO_TESTS: Final = 5
"""Exit code of pytest."""
_PYTEST: Final = (
    *("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "tests.mutations.mutated_import"),
    *("-m", "not timing"),  # what may fail on a busy machine notices nothing
)
_running: Final[set[int]] = set()
"""Groups of processes that run tests."""
_BESIDE: Final = (".venv", "node_modules")
_LEFT_OUT: Final = (".git", ".hypothesis", ".seatrial", "__pycache__", "cdk.out", *_BESIDE)


class Outcome(NamedTuple):
    """What came of a mutant, and by what."""

    kind: Literal["killed", "survived", "equivalent"]
    by: str = ""


def outcome_of(
    mutation: Mutation | None, tests: Sequence[str], *arguments: str, folder: Path = ROOT, longest_s: float = LONGEST_S
) -> Outcome:
    """Return whether tests notice a mutation.

    Args:
        mutation: The mutation; `None` for none.
        tests: The tests to run.
        arguments: More arguments of pytest.
        folder: The tree, or a copy of it.
        longest_s: What runs longer is killed.

    Raises:
        RuntimeError: They could not be run at all, or fail without a mutation.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables |= {} if mutation is None else {VARIABLE: json.dumps(asdict(mutation))}
    command = [sys.executable, *_PYTEST, *arguments, *tests]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=variables, stdout=output, stderr=output, start_new_session=True
        )
        _running.add(process.pid)
        try:
            code: int | None = process.wait(longest_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _kill(process.pid)
            process.wait()
            _running.discard(process.pid)
        output.seek(0)
        text = output.read()
    if code == 0:
        return Outcome("survived")
    if code == _NO_TESTS or mutation is None:
        raise RuntimeError(f"{' '.join(tests)}: pytest ended with {code}\n{text}")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, re.MULTILINE)
    return Outcome("killed", f"{longest_s:.0f} s" if code is None else failed[1] if failed else f"exit code {code}")


def _kill(group: int) -> None:
    """Kill tests and the servers that they started."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def main(mutations: Sequence[Mutation], processes: int, name: str) -> int:
    """Run mutations; print each mutant, how it differs where it survived, the sum of each file, and of all."""
    killed: dict[str, list[bool]] = defaultdict(list)
    with _copy_of_the_tree() as folder:
        before = _states(folder)
        for one, came in _outcomes(mutations, folder, processes):
            _say(f"{came.kind:10}  {one.place}: {one.unseen}{came.by and ': '}{came.by}")
            if came.kind != "killed":
                _say(_difference(one))
            if came.kind != "equivalent":
                killed[one.file].append(came.kind == "killed")
        changed = sorted(path for path, state in _states(folder).items() if before.get(path) != state)
    if changed:
        _say(f"a mutant changed what later ones ran with: {', '.join(changed)}")
        return 1
    return _told(killed, name)


def _outcomes(mutations: Sequence[Mutation], folder: Path, processes: int) -> Iterator[tuple[Mutation, Outcome]]:
    seconds = _seconds({test for one in mutations for test in one.tests}, folder, processes)

    def outcome(one: Mutation) -> Outcome:
        if because := why_equivalent(one):
            return Outcome("equivalent", because)
        for tests in filter(None, (one.tests[:_FIRST], one.tests[_FIRST:])):
            longest_s = _START_S + _PATIENCE * sum(seconds[test] for test in tests)
            found = outcome_of(one, tests, folder=folder, longest_s=longest_s)
            if found.kind == "killed":
                return found
        return Outcome("survived")

    with ThreadPoolExecutor(processes) as pool:
        try:
            yield from zip(mutations, pool.map(outcome, mutations), strict=True)
        except BaseException:  # who interrupts it leaves no test behind
            pool.shutdown(wait=False, cancel_futures=True)
            for group in tuple(_running):
                _kill(group)
            raise


@contextmanager
def _copy_of_the_tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="seatrial-mutants-") as name:
        folder = Path(name, "seatrial")
        shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(".*_cache", *_LEFT_OUT))
        for beside in _BESIDE:
            if (ROOT / beside).is_dir():
                (folder / beside).symlink_to(ROOT / beside)
        yield folder


def _states(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of every file of the tree, by path; not of what Python keeps beside them."""
    found = (path for path in folder.rglob("*") if path.is_file() and not {*path.parts} & {*_LEFT_OUT})
    stats = ((path.relative_to(folder).as_posix(), path.stat()) for path in found)
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in stats}


def _seconds(tests: set[str], folder: Path, processes: int) -> dict[str, float]:
    """Run tests without a mutation; return what each file took, in s.

    Raises:
        RuntimeError: One of them fails.
    """
    seconds: dict[str, float] = dict.fromkeys(tests, 0.0)
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "report.xml")
        wanted = (
            f"--junit-xml={report}",
            "-o",
            "junit_family=xunit1",
            f"--numprocesses={processes}",
            "--dist=loadfile",
        )
        outcome_of(None, sorted(tests), *wanted, folder=folder)
        for case in ET.parse(report).iter("testcase"):  # noqa: S314 (pytest wrote it)
            seconds[case.attrib["file"]] += float(case.attrib["time"])
    return seconds


def _difference(mutation: Mutation) -> str:
    lines = difflib.unified_diff(mutation.before.splitlines(), mutation.after.splitlines(), n=0, lineterm="")
    return "\n".join(f"            {line}" for line in lines if not line.startswith(("---", "+++", "@@")))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _told(killed: dict[str, list[bool]], name: str) -> int:
    for file, each in sorted(killed.items()):
        _say(f"{sum(each):3} of {len(each):3}  {file}")
    every = [one for each in killed.values() for one in each]
    share = sum(every) / len(every)
    _say(f"{sum(every)} of {len(every)} killed ({100.0 * share:.1f} %), {name}; at least {LEAST_KILLED:.0%} must be")
    return 0 if share >= LEAST_KILLED else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--file", default="", help="only files whose path has this part")
    parser.add_argument("--draw", type=int, metavar="COUNT", help="so many mutants of what decides, by chance")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = _arguments()
    chosen = all_mutations() if given.draw is None else tuple(drawn(given.draw, given.seed))
    source = "the table" if given.draw is None else f"seed {given.seed}"
    wanted = [one for one in chosen if given.file in one.file]
    sys.exit(main(wanted, given.processes, source) if wanted else f"no mutant is of a file like {given.file!r}")
