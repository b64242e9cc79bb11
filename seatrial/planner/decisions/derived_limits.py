"""The limits of the chosen deployment with their warnings, and the prediction of one copy."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.documents.plan import CopyPrediction, CurvePoint, Decision, RatePoint, ServingLimits
from seatrial.planner.calibration import calibration_warnings
from seatrial.planner.decisions.batching import (
    batch_limit_warnings,
    choose_compiled_batch,
    choose_levels,
    choose_max_num_seqs,
    choose_max_queued,
    queue_room,
    settle_max_model_len,
)
from seatrial.planner.decisions.placement import decide_gate, decide_target, predict_target, target_warnings
from seatrial.planner.decisions.plan_warnings import (
    access_warnings,
    adapter_warnings,
    assumption_warnings,
    encoder_warnings,
    family_warnings,
    price_warnings,
    purchase_warnings,
    size_warnings,
    unpredicted_warnings,
)
from seatrial.planner.decisions.timeouts import download_timeout, startup_timeout_s, timeout_warnings
from seatrial.planner.predict.band import carried_chance, carried_share
from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.memory import weights_bytes
from seatrial.planner.predict.regime import regime_of
from seatrial.planner.predict.simulation import saturation_per_s
from seatrial.planner.recipe_limits import accelerator_limits, built_at_start_s, job_limits, stored_bytes
from seatrial.planner.search.candidate import band_for
from seatrial.planner.search.capacity import answered_in_time
from seatrial.planner.search.demand import unplanned_copies
from seatrial.planner.search.evaluate import carried_by, headroom_words
from seatrial.planner.search.sizing import bounds_money, instances_for, usd_per_hour
from seatrial.specs.recipe import compiles
from seatrial.specs.router import router_findings
from seatrial.specs.workload import RATE_SHARES
from seatrial_base.bounds import LONGEST_TRIAL_S
from seatrial_base.catalog.engine_options import find_spellings, refusal_status
from seatrial_base.catalog.engine_versions import dialect_of, spelled_version
from seatrial_base.units import S_PER_HOUR, S_PER_MINUTE, counted, hourly_words, usd

if TYPE_CHECKING:
    from seatrial.documents.prediction import Band
    from seatrial.planner.predict.simulation import Level
    from seatrial.planner.resolve import Resolved
    from seatrial.planner.search.candidate import FeasibleCandidate
    from seatrial.planner.search.capacity import Levels
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.endpoint import TrialSpec, TrialUpdate
    from seatrial.specs.load import LoadedSpec


@dataclass(frozen=True, slots=True)
class Chosen:
    """The deployment that is planned, and what it was chosen for."""

    loaded: LoadedSpec
    resolved: Resolved
    best: FeasibleCandidate

    @property
    def demand(self) -> Demand:
        """What every candidate was evaluated against."""
        return self.resolved.demand


@dataclass(frozen=True, slots=True)
class DerivedLimits:
    """The limits with what they were derived from.

    Attributes:
        levels: One copy with these limits, and what it is simulated to do.
    """

    limits: ServingLimits
    levels: Levels
    band: Band


def derive_limits(chosen: Chosen) -> DerivedLimits:
    """Derive the limits from the chosen deployment."""
    best, endpoint, demand = chosen.best, chosen.loaded.endpoint, chosen.demand
    overrides, memory = demand.overrides, best.candidate.memory
    band = band_for(demand, best.candidate)
    batch = _batch(chosen, band)
    running = min(batch.value, memory.kv_limited_batch)  # a fixed limit may be above what memory holds
    copy = replace(best.candidate.copy, max_num_seqs=batch.value)
    # The batch limit is part of the copy now: levels that were simulated without it are not its own.
    levels = replace(best.candidate.levels, copy=copy, seen={}, seen_rates={})
    in_time = answered_in_time(levels, demand.timeout)
    gate = decide_gate(best, demand)
    size = stored_bytes(endpoint, demand.architecture)
    concurrency_levels = choose_levels(endpoint.trial.concurrency_levels, running, gate.value)
    predicted = predict_target(best, demand, running, levels, concurrency_levels.value)
    # The startup timeout; artifacts that are compiled ahead of time are only loaded.
    recipe, model = chosen.loaded.endpoint.optimization, chosen.loaded.endpoint.model
    compilation = compiles(recipe)
    at_start = compilation is None or compilation.when == "startup"
    whole = weights_bytes(demand.architecture, None)
    startup = startup_timeout_s(
        model, size, compiles=demand.engine.compiled_shapes and at_start, build_s=built_at_start_s(recipe, whole)
    )
    download = download_timeout(endpoint.model, size)
    start_s = download.value + startup.value
    resolved, candidate = chosen.resolved, chosen.best.candidate
    max_model_len = settle_max_model_len(
        resolved.max_model_len,
        resolved.demand,
        candidate.memory,
        resolved.batched_tokens.value,
        candidate.copy.attention_data_parallel_degree,
    )
    queue = decide_queue(chosen, levels, predicted.knee.concurrency, running, in_time)
    if queue.refuses and endpoint.trial.concurrency_levels is None:
        most = max(gate.value, running + queue.requests.value)
        value = tuple(level for level in concurrency_levels.value if level <= most)
        because = f"{concurrency_levels.because} Beyond {most} a copy refuses."
        concurrency_levels = Decision(value=value, because=because)
    limits = ServingLimits(
        max_model_len=max_model_len,
        max_num_seqs=batch,
        max_num_batched_tokens=chosen.resolved.batched_tokens,
        max_queued_requests=queue.requests,
        max_queued_tokens=queue.tokens,
        startup_timeout_s=startup,
        download_timeout_s=download,
        knee=predicted.knee,
        target_concurrency_per_copy=decide_target(best, demand, predicted),
        gate_concurrency_per_copy=gate,
        concurrency_levels=concurrency_levels,
        trial_update=decide_trial_update(best, demand, start_s),
        warnings=(
            *chosen.resolved.warnings,
            *chosen.resolved.choice.warnings,
            *(() if band.measured else (band.because,)),
            *headroom_warnings(chosen, levels, band),
            *access_warnings(chosen.loaded),
            *unpredicted_warnings(endpoint.serving, demand.engine),
            *adapter_warnings(overrides.lora, memory),
            *_deployment_warnings(chosen),
            *chosen.demand.cautions(chosen.best.candidate.instance),
            *batch_limit_warnings(overrides, memory),
            *queue.warnings,
            *timeout_warnings(startup, download),
            *candidate_warnings(endpoint.trial, start_s),
            *target_warnings(best, demand, predicted),
            *(
                f"{each.rule}: {each.message}."
                for each in router_findings(chosen.loaded, best.at_gate.e2e_latency_ms.p95)
            ),
            *price_warnings(chosen.best.candidate.instance, chosen.loaded),
            *purchase_warnings(chosen.best.candidate.instance, chosen.loaded.environment.purchase),
        ),
    )
    return DerivedLimits(limits, levels, band)


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """The decided limits of a copy's queue; tokens only where the engine bounds them.

    Attributes:
        refuses: Whether they are the SLO's, and the engine refuses what is beyond them.
    """

    requests: Decision[int]
    tokens: Decision[int] | None
    refuses: bool = False
    warnings: tuple[str, ...] = ()


def decide_queue(chosen: Chosen, levels: Levels, knee: int, running: int, in_time: int) -> QueueLimits:
    """Return the limits of the queue: what is answered within the timeout, or what keeps the SLO and is refused else.

    Args:
        running: Requests that a copy batches.
        in_time: Requests in flight that one copy answers within the timeout.
    """
    serving, overrides = chosen.loaded.endpoint.serving, chosen.demand.overrides
    given = overrides.max_queued_tokens
    tokens: Decision[int] | None = None if given is None else Decision(value=given, because="The spec fixes it.")
    if serving.overload == "queue":
        timeout_s = chosen.loaded.endpoint.trial.request_timeout_s
        return QueueLimits(choose_max_queued(overrides, running, in_time, timeout_s), tokens)
    choice = chosen.resolved.choice
    engine, on_neuron = choice.option.engine, "neuronx" in choice.option.name
    version = spelled_version(engine, choice.version.value, on_neuron=on_neuron)
    dialect = dialect_of(engine, version, serving.backend, on_neuron=on_neuron)
    status, spelled = refusal_status(dialect, version), find_spellings(dialect, version)
    requests, room_tokens = queue_room(chosen.loaded.endpoint.slo, levels, knee, status)
    if overrides.max_queued_requests is not None:
        requests = choose_max_queued(overrides, running, in_time, 0.0)
    if tokens is None and spelled.of_field("max_queued_tokens"):
        tokens = room_tokens
    if status is not None:
        return QueueLimits(requests, tokens, refuses=True)
    way = "serve with an engine that refuses: vllm from 0.29 on, sglang or tgi, or put a limit before the endpoint"
    warning = f"SEA149: {spelled.called} refuses no request: beyond the batch of {running} all wait. To refuse, {way}."
    return QueueLimits(requests, tokens, warnings=(warning,))


def _batch(chosen: Chosen, band: Band) -> Decision[int]:
    best, demand = chosen.best, chosen.demand
    memory, copy = best.candidate.memory, best.candidate.copy
    running = best.capacity if best.sustained is None else best.sustained.busiest
    carrying = 0
    if (rate_per_s := best.load.rate_per_copy) is not None:
        # Fewer sequences would throttle a copy below the saturation that its headroom was counted by.
        chance = min(demand.endpoint.objective.headroom, carried_by(demand, best.candidate, best.load))
        least, every = rate_per_s / carried_share(chance, band), range(copy.most_running)
        carrying = bisect_left(every, least, 1, key=lambda most: saturation_per_s(replace(copy, max_num_seqs=most)))
    if demand.engine.compiled_shapes and demand.overrides.max_num_seqs is None:
        return choose_compiled_batch(demand.engine, memory, max(running, carrying))
    bursts = best.sustained is not None
    batch = choose_max_num_seqs(demand.overrides, memory, running, band.latency, bursts=bursts)
    because = f"With fewer than {carrying} sequences a copy lacks headroom for its rate."
    return batch if batch.value >= carrying else Decision(value=carrying, because=because)


def carried_rate(chosen: Chosen, levels: Levels, band: Band) -> dict[str, float]:
    """Return the chance that the planned copies carry a rate, each as its limits have it, and their saturation."""
    each, saturation = chosen.best.load.rate_per_copy, saturation_per_s(levels.copy)
    if each is None:
        return {}
    return {
        "carried_chance": round(carried_chance(each, saturation, band), 3),
        "saturation_requests_per_second": round(chosen.best.load.copy_count * saturation, 6),
    }


def headroom_warnings(chosen: Chosen, levels: Levels, band: Band) -> tuple[str, ...]:
    """Warn where no allowed deployment carries the rate with the wanted headroom, and say what limits it."""
    demand, copies = chosen.demand, chosen.best.load.copy_count
    chance = carried_rate(chosen, levels, band).get("carried_chance", 1.0)
    if chance >= round(demand.endpoint.objective.headroom, 3):
        return ()
    is_dear = copies < demand.endpoint.scaling.max_copies and bounds_money(demand)
    more = "raise the budget" if is_dear else f"allow more than {counted(copies, 'copy', 'copies')} (max_copies)"
    mended = f"{more} or faster instance types, or lower objective.headroom"
    return (f"SEA154: {headroom_words(demand, copies, chance)}: {mended}.",)


def _deployment_warnings(chosen: Chosen) -> tuple[str, ...]:
    candidate, demand, recipe = chosen.best.candidate, chosen.demand, chosen.loaded.endpoint.optimization
    # What the recipe gives less of on the chosen instance type.
    limits: list[str] = []
    if (engine := demand.recipe_engine) is not None:
        less = (*accelerator_limits(recipe, engine, candidate.instance), *job_limits(recipe, candidate.instance))
        limits += (f"SEA235: {each}" for each in less)
        hub_id = chosen.loaded.endpoint.model.hub_id
        if hub_id is not None and any(entry.job is not None for entry in recipe):
            job = f"An optimization job reads weights in S3, not the hub model {hub_id}: it can't be deployed so."
            limits.append(f"SEA456: {job}")
    return (
        *assumption_warnings(demand.speculation),
        *calibration_warnings(demand.calibrated, candidate.instance.instance_type, candidate.degree),
        *family_warnings(demand.architecture),
        *size_warnings(chosen.loaded, demand.architecture),
        *encoder_warnings(demand.architecture),
        *unplanned_copies(demand.overrides.extra),
        *limits,
    )


def predict_copy(chosen: Chosen, derived: DerivedLimits) -> CopyPrediction:
    """Predict one copy with its limits at each level of the trial."""
    levels, gate = derived.limits.concurrency_levels.value, chosen.best.load.concurrency_per_copy
    return CopyPrediction(
        memory=chosen.best.candidate.memory,
        curve=tuple(curve_point(derived.levels, level) for level in levels),
        band=derived.band,
        regime=regime_of(derived.levels.copy, gate, levels),
        rates=rate_points(chosen, derived.levels),
        **carried_rate(chosen, derived.levels, derived.band),
    )


def rate_points(chosen: Chosen, levels: Levels) -> tuple[RatePoint, ...]:
    """Predict one copy at shares of the planned rate, those of an open trial up to its gate; none without a rate."""
    each = chosen.best.load.rate_per_copy
    if each is None:
        return ()
    planned_rate = chosen.loaded.endpoint.workload.requests_per_second or 0.0
    saturation = saturation_per_s(levels.copy)
    points: list[RatePoint] = []
    for share in RATE_SHARES:
        level = levels.at_rate(share * each)
        numbers = _numbers_of(level) | {
            "in_flight": level.in_flight,
            "queue_p95_ms": level.queue_ms.p95,
            "ttft_p99_ms": level.ttft_ms.p99,
            "itl_p99_ms": level.itl_ms.p99,
        }
        points.append(
            RatePoint(
                requests_per_second=round(share * planned_rate, 6),
                per_copy=round(level.rate_per_s, 6),
                utilization=round(level.rate_per_s / saturation, 4),
                **{name: round(number, 2) for name, number in numbers.items()},
                late=round(level.late, 4),
            )
        )
    return tuple(points)


def _numbers_of(level: Level) -> dict[str, float]:
    # The fields that a point of the curve and one of the rates share; a plan names them flat, so that old locks read.
    latencies = {"ttft": level.ttft_ms, "tpot": level.tpot_ms, "e2e_latency": level.e2e_latency_ms}
    means = {f"{name}_ms": latency.mean for name, latency in latencies.items()}
    return {"output_tok_s": level.output_tok_s, **means, **{f"{n}_p95_ms": each.p95 for n, each in latencies.items()}}


def curve_point(levels: Levels, concurrency: int) -> CurvePoint:
    """Return one point of the curve; two decimals are more than it is worth, and keep the lock readable."""
    level = levels.at(concurrency)
    numbers = _numbers_of(level) | {
        "ms_per_token": level.ms_per_token.mean,
        "ms_per_token_p90": level.ms_per_token.p90,
    }
    return CurvePoint(
        concurrency=concurrency,
        **{name: round(number, 2) for name, number in numbers.items()},
        late=round(level.late, 4),
        limit=predict_at(levels.copy, concurrency).limit,
    )


_SHORTEST_START_S = 600


def decide_trial_update(best: FeasibleCandidate, demand: Demand, start_s: int) -> Decision[TrialUpdate]:
    """Return how an update is tried; its copy may take `start_s` to download and to start."""
    trial = demand.endpoint.trial
    if trial.mode == "off":
        return Decision(value=trial.update, because="trial.mode is off: no trial runs.")
    ways: dict[TrialUpdate, str] = {
        "candidate": _candidate(best, demand, start_s),
        "in_place": "in_place: no instance more; load up to the gate less the users' requests; no knee.",
        "verify_only": "verify_only: no instance more; single requests, no load; no knee.",
    }
    others = (sentence for way, sentence in ways.items() if way != trial.update)
    return Decision(value=trial.update, because=" ".join((ways[trial.update], *others)))


def _candidate(best: FeasibleCandidate, demand: Demand, start_s: int) -> str:
    """Say what one copy beside the planned ones needs: accelerators that are free, or an instance of the surge."""
    more = instances_for(best.candidate, best.load.copy_count + 1) - best.instance_count
    longest_s = start_s + demand.endpoint.trial.budget_minutes * S_PER_MINUTE
    if more <= 0:
        planned = counted(best.instance_count, "instance")
        return f"candidate: one copy more, on free accelerators of the planned {planned}."
    price = usd_per_hour(best.candidate.instance, more, demand.discount)
    lasts = f"at most {longest_s / S_PER_MINUTE:.0f} min"
    total = "" if price is None else f", {usd(price * longest_s / S_PER_HOUR)}"
    return (
        f"candidate: one copy more, on {counted(more, 'instance')} more within the surge, {lasts} at "
        f"{hourly_words(price, demand.discount)}{total}."
    )


def candidate_warnings(trial: TrialSpec, start_s: int) -> tuple[str, ...]:
    """Warn when CloudFormation's hour may end before the candidate has started and been tried."""
    if trial.update != "candidate" or trial.mode == "off":
        return ()
    left_s = LONGEST_TRIAL_S - trial.budget_minutes * S_PER_MINUTE
    left = f"{left_s / S_PER_MINUTE:.0f} min to start, of the 60 min that CloudFormation waits"
    if left_s < _SHORTEST_START_S:
        needed = f"at least {_SHORTEST_START_S / S_PER_MINUTE:.0f} min are needed"
        return (f"trial.budget_minutes {trial.budget_minutes:g} leaves a candidate copy {left}; {needed}.",)
    if left_s < start_s:
        return (f"A candidate copy has {left}; its timeouts allow {start_s / S_PER_MINUTE:.0f} min.",)
    return ()
