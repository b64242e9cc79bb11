"""The result of a probe: measured values and predicted ones, which deployment meets the SLO, and its calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.documents.calibration import CalibrationSource, MeasuredPoint, read_calibration
from seatrial.documents.plan import hardware_words
from seatrial.planner.calibration import (
    calibrate_endpoint,
    measured_copy,
    model_name,
    points_of_trial,
    usable,
)
from seatrial.planner.predict.simulation import outcome
from seatrial.planner.resolve import resolve
from seatrial.planner.search.capacity import trial_protocol
from seatrial.planner.search.demand import LatencyBound, read_objectives
from seatrial.probe.pinned import ProbedHardware
from seatrial.specs.spec_files import calibration_path
from seatrial_base.errors import SpecError
from seatrial_base.frozen_model import digest
from seatrial_base.units import S_PER_HOUR, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.documents.calibration import EndpointCalibration
    from seatrial.documents.plan import Plan
    from seatrial.planner.predict.simulation import Level
    from seatrial.probe.pinned import PinnedSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import LevelResult, TrialResult

_UNBOUNDED = (
    LatencyBound((), "ttft_ms", "p95", 0.0),
    LatencyBound((), "tpot_ms", "p95", 0.0),
)
"""What is shown where the SLO bounds no latency."""
_NAMES = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "e2e_latency_ms": "E2E latency"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedMetric:
    """One number of one copy.

    Attributes:
        name: What it is, with its unit.
        measured: `None` where the level has none.
        bound: Of the SLO; `None` without one.
    """

    name: str
    predicted: float
    measured: float | None
    bound: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeAnswer:
    """One deployment, measured.

    Attributes:
        metrics: Of one copy: its throughput first, then its latencies.
        spent_usd: What the instances of the probe cost; `None` where no price is known or nothing was deployed.
        spent_s: How long they were there, from the beginning of the deployment to the end of the deletion.
    """

    pinned: PinnedSpec
    result: TrialResult
    metrics: tuple[ProbedMetric, ...]
    spent_usd: float | None = None
    spent_s: float | None = None

    @property
    def meets_slo(self) -> bool | None:
        """Whether the trial met the SLO and the copy its share of the throughput; `None` where that is not known."""
        latencies = {"pass": True, "fail": False}.get(self.result.verdict.status)
        reached = self.throughput_met
        if latencies is False or reached is False:
            return False
        return latencies if self.metrics[0].bound is None or reached else None

    @property
    def throughput_met(self) -> bool | None:
        """Whether the copy reached its share of `slo.output_tok_s`; `None` without one, or where not measured."""
        throughput = self.metrics[0]
        if throughput.bound is None or throughput.measured is None:
            return None
        return throughput.measured >= throughput.bound


def probe_answer(pinned: PinnedSpec, result: TrialResult, spent_s: float | None = None) -> ProbeAnswer:
    """Return what was measured and what is predicted.

    Args:
        spent_s: How long its instances were there; `None` where nothing was deployed.
    """
    # There is none when the trial ended before it, or measured its client there.
    wanted = pinned.probed.concurrency_per_copy
    level = next((level for level in result.levels if level.concurrency == wanted and level.valid), None)
    hourly = pinned.plan.cost.usd_per_hour
    return ProbeAnswer(
        pinned=pinned,
        result=result,
        metrics=tuple(_metrics(pinned, level, result.live.copy_count or result.request.copy_count)),
        spent_usd=None if spent_s is None or hourly is None else hourly * spent_s / S_PER_HOUR,
        spent_s=spent_s,
    )


def predicted_level(pinned: PinnedSpec) -> Level:
    """Return what the copy is predicted to do, with the endpoint's calibration where it is of this deployment."""
    hardware, loaded = pinned.probed.hardware, pinned.loaded
    copy = measured_copy(loaded, pinned.plan)
    own = resolve(loaded).demand.calibration_of(hardware.instance_type, hardware.tensor_parallel_degree)
    copy = copy if own is None else replace(copy, calibration=own)
    return outcome(copy, pinned.probed.concurrency_per_copy, trial_protocol(loaded.endpoint.trial))


