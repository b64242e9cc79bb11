"""Simulated endpoints: the catalog's copies through the planner's simulation, with noise. Nothing here is measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from seatrial.planner.predict.copy_model import hardware_of, place_copy
from seatrial.planner.predict.memory import fit_memory, held_tokens
from seatrial.planner.predict.simulation import TRIAL, outcome, simulate
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.models import find_model
from seatrial_base.units import MS_PER_S
from seatrial_load.documents.distribution import Distribution, Interval
from seatrial_load.documents.request import PredictedLevel, Prior
from seatrial_load.documents.result import LevelResult
from seatrial_load.measure.interval import percentile
from seatrial_load.slo.evaluate import is_met

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from seatrial.documents.calibration import Calibration
    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Level, Request
    from seatrial_load.documents.request import Objective

MOST = 512
FINE_STEP = 1.03
DEVIATIONS = 1.96  # of a normal distribution, on either side of 95 % of it
FALL = 0.5  # beyond the load from which it falls, throughput is multiplied by the inverse of the load to this power


@dataclass(frozen=True, slots=True)
class Place:
    """A model on an instance type with an engine, and the workload's lengths."""

    hub_id: str
    instance_type: str
    degree: int
    engine: Literal["lmi", "tgi"]
    engine_version: str
    input_tokens: int
    output_tokens: int
    max_num_seqs: int

    def __str__(self) -> str:
        """Name the place in a table."""
        model = self.hub_id.split("/")[-1]
        lengths = f"{self.input_tokens}+{self.output_tokens}"
        return f"{model} {self.instance_type.removeprefix('ml.')} {self.engine} {lengths} max {self.max_num_seqs}"


@cache
def copy_at(at: Place) -> Copy:
    """Place a copy as the planner does."""
    architecture, instance = find_model(at.hub_id), find_instance(at.instance_type)
    engine = find_engine(at.engine, at.engine_version)
    hardware = None if instance is None else hardware_of(instance)
    if architecture is None or instance is None or hardware is None:
        raise ValueError(f"the catalog lacks {at}")
    batched = max(engine.default_batched_tokens, at.input_tokens)
    memory = fit_memory(
        architecture,
        instance,
        engine,
        degree=at.degree,
        quantization=None,
        tokens=held_tokens(engine, at.input_tokens, at.output_tokens),
        batched_tokens=batched,
    )
    return place_copy(
        architecture,
        hardware,
        engine,
        memory,
        degree=at.degree,
        quantization=None,
        input_tokens=at.input_tokens,
        output_tokens=at.output_tokens,
        batched_tokens=batched,
        max_num_seqs=at.max_num_seqs,
    )


@cache
def _requests(copy: Copy, concurrency: int) -> tuple[Request, ...]:
    return tuple(sorted(simulate(copy, concurrency, TRIAL), key=attrgetter("sent_s")))


@cache
def _outcome(copy: Copy, concurrency: int) -> Level:
    return outcome(copy, concurrency, TRIAL)


def duration_s(copy: Copy, concurrency: int) -> float:
    """Return how long a level takes, its ramp included."""
    return max(request.last_token_s for request in _requests(copy, concurrency))


def prior_of(copy: Copy) -> Prior:
    """Return what a plan of this copy predicts: doubling levels, up to twice the batch limit."""
    levels = [2**power for power in range(10) if 2**power < 2 * copy.most_running * 2 and 2**power <= MOST]
    predicted = tuple(
        PredictedLevel(
            concurrency=level,
            output_tok_s=one.output_tok_s,
            ttft_p95_ms=one.ttft_ms.p95,
            e2e_mean_ms=one.e2e_latency_ms.mean,
        )
        for level in levels
        for one in [_outcome(copy, level)]
    )
    return Prior(levels=predicted, batch_limit=copy.most_running)


@dataclass(slots=True)
class Endpoint:
    """A simulated endpoint under trial.

    Attributes:
        copy: What answers.
        noise: Standard deviation of the logarithm of each level's speed.
        chance: Where the noise comes from.
        falls_from: The load from which throughput falls; None where it doesn't.
        spent_s: Simulated time of all levels so far.
    """

    copy: Copy
    noise: float
    chance: random.Random
    falls_from: int | None = None
    spent_s: float = 0.0
    levels: list[LevelResult] = field(default_factory=list)

    def measure(self, concurrency: int, objectives: Sequence[Objective]) -> LevelResult:
        """Simulate one level, slower or faster by a factor of its own."""
        slower = self.chance.lognormvariate(0, self.noise) * slowdown(concurrency, self.falls_from)
        level = level_of(self.copy, concurrency, objectives, slower=slower, noise=self.noise)
        self.spent_s += level.duration_s or 0.0
        self.levels.append(level)
        return level


