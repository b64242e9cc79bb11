"""Reads what trials measured of an endpoint: `chat.calibration.json` beside `chat.yaml`, one entry per environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.errors import SpecError
from seatrial_base.files import read_text
from seatrial_base.nesting import json_document

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Never

SCHEMA_VERSION = "1"
_HINT = "run `seatrial calibrate` again, or delete the file"


def calibration_path(spec_path: Path) -> Path:
    """Return the calibration of a spec: `chat.yaml` has `chat.calibration.json`."""
    return spec_path.with_name(f"{spec_path.stem}.calibration.json")


def calibration_document(spec_path: Path, environment: str) -> dict[str, object] | None:
    """Return the calibration of an endpoint in one environment, or `None` when nothing was calibrated there.

    Args:
        spec_path: The endpoint's YAML file.
        environment: The environment's name; entries of others are not looked at.

    Raises:
        SpecError: SEA405 when the file can't be read, is not JSON, or has another schema.
    """
    entry = every_calibration(spec_path).get(environment)
    if entry is not None and not isinstance(entry, dict):
        _refuse(calibration_path(spec_path), f"the entry {environment} is not a mapping")
    return entry


def every_calibration(spec_path: Path) -> dict[str, object]:
    """Return the entries of all environments; none when nothing was calibrated.

    Raises:
        SpecError: SEA405 when the file can't be read, is not JSON, or has another schema.
    """
    path = calibration_path(spec_path)
    document = _read(path)
    if document is None:
        return {}
    environments = document.get("environments")
    if document.get("schema_version") != SCHEMA_VERSION:
        _refuse(path, f"schema_version is {document.get('schema_version')!r}, not {SCHEMA_VERSION!r}")
    if not isinstance(environments, dict):
        _refuse(path, "environments is not a mapping")
    return environments


def _read(path: Path) -> dict[str, object] | None:
    try:
        document = json_document(read_text(path), parse_constant=_no_number)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _refuse(path, str(error) or type(error).__name__)
    if not isinstance(document, dict):
        _refuse(path, "not a JSON object")
    return document


def _no_number(constant: str) -> Never:
    raise ValueError(f"{constant} is not a JSON number")


def _refuse(path: Path, reason: str) -> Never:
    message = f"the calibration can't be read: {reason}"
    raise SpecError.of("SEA405", message, hint=_HINT, where=path.as_posix())
