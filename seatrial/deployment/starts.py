"""The start of a copy, part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.simulation import StartPart
from seatrial_base import bounds
from seatrial_base.units import gib

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec


def start_parts(
    plan: Plan, loaded: LoadedSpec, *, instance_s: float | None = None, copy_s: float | None = None
) -> tuple[StartPart, ...]:
    """Return what the start of a copy takes, part by part, each with its source.

    Measured seconds replace assumptions: `instance_s` until an instance has its image, `copy_s` from there on.
    """
    size = plan.memory.weights_bytes * plan.tensor_parallel_degree.value
    home, speed = ("the hub", bounds.HUB_BYTES_S) if loaded.endpoint.model.hub_id else ("S3", bounds.S3_BYTES_S)
    once: dict[str, float] = {"instance": bounds.INSTANCE_START_S, "image pull": bounds.IMAGE_PULL_S}
    each: dict[str, float] = {f"weights from {home}, {gib(size)}": size / speed}
    each |= {"weights into accelerators": size / bounds.LOAD_BYTES_S, "engine": bounds.ENGINE_START_S}
    parts: list[StartPart] = []
    for name, given_s, assumed in (("instance", instance_s, once), ("copy", copy_s, each)):
        source = "assumed, slow on purpose" if given_s is None else f"--{name}-start-s"
        for part, seconds in (assumed if given_s is None else {name: given_s}).items():
            parts.append(StartPart(part=part, seconds=round(seconds, 1), further=name == "copy", source=source))
    return tuple(parts)
