"""Writes a file that is kept beside a spec: whole or not at all."""

from __future__ import annotations

import tempfile
from pathlib import Path

from seatrial.errors import SpecError


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
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".seatrial-")
        written = Path(name)
        try:
            with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 (an open descriptor)
                file.write(text)
            written.chmod(0o644)
            written.replace(path)
        finally:
            written.unlink(missing_ok=True)
    except OSError as error:
        hint = "the folder of the spec must be writable"
        message = f"it can't be written: {error.strerror}"
        raise SpecError.of(rule, message, hint=hint, where=path.as_posix()) from error
