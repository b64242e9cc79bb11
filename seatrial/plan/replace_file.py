"""Writes a file that is kept beside a spec: whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.errors import SpecError
from seatrial.files import write_whole

if TYPE_CHECKING:
    from pathlib import Path


def replace_file(path: Path, text: str, rule: str) -> None:
    """Write a file so that a reader sees the old one or the new one, whole; what fails leaves nothing behind.

    Args:
        path: The file.
        text: What it shall hold.
        rule: The rule that a failure breaks.

    Raises:
        SpecError: The rule, when the folder is not writable or full.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        hint = "the folder of the spec must be writable"
        message = f"it can't be written: {error.strerror}"
        raise SpecError.of(rule, message, hint=hint, where=path.as_posix()) from error
