"""The table of mutations fits the source, and a wrong line is noticed; `make test-mutants` runs the whole table."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.mutations.mutations import ROOT, Mutation, all_mutations
from tests.mutations.run import outcome_of

EVERY = all_mutations()
SAMPLE = ("seatrial/locks/locked_plan.py", "packages/seatrial-load/seatrial_load/slo/verdict.py")
"""The files of which one mutation is run here: their tests take a second."""


@pytest.mark.parametrize("file", dict.fromkeys(one.file for one in EVERY))
def test_each_piece_of_source_stands_there_once_and_what_replaces_it_is_python(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    before = ast.dump(ast.parse(text))
    for one in EVERY:
        if one.file == file:
            assert ast.dump(ast.parse(one.applied(text))) != before, one.after


def test_no_mutation_is_there_twice_and_its_tests_are_there() -> None:
    assert max(Counter((one.file, one.before, one.after) for one in EVERY).values()) == 1
    assert [test for one in EVERY for test in one.tests if not (ROOT / test).is_file()] == []


def test_a_mutation_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="has 2 times"):
        Mutation("x.py", "a", "b", "nothing", ()).applied("a a")


@pytest.mark.parametrize("file", SAMPLE)
def test_a_wrong_line_is_noticed(file: str) -> None:
    mutation = next(one for one in EVERY if one.file == file)
    assert outcome_of(mutation, mutation.tests).kind == "killed"


def test_without_a_wrong_line_the_same_tests_pass() -> None:
    assert outcome_of(None, next(one.tests for one in EVERY if one.file == SAMPLE[1])).kind == "survived"
