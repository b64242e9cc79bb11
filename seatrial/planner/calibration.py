"""Calibrates one deployment of an endpoint: the one that its lock describes, and that was measured.

Measured points, the factors of the model's constants that fit them, the file, and what the factors change.
"""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial.documents.calibration import (
    Calibrated,
    Calibration,
    CalibrationSource,
    Compared,
    EndpointCalibration,
    MeasuredPoint,
    Outlook,
    read_calibration,
)
from seatrial.documents.prediction import Band
from seatrial.locks.lock_file import changing_file, replace_file
from seatrial.planner.predict.band import ASSUMED
from seatrial.planner.predict.copy_model import hardware_of, place_copy, speculation_of
from seatrial.planner.predict.memory import shared_prefix, with_options
from seatrial.planner.predict.simulation import outcome, saturation_per_s
from seatrial.planner.search.capacity import Levels, trial_protocol
from seatrial.planner.search.demand import groups_at
from seatrial.specs.architecture import read_architecture
from seatrial.specs.spec_files import SCHEMA_VERSION, calibration_path, every_calibration
from seatrial_base.catalog import engines, neuron
from seatrial_base.catalog.engines import find_engine
from seatrial_base.catalog.instances import find_instance
from seatrial_base.errors import PlanError, SpecError
from seatrial_base.field_facts import made_of
from seatrial_base.findings import Finding, Place
from seatrial_base.units import counted
from seatrial_load.documents.result import RandomArrivals
from seatrial_load.slo.verdict import gate_rate_per_s

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.planner.engine import EngineChoice
    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Protocol
    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import LevelResult, TrialResult

_DIGITS = 4
_FARTHEST_PROBE = 1.0  # of an error at a probe, as a share
MOST_IN_FLIGHT = 100_000
_COLUMNS = ("concurrency", "output_tok_s")
_LATENCY = "ms_per_token"
_MEASURE_AGAIN = "measure again without other traffic, or leave the point out"
_HALF = 0.5
_LEAST = 2  # what a step takes, and what each sequence adds: two unknowns
# With constants fitted on the other configurations, and the first and the last level of each of the 8 published ones as
# probes, 80 % of the 36 levels between them were within these (benchmarks/planner_accuracy/two_probes.py).
BETWEEN_PROBES_THROUGHPUT = 0.06
BETWEEN_PROBES_LATENCY = 0.10
_LATENCY_WEIGHT = 0.5  # a p90 of few requests is the noisier of the two
_PRIOR = 0.02  # keeps a factor that the points don't determine near the other
_STEP = 0.02
_ROUNDS = 40
_FARTHEST_LOG = math.log(10_000)
_Pair = tuple[float, float]


def measured_copy(loaded: LoadedSpec, plan: Plan) -> Copy:
    """Return the copy that a locked plan deploys, without any calibration.

    Raises:
        PlanError: SEA110 when the catalog has lost the instance type, SEA210 when its accelerator's numbers.
    """
    instance = find_instance(plan.instance_type.value)
    hardware = hardware_of(neuron.in_cores(instance), plan.quantization) if instance is not None else None
    if instance is None or hardware is None:
        rule = "SEA110" if instance is None else "SEA210"
        message = (
            f"{plan.instance_type.value} can't be predicted: its accelerator's specifications are not in the catalog"
        )
        raise PlanError.of(rule, message, hint="plan another instance type", where=loaded.path.as_posix())
    workload, drafted = loaded.endpoint.workload, loaded.endpoint.serving.overrides.speculative_decoding
    family: engines.Family = "tgi" if plan.engine.value == "tgi" else "lmi"
    architecture, degree = read_architecture(loaded), plan.tensor_parallel_degree.value
    extra = {} if neuron.is_neuron(instance) else loaded.endpoint.serving.overrides.extra
    groups = groups_at(extra, architecture, degree)
    return place_copy(
        architecture,
        hardware,
        with_options(find_engine("neuron" if neuron.is_neuron(instance) else family, plan.engine_version.value), extra),
        plan.memory,
        degree=degree,
        quantization=plan.quantization,
        input_tokens=round(loaded.lengths.input.mean),
        output_tokens=workload.output_tokens,
        batched_tokens=plan.max_num_batched_tokens.value,
        max_num_seqs=plan.max_num_seqs.value,
        speculation=speculation_of(drafted, architecture),
        prefix_hit_rate=workload.prefix_hit_rate,
        max_model_len=plan.max_model_len.value,
        lengths=loaded.lengths,
        expert_parallel_degree=plan.expert_parallel_degree.value if plan.expert_parallel_degree else groups.experts,
        attention_data_parallel_degree=groups.attention,
        shared=shared_prefix(workload, loaded.lengths),
        adapters=loaded.endpoint.serving.overrides.lora,
    )


