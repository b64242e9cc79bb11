"""Timeouts of a copy: the download of its weights, and its start."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision
from seatrial_base.bounds import ENGINE_START_S, HUB_BYTES_S, LOAD_BYTES_S, LONGEST_START_S, S3_BYTES_S
from seatrial_base.units import gib

if TYPE_CHECKING:
    from seatrial.specs.endpoint import ModelSpec


LONGEST_S = LONGEST_START_S
SHORTEST_S = 600
_FROM_HUB = "download from the hub"


def download_timeout(model: ModelSpec, weights_bytes: int) -> Decision[int]:
    """Return the time that the service may take to bring the model's artifact to the instance."""
    if model.hub_id is not None:
        reason = "The minimum: the container downloads the weights itself while it starts."
        return Decision(value=SHORTEST_S, because=reason)
    wanted_s = weights_bytes / S3_BYTES_S * 2
    speed = f"{S3_BYTES_S / 1e6:,.0f} MB/s"
    reason = f"Twice the time for {gib(weights_bytes)} of weights from S3 at {speed} (assumed)"
    return _bounded(wanted_s, reason)


def startup_timeout_s(
    model: ModelSpec, weights_bytes: int, *, compiles: bool = False, build_s: float = 0
) -> Decision[int]:
    """Return the time that the container may take until it answers health checks.

    Args:
        compiles: The engine may compile the model while it starts (AWS Neuron), for as long as the service waits.
        build_s: What TensorRT-LLM may take to build its engine while the container starts, in seconds.
    """
    # Nobody knows how long a model compiles, and a longer timeout than the service takes is refused.
    if compiles:
        reason = f"SageMaker's maximum, {LONGEST_S:,} s: the engine may compile the model while it starts."
        return Decision(value=LONGEST_S, because=reason)
    wanted_s = ENGINE_START_S + weights_bytes / LOAD_BYTES_S
    parts = f"{ENGINE_START_S} s engine start, loading {gib(weights_bytes)} at {LOAD_BYTES_S / 1e6:,.0f} MB/s"
    if model.hub_id is not None:
        wanted_s += weights_bytes / HUB_BYTES_S
        parts += f", {_FROM_HUB} at {HUB_BYTES_S / 1e6:,.0f} MB/s"
    if build_s:
        wanted_s += build_s
        parts += f", building the TensorRT-LLM engine in {build_s:,.0f} s"
    return _bounded(wanted_s, f"Assumed: {parts}")


def _bounded(wanted_s: float, reason: str) -> Decision[int]:
    rounded = max(SHORTEST_S, math.ceil(wanted_s / 60) * 60)
    if rounded > LONGEST_S:
        because = f"{reason}: {rounded:,} s, above SageMaker's maximum of {LONGEST_S:,} s."
        return Decision(value=LONGEST_S, because=because)
    return Decision(value=rounded, because=f"{reason}; at least {SHORTEST_S} s.")


def timeout_warnings(*timeouts: Decision[int]) -> tuple[str, ...]:
    """Warn where the service's bound may be too short."""
    at_bound = [timeout.because for timeout in timeouts if timeout.value == LONGEST_S]
    remedy = ": stage the weights in S3, whose download has a timeout of its own (`seatrial stage`)."
    return tuple(f"{because} The start may time out{remedy if _FROM_HUB in because else '.'}" for because in at_bound)
