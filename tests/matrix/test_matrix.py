"""Options meet: each pair of values is in a configuration that is planned, synthesized and judged.

`make test-matrix` goes through every configuration; the gate through each `GATE_STEP`-th of one covering array.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import pytest

from tests.matrix.configuration import Outcome, outcome_of
from tests.matrix.options import OPTIONS, REFUSED, first_refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.matrix.configuration import Row

NAMES = tuple(OPTIONS)
ALL = bool(os.environ.get("SEATRIAL_MATRIX"))
FEWEST_CONFIGURATIONS = 150 if ALL else 1
Pair = tuple[tuple[str, str], ...]
PAIRS: tuple[Pair, ...] = tuple(
    (one, two)
    for one, two in itertools.combinations([(name, value) for name in NAMES for value in OPTIONS[name]], 2)
    if one[0] != two[0]
)
GATE_STEP = 1 if ALL else 3


def drawn() -> list[Row]:
    """Return the rows: covering arrays, each with every pair of values that can meet.

    Another array begins with another pair: what meets in threes differs. Each row takes a pair that has not met, and of
    every other option the value that meets most values of the row for the first time. (`allpairspy` ends early where
    pairs are left out by a filter, with pairs that never met.)
    """
    rows: list[Row] = []
    while len(rows) < FEWEST_CONFIGURATIONS:
        missing = dict.fromkeys(pair for pair in PAIRS if first_refused(dict(pair)) is None)
        missing = dict.fromkeys([*missing][len(rows) :] + [*missing][: len(rows)])
        while missing:
            row = dict(next(iter(missing)))
            for name in sorted(OPTIONS.keys() - row.keys(), key=NAMES.index):
                can_meet = [value for value in OPTIONS[name] if first_refused({**row, name: value}) is None]
                row[name] = max(can_meet, key=lambda value: sum(met in missing for met in pairs_with(row, name, value)))
            rows.append(row)
            for pair in [pair for pair in missing if all(row[name] == value for name, value in pair)]:
                del missing[pair]
    return rows


def pairs_with(row: Row, name: str, value: str) -> Iterator[Pair]:
    """Yield the pairs of a value with those of a row, in the order of the options."""
    for other, of_other in row.items():
        yield tuple(sorted(((name, value), (other, of_other)), key=lambda one: NAMES.index(one[0])))


ROWS = drawn()


def pairs_of(row: Row) -> Iterator[Pair]:
    """Yield the pairs of a row."""
    return itertools.combinations(sorted(row.items(), key=lambda one: NAMES.index(one[0])), 2)


def test_every_pair_that_can_meet_is_in_a_row() -> None:
    met = {pair for row in ROWS for pair in PAIRS if all(row[name] == value for name, value in pair)}
    assert [pair for pair in PAIRS if pair not in met and first_refused(dict(pair)) is None] == []
    assert len(ROWS) >= FEWEST_CONFIGURATIONS


@pytest.mark.parametrize("row", ROWS[::GATE_STEP], ids=lambda row: "-".join(row.values()))
def test_a_configuration_is_synthesized_and_nothing_of_it_is_refused(row: Row, tmp_path: Path) -> None:
    assert outcome_of(row, tmp_path, is_linted=ALL) == Outcome()


@pytest.mark.parametrize(("pair", "rule"), REFUSED.items(), ids=str)
def test_a_pair_that_can_not_meet_is_refused_by_its_rule(
    pair: tuple[tuple[str, str], tuple[str, str]], rule: str, tmp_path: Path
) -> None:
    outcome = outcome_of(dict(pair), tmp_path)
    assert (outcome.faults, rule in outcome.rules) == ((), True)
