"""One endpoint, tried again and again: the autoscaling target stays within 15 %."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.request import Objective
from seatrial_load.knee import knees_of, scaling_target
from tests.load.conftest import make_level
from tests.load.search.conftest import Line, adaptive, searched

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest

__all__ = ["adaptive"]

TRIALS = 10
NOISE = 0.02  # standard deviation of a level's speed, as in benchmarks/search
ENDPOINTS = {
    "latency grows with load": Line(alone_ms=1_000, each_ms=10),
    "a batch limit": Line(alone_ms=200, each_ms=5, batch=24),
    "an SLO that always holds": Line(alone_ms=1_000, each_ms=10, batch=24, bound_ms=1e6),
    "an SLO that holds for a few": Line(alone_ms=1_000, each_ms=100),
}


def targets(request: TrialRequest, line: Line) -> list[float]:
    found = []
    for seed in range(TRIALS):
        chance = random.Random(seed)  # noqa: S311 (noise, no secret)
        levels = searched(
            request,
            lambda load: line.measure(make_level, load, slower=chance.lognormvariate(0, NOISE)),  # noqa: B023
        ).levels
        found.append(scaling_target(request, levels, knees_of(request, levels)).concurrency_per_copy)
    return found


@pytest.mark.parametrize("gate", [4, 16, 64])
@pytest.mark.parametrize("name", ENDPOINTS)
@pytest.mark.parametrize("has_slo", [True, False])
@pytest.mark.parametrize("search", ["adaptive", "sweep"])
def test_ten_trials_of_one_endpoint_give_targets_within_15_percent(
    adaptive: Callable[..., TrialRequest], name: str, gate: int, search: str, *, has_slo: bool
) -> None:
    line, levels = ENDPOINTS[name], (1, 512) if search == "adaptive" else tuple(2**power for power in range(10))
    bound = Objective(metric="e2e_latency_ms", statistic="p95", bound=line.bound_ms, sense="at_most")
    request = adaptive(
        gate_concurrency=gate,
        search=search,
        concurrency_levels=levels,
        objectives=(bound,) if has_slo else (),
    )
    found = targets(request, line)
    assert max(found) / min(found) <= 1.15