def _metrics(pinned: PinnedSpec, level: LevelResult | None, copies: int) -> Iterator[ProbedMetric]:
    predicted, endpoint = predicted_level(pinned), pinned.loaded.endpoint
    throughput = level.output_tok_s if level is not None else None
    yield ProbedMetric(
        name="output, tok/s per copy",
        predicted=predicted.output_tok_s,
        measured=None if throughput is None else throughput / copies,
        bound=pinned.least_tok_s,
    )
    bounds = tuple(bound for bound in read_objectives(endpoint) if bound.path[0] == "slo")
    for bound in bounds or _UNBOUNDED:
        distribution = None if level is None else getattr(level, bound.metric)
        yield ProbedMetric(
            name=f"{_NAMES[bound.metric]} {bound.statistic}, ms",
            predicted=bound.predicted(predicted),
            measured=None if distribution is None else float(getattr(distribution, bound.statistic)),
            bound=bound.bound_ms or None,
        )


def conclusion(plan: Plan, answers: Sequence[ProbeAnswer]) -> str:
    """Return in full sentences what the probe decided.

    Args:
        answers: What was measured; the last is the candidate, where one was.
    """
    last = answers[-1]
    if last.result.engine_note:
        return "A local engine was measured, not the model: these numbers are simulated and decide nothing."
    if last.meets_slo is None:
        return "The probe decides nothing: the trial is inconclusive. Probe again with a larger trial.budget_minutes."
    if last.pinned.probed.role == "plan":
        return "The plan's deployment meets the SLO." if last.meets_slo else "The plan's deployment misses the SLO."
    if last.meets_slo:
        probe, hardware = plan.probe, last.pinned.probed.hardware
        # What it saves is known of the plan's own candidate alone.
        is_known = probe is not None and ProbedHardware(probe.instance_type, probe.tensor_parallel_degree) == hardware
        saved = f" and costs {usd(probe.saving_usd_per_hour)} per hour less than the plan" if probe and is_known else ""
        return f"The candidate meets the SLO{saved}."
    misses = len(answers) > 1 and answers[0].meets_slo is False
    return f"The candidate misses the SLO.{' The plan misses it too.' if misses else ' The plan stays.'}"


def refuse_local_engine(note: str, where: str) -> None:
    """Refuse to keep the measurements of a local engine.

    Raises:
        SpecError: SEA615 when there is a note.
    """
    if note:
        message = f"measured on {note}: CPU results can't calibrate a GPU plan"
        raise SpecError.of("SEA615", message, hint="leave out --write, or probe on AWS", where=where)


def calibration_of(loaded: LoadedSpec, answer: ProbeAnswer) -> EndpointCalibration:
    """Return the calibration that a probe gives, with the points that were measured of the same deployment before.

    Raises:
        SpecError: SEA408 when the level has no valid answer, or contradicts the points before; SEA615 when a local
            engine was measured.
    """
    pinned, where = answer.pinned, f"probe of {answer.pinned.probed.hardware}"
    refuse_local_engine(answer.result.engine_note, where)
    text = answer.result.to_json()
    measured = usable(points_of_trial(answer.result), where)
    source = CalibrationSource(file=f"{pinned.loaded.endpoint.name}.result.json", digest=digest(text))
    fresh = calibrate_endpoint(pinned.loaded, pinned.plan, measured, source)
    fresh = fresh.model_copy(update={"model": model_name(loaded.endpoint)})
    # Fitted again with the earlier points of the same deployment: one level alone can't separate the two factors.
    points = usable((*_former(loaded, fresh), *measured), where)
    if points == measured:
        return fresh
    again = calibrate_endpoint(pinned.loaded, pinned.plan, points, source)
    return again.model_copy(update={"model": fresh.model})


def replaced(loaded: LoadedSpec, entry: EndpointCalibration) -> str:
    """Return the deployment whose calibration an entry replaces; empty where it replaces none of another."""
    old = read_calibration(loaded.calibration, calibration_path(loaded.path).as_posix())
    if old is None or _deployment(old) == _deployment(entry):
        return ""
    return f"{hardware_words(old.instance_type, old.tensor_parallel_degree)}, {old.engine} {old.engine_version}"


def _former(loaded: LoadedSpec, entry: EndpointCalibration) -> tuple[MeasuredPoint, ...]:
    """Return the points that were measured of the same deployment at other levels."""
    old = read_calibration(loaded.calibration, calibration_path(loaded.path).as_posix())
    if old is None or _deployment(old) != _deployment(entry) or old.source.engine_note:
        return ()
    levels = {point.concurrency for point in entry.points}
    return tuple(point for point in old.points if point.concurrency not in levels)


def _deployment(entry: EndpointCalibration) -> tuple[object, ...]:
    return (
        entry.instance_type,
        entry.tensor_parallel_degree,
        entry.engine,
        entry.engine_version,
        entry.quantization,
        entry.model,
        entry.input_tokens,
        entry.output_tokens,
    )
