"""Two probes: what factors they give, and how well these predict the levels between."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.documents.calibration import Calibration, MeasuredPoint
from seatrial.planner.calibration import (
    BETWEEN_PROBES_LATENCY,
    BETWEEN_PROBES_THROUGHPUT,
    compare_points,
    fit_calibration,
)
from seatrial.planner.predict.simulation import PUBLISHED, TRIAL, outcome
from tests.planner.predict.conftest import placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.documents.calibration import Compared
    from seatrial.planner.predict.copy_model import Copy

ROWS = Path(__file__).parents[1] / "data" / "llama_2_7b_tgi.csv"
Configuration = tuple[str, int, int, int]


def simulated(copy: Copy, levels: Sequence[int], *, latency: bool = True) -> list[MeasuredPoint]:
    return [
        MeasuredPoint(
            concurrency=level,
            output_tok_s=one.output_tok_s,
            ms_per_token_p90=one.ms_per_token.p90 if latency else None,
        )
        for level in levels
        for one in [outcome(copy, level, TRIAL)]
    ]


@settings(max_examples=30, deadline=None)
@given(fixed=st.floats(0.05, 20), marginal=st.floats(0.2, 5))
def test_an_endpoint_that_is_the_model_times_two_factors_is_found_again(fixed: float, marginal: float) -> None:
    copy = placed()
    endpoint = replace(copy, calibration=Calibration(fixed=fixed, marginal=marginal))
    calibrated = replace(copy, calibration=fit_calibration(copy, simulated(endpoint, (1, 16)), TRIAL))

    for one in compare_points(calibrated, simulated(endpoint, (1, 2, 4, 8, 16)), TRIAL):
        assert one.throughput_error < 0.05
        assert one.latency_error is not None
        assert one.latency_error < 0.08


def test_measurements_that_are_as_predicted_leave_the_constants_as_they_are() -> None:
    found = fit_calibration(placed(), simulated(placed(), (1, 16)), TRIAL)
    assert (found.fixed, found.marginal) == pytest.approx((1, 1), rel=0.01)


def test_throughput_alone_is_enough() -> None:
    endpoint = replace(placed(), calibration=Calibration(fixed=1.5, marginal=0.7))
    found = fit_calibration(placed(), simulated(endpoint, (1, 16), latency=False), TRIAL)
    assert (found.fixed, found.marginal) == pytest.approx((1.5, 0.7), rel=0.1)


@pytest.mark.parametrize("levels", [(1,), (8,), (4, 4)])
def test_points_of_one_concurrency_give_one_common_factor(levels: tuple[int, ...]) -> None:
    endpoint = replace(placed(), calibration=Calibration(fixed=2.0, marginal=2.0))
    found = fit_calibration(placed(), simulated(endpoint, levels), TRIAL)
    assert found.fixed == found.marginal
    assert found.fixed == pytest.approx(2, rel=0.02)


def test_the_calibration_that_a_copy_has_already_is_not_looked_at() -> None:
    points = simulated(placed(), (1, 16))
    before = replace(placed(), calibration=Calibration(fixed=9, marginal=9))
    assert fit_calibration(before, points, TRIAL) == fit_calibration(placed(), points, TRIAL)


def test_equal_points_give_equal_factors_in_any_order() -> None:
    points = simulated(replace(placed(), calibration=Calibration(fixed=0.6, marginal=1.7)), (1, 4, 16))
    first, again = fit_calibration(placed(), points, TRIAL), fit_calibration(placed(), points, TRIAL)
    turned = fit_calibration(placed(), points[::-1], TRIAL)
    assert first == again
    assert (turned.fixed, turned.marginal) == pytest.approx((first.fixed, first.marginal), rel=1e-6)


@pytest.mark.parametrize("points", [[(1, 1e-3), (16, 1e9)], [(1, 1e9), (16, 1e-3)], [(1, 1e-9)], [(16, 1e12)]])
def test_absurd_points_give_bounded_factors(points: list[tuple[int, float]]) -> None:
    measured = [MeasuredPoint(concurrency=level, output_tok_s=speed) for level, speed in points]
    found = fit_calibration(placed(), measured, TRIAL)
    for factor in (found.fixed, found.marginal):
        assert 0.99e-4 < factor < 1.01e4


def published() -> dict[Configuration, list[MeasuredPoint]]:
    lines = [line for line in ROWS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found: dict[Configuration, list[MeasuredPoint]] = {}
    for row in csv.DictReader(lines):
        of = row["instance_type"], int(row["tp_degree"]), int(row["input_tokens"]), int(row["output_tokens"])
        point = MeasuredPoint(
            concurrency=int(row["concurrency"]),
            output_tok_s=float(row["throughput_tok_s"]),
            ms_per_token_p90=float(row["latency_ms_per_token"]),
        )
        found.setdefault(of, []).append(point)
    return found


def between_probes(of: Configuration, points: Sequence[MeasuredPoint]) -> tuple[Compared, ...]:
    """Calibrate on the first and the last published level, and predict those between."""
    copy = placed(instance_type=of[0], degree=of[1], input_tokens=of[2], output_tokens=of[3])
    calibration = fit_calibration(copy, (points[0], points[-1]), PUBLISHED)
    return compare_points(replace(copy, calibration=calibration), points[1:-1], PUBLISHED)


def test_two_probes_of_a_published_configuration_predict_the_levels_between() -> None:
    found = [one for of, points in published().items() for one in between_probes(of, points)]
    throughputs = [one.throughput_error for one in found]
    latencies = [one.latency_error or 0.0 for one in found]

    assert len(published()) == 8
    assert len(found) == 36
    assert fmean(throughputs) < 0.05
    assert fmean(latencies) < 0.08
    assert sum(off <= BETWEEN_PROBES_THROUGHPUT for off in throughputs) >= 0.8 * len(found)
    assert sum(off <= BETWEEN_PROBES_LATENCY for off in latencies) >= 0.8 * len(found)