def calibrate_endpoint(
    loaded: LoadedSpec, plan: Plan, points: Sequence[MeasuredPoint], source: CalibrationSource
) -> EndpointCalibration:
    """Fit the calibration of the deployment that was measured, by at least one point of one copy."""
    copy, protocol = measured_copy(loaded, plan), trial_protocol(loaded.endpoint.trial)
    factors = fit_calibration(copy, points, protocol)
    entry = EndpointCalibration(
        model=plan.model_name,
        instance_type=plan.instance_type.value,
        tensor_parallel_degree=plan.tensor_parallel_degree.value,
        engine=plan.engine.value,
        engine_version=plan.engine_version.value,
        quantization=plan.quantization,
        input_tokens=loaded.endpoint.workload.input_tokens,
        output_tokens=loaded.endpoint.workload.output_tokens,
        fixed=_rounded(factors.fixed),
        marginal=_rounded(factors.marginal),
        points=tuple(sorted(points, key=lambda point: point.concurrency)),
        throughput_error=BETWEEN_PROBES_THROUGHPUT,
        latency_error=BETWEEN_PROBES_LATENCY,
        source=source,
    )
    # Widen the band to what the probes themselves are off by. One concurrency says nothing of the others, and
    # between the probes of a local engine nothing is known: there the assumption stays.
    compared = compare_points(
        replace(copy, calibration=entry.calibration), entry.points, trial_protocol(loaded.endpoint.trial)
    )
    throughputs = [one.throughput_error for one in compared]
    latencies = [one.latency_error for one in compared if one.latency_error is not None]
    # A fit that is off by so much at its own points would be worse than the constants that it replaces.
    if max([*throughputs, *latencies]) > _FARTHEST_PROBE:
        message = "no calibration fits these points: at least one is off by more than a factor of 2"
        hint = "measure one copy of this deployment again"
        raise SpecError.of("SEA408", message, hint=hint, where=entry.source.file)
    least = (BETWEEN_PROBES_THROUGHPUT, BETWEEN_PROBES_LATENCY)
    if len({point.concurrency for point in entry.points}) == 1 or entry.source.engine_note:
        least = (ASSUMED, ASSUMED)
    return entry.model_copy(
        update={
            "throughput_error": round(max([least[0], *throughputs]), _DIGITS),
            "latency_error": round(max([least[1], *latencies]), _DIGITS),
        }
    )


def _rounded(factor: float) -> float:
    return float(f"{factor:.{_DIGITS}g}")


def write_calibration(entry: EndpointCalibration, spec_path: Path, environment: str) -> Path:
    """Write the calibration of one environment beside the spec; those of other environments stay.

    Raises:
        SpecError: SEA405 when there is a file that can't be read or replaced: it is left alone.
    """
    path = calibration_path(spec_path)
    with changing_file(path, "SEA405"):
        every = every_calibration(spec_path) | {environment: entry.model_dump(mode="json")}
        document = {"schema_version": SCHEMA_VERSION, "environments": every}
        replace_file(path, json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "SEA405")
    return path


