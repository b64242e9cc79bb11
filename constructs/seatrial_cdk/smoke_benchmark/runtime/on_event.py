"""Starts a trial when what is deployed has changed; answers from stored results otherwise."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.bench.result import TrialResult
from seatrial.errors import BenchError
from seatrial.secrets import redacted
from seatrial_cdk.smoke_benchmark.runtime.attributes import measured_attributes, unmeasured_attributes
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.deletion import begin_deletion
from seatrial_cdk.smoke_benchmark.runtime.fleet_start import trial_start
from seatrial_cdk.smoke_benchmark.runtime.trial_store import (
    latest_key,
    passed_key,
    released_key,
    results_bucket,
    trial_key,
)
from seatrial_cdk.smoke_benchmark.runtime.turn import take_turn
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError, calling

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import (
        Attributes,
        CustomResourceEvent,
        Started,
        TrialOrder,
    )
    from seatrial_cdk.smoke_benchmark.runtime.fleet_start import TrialStart
    from seatrial_cdk.smoke_benchmark.runtime.trial_store import TrialStore


DEPLOYED = ("PlanDigest", "EndpointConfigName", "ModelName")
"""The properties that tell one deployed configuration from another."""


class DirectionUnknownError(Exception):
    """It can't be told whether the stack goes forward, where a trial is due, or back, where one must not be made."""


class Surroundings(Protocol):
    """The stack and the runner beside this function."""

    def stack_status(self, stack_id: str) -> str:
        """Return what the stack is doing (`UPDATE_IN_PROGRESS`).

        Raises:
            UnavailableError: It can't be told.
        """

    def start_runner(self, order: TrialOrder) -> None:
        """Start a trial and return at once.

        Raises:
            UnavailableError: It may not have been started.
        """


@dataclass(frozen=True, slots=True)
class AwsSurroundings:
    """The stack and the runner on AWS."""

    cloudformation: CloudFormationClient
    starter: TrialStart

    def stack_status(self, stack_id: str) -> str:
        """Return what the stack is doing.

        Raises:
            UnavailableError: CloudFormation did not answer.
        """
        with calling("reading the stack's status"):
            return self.cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]

    def start_runner(self, order: TrialOrder) -> None:
        """Start a trial and return at once."""
        self.starter.start(order)


def handler(event: CustomResourceEvent, _context: object) -> Started:
    """Answer the provider framework."""
    import boto3  # noqa: PLC0415 (a second of start that tests need not wait for)

    surroundings = AwsSurroundings(boto3.client("cloudformation"), trial_start())
    return respond(event, results_bucket(), surroundings, now_s=time.time())


def respond(event: CustomResourceEvent, store: TrialStore, surroundings: Surroundings, *, now_s: float) -> Started:
    """Start a trial on Create and on an Update that deploys something else; a deletion never fails.

    The same plan may be deployed anew, by a release that renders it otherwise: plan, endpoint config and model must all
    be the same to be what was tried.

    CloudFormation's own rollback is no reason for a trial: it goes back to what was deployed before, whose result is
    known or was never asked for, and a trial that failed there would leave the stack stuck. Nor may an unreadable
    result leave it stuck there. Every request takes the turn: a trial that still runs for the one before stops.

    Raises:
        UnavailableError: Going forward, the stored result can't be read, and with it the target of scaling; or whose
            turn it is can't be written.
        DirectionUnknownError: The stack's status can't be read, and no stored pass answers in both directions.
    """
    if event["RequestType"] == "Delete":
        return begin_deletion(event, store, surroundings, now_s=now_s)
    properties = TrialProperties.of(event["ResourceProperties"])
    identity = f"smoke-benchmark-{properties.endpoint_name}"
    data = _known(event, properties, store, surroundings) if event["RequestType"] == "Update" else None
    if data is not None:
        with suppress(UnavailableError):
            take_turn(store, properties.endpoint_name, event["RequestId"], document="", now_s=now_s)
        return {"PhysicalResourceId": identity, "Data": data}
    started_at_s = _start(event, properties, store, surroundings, now_s)
    return {"PhysicalResourceId": identity, "StartedAt": started_at_s}


