"""Results of trials, read from where the command line says they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial_load.documents.result import TrialResult


def read_result(where: str) -> TrialResult:
    """Read a result from a file or an `s3://` URI.

    Raises:
        BenchError: SEA501 when it can't be read or is no result of this release's; as `aws_failures` when AWS
            can't be asked.
    """
    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import fetch_result
    from seatrial_load.cli.files import read_result_file

    if where.startswith("s3://"):
        import boto3

        with aws_failures(where):
            s3 = boto3.client("s3")
        return fetch_result(where, s3)
    return read_result_file(Path(where), hint="give a file or an s3:// URI")
