"""A trial's result as a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.files import read_text, write_whole
from seatrial_base.findings import Place
from seatrial_base.secrets import redacted

if TYPE_CHECKING:
    from seatrial_load.documents.result import TrialResult


def read_result_file(path: Path, *, hint: str = "") -> TrialResult:
    """Read a result from a file; the hint says what else may be given.

    Raises:
        BenchError: SEA501 when it can't be read or is no result of this release's.
    """
    from seatrial_load.documents.result import TrialResult

    where = path.as_posix()
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise BenchError.of("SEA501", f"the result can't be read: {reason}", where=where, hint=hint) from error
    try:
        return TrialResult.from_json(text)
    except BenchError as error:
        raise BenchError(
            replace(problem, place=Place.at(where, problem.field)) for problem in error.problems
        ) from error


def write_result_file(result: TrialResult, path: Path) -> None:
    """Write a result as JSON, over an earlier one.

    Raises:
        BenchError: SEA506 when it can't be written.
    """
    try:
        write_whole(path, f"{redacted(result.to_json())}\n")
    except OSError as error:
        raise BenchError.of("SEA506", f"can't be written: {error.strerror}", where=path.as_posix()) from error
