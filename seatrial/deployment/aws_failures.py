"""What stops a call to AWS, as an error that says how to mend it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial_base.errors import BenchError
from seatrial_load.aws.errors import aws_problem

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def aws_failures(where: str) -> Iterator[None]:
    """Turn what boto3 raises within into an error with a rule; `where` names what was asked for.

    An answer that says something about what was asked for, as that it is not there, is raised as it is.

    Raises:
        BenchError: SEA503 when credentials are missing, have expired or are refused, SEA504 when AWS can't be reached,
            SEA511 when a permission is missing, SEA512 when a value of the AWS configuration can't be used, SEA501 when
            the name that is asked for can't be one.
        ClientError: Any other answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (heavy, and not every command calls AWS)

    try:
        yield
    except (BotoCoreError, ClientError, OSError, ValueError) as error:
        problem = aws_problem(error, where=where)
        if problem is None:
            raise
        raise BenchError([problem]) from error
