"""Keeps the answer of a probe as a calibration of the endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.calibration import CalibrationSource, MeasuredPoint
from seatrial.documents.plan import hardware_words
from seatrial.planner.calibration import calibrate_endpoint, model_name, usable
from seatrial.planner.calibration_outlook import points_of_trial
from seatrial.planner.predict.calibration import read_calibration
from seatrial.specs.spec_files import calibration_path
from seatrial_base.errors import SpecError
from seatrial_base.frozen_model import digest

if TYPE_CHECKING:
    from seatrial.documents.calibration import EndpointCalibration
    from seatrial.probe.answer import ProbeAnswer
    from seatrial.specs.load import LoadedSpec


def refuse_local_engine(note: str, where: str) -> None:
    """Refuse to keep what a local engine answered.

    Args:
        note: How the engine announced itself; empty for a real endpoint.
        where: What was measured, for the message.

    Raises:
        SpecError: SEA615 when there is a note.
    """
    if note:
        message = f"measured on {note}: CPU results can't calibrate a GPU plan"
        raise SpecError.of("SEA615", message, hint="leave out --write, or probe on AWS", where=where)


def calibration_of(loaded: LoadedSpec, answer: ProbeAnswer) -> EndpointCalibration:
    """Return the calibration that a probe gives, with the points that were measured of the same deployment before.

    Args:
        loaded: The endpoint's own spec.
        answer: What was measured.

    Raises:
        SpecError: SEA408 when the level has no valid answer, or contradicts the points before; SEA615 when a local
            engine was measured.
    """
    pinned, where = answer.pinned, f"probe of {answer.pinned.probed.hardware}"
    refuse_local_engine(answer.result.engine_note, where)
    text = answer.result.to_json()
    found = usable(points_of_trial(answer.result), where)
    source = CalibrationSource(file=f"{pinned.loaded.endpoint.name}.result.json", digest=digest(text))
    fresh = calibrate_endpoint(pinned.loaded, pinned.plan, found, source)
    fresh = fresh.model_copy(update={"model": model_name(loaded.endpoint)})
    points = usable((*_former(loaded, fresh), *found), where)
    if points == found:
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
