"""Endpoints that serve a fixed number of requests at once: it is the target, and no knee is above a sure miss."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.request import Load, Objective, PredictedLevel, Prior
from seatrial_load.knee import fallback_target, knees_of, scaling_target, service_limit, slo_knee
from tests.load.conftest import flat, make_level
from tests.load.search.conftest import searched
from tests.load.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")
E2E = Objective(metric="e2e_latency_ms", statistic="p95", bound=2_500.0, sense="at_most")
TOK_S = Objective(metric="output_tok_s", statistic="value", bound=9_000.0, sense="at_least")
SWEEP = tuple(2**power for power in range(11))


@cache
def measured_at(endpoint: Slots, load: int, objectives: tuple[Objective, ...], *, spread: bool) -> LevelResult:
    return endpoint.measure(load, objectives, spread=spread)


@cache
def planned(endpoint: Slots) -> Prior:
    levels = [endpoint.measure(load, ()) for load in (1, endpoint.slots, 2 * endpoint.slots)]
    predicted = (
        PredictedLevel(
            concurrency=one.concurrency,
            output_tok_s=one.output_tok_s or 0.0,
            ttft_p95_ms=one.ttft_ms.p95 if one.ttft_ms else 0.0,
            e2e_mean_ms=one.e2e_latency_ms.mean if one.e2e_latency_ms else 0.0,
        )
        for one in levels
    )
    return Prior(levels=tuple(predicted), batch_limit=endpoint.slots)


def is_sure_miss(level: LevelResult) -> bool:
    bounds = level.ttft_ms.intervals["p95"] if level.ttft_ms else Interval(low=None, high=None)
    return bounds.low is not None and bounds.low > TTFT.bound


def tried(request: TrialRequest, endpoint: Slots, *, spread: bool) -> tuple[float, float | None]:
    """Return the target of one trial over the slots, and the lowest load that surely misses."""
    measured = searched(request, lambda load: measured_at(endpoint, load, request.objectives, spread=spread)).levels
    missed = [level.concurrency for level in measured if request.objectives and is_sure_miss(level)]
    for knee in knees_of(request, measured):
        if knee.detector == "slo" and missed:
            bounds = knee.interval or Interval(low=None, high=None)
            assert (knee.concurrency or 0) <= (bounds.high or min(missed)) <= min(missed)
    target = scaling_target(request, measured, knees_of(request, measured)).concurrency_per_copy
    return target, min(missed, default=None)


@pytest.mark.parametrize(
    ("loads", "limits"),
    [
        ("adaptive", (4, 8, 16, 24, 100, 500)),
        (SWEEP, (4, 8, 16, 24, 100, 500)),
        ((1, 64), (4, 8, 16, 24)),
        ((1, 8, 64, 512), (4, 16, 100)),
        ((1, 1024), (24, 500)),
    ],
)
def test_the_target_is_what_is_in_service_at_most(
    trial_request: Callable[..., TrialRequest], loads: tuple[int, ...] | str, limits: tuple[int, ...]
) -> None:
    """A list shows a limit below half of its highest load: there most requests wait."""
    off = []
    either = (True, False)
    for slots, slow, has_plan, has_slo, spread in product(limits, (1, 20), either, either, either):
        if slots > 100 and (slow > 1 or not spread):
            continue
        endpoint = Slots(slots, each_ms=0.1 * slow / slots)
        load = Load(
            concurrency_levels=(1, SWEEP[-1]) if isinstance(loads, str) else loads,
            requests_per_concurrency=3,
            warmup_requests=0,
            budget_s=1e9,
            request_timeout_s=480,
            search="adaptive" if isinstance(loads, str) else "sweep",
        )
        request = trial_request(
            load=load,
            objectives=(TTFT,) if has_slo else (),
            gate_concurrency=max(1, slots // 4),
            target_utilization=1.0,
            prior=planned(endpoint) if has_plan else Prior(),
        )
        target, missed = tried(request, endpoint, spread=spread)
        assert missed is None or target <= missed
        off.append(abs(target / slots - 1) > 0.1)
    assert len(off) >= 20
    assert sum(off) <= 0.05 * len(off)


@pytest.mark.parametrize("objective", [TTFT, E2E])
@pytest.mark.parametrize("loads", [(1, 64), (8, 64), (16, 32), (8, 16, 24, 64)])
def test_between_two_levels_the_slo_is_missed_where_the_wait_reaches_its_bound(
    loads: tuple[int, ...], objective: Objective
) -> None:
    """Beyond 16 slots each request more adds a sixteenth of a request's time."""
    endpoint = Slots(16)
    knee = slo_knee([endpoint.measure(load, (objective,)) for load in loads], (objective,))
    every = [measured_at(endpoint, load, (objective,), spread=True) for load in range(16, 65)]
    highest = max(level.concurrency for level in every if level.meets_slo)
    assert knee.concurrency == pytest.approx(highest, rel=0.15)


@pytest.mark.parametrize(("lowest", "objective", "expected"), [(1, TTFT, 1.0), (8, TTFT, 5.0), (1, TOK_S, 5.0)])
def test_without_a_knee_the_target_is_no_more_than_the_lowest_miss(
    trial_request: Callable[..., TrialRequest], lowest: int, objective: Objective, expected: float
) -> None:
    """Of latency: less load gives no more throughput."""
    request = trial_request(objectives=(objective,), fallback_target_concurrency=5.0)
    levels = [make_level(load, ttft_ms=900.0, meets_slo=False, misses=("missed",)) for load in (lowest, 16)]
    target = scaling_target(request, levels, knees_of(request, levels))
    assert target == replace(fallback_target(request, "none", levels), because=target.because)
    assert (target.concurrency_per_copy, target.knee) == (expected, None)


@pytest.mark.parametrize("loads", [(1, 8, 16, 18, 20, 24, 26), (1, 8, 16, 32), (1, 8, 32, 64), (4, 32)])
@pytest.mark.parametrize("spread", [True, False])
def test_sixteen_slots_are_seen_whichever_loads_are_listed(loads: tuple[int, ...], *, spread: bool) -> None:
    measured = [Slots(16).measure(load, (TTFT,), spread=spread) for load in loads]
    assert service_limit(measured) == pytest.approx(16, rel=0.1)


def test_work_that_is_shared_is_no_limit() -> None:
    """Latency grows with the load, and the time to first token as fast: prompts take turns."""
    measured = [
        replace(
            make_level(load),
            ttft_ms=flat(20.0 + 10 * load),
            e2e_latency_ms=flat(1_000 + 40.0 * load),
            output_tok_s=100_000 * load / (1_000 + 40.0 * load),
        )
        for load in SWEEP
    ]
    assert service_limit(measured) is None


def test_one_pause_is_no_limit() -> None:
    """A pause of two seconds delays some first tokens; the median shows none."""
    measured = [make_level(load) for load in (1, 4, 16, 64)]
    paused = flat(100.0)
    measured[-1] = replace(measured[-1], ttft_ms=replace(paused, mean=300.0, p95=2_100.0, p99=2_100.0, max=2_100.0))
    assert service_limit(measured) is None


def test_between_two_levels_a_jump_leaves_the_whole_bracket_open() -> None:
    """16 meets the SLO and 32 misses it: where between them is not measured."""
    measured = [Slots(16).measure(load, (TTFT,)) for load in (1, 8, 16, 32)]
    knee = slo_knee(measured, (TTFT,))
    assert knee.concurrency is not None
    assert 16 <= knee.concurrency <= 32
    assert knee.interval == Interval(low=16.0, high=32.0)
