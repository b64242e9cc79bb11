"""A calibration: measured points of an endpoint, the factors on the model's constants, and what they would change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, ValidationError

from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.frozen_model import FrozenModel
from seatrial_load.documents.result import StartTime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.prediction import Band

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What measured points of an endpoint say about the constants: factors on two kinds of time.

    Attributes:
        fixed: On what a step takes whatever the batch: the host's launches, reading weights, latencies.
        marginal: On what each sequence and each token adds: KV cache, arithmetic, server work, bytes over the link.
    """

    fixed: float = 1.0
    marginal: float = 1.0


UNCALIBRATED: Final = Calibration()


class MeasuredPoint(FrozenModel):
    """What one copy did at one concurrency.

    Attributes:
        concurrency: Requests in flight on the copy.
        output_tok_s: Output tokens per second of the copy.
        ms_per_token_p90: 90th percentile of end-to-end latency over output tokens; `None` when it wasn't measured.
    """

    concurrency: Count
    output_tok_s: Positive
    ms_per_token_p90: Positive | None = None


class CalibrationSource(FrozenModel):
    """Where the points were read.

    Attributes:
        file: Name of the trial's result or of the CSV, without its folder.
        engine_note: How a simulated or local engine announced itself; empty for a real endpoint and for a CSV.
        start: How long a copy took to start, where the result of a trial says it.
    """

    file: str
    digest: str
    engine_note: str = ""
    start: StartTime | None = None


class EndpointCalibration(FrozenModel):
    """The entry of one environment in `SPEC.calibration.json`.

    It holds for the deployment that was measured: another instance type, degree, engine, quantization or model has
    other constants.

    Attributes:
        model: The model as it is addressed, as in the plan.
        fixed: Factor on what a step takes whatever the batch.
        marginal: Factor on what each sequence and each token adds.
        throughput_error: Band of the throughputs between the points, as a share.
        latency_error: Band of the latencies between the points; `None` when no latency was measured.
    """

    instance_type: str
    tensor_parallel_degree: Count
    engine: str
    engine_version: str
    quantization: str | None
    model: str
    input_tokens: Count
    output_tokens: Count
    fixed: Positive
    marginal: Positive
    points: Annotated[tuple[MeasuredPoint, ...], Field(min_length=1)]
    throughput_error: Share
    latency_error: Share | None
    source: CalibrationSource

    @property
    def calibration(self) -> Calibration:
        """The factors, as the performance model takes them."""
        return Calibration(self.fixed, self.marginal)


def read_calibration(document: Mapping[str, object] | None, where: str = "calibration") -> EndpointCalibration | None:
    """Read an environment's entry of a calibration file; `None` when there is none.

    Raises:
        SpecError: SEA406, with every field that is wrong.
    """
    if document is None:
        return None
    try:
        return EndpointCalibration.model_validate_json(json.dumps(document, default=dict), strict=True)
    except ValidationError as error:
        hint = "run `seatrial calibrate` again, or remove the environment's entry"
        raise SpecError(
            Finding("SEA406", Place.at(where, ".".join(map(str, problem["loc"]))), problem["msg"], hint)
            for problem in error.errors(include_url=False)
        ) from error


@dataclass(frozen=True, slots=True)
class Compared:
    """A measured point with its prediction."""

    measured: MeasuredPoint
    output_tok_s: float
    ms_per_token: float

    @property
    def throughput_error(self) -> float:
        """How far the predicted throughput is off, as a share of the measured one."""
        return abs(self.output_tok_s / self.measured.output_tok_s - 1)

    @property
    def latency_error(self) -> float | None:
        """How far the predicted p90 is off; `None` when none was measured."""
        measured = self.measured.ms_per_token_p90
        return None if measured is None else abs(self.ms_per_token / measured - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a calibration by the trial's levels would change.

    Attributes:
        entry: The calibration; None when the levels can't give one.
        before: Each level with the prediction without it.
        after: Each level with the prediction by it.
        refused: Why there is none; empty when there is one.
    """

    entry: EndpointCalibration | None
    before: tuple[Compared, ...] = ()
    after: tuple[Compared, ...] = ()
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration that fits the engine and the quantization of the spec.

    Attributes:
        degree: Accelerators of the copy that was measured.
        band: How far it was off.
        levels: Requests in flight per copy at which it was measured.
    """

    instance_type: str
    degree: int
    calibration: Calibration
    band: Band
    levels: frozenset[int] = frozenset()

    def holds_for(self, instance_type: str, degree: int) -> bool:
        """Return whether a deployment is the one that was measured."""
        return (self.instance_type, self.degree) == (instance_type, degree)
