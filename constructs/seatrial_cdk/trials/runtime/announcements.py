"""Announcements of a trial: the event that it has ended, and notices of a scheduled one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_cdk.trials.runtime.attributes import headline
from seatrial_cdk.trials.runtime.store import UnavailableError, calling

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_sns import SNSClient

    from seatrial_cdk.trials.runtime.properties import TrialProperties
    from seatrial_load.documents.result import TrialResult


SOURCE: Final = "seatrial"
DETAIL_TYPE: Final = "Sea trial finished"

Detail = dict[str, str | float | None]
LONGEST_SUBJECT: Final = 100
"""Characters of a subject that Amazon SNS takes: ASCII, one line (API reference, Publish)."""


class Bus(Protocol):
    """Where events go."""

    def put(self, detail: Detail) -> None:
        """Put one event of our source and type."""


@dataclass(frozen=True, slots=True)
class AwsBus:
    """The account's default event bus."""

    client: EventBridgeClient

    def put(self, detail: Detail) -> None:
        """Put one event."""
        text = json.dumps(detail)
        with calling("putting the event of the trial's end"):
            answer = self.client.put_events(Entries=[{"Source": SOURCE, "DetailType": DETAIL_TYPE, "Detail": text}])
        if answer["FailedEntryCount"]:
            raise UnavailableError(f"putting the event of the trial's end: {answer['Entries']}")


def result_detail(result: TrialResult, *, endpoint_name: str, result_uri: str, report_uri: str) -> Detail:
    """Return the event of a trial that was measured."""
    return {
        "endpoint": result.request.endpoint,
        "environment": result.request.environment,
        "endpointName": endpoint_name,
        "planDigest": result.request.plan_digest,
        "verdict": result.verdict.status,
        "because": printable(redacted(result.verdict.because)),
        "kneeConcurrencyPerCopy": headline(result).knee,
        "resultUri": result_uri,
        "reportUri": report_uri,
    }


def scheduled_detail(detail: Detail, comparison: str | None) -> Detail:
    """Return the event of a trial that no deployment asked for, with what its comparison says."""
    return {**detail, "trigger": "schedule", "comparison": comparison}


def error_detail(message: str, properties: TrialProperties, *, result_uri: str) -> Detail:
    """Return the event of a trial that could not be made; names are missing where the request can't be read."""
    try:
        names = json.loads(properties.request)
    except ValueError:
        names = {}
    return {
        "endpoint": names.get("endpoint"),
        "environment": names.get("environment"),
        "endpointName": properties.endpoint_name,
        "planDigest": properties.plan_digest,
        "verdict": "error",
        "because": printable(message),
        "kneeConcurrencyPerCopy": None,
        "resultUri": result_uri,
        "reportUri": None,
    }


def announce(bus: Bus, detail: Detail) -> str:
    """Put an event, and return why it was not taken; empty when it was. No trial fails for that."""
    try:
        bus.put(detail)
    except UnavailableError as unavailable:
        return f"no event: {unavailable}"
    return ""


class Findings(Protocol):
    """Where people are told of findings."""

    def publish(self, subject: str, message: str) -> None:
        """Tell of one finding."""


class NoTopic:
    """Where an environment has no schedule: the event alone tells what a trial found."""

    def publish(self, subject: str, message: str) -> None:
        """Tell nobody."""


@dataclass(frozen=True, slots=True)
class TopicFindings:
    """A topic of Amazon SNS."""

    client: SNSClient
    topic_arn: str

    def publish(self, subject: str, message: str) -> None:
        """Publish a finding."""
        line = " ".join(subject.encode("ascii", "replace").decode().split())[:LONGEST_SUBJECT]
        with calling(f"publishing to {self.topic_arn}"):
            self.client.publish(TopicArn=self.topic_arn, Subject=line, Message=message)
