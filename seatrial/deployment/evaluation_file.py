"""Reads the file of an evaluation set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError, SpecError
from seatrial_base.files import read_file_bytes
from seatrial_load.quality.evaluation_set import MOST_SET_BYTES, RULE, evaluation_set

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_load.quality.evaluation_set import EvaluationSet


def read_evaluation_set(path: Path, *, chat: bool) -> EvaluationSet:
    """Read an evaluation set from its file.

    Args:
        path: The file.
        chat: Whether the schema of the endpoint takes messages.

    Raises:
        SpecError: SEA527, with every bad line, or when the file is missing, unreadable, empty or too large.
    """
    try:
        content = read_file_bytes(path, most_bytes=MOST_SET_BYTES)
    except OSError as unread:
        hint = "name a file of JSON objects, one a line"
        message = f"can't be read: {unread.strerror}"
        raise SpecError.of(RULE, message, where=path.as_posix(), hint=hint) from unread
    try:
        return evaluation_set(content, path.as_posix(), chat=chat)
    except BenchError as wrong:
        raise SpecError(wrong.problems) from wrong
