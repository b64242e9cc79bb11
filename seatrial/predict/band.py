"""How far a prediction may be off: what left-out measurements say, or an assumption with its reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from seatrial.model import FrozenModel

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Engine
    from seatrial.catalog.instances import Instance
    from seatrial.predict.copy_model import Speculation

FITTED_MODEL = "meta-llama/Llama-2-7b-hf"
FITTED_PROMPTS = (256, 3_840)  # tokens
NEAR = 0.2  # an assumption: a dense model that was not fitted, where engine and accelerator were
ASSUMED = 0.5  # an assumption, not a measurement: nothing was measured outside the fit


class Band(FrozenModel):
    """The band around each predicted value, as a share of it: from value / (1 + share) to value * (1 + share).

    Attributes:
        throughput: Of throughputs.
        latency: Of latencies.
        measured: Whether the shares were measured on left-out points; an assumption when not.
        because: Where they come from, full sentences.
        points: Measured points of this very deployment that the predictions are calibrated with; 0 without any.
        engine_note: How the local or simulated engine announced itself that was calibrated with; empty on AWS.
    """

    throughput: float = Field(ge=0)
    latency: float = Field(ge=0)
    measured: bool
    because: str
    points: int = 0
    engine_note: str = ""


def band_of(
    engine: Engine,
    version: str,
    architecture: Architecture,
    instance: Instance,
    *,
    quantization: str | None = None,
    speculation: Speculation | None = None,
    input_tokens: int = FITTED_PROMPTS[0],
    calibrated: Band | None = None,
) -> Band:
    """Return the band of predictions for an engine and a model on an instance type.

    Args:
        engine: The engine with its constants.
        version: The engine's version, for the words.
        architecture: The model.
        instance: The instance type.
        quantization: Quantization of the weights.
        speculation: Speculative decoding.
        input_tokens: Prompt length of the workload.
        calibrated: The band that points measured on this very deployment gave; it wins over all else.
    """
    if calibrated is not None:
        return calibrated
    constants = engine.performance
    doubts = {
        f"{engine.family} {version}": not engine.fitted,
        f"{instance.accelerator}": instance.accelerator not in constants.fitted_accelerators,
        "mixture of experts": architecture.experts is not None,
        f"{quantization} weights": quantization is not None,
        "speculative decoding": speculation is not None,
        f"prompts outside {FITTED_PROMPTS[0]} to {FITTED_PROMPTS[1]:,} tokens": not _within(input_tokens),
    }
    reasons = [reason for reason, holds in doubts.items() if holds]
    if not reasons and architecture.id != FITTED_MODEL:
        because = (
            f"The constants of {constants.id} were fitted on {FITTED_MODEL} only; ±{NEAR:.0%} is an assumption until "
            f"a trial runs."
        )
        return Band(throughput=NEAR, latency=NEAR, measured=False, because=because)
    if not reasons:
        because = f"80 % of the rows held out of the fit of {constants.id} were predicted within this band."
        return Band(
            throughput=constants.throughput_error, latency=constants.latency_error, measured=True, because=because
        )
    why = f"Constants of {constants.id}, not fitted for: {'; '.join(reasons)}"
    because = f"{why}; ±{ASSUMED:.0%} is an assumption until a trial runs."
    return Band(throughput=ASSUMED, latency=ASSUMED, measured=False, because=because)


def _within(input_tokens: int) -> bool:
    return FITTED_PROMPTS[0] / 2 <= input_tokens <= FITTED_PROMPTS[1] * 1.1
