"""How far a prediction may be off, and what must be said about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.engines import Engine
    from seatrial.catalog.instances import Instance

ASSUMED = 0.5  # an assumption, not a measurement: nothing was measured outside the fit


def predict_uncertainty(
    engine: Engine, version: str, architecture: Architecture, instance: Instance, quantization: str | None
) -> tuple[float, str | None]:
    """Return the expected error as a share of each predicted value, and a warning where it is an assumption."""
    constants = engine.performance
    reasons = []
    if not engine.fitted:
        reasons.append(f"no performance constants are fitted for {engine.family} {version}")
    if instance.accelerator not in constants.fitted_accelerators:
        reasons.append(f"none are fitted on {instance.accelerator}")
    if architecture.experts is not None:
        reasons.append("the kernels of a mixture of experts are not modelled")
    if quantization is not None:
        reasons.append(f"none are fitted for {quantization} weights")
    if not reasons:
        return constants.uncertainty, None
    why = "; ".join(reasons)
    warning = f"Predictions use the constants of {constants.id}, because {why}"
    return ASSUMED, f"{warning}; ±{ASSUMED:.0%} is an assumption until a trial runs."
