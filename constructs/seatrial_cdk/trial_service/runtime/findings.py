"""The environment's alarm topic, where people are told of what a scheduled trial found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from seatrial_cdk.trial_service.runtime.store import calling

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_SUBJECT: Final = 100
"""Characters of a subject that Amazon SNS takes: ASCII, one line (API reference, Publish)."""


class Findings(Protocol):
    """Where people are told of findings."""

    def publish(self, subject: str, message: str) -> None:
        """Tell of one finding.

        Raises:
            UnavailableError: It was not taken.
        """


class TopicClient(Protocol):
    """The one call of boto3's SNS client that is made here."""

    def publish(self, *, TopicArn: str, Subject: str, Message: str) -> Mapping[str, object]:  # noqa: N803
        """Publish a message."""


class NoTopic:
    """Where an environment has no schedule: the event alone tells what a trial found."""

    def publish(self, subject: str, message: str) -> None:
        """Tell nobody."""


@dataclass(frozen=True, slots=True)
class TopicFindings:
    """A topic of Amazon SNS."""

    client: TopicClient
    topic_arn: str

    def publish(self, subject: str, message: str) -> None:
        """Publish a finding.

        Raises:
            UnavailableError: It was not taken.
        """
        line = " ".join(subject.encode("ascii", "replace").decode().split())[:LONGEST_SUBJECT]
        with calling(f"publishing to {self.topic_arn}"):
            self.client.publish(TopicArn=self.topic_arn, Subject=line, Message=message)
