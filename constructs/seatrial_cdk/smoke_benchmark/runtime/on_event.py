"""Starts a trial when the plan has changed; answers from stored results otherwise."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.bench.result import TrialResult
from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.attributes import measured_attributes, unmeasured_attributes
from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialProperties
from seatrial_cdk.smoke_benchmark.runtime.trial_store import latest_key, passed_key, results_bucket

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


class Surroundings(Protocol):
    """The stack and the runner beside this function."""

    def stack_status(self, stack_id: str) -> str:
        """Return what the stack is doing (`UPDATE_IN_PROGRESS`)."""

    def start_runner(self, order: TrialOrder) -> None:
        """Start a trial and return at once."""


@dataclass(frozen=True, slots=True)
class AwsSurroundings:
    """The stack and the runner on AWS."""

    cloudformation: CloudFormationClient
    lambda_: LambdaClient
    runner: str

    def stack_status(self, stack_id: str) -> str:
        """Return what the stack is doing."""
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
    """Start a trial on Create and on a changed plan; a deletion never fails and never waits.

    CloudFormation's own rollback is no reason for a trial: it goes back to what was deployed before, whose result is
    known or was never asked for, and a trial that failed there would leave the stack stuck.
    """
    if event["RequestType"] == "Delete":
        return {"PhysicalResourceId": event.get("PhysicalResourceId", event["RequestId"])}
    properties = TrialProperties.of(event["ResourceProperties"])
    identity = f"smoke-benchmark-{properties.endpoint_name}"
    if event["RequestType"] == "Update":
        if event.get("OldResourceProperties", {}).get("PlanDigest") == properties.plan_digest:
            return {"PhysicalResourceId": identity, "Data": _stored(store, latest_key(properties), properties)}
        if "ROLLBACK" in surroundings.stack_status(event["StackId"]):
            return {"PhysicalResourceId": identity, "Data": _stored(store, passed_key(properties), properties)}
    order: TrialOrder = {"RequestId": event["RequestId"], "ResourceProperties": event["ResourceProperties"]}
    surroundings.start_runner(order)
    return {"PhysicalResourceId": identity, "StartedAt": now_s}


def _stored(store: TrialStore, key: str, properties: TrialProperties) -> Attributes:
    """Return a stored result's attributes; one that is missing, or of another version's schema, verifies nothing."""
    text = store.read(key)
    if text is None:
        return unmeasured_attributes(properties.fallback_target)
    try:
        return measured_attributes(TrialResult.from_json(text), store.uri(key))
    except BenchError:
        return unmeasured_attributes(properties.fallback_target, uri=store.uri(key))
