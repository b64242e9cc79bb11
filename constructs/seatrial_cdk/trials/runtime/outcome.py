"""The end of a trial: its document, its short report, what is deployed since, metrics, its event and notices."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from seatrial_base.errors import BenchError
from seatrial_base.secrets import redacted
from seatrial_base.text import printable
from seatrial_cdk.trials.runtime.attributes import headline
from seatrial_cdk.trials.runtime.order import latest_key, passed_key, trial_key
from seatrial_cdk.trials.runtime.report import evidence, metrics_line, short_report
from seatrial_cdk.trials.runtime.store import UnavailableError, calling, configuration_key, released_key, report_key
from seatrial_load.documents.result import TrialResult
from seatrial_load.documents.seal import MEMBER, SIGNATURE, signed_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_sns import SNSClient

    from seatrial_cdk.trials.runtime.order import Order
    from seatrial_cdk.trials.runtime.properties import TrialProperties
    from seatrial_cdk.trials.runtime.store import TrialStore


UNTRIED: Final = {"untried": True}
"""The document of an order that loads nothing."""

SOURCE: Final = "seatrial"
DETAIL_TYPE: Final = "Sea trial finished"

Detail = dict[str, str | float | None]
Sign: TypeAlias = "Callable[[str, str], str]"
"""Returns a result's JSON with the seal of the trial of a request, by its ID."""
LONGEST_SUBJECT: Final = 100
"""Characters of a subject that Amazon SNS takes: ASCII, one line (API reference, Publish)."""


def keep_result(
    store: TrialStore, order: Order, result: TrialResult, *, seal: Sign, bus: Bus, now_s: float
) -> list[str]:
    """Keep what was measured and announce it, signed, credentials masked; return the log's lines.

    The trial's own document, which lets the deployment go on, is written after all that later deployments read.
    """
    properties, key = order.properties, trial_key(order.properties, order.request_id)
    document, unsigned = sealed(result, seal, order.request_id)
    report = redacted(short_report(result, store.uri(key)))
    # The trial's own document comes last: it lets the deployment go on, which reads the others.
    for kept in (*_keys_of_the_deployed(store, order, result), key):
        store.write(report_key(kept), report)
        store.write(kept, document)
    if order.manner == "verify" and result.verdict.status == "pass":
        _release(store, properties)
    detail = result_detail(
        result,
        endpoint_name=properties.endpoint_name,
        result_uri=store.uri(key),
        report_uri=store.uri(report_key(key)),
    )
    lines = [*evidence(result), metrics_line(result, now_s=now_s), announce(bus, detail), unsigned]
    return [line for line in lines if line]


def sealed(result: TrialResult, seal: Sign, request_id: str) -> tuple[str, str]:
    """Return a result as it is kept, and why it has no signature; empty when it has one.

    No deployment fails for want of a signature: the next environment refuses to take the result as evidence.
    """
    return sealed_text(redacted(result.to_json()), seal, request_id)


def sealed_text(text: str, seal: Sign, request_id: str) -> tuple[str, str]:
    """Return a document with its seal, and why it has no signature; empty when it has one."""
    try:
        return seal(text, request_id), ""
    except UnavailableError as unavailable:
        return text, f"not signed: {unavailable}"


def keep_untried(store: TrialStore, properties: TrialProperties, request_id: str) -> None:
    """Keep that an order tried nothing: whoever waits for it reads in its document that it has ended."""
    store.write(trial_key(properties, request_id), json.dumps(UNTRIED))


def _release(store: TrialStore, properties: TrialProperties) -> None:
    """Make the pass of a candidate what is released: it is live now."""
    passed, released = passed_key(properties), released_key(properties.endpoint_name)
    for source, kept in ((report_key(passed), report_key(released)), (passed, released)):
        if (text := store.read(source)) is not None:
            store.write(kept, text)


def keep_error(
    store: TrialStore, properties: TrialProperties, request_id: str, message: str, *, bus: Bus | None
) -> str:
    """Keep why there is no result, and announce it where there is a bus; return the log's line, empty without one."""
    key, message = trial_key(properties, request_id), redacted(message)
    store.write(key, json.dumps({"error": message}))
    if bus is None:
        return ""
    return announce(bus, error_detail(message, properties, result_uri=store.uri(key)))


