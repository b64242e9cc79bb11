"""Mutants that are drawn of what decides: verdict, rails, lock, deletion, rollback, secrets, promotion.

The same seed draws the same of the same sources. Neither mutmut 3.8 nor cosmic-ray 8.7 serves here. mutmut leaves out
properties, decorated functions and what is not in a function, and removes no statement; its mutants import mutmut, and
the archive of the trial's function has none. cosmic-ray changes the tree's files, and has one list of tests for all.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.mutations.mutations import ROOT, Mutation
from tests.mutations.operators import edits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.mutations.operators import Edit

EQUIVALENTS: Final = Path(__file__).with_name("equivalents.json")
"""Reviewed mutants that change nothing, each with the reason."""
LOAD: Final = "packages/seatrial-load/"
RUNTIME: Final = "constructs/seatrial_cdk/trials/runtime"
_FAR: Final = frozenset({"acceptance", "acceptance_run", "account", "benchmarks", "browser", "docs", "e2e", "faults"})
"""Folders of tests that drive whole programs: a minute each."""


@dataclass(frozen=True, slots=True)
class Area:
    """What decides one thing.

    Attributes:
        files: The files, as patterns below the repository.
        tests: The files or folders of tests that are nearest to them, beside those that import one of the files.
    """

    files: tuple[str, ...]
    tests: tuple[str, ...]


AREAS: Final = {
    "verdict": Area(
        (f"{LOAD}seatrial_load/slo/*.py", f"{LOAD}seatrial_load/knee.py", f"{LOAD}seatrial_load/trial/finalize.py"),
        (f"{LOAD}tests/load/slo", f"{LOAD}tests/load/knee", f"{LOAD}tests/load/trial"),
    ),
    "rails": Area(
        (
            "seatrial/specs/guardrails/checks.py",
            "seatrial/locks/guard_rails.py",
        ),
        ("tests/specs", "tests/locks", "tests/planner/test_guard_rails.py"),
    ),
    "lock": Area(("seatrial/locks/*.py",), ("tests/locks",)),
    "deletion": Area(
        (
            *(f"{RUNTIME}/{name}.py" for name in ("candidate", "components", "custom_resource", "log_groups")),
            *(f"{RUNTIME}/{name}.py" for name in ("ownership", "sweep")),
            "seatrial/operations/doctor/fix.py",
        ),
        ("tests/constructs/trials", "tests/operations/doctor"),
    ),
    "rollback": Area(
        tuple(f"{RUNTIME}/{name}.py" for name in ("answer", "order", "outcome", "properties", "scaling")),
        ("tests/constructs/trials",),
    ),
    "secrets": Area(
        ("packages/seatrial-base/seatrial_base/secrets.py",), ("packages/seatrial-base/tests/base/test_secrets.py",)
    ),
    "promotion": Area(
        ("seatrial/operations/promotion.py", "seatrial/deployment/evidence.py"), ("tests/operations/promotion",)
    ),
}


def drawn(count: int, seed: int) -> Iterator[Mutation]:
    """Yield so many mutants, and the equivalent ones that were drawn beside them; as many of each area and operator."""
    chance, equivalents, left = random.Random(seed), reasons(), count  # noqa: S311 (nothing secret)
    courses = [_course(area, chance) for area in AREAS.values()]
    seen = set[tuple[str, str, str]]()
    while left and courses:
        for course in tuple(courses):
            mutation = next((one for one in course if _key(one) not in seen), None)
            if mutation is None:
                courses.remove(course)
                continue
            seen.add(_key(mutation))
            yield mutation
            left -= _key(mutation) not in equivalents
            if not left:
                return


def reasons() -> dict[tuple[str, str, str], str]:
    """Return why mutants are equivalent, by file, what stands there, and what would stand there instead."""
    rows = json.loads(EQUIVALENTS.read_text(encoding="utf-8"))
    return {(row["file"], row["before"], row["after"]): row["because"] for row in rows}


def why_equivalent(mutation: Mutation) -> str | None:
    """Return why a mutant changes nothing; `None` when nobody says so."""
    return reasons().get(_key(mutation))


def _key(mutation: Mutation) -> tuple[str, str, str]:
    return mutation.file, mutation.before, mutation.after


def _course(area: Area, chance: random.Random) -> Iterator[Mutation]:
    """Yield all mutants of an area by chance, one of each operator in turn: most are constants."""
    by_operator: dict[str, list[tuple[str, Edit]]] = defaultdict(list)
    for file in files_of(area):
        for edit in edits((ROOT / file).read_text(encoding="utf-8")):
            by_operator[edit.operator].append((file, edit))
    for each in by_operator.values():
        chance.shuffle(each)
    while by_operator:
        for operator in chance.sample(sorted(by_operator), len(by_operator)):
            file, edit = by_operator[operator].pop()
            if not by_operator[operator]:
                del by_operator[operator]
            if mutation := mutation_of(file, edit, nearest_tests(file, area)):
                yield mutation


def files_of(area: Area) -> list[str]:
    """Return the files of an area, below the repository."""
    paths = {path for pattern in area.files for path in ROOT.glob(pattern)}
    return sorted(path.relative_to(ROOT).as_posix() for path in paths)


def mutation_of(file: str, edit: Edit, tests: tuple[str, ...] = ()) -> Mutation | None:
    """Return an edit with as many lines around it as stand there once; `None` where it is no Python."""
    source = (ROOT / file).read_bytes()
    start, end = source.rfind(b"\n", 0, edit.start) + 1, source.find(b"\n", edit.end)
    while source.count(source[start:end]) > 1:
        start, end = source.rfind(b"\n", 0, start - 1) + 1, source.find(b"\n", end + 1)
    after = source[start : edit.start] + edit.text.encode() + source[edit.end : end]
    try:
        compile(source[:start] + after + source[end:], file, "exec", dont_inherit=True)
    except SyntaxError:
        return None
    return Mutation(file, source[start:end].decode(), after.decode(), edit.operator, tests)


@cache
def nearest_tests(file: str, area: Area) -> tuple[str, ...]:
    """Return the area's tests and those that import a file; first the ones of its name, then who does both."""
    name = Mutation(file, "", "", "", ()).module
    package, _, module = name.rpartition(".")
    imports = re.compile(rf"(from|import) {re.escape(name)}\b|from {re.escape(package)} import .*\b{module}\b")
    near = {test for place in area.tests for test in _tests_of(ROOT / place)}
    direct = {test for test in _all_tests() if imports.search(_text(test))}
    return tuple(
        sorted(near | direct, key=lambda test: (Path(test).stem != f"test_{module}", test not in near & direct, test))
    )


@cache
def _all_tests() -> tuple[str, ...]:
    folders = (ROOT / "tests", *(ROOT / "packages").glob("*/tests"))
    every = (test for folder in folders for test in _tests_of(folder))
    return tuple(test for test in every if _FAR.isdisjoint(Path(test).parts))


def _tests_of(place: Path) -> list[str]:
    found = place.rglob("test_*.py") if place.is_dir() else (place,)
    return sorted(path.relative_to(ROOT).as_posix() for path in found)


@cache
def _text(test: str) -> str:
    return (ROOT / test).read_text(encoding="utf-8")
