"""What was measured on one endpoint and what it says of the model's constants: the entry of a calibration file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.documents.calibration import (
    Calibration,
    Compared,
    EndpointCalibration,
    MeasuredPoint,
)
from seatrial.planner.predict.simulation import outcome
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Protocol


def read_calibration(document: Mapping[str, object] | None, where: str = "calibration") -> EndpointCalibration | None:
    """Read an environment's entry of a calibration file; `None` when there is none.

    Args:
        document: The entry.
        where: The file, for messages.

    Raises:
        SpecError: SEA406, with every field that is wrong.
    """
    if document is None:
        return None
    try:
        return EndpointCalibration.model_validate_json(json.dumps(document, default=dict), strict=True)
    except ValidationError as error:
        hint = "run `seatrial calibrate` again, or remove the environment's entry"
        raise SpecError(
            Finding("SEA406", Place.at(where, ".".join(map(str, found["loc"]))), found["msg"], hint)
            for found in error.errors(include_url=False)
        ) from error


# With constants fitted on the other configurations, and the first and the last level of each of the 8 published ones as
# probes, 80 % of the 36 levels between them were within these (benchmarks/planner_accuracy/two_probes.py).
BETWEEN_PROBES_THROUGHPUT = 0.06
BETWEEN_PROBES_LATENCY = 0.10

_LATENCY_WEIGHT = 0.5  # a p90 of few requests is the noisier of the two
_PRIOR = 0.02  # keeps a factor that the points don't tell near the other
_STEP = 0.02
_ROUNDS = 40
_FARTHEST = math.log(10_000)
_Pair = tuple[float, float]


def compare_points(copy: Copy, points: Sequence[MeasuredPoint], protocol: Protocol) -> tuple[Compared, ...]:
    """Predict each measured point."""
    found = ((point, outcome(copy, point.concurrency, protocol)) for point in points)
    return tuple(Compared(point, one.output_tok_s, one.ms_per_token.p90) for point, one in found)


def fit_calibration(copy: Copy, points: Sequence[MeasuredPoint], protocol: Protocol) -> Calibration:
    """Fit both factors; points of a single concurrency give one common factor.

    Args:
        copy: The deployment that was measured; its own calibration is not looked at.
        points: At least one.
        protocol: How the load was applied.
    """
    plain = replace(copy, calibration=Calibration())
    start = _slower(plain, min(points, key=lambda point: point.concurrency), protocol)
    common = len({point.concurrency for point in points}) == 1

    def residuals(logs: _Pair) -> list[float]:
        calibrated = replace(plain, calibration=_factors(logs, common=common))
        off = [_PRIOR * (logs[0] - start), _PRIOR * (logs[1] - logs[0])]
        for one in compare_points(calibrated, points, protocol):
            off.append(math.log(one.output_tok_s / one.measured.output_tok_s))
            if one.measured.ms_per_token_p90 is not None:
                off.append(_LATENCY_WEIGHT * math.log(one.ms_per_token / one.measured.ms_per_token_p90))
        return off

    return _factors(_least_squares(residuals, (start, start)), common=common)


def _slower(copy: Copy, point: MeasuredPoint, protocol: Protocol) -> float:
    """Return the logarithm of how much slower the deployment is than predicted."""
    return _bounded(math.log(outcome(copy, point.concurrency, protocol).output_tok_s / point.output_tok_s))


def _factors(logs: _Pair, *, common: bool) -> Calibration:
    return Calibration(fixed=math.exp(logs[0]), marginal=math.exp(logs[0] if common else logs[1]))


def _least_squares(residuals: Callable[[_Pair], list[float]], start: _Pair) -> _Pair:
    """Minimize the sum of squares from a starting point; every accepted step lowers it."""
    at, damping = start, 1e-3
    off = residuals(at)
    for _ in range(_ROUNDS):
        first = _slope(residuals((at[0] + _STEP, at[1])), off)
        second = _slope(residuals((at[0], at[1] + _STEP)), off)
        tried = _moved(at, off, first, second, damping)
        there = residuals(tried)
        if _squares(there) < _squares(off):
            settled = max(abs(tried[0] - at[0]), abs(tried[1] - at[1])) < 1e-4  # noqa: PLR2004 (a hundredth of a percent)
            at, off, damping = tried, there, damping / 3
            if settled:
                break
        else:
            damping *= 10
    return at


def _slope(there: list[float], here: list[float]) -> list[float]:
    return [(after - before) / _STEP for after, before in zip(there, here, strict=True)]


def _moved(at: _Pair, off: list[float], first: list[float], second: list[float], damping: float) -> _Pair:
    """Solve the two normal equations of a damped step by Cramer's rule."""
    a, b, d = _dot(first, first) + damping, _dot(first, second), _dot(second, second) + damping
    right, below = -_dot(first, off), -_dot(second, off)
    determinant = a * d - b * b
    return (
        _bounded(at[0] + (right * d - b * below) / determinant),
        _bounded(at[1] + (a * below - b * right) / determinant),
    )


def _bounded(log: float) -> float:
    return max(-_FARTHEST, min(_FARTHEST, log))


def _dot(left: list[float], right: list[float]) -> float:
    return math.fsum(one * other for one, other in zip(left, right, strict=True))


def _squares(values: list[float]) -> float:
    return _dot(values, values)
