"""Checks of the story: a step that did not happen as told ends it, and the message names what failed."""

from __future__ import annotations

from seatrial.errors import LocalError

HINT = "run it again with --verbose; the logs are in .seatrial/demo"


def expect(failure: str, found: object, wanted: object) -> None:
    """Compare what was found with what the story tells.

    Args:
        failure: What is wrong where they differ: `the trial did not pass`.
        found: What was found.
        wanted: What the story tells.

    Raises:
        LocalError: SEA606 with the failure and both values.
    """
    if found != wanted:
        raise failed(f"{failure}: expected {wanted!r}, found {found!r}")


def failed(failure: str) -> LocalError:
    """Return the error of a step that did not happen as told."""
    return LocalError.of("SEA606", failure, hint=HINT)
