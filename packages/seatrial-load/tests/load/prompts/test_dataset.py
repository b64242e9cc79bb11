"""The lengths of a file of requests, and the sample of a large one."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.errors import BenchError
from seatrial_load.prompts.dataset import MOST_PAIRS, read_lengths, sampled

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = st.lists(st.tuples(st.integers(1, 4_000), st.integers(1, 1_000)), min_size=1, max_size=700)


def test_a_csv_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50,96,0\n"
    )
    assert read_lengths(path) == ((374, 44),)


def test_an_empty_file_has_no_lengths(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text("\n")
    with pytest.raises(BenchError) as refused:
        read_lengths(path)
    assert [problem.rule for problem in refused.value.problems] == ["SEA510"]


@given(pairs=PAIRS)
def test_a_sample_is_part_of_the_file_and_no_larger_than_may_be(pairs: list[tuple[int, int]]) -> None:
    taken = sampled(pairs)
    assert len(taken) == min(len(pairs), MOST_PAIRS)
    assert set(taken) <= set(pairs)


def test_a_sample_has_the_lengths_of_the_file() -> None:
    """20,000 requests with a long tail: mean and 95th percentile of all tokens within one percent."""
    pairs = [(1 + (place * place) // 40_000, 1 + place % 300) for place in range(20_000)]
    taken = sampled(pairs)
    assert fmean(map(sum, taken)) == pytest.approx(fmean(map(sum, pairs)), rel=0.01)
    both = [sorted(map(sum, some))[len(some) * 95 // 100] for some in (taken, pairs)]
    assert both[0] == pytest.approx(both[1], rel=0.01)
