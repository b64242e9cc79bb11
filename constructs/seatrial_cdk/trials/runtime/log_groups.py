"""The function's own log, and the log groups of containers: SageMaker makes them endless, and leaves them behind."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_cdk.trials.runtime.store import calling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mypy_boto3_logs import CloudWatchLogsClient


PREFIX: Final = "/aws/sagemaker"
RETENTION_DAYS: Final = 30


def log(*lines: str) -> None:
    """Write lines into the function's log group."""
    sys.stdout.write("".join(f"{printable(redacted(line))}\n" for line in lines))


class LogGroups(Protocol):
    """The log groups of an account and region."""

    def limit(self, names: Iterable[str]) -> None:
        """Let the events of groups end after a time; those that are not there are left out."""

    def delete(self, names: Iterable[str]) -> None:
        """Delete groups; those that are not there are left out."""


@dataclass(frozen=True, slots=True)
class AwsLogGroups:
    """The log groups of CloudWatch Logs.

    Attributes:
        days: Days after which events of containers end, one of the values that CloudWatch Logs knows.
    """

    client: CloudWatchLogsClient
    days: int = RETENTION_DAYS

    def limit(self, names: Iterable[str]) -> None:
        """Let the events of groups end after the days; those that are not there are left out."""
        for name in names:
            with calling(f"limiting {name}"), _missing_is_fine():
                self.client.put_retention_policy(logGroupName=name, retentionInDays=self.days)

    def delete(self, names: Iterable[str]) -> None:
        """Delete groups; those that are not there are left out."""
        for name in names:
            with calling(f"deleting {name}"), _missing_is_fine():
                self.client.delete_log_group(logGroupName=name)


@contextmanager
def _missing_is_fine() -> Iterator[None]:
    from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

    try:
        yield
    except ClientError as refused:
        if refused.response["Error"]["Code"] != "ResourceNotFoundException":
            raise


def log_groups_of(endpoint_name: str, component: str) -> tuple[str, str]:
    """Return the log groups of an endpoint and its component."""
    return f"{PREFIX}/Endpoints/{endpoint_name}", log_group_name(component)


def log_group_name(component: str) -> str:
    """Return the log group of a component."""
    return f"{PREFIX}/InferenceComponents/{component}"
