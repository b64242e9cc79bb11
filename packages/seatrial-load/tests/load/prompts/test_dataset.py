"""The lengths of a file of requests, and the sample of a large one."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.errors import BenchError
from seatrial_load.documents.arrivals import replay_speed
from seatrial_load.prompts.dataset import MOST_PAIRS, Dataset, read_dataset, sampled

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = st.lists(st.tuples(st.integers(1, 4_000), st.integers(1, 1_000)), min_size=1, max_size=700)


def test_a_csv_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50,96,0\n"
    )
    assert read_dataset(path).pairs == ((374, 44),)


def test_an_empty_file_has_no_lengths(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text("\n")
    with pytest.raises(BenchError) as refused:
        read_dataset(path)
    assert [problem.rule for problem in refused.value.problems] == ["SEA510"]


def test_recorded_times_are_in_order_from_the_first(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    rows = ((2500, 20), (500, 10), (1000, 0), (1500, 30))
    path.write_text("".join(f'{{"timestamp": {at}, "input_length": 9, "output_length": {out}}}\n' for at, out in rows))
    assert read_dataset(path, timed=True) == Dataset(pairs=((9, 10), (9, 30), (9, 20)), times_s=(0.0, 1.0, 2.0))
    assert read_dataset(path).times_s == ()


def test_of_a_long_recording_the_busiest_part_is_taken(tmp_path: Path) -> None:
    """One request a second, and 600 within 60 s after the first 1,000."""
    path = tmp_path / "trace.csv"
    times = [*range(1000), *(1000 + place / 10 for place in range(600)), *range(1060, 1500)]
    path.write_text("Timestamp,Request tokens,Response tokens\n" + "".join(f"{at},9,{at:.0f}\n" for at in times[1:]))
    taken = read_dataset(path, timed=True)
    assert len(taken.pairs) == len(taken.times_s) == MOST_PAIRS
    assert taken.times_s[-1] == pytest.approx(51.1)
    assert replay_speed(taken.times_s, 20.0) == pytest.approx(2.0)


def test_a_recording_without_times_is_told_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(
        '{"input_tokens": 1, "output_tokens": 1}\n{"input_tokens": 1, "output_tokens": 1, "timestamp": "x"}\n'
    )
    with pytest.raises(BenchError) as refused:
        read_dataset(path, timed=True)
    found = [(problem.rule, problem.field, problem.message) for problem in refused.value.problems]
    assert found == [("SEA510", "timestamp", "missing"), ("SEA510", "timestamp", "not a number of ms")]


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
