"""Runs the nearest tests of each mutation, and tells which of them nobody noticed: `make test-mutants`.

    python -m tests.mutations.run [--processes N] [--file PART]

Exit code 1 when fewer than 95 % are killed, or when the tests fail without any mutation.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Literal

from tests.mutations.mutated_import import VARIABLE
from tests.mutations.mutations import ROOT, all_mutations

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAST_KILLED: Final = 0.95
LONGEST_S: Final = 900
"""A mutant may never end; its tests take a minute at most, beside other processes a few."""
_PYTEST: Final = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "tests.mutations.mutated_import")
Outcome = Literal["killed", "survived"]


def outcome_of(number: int | None, tests: Sequence[str]) -> Outcome:
    """Return whether tests notice a mutation.

    Args:
        number: Of the mutation in the table; `None` for none.
        tests: The tests to run.

    Raises:
        RuntimeError: They could not be run at all.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    variables |= {} if number is None else {VARIABLE: str(number)}
    try:
        done = subprocess.run(
            [sys.executable, *_PYTEST, *tests],
            check=False,
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        return "killed"
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{' '.join(tests)}: pytest ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return "killed" if done.returncode else "survived"


def main(processes: int, part: str) -> int:
    """Run the table, or the files whose path has a part; print each mutant and the sum of each file."""
    chosen = [(number, one) for number, one in enumerate(all_mutations()) if part in one.file]
    tests = sorted({test for _, one in chosen for test in one.tests})
    if outcome_of(None, tests) == "killed":
        _say("the tests fail without any mutation")
        return 1
    killed: dict[str, list[bool]] = defaultdict(list)
    with ThreadPoolExecutor(processes) as pool:
        outcomes = pool.map(lambda one: outcome_of(one[0], one[1].tests), chosen)
        for (_, mutation), outcome in zip(chosen, outcomes, strict=True):
            killed[mutation.file].append(outcome == "killed")
            _say(f"{outcome:8}  {mutation.place}: {mutation.unseen}")
    return _told(killed)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _told(killed: dict[str, list[bool]]) -> int:
    for file, each in killed.items():
        _say(f"{sum(each):3} of {len(each):3}  {file}")
    every = [one for each in killed.values() for one in each]
    share = sum(every) / len(every)
    _say(f"{sum(every)} of {len(every)} mutants killed ({share:.1%}); at least {LEAST_KILLED:.0%} must be")
    return 0 if share >= LEAST_KILLED else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--file", default="", help="only files whose path has this part")
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    sys.exit(main(given.processes, given.file))
