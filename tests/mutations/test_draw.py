"""The operators make wrong lines of what decides and of nothing else; the same seed draws the same of them."""

from __future__ import annotations

import ast
from itertools import islice

import pytest

from tests.mutations.draw import AREAS, drawn, files_of, mutation_of, nearest_tests, reasons
from tests.mutations.mutations import ROOT, Mutation
from tests.mutations.operators import edits
from tests.mutations.run import outcome_of


def made(source: str, operator: str) -> list[str]:
    """Return the sources that an operator makes of one."""
    whole = source.encode()
    ends = ((edit.start, edit.end, edit.text) for edit in edits(source) if edit.operator == operator)
    return [(whole[:start] + text.encode() + whole[end:]).decode() for start, end, text in ends]


@pytest.mark.parametrize(
    ("operator", "source", "wrong"),
    [
        ("comparison", "a < b", ["a <= b", "a >= b"]),
        ("comparison", "a is None", ["a is not None"]),
        ("and, or", "a and b", ["a or b"]),
        ("removed condition", "a or b or c", ["a or b", "a or c", "b or c"]),
        ("not", "not a", ["(a)"]),
        ("condition", "if f(a):\n    b", ["if not (f(a)):\n    b"]),
        ("removed filter", "[a for a in b if a.c]", ["[a for a in b if True]"]),
        ("constant", "a = 16", ["a = 15", "a = 17"]),
        ("constant", "a = 0.5", ["a = 0.25", "a = 1.0"]),
        ("constant", "a = True", ["a = False"]),
        ("constant", "a['SEA404']", ["a['XXSEA404']"]),
        ("arithmetic", "a - b", ["a + b"]),
        ("function", "min(a, b)", ["max(a, b)"]),
        ("slice", "a[b:c]", ["a[:c]", "a[b:]"]),
        ("returned value", "def f():\n    return a", ["def f():\n    return None"]),
        ("removed statement", "raise A", ["pass"]),
        ("removed statement", "a['é'] = b", ["pass"]),
        ("removed element", "{a, b, c}", ["{b, c}", "{a, c}", "{a, b}"]),
        ("removed element", "a = (b, c)", ["a = (b,)", "a = (c,)"]),
        ("removed element", "a = (b, c,)", ["a = (b,)", "a = (c,)"]),
        ("removed element", "{a: b, c: d}", ["{c: d}", "{a: b}"]),
        ("removed element", "f(a, b=c, d=e)", ["f(a, d=e)", "f(a, b=c)"]),
    ],
)
def test_an_operator_makes_wrong_lines(operator: str, source: str, wrong: list[str]) -> None:
    assert sorted(made(source, operator)) == sorted(wrong)


@pytest.mark.parametrize(
    "source",
    [
        '"""What it is."""',
        "a: Literal['b', 'c']",
        "A: TypeAlias = Literal['b', 'c']",
        "A = TypeVar('A', 'B', 'C', bound=D, covariant=True)",
        "if TYPE_CHECKING:\n    from a import b",
        "@dataclass(frozen=True)\nclass A:\n    b: int",
        'log("kept")',
        'f"{a} of {b - 1}"',
        '"what is wrong"',
        "a = zip(b, c, strict=True)",
        "a = B(hint=c if d else e)",
    ],
)
def test_what_decides_nothing_stays(source: str) -> None:
    assert edits(source) == []


def test_a_wrong_line_is_told_with_as_many_lines_around_it_as_stand_there_once() -> None:
    file = "seatrial/specs/guardrails/checks.py"
    source = (ROOT / file).read_text(encoding="utf-8")
    drawn = edits(source)[::25]
    mutations = [each for each in (mutation_of(file, edit) for edit in drawn) if each is not None]
    assert len(mutations) > 0.9 * len(drawn), "the others are no Python"
    for mutation in mutations:
        assert ast.dump(ast.parse(mutation.applied(source))) != ast.dump(ast.parse(source)), mutation


def test_a_seed_draws_the_same_of_every_area_and_another_seed_others() -> None:
    first, again, other = (list(drawn(14, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    for area in AREAS.values():
        assert sum(one.file in files_of(area) for one in first) >= 2


@pytest.mark.parametrize("name", AREAS)
def test_an_area_has_files_whose_nearest_tests_are_there(name: str) -> None:
    files = files_of(AREAS[name])
    assert len(files) >= len(AREAS[name].files)
    for file in files:
        tests = nearest_tests(file, AREAS[name])
        assert tests
        assert [test for test in tests if not (ROOT / test).is_file()] == []


def test_what_is_called_equivalent_is_a_mutant_of_what_decides_and_has_a_reason() -> None:
    files = {file for area in AREAS.values() for file in files_of(area)}
    for (file, before, after), because in reasons().items():
        assert file in files
        assert because
        source = (ROOT / file).read_text(encoding="utf-8")
        assert Mutation(file, before, after, "", ()).applied(source) != source


def test_a_wrong_line_that_was_drawn_is_noticed_and_by_which_test_is_told() -> None:
    file = "packages/seatrial-load/seatrial_load/slo/verdict.py"
    tests = ("packages/seatrial-load/tests/load/slo/test_verdict.py",)
    source = (ROOT / file).read_text(encoding="utf-8")
    edit = next(islice((one for one in edits(source) if one.operator == "not"), 1))
    mutation = mutation_of(file, edit, tests)
    assert mutation is not None
    outcome = outcome_of(mutation, mutation.tests)
    assert outcome.kind == "killed"
    assert outcome.by.startswith(tests[0])
