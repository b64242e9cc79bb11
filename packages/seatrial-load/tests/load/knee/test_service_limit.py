"""Endpoints that serve a fixed number of requests at once: it is the target, and no knee is above a sure miss."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.distribution import Interval
from seatrial_load.documents.request import Load, Objective, PredictedLevel, Prior
from seatrial_load.knee import knees_of, scaling_target, service_limit, slo_knee
from tests.load.conftest import flat, make_level
from tests.load.search.conftest import searched
from tests.load.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import Search, TrialRequest
    from seatrial_load.documents.result import LevelResult

TTFT = Objective(metric="ttft_ms", statistic="p95", bound=500.0, sense="at_most")
SWEEP = tuple(2**power for power in range(11))


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
    measured = searched(request, lambda load: endpoint.measure(load, request.objectives, spread=spread)).levels
    target = scaling_target(request, measured, knees_of(request, measured)).concurrency_per_copy
    missed = [level.concurrency for level in measured if request.objectives and is_sure_miss(level)]
    return target, min(missed, default=None)


@pytest.mark.parametrize("search", ["adaptive", "sweep"])
def test_the_target_is_what_is_in_service_at_most(trial_request: Callable[..., TrialRequest], search: Search) -> None:
    off = []
    either = (True, False)
    for slots, slow, has_plan, has_slo, spread in product((4, 8, 16, 24, 100), (1, 20), either, either, either):
        endpoint = Slots(slots, each_ms=0.1 * slow / slots)
        load = Load(
            concurrency_levels=SWEEP if search == "sweep" else (1, SWEEP[-1]),
            requests_per_concurrency=3,
            warmup_requests=0,
            budget_s=1e9,
            request_timeout_s=480,
            search=search,
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
    assert len(off) == 80
    assert sum(off) <= 0.05 * len(off)


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
