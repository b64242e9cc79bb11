"""Calibrates one deployment of an endpoint: the one that its lock describes, and that was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.catalog import engines, instances
from seatrial.errors import PlanError, SpecError
from seatrial.plan.levels import trial_protocol
from seatrial.plan.reading import read_architecture
from seatrial.plan.replace_file import replace_file
from seatrial.predict.band import ASSUMED
from seatrial.predict.calibration import EndpointCalibration
from seatrial.predict.copy import Speculation
from seatrial.predict.place import hardware_of, place
from seatrial.predict.probe import BETWEEN_PROBES_LATENCY, BETWEEN_PROBES_THROUGHPUT, compare, fit_calibration
from seatrial.spec.calibration import SCHEMA_VERSION, calibration_path, every_calibration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seatrial.plan.document import Plan
    from seatrial.predict.calibration import MeasuredPoint, Source
    from seatrial.predict.copy import Copy
    from seatrial.spec.load import LoadedSpec

_DIGITS = 4
_FARTHEST = 1.0  # of an error at a probe, as a share


def measured_copy(loaded: LoadedSpec, plan: Plan) -> Copy:
    """Return the copy that a locked plan deploys, without any calibration.

    Raises:
        PlanError: SEA110 when the catalog has lost the instance type, SEA210 when its accelerator's numbers.
    """
    instance = instances.find(plan.instance_type.value)
    hardware = hardware_of(instance, plan.quantization) if instance is not None else None
    if instance is None or hardware is None:
        rule = "SEA110" if instance is None else "SEA210"
        message = f"{plan.instance_type.value} can't be predicted: the catalog lacks its accelerator's numbers"
        raise PlanError.of(rule, message, hint="plan another instance type", where=loaded.path.as_posix())
    workload, drafted = loaded.endpoint.workload, loaded.endpoint.serving.overrides.speculative_decoding
    family = plan.engine.value
    return place(
        read_architecture(loaded),
        hardware,
        engines.find("tgi" if family == "tgi" else "lmi", plan.engine_version.value),
        plan.memory,
        degree=plan.tensor_parallel_degree.value,
        quantization=plan.quantization,
        input_tokens=workload.input_tokens,
        output_tokens=workload.output_tokens,
        batched_tokens=plan.max_num_batched_tokens.value,
        max_num_seqs=plan.max_num_seqs.value,
        speculation=Speculation(drafted.draft_tokens, drafted.acceptance_rate, drafted.draft_cost) if drafted else None,
    )


def calibrate(loaded: LoadedSpec, plan: Plan, points: Sequence[MeasuredPoint], source: Source) -> EndpointCalibration:
    """Fit the calibration of the deployment that was measured.

    Args:
        loaded: The spec in its environment.
        plan: The locked plan, which was deployed.
        points: What was measured of one copy; at least one.
        source: Where the points were read.
    """
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
    return _honest(entry, copy, loaded)


def _honest(entry: EndpointCalibration, copy: Copy, loaded: LoadedSpec) -> EndpointCalibration:
    """Widen the band to what the probes themselves are off by.

    One concurrency tells nothing of the others, and between the probes of a local engine nothing is known: there the
    assumption stays.
    """
    found = compare(replace(copy, calibration=entry.calibration), entry.points, trial_protocol(loaded.endpoint.trial))
    throughputs = [one.throughput_error for one in found]
    latencies = [one.latency_error for one in found if one.latency_error is not None]
    if max([*throughputs, *latencies]) > _FARTHEST:
        message = "no calibration follows these points: one of them is predicted worse than twice or half"
        hint = "are they of one copy, and of this deployment? measure again"
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
    every = every_calibration(spec_path) | {environment: entry.model_dump(mode="json")}
    document = {"schema_version": SCHEMA_VERSION, "environments": every}
    replace_file(path, json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "SEA405")
    return path
