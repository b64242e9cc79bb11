"""What a local engine says of its weights in its log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol, TypedDict, cast

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import TrialTarget


_WEIGHTS: Final = re.compile(r"^weights: .*; (\d+) bytes")


class LoggedLine(TypedDict, total=False):
    """One line of a log."""

    message: str


class LoggedLines(TypedDict, total=False):
    """What CloudWatch Logs answers."""

    events: Sequence[LoggedLine]


class ContainerLogs(Protocol):
    """What is asked of CloudWatch Logs."""

    def filter_log_events(self, *, logGroupName: str) -> LoggedLines:  # noqa: N803 (boto3's name)
        """Return the lines of a group."""


def region_logs(region: str) -> ContainerLogs:
    """Return CloudWatch Logs of a region."""
    import boto3  # noqa: PLC0415 (costs a second; only needed where a local engine serves)

    return cast("ContainerLogs", boto3.client("logs", region_name=region))


def local_weight_bytes(logs: ContainerLogs, target: TrialTarget) -> int | None:
    """Return the size of the file that a local engine serves; None where its log doesn't tell it (yet).

    Args:
        logs: CloudWatch Logs of the embedded AWS.
        target: The endpoint.
    """
    kind, name = ("Endpoints", target.endpoint_name)
    if target.inference_component is not None:
        kind, name = ("InferenceComponents", target.inference_component)
    try:
        lines = logs.filter_log_events(logGroupName=f"/aws/sagemaker/{kind}/{name}").get("events", ())
    except ClientError:
        return None
    found = (_WEIGHTS.search(line.get("message", "")) for line in lines)
    return next((int(match[1]) for match in found if match is not None), None)