def read_calibrated(loaded: LoadedSpec, choice: EngineChoice) -> tuple[Calibrated | None, tuple[str, ...]]:
    """Return the endpoint's calibration, and a warning when there is one that does not fit.

    Raises:
        SpecError: SEA406 when the calibration's entry is malformed.
    """
    document = loaded.calibration
    entry = None if document is None else read_calibration(document, calibration_path(loaded.path).as_posix())
    if entry is None:
        return None, ()
    quantization = read_architecture(loaded).quantization(loaded.endpoint.serving.overrides.quantization)
    differences = (
        (entry.source.engine_note, f"a local engine ({entry.source.engine_note})"),
        (entry.engine != choice.engine.value, entry.engine),
        (entry.quantization != quantization, f"{entry.quantization or '16-bit'} weights"),
        (entry.model != model_name(loaded.endpoint), entry.model),
    )
    if misfits := [words for differs, words in differences if differs]:
        return None, (f"Calibration ignored: it was measured with {', '.join(misfits)}.",)
    latency = ASSUMED if entry.latency_error is None else entry.latency_error
    because = (
        f"Calibrated with {counted(len(entry.points), 'point')} measured on {entry.instance_type} with degree "
        f"{entry.tensor_parallel_degree}, {entry.engine} {entry.engine_version} and {entry.input_tokens:,} + "
        f"{entry.output_tokens:,} tokens."
    )
    band = Band(
        throughput=entry.throughput_error,
        latency=latency,
        measured=entry.throughput_error < ASSUMED,
        because=because,
        points=len(entry.points),
    )
    # What was measured needs no probe (`Demand.is_measured`).
    levels = frozenset(point.concurrency for point in entry.points)
    return Calibrated(entry.instance_type, entry.tensor_parallel_degree, entry.calibration, band, levels), ()


def model_name(endpoint: EndpointSpec) -> str:
    """Return the model as it is shown and addressed."""
    return endpoint.model.hub_id or endpoint.model.jumpstart_id or endpoint.name


def calibration_warnings(calibrated: Calibrated | None, instance_type: str, degree: int) -> tuple[str, ...]:
    """Say when the chosen deployment is not the one that was calibrated."""
    if calibrated is None or calibrated.holds_for(instance_type, degree):
        return ()
    measured = f"{calibrated.instance_type} with degree {calibrated.degree}"
    return (f"The calibration applies to {measured} only; {instance_type} with degree {degree} is not calibrated.",)


def read_points(text: str, where: str) -> tuple[MeasuredPoint, ...]:
    """Read a CSV table: `concurrency`, `output_tok_s` and, if wanted, `ms_per_token` (p90); others are passed over.

    Raises:
        SpecError: SEA407 with every cell that is wrong.
    """
    table = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=None))
    try:
        rows, names = [(table.line_num, row) for row in table], tuple(table.fieldnames or ())
    except csv.Error as error:
        raise SpecError.of("SEA407", f"the table can't be read: {error}", where=where) from error
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        hint = f"the header must have {', '.join((*_COLUMNS, _LATENCY))}"
        raise SpecError.of("SEA407", f"the column {' and '.join(missing)} is missing", hint=hint, where=where)
    problems: list[Finding] = []
    points = [_point(row, f"{where}:{line}", problems) for line, row in rows]
    if problems:
        raise SpecError(problems)
    return usable([point for point in points if point is not None], where)


def _point(row: dict[str, str], where: str, problems: list[Finding]) -> MeasuredPoint | None:
    before = len(problems)
    concurrency = _number(row, "concurrency", where, problems)
    throughput = _number(row, "output_tok_s", where, problems)
    given = (row.get(_LATENCY) or "").strip()
    latency = _number(row, _LATENCY, where, problems) if given else None
    if concurrency is not None and (concurrency != int(concurrency) or concurrency > MOST_IN_FLIGHT):
        message = f"{concurrency:g} is not a whole number up to {MOST_IN_FLIGHT:,}"
        problems.append(Finding("SEA407", Place.at(where, "concurrency"), message))
    if len(problems) > before or concurrency is None or throughput is None:
        return None
    return MeasuredPoint(concurrency=int(concurrency), output_tok_s=throughput, ms_per_token_p90=latency)


def _number(row: dict[str, str], name: str, where: str, problems: list[Finding]) -> float | None:
    text = (row.get(name) or "").strip()
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if 0 < value < float("inf"):
        return value
    problems.append(Finding("SEA407", Place.at(where, name), f"{text[:40]!r} is not a number above 0"))
    return None


