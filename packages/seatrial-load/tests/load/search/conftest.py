"""An endpoint of straight lines, searched to the end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import pytest

from seatrial_load.documents.distribution import Distribution
from seatrial_load.documents.request import Load, Objective, PredictedLevel, Prior
from seatrial_load.search import NextLevel, Stop, next_level

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult

MOST_LEVELS = 30
TOKENS = 100

MakeLevel: TypeAlias = "Callable[..., LevelResult]"
MakeRequest: TypeAlias = "Callable[..., TrialRequest]"


def flat(value: float) -> Distribution:
    return Distribution(count=8, mean=value, p50=value, p90=value, p95=value, p99=value, max=value)


@dataclass(frozen=True, slots=True)
class Line:
    """An endpoint whose latency grows by 10 ms with each request in flight, and that batches `batch` of them at most.

    With `bound_ms`, the latency that the SLO allows, the knee is known: the last load below the bound.
    """

    alone_ms: float = 1_000.0
    each_ms: float = 10.0
    batch: int = 10_000
    bound_ms: float = 2_000.0

    def latency_ms(self, load: int) -> float:
        running = min(load, self.batch)
        return (self.alone_ms + self.each_ms * running) * load / running

    @property
    def knee(self) -> int:
        return max((load for load in range(1, 4_097) if self.latency_ms(load) <= self.bound_ms), default=0)

    def measure(self, level: MakeLevel, load: int, *, slower: float = 1.0) -> LevelResult:
        latency_ms = self.latency_ms(load) * slower
        requests_per_s = load / latency_ms * 1_000
        met = latency_ms <= self.bound_ms
        return level(
            load,
            e2e_latency_ms=flat(latency_ms),
            ttft_ms=latency_ms / 10,
            output_tok_s=requests_per_s * TOKENS,
            requests_per_s=requests_per_s,
            goodput_requests_per_s=requests_per_s if met else 0.0,
            duration_s=4 * latency_ms / 1_000,
            meets_slo=met,
            misses=() if met else ("too slow",),
        )

    def prior(self, wrong: float = 1.0) -> Prior:
        loads = [2**power for power in range(10)]
        levels = tuple(
            PredictedLevel(
                concurrency=load,
                output_tok_s=load / self.latency_ms(load) * 1_000 * TOKENS / wrong,
                ttft_p95_ms=self.latency_ms(load) * wrong / 10,
                e2e_mean_ms=self.latency_ms(load) * wrong,
            )
            for load in loads
        )
        return Prior(levels=levels, batch_limit=self.batch)


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search measured, why, and why it stopped."""

    loads: list[int]
    reasons: list[str]
    levels: list[LevelResult]
    stopped: str

    @property
    def held(self) -> int | None:
        return max((level.concurrency for level in self.levels if level.valid and level.meets_slo), default=None)


@pytest.fixture(scope="session")
def adaptive(trial_request: MakeRequest) -> MakeRequest:
    """Make an adaptive request: levels 1 to 512, the gate at 16, 2,000 ms of end-to-end latency allowed."""

    def made(**changes: object) -> TrialRequest:
        loading = {name: changes.pop(name) for name in ("concurrency_levels", "goal", "search") if name in changes}
        load = Load(
            concurrency_levels=(1, 512),
            requests_per_concurrency=3,
            ramp_per_concurrency=1,
            warmup_requests=0,
            budget_s=600,
            request_timeout_s=60,
            search="adaptive",
        )
        bound = Objective(metric="e2e_latency_ms", statistic="p95", bound=2_000.0, sense="at_most")
        fields: dict[str, object] = {"gate_concurrency": 16, "objectives": (bound,), **changes}
        return trial_request(load=replace(load, **loading), **fields)  # type: ignore[arg-type]  # a maker for tests

    return made


def searched(request: TrialRequest, measure: Callable[[int], LevelResult]) -> Searched:
    """Follow a search to its end."""
    levels: list[LevelResult] = []
    reasons: list[str] = []
    for _ in range(MOST_LEVELS):
        step = next_level(request, levels, left_s=1e9)
        if isinstance(step, Stop):
            return Searched([level.concurrency for level in levels], reasons, levels, step.because)
        assert isinstance(step, NextLevel)
        reasons.append(step.because)
        levels.append(measure(step.concurrency))
    raise AssertionError(f"no end after {[level.concurrency for level in levels]}")
