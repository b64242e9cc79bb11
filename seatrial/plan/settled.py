"""What follows from the chosen deployment: limits, levels, timeouts, the curve, the band and the warnings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.plan.batching import batch_limit_warnings, choose_levels, choose_max_num_seqs, choose_max_queued
from seatrial.plan.calibrated import calibration_warnings
from seatrial.plan.cautions import assumption_warnings, checkpoint_warnings, price_warnings, surge_warnings
from seatrial.plan.copies import answered_in_time
from seatrial.plan.document import CurvePoint, Decision
from seatrial.plan.placement import decide_gate, decide_surge, target_warnings
from seatrial.plan.sizing import instances_for
from seatrial.plan.timeouts import download_timeout, startup_timeout, timeout_warnings
from seatrial.predict.band import Band, band_of
from seatrial.predict.closed import predict
from seatrial.predict.memory import weights_bytes

if TYPE_CHECKING:
    from seatrial.plan.candidate import Offer
    from seatrial.plan.demand import Demand
    from seatrial.plan.engine import EngineChoice
    from seatrial.plan.levels import Levels
    from seatrial.spec.load import LoadedSpec


@dataclass(frozen=True, slots=True)
class Findings:
    """What was read and found.

    Attributes:
        loaded: The spec in its environment.
        demand: What was asked.
        choice: The engine.
        best: The chosen deployment.
        max_model_len: The longest request that a deployment must hold, in tokens.
        batched_tokens: Prompt tokens of one iteration.
        warnings: What was said on the way.
    """

    loaded: LoadedSpec
    demand: Demand
    choice: EngineChoice
    best: Offer
    max_model_len: Decision[int]
    batched_tokens: Decision[int]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settled:
    """What follows from the chosen deployment."""

    levels: Levels
    max_num_seqs: Decision[int]
    max_queued: Decision[int]
    gate: Decision[int]
    max_instances: int
    surge: Decision[int]
    concurrency_levels: Decision[tuple[int, ...]]
    startup: Decision[int]
    download: Decision[int]
    band: Band
    warnings: tuple[str, ...]


def settle(found: Findings) -> Settled:
    """Decide what follows from the chosen deployment."""
    best, endpoint, demand = found.best, found.loaded.endpoint, found.demand
    overrides, scaling = demand.overrides, endpoint.scaling
    band = band_for(demand, found.choice.version.value, best)
    batch = choose_max_num_seqs(overrides, best.candidate.memory, best.capacity, band.latency)
    running = min(batch.value, best.candidate.memory.kv_limited_batch)  # a fixed limit may be above what memory holds
    levels = replace(best.candidate.levels, copy=replace(best.candidate.copy, max_num_seqs=batch.value), seen={})
    in_time = answered_in_time(levels, demand.timeout)
    gate = decide_gate(best, demand)
    size = weights_bytes(demand.architecture, overrides.quantization)
    surge = decide_surge(best, demand)
    startup, download = startup_timeout(endpoint.model, size), download_timeout(endpoint.model, size)
    most = instances_for(best.candidate, scaling.max_copies)
    return Settled(
        levels=levels,
        max_num_seqs=batch,
        max_queued=choose_max_queued(overrides, running, in_time, endpoint.trial.request_timeout_s),
        gate=gate,
        max_instances=most,
        surge=surge,
        concurrency_levels=choose_levels(endpoint.trial.concurrency_levels, running, gate.value),
        startup=startup,
        download=download,
        band=band,
        warnings=(
            *found.warnings,
            *found.choice.warnings,
            *(() if band.measured else (band.because,)),
            *assumption_warnings(overrides),
            *calibration_warnings(demand.calibrated, best.candidate.instance.instance_type, best.candidate.degree),
            *checkpoint_warnings(demand.architecture, overrides.quantization),
            *batch_limit_warnings(overrides, best.candidate.memory),
            *timeout_warnings(startup, download),
            *target_warnings(best, demand, running),
            *price_warnings(best.candidate.instance, found.loaded.environment.region),
            *surge_warnings(best.candidate.instance, most, surge.value, demand.rails, demand.discount),
        ),
    )


def band_for(demand: Demand, engine_version: str, best: Offer) -> Band:
    """Return how far the predictions for a deployment may be off."""
    own, candidate = demand.calibrated, best.candidate
    measured = own is not None and own.holds_for(candidate.instance.instance_type, candidate.degree)
    return band_of(
        demand.engine,
        engine_version,
        demand.architecture,
        best.candidate.instance,
        quantization=demand.overrides.quantization,
        speculation=demand.speculation,
        input_tokens=demand.endpoint.workload.input_tokens,
        calibrated=own.band if own is not None and measured else None,
    )


def curve_point(levels: Levels, concurrency: int) -> CurvePoint:
    """Return one point of the curve; two decimals are more than it is worth, and keep the lock readable."""
    found = levels.at(concurrency)
    numbers = {
        "output_tok_s": found.output_tok_s,
        "ttft_ms": found.ttft_ms.mean,
        "tpot_ms": found.tpot_ms.mean,
        "e2e_latency_ms": found.e2e_latency_ms.mean,
        "ms_per_token": found.ms_per_token.mean,
        "ttft_p95_ms": found.ttft_ms.p95,
        "tpot_p95_ms": found.tpot_ms.p95,
        "e2e_latency_p95_ms": found.e2e_latency_ms.p95,
        "ms_per_token_p90": found.ms_per_token.p90,
    }
    return CurvePoint(
        concurrency=concurrency,
        **{name: round(number, 2) for name, number in numbers.items()},
        late=round(found.late, 4),
        limit=predict(levels.copy, concurrency).limit,
    )
