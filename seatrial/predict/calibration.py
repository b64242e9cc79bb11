"""What was measured on one endpoint and what it says of the model's constants: the entry of a calibration file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, ValidationError

from seatrial.errors import Problem, SpecError
from seatrial.model import FrozenModel
from seatrial.predict.copy import Calibration

if TYPE_CHECKING:
    from collections.abc import Mapping

Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0)]


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


class Source(FrozenModel):
    """Where the points were read.

    Attributes:
        file: Name of the trial's result or of the CSV, without its folder.
        digest: Of the file's text.
        engine_note: How a simulated or local engine announced itself; empty for a real endpoint and for a CSV.
    """

    file: str
    digest: str
    engine_note: str = ""


class EndpointCalibration(FrozenModel):
    """The entry of one environment in `SPEC.calibration.json`.

    It holds for the deployment that was measured: another instance type, degree, engine, quantization or model has
    other constants.

    Attributes:
        model: The model as it is addressed, as in the plan.
        engine: The engine's family, as in the plan.
        input_tokens: Prompt length of the measured requests.
        output_tokens: Generated length of the measured requests.
        fixed: Factor on what a step takes whatever the batch.
        marginal: Factor on what each sequence and each token adds.
        points: What was measured, per copy, by concurrency.
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
    source: Source

    @property
    def calibration(self) -> Calibration:
        """The factors, as the performance model takes them."""
        return Calibration(fixed=self.fixed, marginal=self.marginal)


def read_calibration(document: Mapping[str, object] | None, where: str = "calibration") -> EndpointCalibration | None:
    """Read an environment's entry of a calibration file; `None` when there is none.

    Args:
        document: The entry.
        where: The file, for messages.

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
            Problem(where, ".".join(map(str, found["loc"])), "SEA406", found["msg"], hint)
            for found in error.errors(include_url=False)
        ) from error
