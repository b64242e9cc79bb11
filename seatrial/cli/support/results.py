"""Results of trials, read from where the command line says they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_base.findings import Place

if TYPE_CHECKING:
    from seatrial_load.model.result import TrialResult


def read_result(where: str) -> TrialResult:
    """Read a result from a file or an `s3://` URI.

    Raises:
        BenchError: SEA501 when it can't be read or is no result of this release's; as `aws_failures` when AWS
            can't be asked.
    """
    from seatrial.account.reader import aws_failures
    from seatrial.account.stacks import fetch_result
    from seatrial_base.files import read_text
    from seatrial_load.model.result import TrialResult

    if where.startswith("s3://"):
        import boto3

        with aws_failures(where):
            s3 = boto3.client("s3")
        return fetch_result(where, s3)
    try:
        text = read_text(Path(where))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        message = f"the result can't be read: {reason}"
        raise BenchError.of("SEA501", message, where=where, hint="give a file or an s3:// URI") from error
    try:
        return TrialResult.from_json(text)
    except BenchError as error:
        raise BenchError(
            replace(problem, place=Place.at(where, problem.field)) for problem in error.problems
        ) from error
