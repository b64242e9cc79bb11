"""The version of the fields of specs and environments; a file that does not say it has the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from seatrial.specs.yaml_source import YamlSource


SPEC_SCHEMA = 1
UPGRADE = "a newer release of Seatrial wrote it: upgrade Seatrial"
_LONGEST = 9  # digits of a version


def compared(version: object, known: str) -> int | None:
    """Return a version less the one that is known: below 0 for an older, above for a newer; `None` for no version."""
    text = str(version)
    return int(text) - int(known) if text.isdecimal() and len(text) <= _LONGEST else None


def newer_schema(source: YamlSource) -> Finding | None:
    """Return the one problem of a file that a newer release wrote; `None` when this release reads it.

    Whatever else seems wrong with such a file may be right in its own schema.
    """
    version = source.data.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version <= SPEC_SCHEMA:
        return None
    where = f"{source.path}:{source.lines[('schema_version',)]}"
    message = f"schema_version is {version}; this release reads {SPEC_SCHEMA}"
    return Finding("SEA122", Place.at(where, "schema_version"), message, UPGRADE)