def _start(
    event: CustomResourceEvent, properties: TrialProperties, store: TrialStore, surroundings: Surroundings, now_s: float
) -> float:
    """Order the trial's first run, and return when the trial was ordered.

    A repeated delivery of the request orders the same run again, which only one function can begin; one that comes
    after a later request orders nothing. A run that could not be ordered is left to `is_complete`, which orders the
    next one where none begins: a creation that fails here gets no deletion from the framework, and the documents that
    are written already would keep the bucket of a creation that is rolled back from being deleted.
    """
    request_id = event["RequestId"]
    document = trial_key(properties, request_id)
    turn = take_turn(store, properties.endpoint_name, request_id, document=document, now_s=now_s)
    if turn.request_id != request_id:
        return now_s
    if turn.run == 1:
        order: TrialOrder = {
            "RequestId": request_id,
            "ResourceProperties": event["ResourceProperties"],
            "StartedAt": turn.seen_at_s,
            "Run": 1,
        }
        try:
            surroundings.start_runner(order)
        except UnavailableError as unavailable:
            sys.stdout.write(redacted(f"run 1 is not ordered: {unavailable}\n"))
    return turn.seen_at_s


def _known(
    event: CustomResourceEvent, properties: TrialProperties, store: TrialStore, surroundings: Surroundings
) -> Attributes | None:
    """Return the attributes of an update that needs no trial; `None` when it needs one."""
    try:
        going_back = "ROLLBACK" in surroundings.stack_status(event["StackId"])
    except UnavailableError as unavailable:
        return _known_either_way(event, properties, store, unavailable)
    if _unchanged(event):
        read = _readable if going_back else _stored
        return read(store, latest_key(properties), properties)
    return _gone_back(store, properties) if going_back else None


def _gone_back(store: TrialStore, properties: TrialProperties) -> Attributes:
    """Answer a rollback from the passing result of what it goes back to, which is what is released again."""
    key = passed_key(properties)
    with suppress(UnavailableError):
        if text := store.read(key):
            store.write(released_key(properties.endpoint_name), text)
    return _readable(store, key, properties)


def _known_either_way(
    event: CustomResourceEvent, properties: TrialProperties, store: TrialStore, unavailable: UnavailableError
) -> Attributes | None:
    """Answer an update whose direction can't be told.

    What stays the same, and what has passed as it is, is answered from the store: right in both directions. Else in
    mode `report` a trial is started, which can't fail. In mode `rollback` the update fails: going forward, an unproven
    configuration must not stay; going back to one that has never passed, the stack waits for
    `continue-update-rollback`, which asks again.
    """
    if _unchanged(event):
        return _readable(store, latest_key(properties), properties)
    with suppress(UnavailableError):
        if store.read(passed_key(properties)) is not None:
            return _readable(store, passed_key(properties), properties)
    if properties.mode == "rollback":
        raise DirectionUnknownError(
            f"Whether {properties.endpoint_name} is rolled back can't be told, and no stored trial of it was passed "
            f"({unavailable})"
        ) from unavailable
    return None


def _unchanged(event: CustomResourceEvent) -> bool:
    old, new = event.get("OldResourceProperties", {}), event["ResourceProperties"]
    return all(old.get(name) == new[name] for name in DEPLOYED)


def _readable(store: TrialStore, key: str, properties: TrialProperties) -> Attributes:
    """Return a stored result's attributes; what can't be read verifies nothing."""
    try:
        return _stored(store, key, properties)
    except UnavailableError:
        return unmeasured_attributes(properties.fallback_target, uri=store.uri(key))


def _stored(store: TrialStore, key: str, properties: TrialProperties) -> Attributes:
    """Return a stored result's attributes; one that is missing, or of another version's schema, verifies nothing."""
    text = store.read(key)
    if text is None:
        return unmeasured_attributes(properties.fallback_target)
    try:
        return measured_attributes(TrialResult.from_json(text), store.uri(key))
    except BenchError:
        return unmeasured_attributes(properties.fallback_target, uri=store.uri(key))