def usable(points: Sequence[MeasuredPoint], where: str) -> tuple[MeasuredPoint, ...]:
    """Check that points describe one deployment, and sort them.

    Raises:
        SpecError: SEA408 when there is none, or when two points of one concurrency or of growing load contradict each
            other: a copy that gives less than half of what it gave with less load was not in a steady state.
    """
    ordered = tuple(sorted(points, key=lambda point: (point.concurrency, point.output_tok_s)))
    contradictions: list[str] = []
    for low, high in pairwise(ordered):
        if low.concurrency == high.concurrency and high.output_tok_s > low.output_tok_s / _HALF:
            contradictions.append(
                f"two throughputs at concurrency {low.concurrency}: {low.output_tok_s:,g} and {high.output_tok_s:,g} "
                f"tok/s"
            )
        elif high.output_tok_s < low.output_tok_s * _HALF:
            contradictions.append(
                f"{high.output_tok_s:,g} tok/s at concurrency {high.concurrency} is less than half of "
                f"{low.output_tok_s:,g} tok/s at {low.concurrency}"
            )
    problems = [Finding("SEA408", Place.at(where), message, _MEASURE_AGAIN) for message in contradictions]
    if not ordered:
        hint = "measure at concurrency 1 and at the batch limit"
        problems = [Finding("SEA408", Place.at(where), "no points to calibrate with", hint)]
    if problems:
        raise SpecError(problems)
    return ordered


def check_trial(trial: tuple[str, str, int, int], loaded: LoadedSpec, where: str) -> None:
    """Check that a trial measured this endpoint, with requests of these lengths.

    Raises:
        SpecError: SEA408 with everything in which they differ.
    """
    workload = loaded.endpoint.workload
    expected = (loaded.endpoint.name, loaded.environment.name, workload.input_tokens, workload.output_tokens)
    named = ("endpoint", "environment", "input_tokens", "output_tokens")
    hint = "use the result of a trial of the current spec"
    problems = [
        Finding("SEA408", Place.at(where, name), f"the trial measured {was}, but the spec has {now}", hint)
        for name, was, now in zip(named, trial, expected, strict=True)
        if was != now
    ]
    if problems:
        raise SpecError(problems)


def chosen(points: Sequence[MeasuredPoint], probes: Collection[int] | None, where: str) -> tuple[MeasuredPoint, ...]:
    """Return the points to calibrate with: those of the named concurrencies, else all.

    Raises:
        SpecError: SEA408 when a named concurrency was not measured, or fewer than two are left.
    """
    measured = {point.concurrency for point in points}
    absent = ", ".join(str(level) for level in sorted(set(probes or ()) - measured))
    if absent:
        hint = f"measured: {', '.join(map(str, sorted(measured)))}"
        raise SpecError.of("SEA408", f"concurrency {absent} was not measured", hint=hint, where=where)
    used = tuple(point for point in points if probes is None or point.concurrency in probes)
    if len({point.concurrency for point in used}) < _LEAST:
        message = f"1 concurrency is not enough: {_LEAST} are needed"
        raise SpecError.of("SEA408", message, hint="measure at concurrency 1 and at the batch limit", where=where)
    return used


def points_of_trial(result: TrialResult) -> tuple[MeasuredPoint, ...]:
    """Return what one copy did at each level that is valid and without a failure.

    A level that was cut counts where the interval of its throughput reaches no farther than a calibration is good for
    between its points; its latency doesn't.

    Of a trial beside users' requests none: what users sent meanwhile is part of what the copy did.
    """
    if result.request.manner != "load":
        return ()
    copies = result.live.copy_count or result.request.copy_count
    return tuple(
        MeasuredPoint(
            concurrency=level.concurrency,
            output_tok_s=level.output_tok_s / copies,
            ms_per_token_p90=level.ms_per_token.p90 if level.ms_per_token and not level.cut else None,
        )
        for level in result.levels
        if level.output_tok_s and level.succeeded == level.requests and (level.valid or _is_cut_late(level))
    )


def _is_cut_late(level: LevelResult) -> bool:
    bounds, rate = level.output_tok_s_interval, level.output_tok_s or 0.0
    if level.void is not None or bounds is None or bounds.low is None or bounds.high is None:
        return False
    return max(bounds.high - rate, rate - bounds.low) <= BETWEEN_PROBES_THROUGHPUT * rate


def outlook_of(result: TrialResult, plan: Plan, loaded: LoadedSpec) -> Outlook:
    """Fit a calibration to the trial's levels, without writing it."""
    where = "trial result"
    try:
        points = chosen(usable(points_of_trial(result), where), None, where)
        source = CalibrationSource(file=where, digest="", engine_note=result.engine_note)
        entry = calibrate_endpoint(loaded, plan, points, source)
        return outlook_of_entry(entry, points, plan, loaded)
    except (PlanError, SpecError) as error:
        return Outlook(entry=None, refused="; ".join(problem.message for problem in error.problems))


