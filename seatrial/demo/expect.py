"""Checks of the story: a step that did not happen as told ends it."""

from __future__ import annotations

from seatrial.errors import LocalError


def expect(what: str, found: object, wanted: object) -> None:
    """Check one thing that the story tells.

    Raises:
        LocalError: SEA606 with what was found instead.
    """
    if found != wanted:
        message = f"{what}: expected {wanted!r}, found {found!r}"
        raise LocalError.of("SEA606", message, hint="run it again with --verbose; the logs are in .seatrial/demo")