def _keys_of_the_deployed(store: TrialStore, order: Order, result: TrialResult) -> Iterator[str]:
    """Yield the keys that later deployments read; what was verified only stands for nothing that was measured.

    A candidate is released once it is live; a load beside users is nothing to compare later releases with.
    """
    properties, is_pass = order.properties, result.verdict.status == "pass"
    if order.manner == "verify":
        if store.read(latest_key(properties)) is None:
            yield latest_key(properties)
        return
    yield latest_key(properties)
    if is_pass:
        yield passed_key(properties)
    if is_pass and order.manner == "load":
        yield released_key(properties.endpoint_name)


@dataclass(frozen=True, slots=True)
class Baseline:
    """A released result and the URI under which it stays; None and empty when there is none."""

    result: TrialResult | None
    uri: str


def baseline_of(store: TrialStore, endpoint_name: str) -> Baseline:
    """Return what is released; what can't be read, or is of another version's schema, is no baseline."""
    result = readable_result(store, released_key(endpoint_name))
    return Baseline(result, "" if result is None else _uri(store, endpoint_name, result))


def readable_result(store: TrialStore, key: str) -> TrialResult | None:
    """Return a kept result; `None` when there is none, it can't be read, or is of another version's schema."""
    try:
        text = store.read(key)
        return None if text is None else TrialResult.from_json(text)
    except (BenchError, UnavailableError):
        return None


def _uri(store: TrialStore, endpoint_name: str, result: TrialResult) -> str:
    """Return where the passing result of that configuration lies: what is released changes, this stays."""
    expected = result.request.expected
    if expected is None:
        return store.uri(released_key(endpoint_name))
    names = (endpoint_name, result.request.plan_digest, expected.endpoint_config_name, expected.model_name)
    return store.uri(configuration_key(*names))


@dataclass(frozen=True, slots=True)
class KmsSeal:
    """A key of AWS KMS, with which this function alone may sign.

    Attributes:
        executions: ARN of the workflow's executions; the request's ID follows.
    """

    client: KMSClient
    key_arn: str
    executions: str

    def __call__(self, text: str, request_id: str) -> str:
        """Return a result's JSON with its seal."""
        algorithm: Final = "ECDSA_SHA_256"
        seal = {"actor": f"{self.executions}:{request_id}", "key_arn": self.key_arn, "algorithm": algorithm}
        document = {**json.loads(text), MEMBER: seal}
        message = sha256(signed_bytes(document)).digest()  # KMS takes 4096 bytes of a message, a digest of any
        with calling("signing the result"):
            signed = self.client.sign(
                KeyId=self.key_arn, Message=message, MessageType="DIGEST", SigningAlgorithm=algorithm
            )
        seal[SIGNATURE] = b64encode(signed["Signature"]).decode()
        return json.dumps(document, separators=(",", ":"), allow_nan=False)


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
    """Return the event of a scheduled trial, with its comparison."""
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
    """Where findings are published."""

    def publish(self, subject: str, message: str, further: Sequence[str] = ()) -> None:
        """Tell of one finding, by further topics too."""


class NoTopic:
    """Where an environment has no schedule: the event alone has the findings of a trial."""

    def publish(self, subject: str, message: str, further: Sequence[str] = ()) -> None:
        """Publish nothing."""


@dataclass(frozen=True, slots=True)
class TopicFindings:
    """A topic of Amazon SNS."""

    client: SNSClient
    topic_arn: str

    def publish(self, subject: str, message: str, further: Sequence[str] = ()) -> None:
        """Publish a finding; where one topic does not take it, the others are told all the same."""
        line = " ".join(subject.encode("ascii", "replace").decode().split())[:LONGEST_SUBJECT]
        with ExitStack() as all_of_them:
            for topic in reversed((self.topic_arn, *further)):
                all_of_them.callback(self._publish, topic, line, message)

    def _publish(self, topic: str, subject: str, message: str) -> None:
        with calling(f"publishing to {topic}"):
            self.client.publish(TopicArn=topic, Subject=subject, Message=message)