def outlook_of_entry(
    entry: EndpointCalibration, points: Sequence[MeasuredPoint], plan: Plan, loaded: LoadedSpec
) -> Outlook:
    """Return what a fitted calibration changes at the measured points."""
    copy, protocol = measured_copy(loaded, plan), trial_protocol(loaded.endpoint.trial)
    after = compare_points(replace(copy, calibration=entry.calibration), points, protocol)
    return Outlook(entry=entry, before=compare_points(copy, points, protocol), after=after)


def with_random_arrivals(result: TrialResult, plan: Plan, loaded: LoadedSpec) -> TrialResult:
    """Add the predicted TTFT at random arrivals of the gate's throughput to a result that measured none.

    Not part of the plan: the rate is known when the trial is over, and locks would grow.
    """
    rate_per_s = gate_rate_per_s(result.request, result.levels)
    if rate_per_s is None or result.random_arrivals is not None:
        return result
    try:
        copy, entry = measured_copy(loaded, plan), read_calibration(loaded.calibration)
    except (PlanError, SpecError):
        return result
    deployed = (plan.instance_type.value, plan.tensor_parallel_degree.value, plan.engine.value, plan.quantization)
    fits = entry and (entry.instance_type, entry.tensor_parallel_degree, entry.engine, entry.quantization) == deployed
    copy = replace(copy, calibration=entry.calibration if entry and fits else copy.calibration)
    each = rate_per_s / (result.live.copy_count or result.request.copy_count)
    if each >= saturation_per_s(copy):  # the queue would grow without end
        return result
    level = Levels(copy, trial_protocol(loaded.endpoint.trial), math.inf).at_rate(each)
    seen = made_of(RandomArrivals, level, rate_per_s=rate_per_s, apart=0.0, source="predicted")
    return replace(result, random_arrivals=seen)


def compare_points(copy: Copy, points: Sequence[MeasuredPoint], protocol: Protocol) -> tuple[Compared, ...]:
    """Predict each measured point."""
    outcomes = ((point, outcome(copy, point.concurrency, protocol)) for point in points)
    return tuple(Compared(point, one.output_tok_s, one.ms_per_token.p90) for point, one in outcomes)


def fit_calibration(copy: Copy, points: Sequence[MeasuredPoint], protocol: Protocol) -> Calibration:
    """Fit both factors, whatever the copy's own are; points of a single concurrency give one common factor."""
    plain = replace(copy, calibration=Calibration())
    # The fit starts at how much slower the deployment is than predicted at its lowest load, for both factors.
    least = min(points, key=lambda point: point.concurrency)
    start = _bounded(math.log(outcome(plain, least.concurrency, protocol).output_tok_s / least.output_tok_s))
    # One concurrency can't separate the two factors: they are one then.
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


def _factors(logs: _Pair, *, common: bool) -> Calibration:
    return Calibration(fixed=math.exp(logs[0]), marginal=math.exp(logs[0] if common else logs[1]))


def _least_squares(residuals: Callable[[_Pair], list[float]], start: _Pair) -> _Pair:
    """Minimize the sum of squares from a starting point; every accepted step lowers it."""
    at, damping = start, 1e-3
    off = residuals(at)
    for _ in range(_ROUNDS):
        first = _slope(residuals((at[0] + _STEP, at[1])), off)
        second = _slope(residuals((at[0], at[1] + _STEP)), off)
        # The two normal equations of a damped step, by Cramer's rule.
        a, b, d = _dot(first, first) + damping, _dot(first, second), _dot(second, second) + damping
        right, below = -_dot(first, off), -_dot(second, off)
        determinant = a * d - b * b
        tried = (
            _bounded(at[0] + (right * d - b * below) / determinant),
            _bounded(at[1] + (a * below - b * right) / determinant),
        )
        there = residuals(tried)
        # Levenberg-Marquardt: less damping after a step that helps, more after one that does not, which is not taken.
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


def _bounded(log: float) -> float:
    return max(-_FARTHEST_LOG, min(_FARTHEST_LOG, log))


def _dot(left: list[float], right: list[float]) -> float:
    return math.fsum(one * other for one, other in zip(left, right, strict=True))


def _squares(values: list[float]) -> float:
    return _dot(values, values)
