"""Starts a trial when what is deployed has changed; answers from stored results otherwise."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.bench.result import TrialResult
from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.attributes import measured_attributes, unmeasured_attributes
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.trial_store import latest_key, passed_key, results_bucket
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError, calling

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient

    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import (
        Attributes,
        CustomResourceEvent,
        Started,
        TrialOrder,
    )
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
        """Start a trial and return at once."""


@dataclass(frozen=True, slots=True)
class AwsSurroundings:
    """The stack and the runner on AWS."""

    cloudformation: CloudFormationClient
    lambda_: LambdaClient
    runner: str

    def stack_status(self, stack_id: str) -> str:
        """Return what the stack is doing.

        Raises:
            UnavailableError: CloudFormation did not answer.
        """
        with calling("reading the stack's status"):
            return self.cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]

    def start_runner(self, order: TrialOrder) -> None:
        """Start a trial and return at once."""
        self.lambda_.invoke(FunctionName=self.runner, InvocationType="Event", Payload=json.dumps(order).encode())


def handler(event: CustomResourceEvent, _context: object) -> Started:
    """Answer the provider framework."""
    import boto3  # noqa: PLC0415 (a second of start that tests need not wait for)

    runner = os.environ["RUNNER_FUNCTION"]
    surroundings = AwsSurroundings(boto3.client("cloudformation"), boto3.client("lambda"), runner)
    return respond(event, results_bucket(), surroundings, now_s=time.time())


def respond(event: CustomResourceEvent, store: TrialStore, surroundings: Surroundings, *, now_s: float) -> Started:
    """Start a trial on Create and on an Update that deploys something else; a deletion never fails and never waits.

    The same plan may be deployed anew, by a release that renders it otherwise: plan, endpoint config and model must all
    be the same to be what was tried.

    CloudFormation's own rollback is no reason for a trial: it goes back to what was deployed before, whose result is
    known or was never asked for, and a trial that failed there would leave the stack stuck. Nor may an unreadable
    result leave it stuck there.

    Raises:
        UnavailableError: Going forward, the stored result can't be read, and with it the target of scaling.
        DirectionUnknownError: The stack's status can't be read, and no stored pass answers in both directions.
    """
    if event["RequestType"] == "Delete":
        return _deleted(event, store, surroundings)
    properties = TrialProperties.of(event["ResourceProperties"])
    identity = f"smoke-benchmark-{properties.endpoint_name}"
    data = _known(event, properties, store, surroundings) if event["RequestType"] == "Update" else None
    if data is not None:
        return {"PhysicalResourceId": identity, "Data": data}
    order: TrialOrder = {"RequestId": event["RequestId"], "ResourceProperties": event["ResourceProperties"]}
    surroundings.start_runner(order)
    return {"PhysicalResourceId": identity, "StartedAt": now_s}


def _deleted(event: CustomResourceEvent, store: TrialStore, surroundings: Surroundings) -> Started:
    """Let go; when it is the creation that is rolled back, empty the bucket, which can't be deleted otherwise."""
    endpoint_name = event["ResourceProperties"].get("EndpointName")
    with suppress(UnavailableError):
        if endpoint_name and "ROLLBACK" in surroundings.stack_status(event["StackId"]):
            store.clear(endpoint_name)
    return {"PhysicalResourceId": event.get("PhysicalResourceId", event["RequestId"])}


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
    return _readable(store, passed_key(properties), properties) if going_back else None


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
