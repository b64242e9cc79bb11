"""Latencies at a rate, against what was measured and against Vidur's queues: a small run of the benchmark."""

from __future__ import annotations

import pytest

from benchmarks.planner_accuracy.arrivals import ERRORS, MOST_UTILIZATION, PAGE, judge, queues_table, read_rates
from benchmarks.planner_accuracy.queue_cases import UTILIZATIONS, queue_cases
from benchmarks.planner_accuracy.queues import read_queues

MOST_ERROR = 0.2


def test_the_time_to_first_token_at_p95_is_predicted_of_every_level_up_to_four_fifths_of_saturation() -> None:
    judged = [each for each in judge(read_rates()) if each.utilization <= MOST_UTILIZATION]

    assert len(judged) == 15
    assert max(abs(each.errors[1]) for each in judged) <= MOST_ERROR
    assert max(abs(each.errors[3]) for each in judged) <= MOST_ERROR


def test_queues_are_those_of_another_simulator_of_the_same_engine() -> None:
    first, *_ = queue_cases()
    row = queues_table((first,), (0.8,)).splitlines()[-1]
    ours, theirs = (float(number) for number in row.split("|")[2].removesuffix("ms ").split("/"))

    assert ours == pytest.approx(theirs, rel=0.1)
    assert set(read_queues()) == {(case.name, share) for case in queue_cases() for share in UTILIZATIONS}


def test_the_page_has_both_tables_between_their_marks() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page.count("<!-- end rates -->") == page.count("<!-- end queues -->") == 1
    assert page.count("TTFT p95: Seatrial / Vidur") == 1
    assert ERRORS.read_text(encoding="utf-8").count("\n") == 20
