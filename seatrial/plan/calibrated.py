"""What measured points of this endpoint say: used for the deployment that they were measured on, and for no other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.plan.words import counted
from seatrial.predict.band import ASSUMED, Band
from seatrial.predict.calibration import read_calibration
from seatrial.spec.calibration import calibration_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.plan.engine import EngineChoice
    from seatrial.predict.calibration import EndpointCalibration
    from seatrial.predict.copy import Calibration
    from seatrial.spec.endpoint import EndpointSpec
    from seatrial.spec.load import LoadedSpec


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration that fits the engine and the quantization of the spec.

    Attributes:
        instance_type: Where the points were measured.
        degree: Accelerators of the copy that was measured.
        calibration: Factors on the constants.
        band: How far it was off.
    """

    instance_type: str
    degree: int
    calibration: Calibration
    band: Band

    def holds_for(self, instance_type: str, degree: int) -> bool:
        """Tell whether a deployment is the one that was measured."""
        return (self.instance_type, self.degree) == (instance_type, degree)


def read_calibrated(loaded: LoadedSpec, choice: EngineChoice) -> tuple[Calibrated | None, tuple[str, ...]]:
    """Return the endpoint's calibration, and a warning when there is one that does not fit.

    Raises:
        SpecError: SEA406 when the calibration's entry is malformed.
    """
    document = loaded.calibration
    found = None if document is None else read_calibration(document, calibration_path(loaded.path).as_posix())
    if found is None:
        return None, ()
    misfits = tuple(_misfits(found, loaded, choice))
    if misfits:
        return None, (f"The calibration is left out: it was measured with {', '.join(misfits)}.",)
    latency = ASSUMED if found.latency_error is None else found.latency_error
    band = Band(
        throughput=found.throughput_error,
        latency=latency,
        measured=found.throughput_error < ASSUMED,
        because=_because(found),
        points=len(found.points),
    )
    return Calibrated(found.instance_type, found.tensor_parallel_degree, found.calibration, band), ()


def _misfits(found: EndpointCalibration, loaded: LoadedSpec, choice: EngineChoice) -> Iterator[str]:
    """Yield what was measured otherwise than the spec asks for."""
    if found.source.engine_note:
        yield f"a local engine ({found.source.engine_note})"
    if found.engine != choice.facts.family:
        yield found.engine
    if found.quantization != loaded.endpoint.serving.overrides.quantization:
        yield f"{found.quantization or '16-bit'} weights"
    if found.model != model_name(loaded.endpoint):
        yield found.model


def model_name(endpoint: EndpointSpec) -> str:
    """Return the model as it is shown and addressed."""
    return endpoint.model.hub_id or endpoint.model.jumpstart_id or endpoint.name


def _because(found: EndpointCalibration) -> str:
    return (
        f"Calibrated by {counted(len(found.points), 'point')} measured on {found.instance_type} with degree "
        f"{found.tensor_parallel_degree}, {found.engine} {found.engine_version} and {found.input_tokens:,} + "
        f"{found.output_tokens:,} tokens."
    )


def calibration_warnings(calibrated: Calibrated | None, instance_type: str, degree: int) -> tuple[str, ...]:
    """Say when the chosen deployment is not the one that was calibrated."""
    if calibrated is None or calibrated.holds_for(instance_type, degree):
        return ()
    measured = f"{calibrated.instance_type} with degree {calibrated.degree}"
    return (f"The calibration holds for {measured} alone; {instance_type} with degree {degree} is not calibrated.",)
