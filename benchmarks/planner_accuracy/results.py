"""What the results of left-out rows were made from, and when: `results.json`, which `left_out` writes.

The tests hold it against the constants, tables and rows of today: results of other ones are out of date.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.questions import FOLDER, MEASURED

if TYPE_CHECKING:
    from pathlib import Path

RESULTS = FOLDER / "results.json"
_CATALOG = FOLDER.parents[1] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data"
_DIGITS = 12  # of a digest


@dataclass(frozen=True, slots=True)
class Origin:
    """What results were made from: digests of the first 12 hexadecimal digits.

    Attributes:
        constants: Of the engines' fitted constants.
        operators: Of the table of measured kernels.
        rows: Of the measured rows with requests in flight.
    """

    constants: str
    operators: str
    rows: str


def origin_of_today() -> Origin:
    """Return what results would be made from if they were made now."""
    engines = json.loads((_CATALOG / "engines.json").read_text(encoding="utf-8"))
    constants = json.dumps(engines["performance"], sort_keys=True).encode()
    rows = b"".join(path.read_bytes() for path in sorted(MEASURED.glob("*.csv")))
    return Origin(_digest(constants), _digest((_CATALOG / "operators.json").read_bytes()), _digest(rows))


def write_origin(made_on: str, path: Path = RESULTS) -> None:
    """Write what results are made from today.

    Args:
        made_on: The day, ISO 8601.
        path: The file.
    """
    path.write_text(json.dumps({"made_on": made_on, **asdict(origin_of_today())}, indent=2) + "\n", encoding="utf-8")


def read_origin(path: Path = RESULTS) -> tuple[str, Origin]:
    """Return the day on which results were made, and what from."""
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found.pop("made_on"), Origin(**found)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]