@cache
def _latencies(copy: Copy, concurrency: int) -> tuple[dict[str, list[float]], dict[str, Distribution]]:
    """Return the latencies of the measured requests in ms, by metric, and their distributions; without noise."""
    measured, later = _requests(copy, concurrency)[TRIAL.ramp(concurrency) :], copy.output_tokens - 1 or 1
    every = {
        "ttft_ms": [(one.first_token_s - one.sent_s) * MS_PER_S for one in measured],
        "tpot_ms": [(one.last_token_s - one.first_token_s) / later * MS_PER_S for one in measured],
        "e2e_latency_ms": [(one.last_token_s - one.sent_s) * MS_PER_S for one in measured],
    }
    return every, {name: _spread(values) for name, values in every.items()}


def slowdown(concurrency: int, falls_from: int | None) -> float:
    """Return how much slower than its copy an endpoint is whose throughput falls with the load."""
    return 1.0 if falls_from is None else max(1.0, concurrency / falls_from) ** FALL


def level_of(
    copy: Copy, concurrency: int, objectives: Sequence[Objective], *, slower: float = 1.0, noise: float = 0.0
) -> LevelResult:
    """Return a simulated level as the trial reports one; its intervals are those of the noise."""
    every, spreads = _latencies(copy, concurrency)
    found = {name: _scaled(values, slower, noise) for name, values in spreads.items()}
    tok_s, requests = _outcome(copy, concurrency).output_tok_s / slower, TRIAL.measured(concurrency)
    bounds = [(every[one.metric], one.bound / slower) for one in objectives if one.metric in every]
    good = sum(all(values[at] <= bound for values, bound in bounds) for at in range(requests))
    level = LevelResult(
        concurrency=concurrency,
        requests=requests,
        succeeded=requests,
        errors={},
        first_errors=(),
        window_s=duration_s(copy, concurrency) * slower,
        output_tok_s=tok_s,
        requests_per_s=tok_s / copy.output_tokens,
        goodput_requests_per_s=tok_s / copy.output_tokens * good / requests,
        ttft_ms=found["ttft_ms"],
        tpot_ms=found["tpot_ms"],
        itl_ms=None,
        ms_per_token=None,
        e2e_latency_ms=found["e2e_latency_ms"],
        input_tokens_mean=None,
        output_tokens_mean=float(copy.output_tokens),
        meets_slo=True,
        misses=(),
        output_tok_s_interval=_interval(tok_s, noise),
        duration_s=duration_s(copy, concurrency) * slower,
    )
    misses = tuple(f"{one.metric} {one.statistic}" for one in objectives if not _holds(level, one))
    return replace(level, meets_slo=not misses, misses=misses)


def _spread(values: Sequence[float]) -> Distribution:
    ordered = sorted(values)
    p50, p90, p95, p99 = (percentile(ordered, percent) for percent in (50, 90, 95, 99))
    mean = math.fsum(ordered) / len(ordered)
    return Distribution(count=len(ordered), mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, max=ordered[-1])


def _scaled(values: Distribution, factor: float, noise: float) -> Distribution:
    every = {"mean": values.mean, "p50": values.p50, "p95": values.p95, "p99": values.p99}
    return replace(
        values,
        mean=values.mean * factor,
        p50=values.p50 * factor,
        p90=values.p90 * factor,
        p95=values.p95 * factor,
        p99=values.p99 * factor,
        max=values.max * factor,
        intervals={name: _interval(value * factor, noise) for name, value in every.items()},
    )


def _interval(value: float, noise: float) -> Interval:
    """Return the 95 % interval that noise of a level gives what it measures."""
    return Interval(low=value * (1 - DEVIATIONS * noise), high=value * (1 + DEVIATIONS * noise))


def _holds(level: LevelResult, objective: Objective) -> bool:
    value = value_of(level, objective)
    return value is None or is_met(value, objective)


def value_of(level: LevelResult, objective: Objective) -> float | None:
    """Return what a level says of an objective on latency."""
    found: dict[str, Distribution | None] = {
        "ttft_ms": level.ttft_ms,
        "tpot_ms": level.tpot_ms,
        "e2e_latency_ms": level.e2e_latency_ms,
    }
    values = found.get(objective.metric)
    return None if values is None else {"p50": values.p50, "p95": values.p95, "p99": values.p99}[objective.statistic]


def fine_grid() -> list[int]:
    """Return the loads of the full sweep that the search is held against: 3 % apart."""
    grid, at = [1], 1.0
    while at < MOST:
        at = max(at * FINE_STEP, grid[-1] + 1)
        grid.append(min(MOST, int(at)))
    return grid


def doubling_s(copy: Copy, falls_from: int | None) -> float:
    """Return the time of the full doubling sweep, 1, 2, …, 512."""
    loads = [2**power for power in range(10)]
    return sum(duration_s(copy, load) * slowdown(load, falls_from) for load in loads)


def calibrated(copy: Copy, calibration: Calibration) -> Copy:
    """Return a copy that is faster or slower than the plan says."""
    return replace(copy, calibration=calibration)
