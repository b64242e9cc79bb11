"""Which specs of a folder share the instances of another spec's endpoint, and have no stack of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.specs.yaml_source import merge_environment, read_source
from seatrial_base.errors import SeatrialError
from seatrial_base.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_FIELD = "more_models"


def hosts(folder: Path, environment: str) -> Mapping[str, tuple[Path, ...]]:
    """Return the specs that name each guest in `hosting.more_models`, by the guest's file name without its suffix.

    A file that can't be read, or that is wrong, names none here: whoever loads it is told so.

    Args:
        folder: Folder of specs.
        environment: The environment's name.
    """
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.yaml")):
        for guest in dict.fromkeys(_guests(file, environment)):
            found.setdefault(guest, []).append(file)
    return {guest: tuple(files) for guest, files in found.items()}


def _guests(file: Path, environment: str) -> Iterator[str]:
    try:
        if _FIELD not in read_text(file):
            return
        named = merge_environment(read_source(file), environment).value("hosting", _FIELD)
    except (OSError, UnicodeError, SeatrialError):
        return
    if isinstance(named, list):
        yield from (each for each in named if isinstance(each, str))
