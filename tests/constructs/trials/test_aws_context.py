from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trials.runtime.aws_context import AwsWorkflow, aws_trial_context
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_stepfunctions import SFNClient

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:seatrial-dev-trials"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:seatrial-dev-trials:request-1"


@pytest.fixture
def client() -> SFNClient:
    return boto3.client("stepfunctions", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")


@pytest.fixture
def service(client: SFNClient) -> Iterator[Stubber]:
    """Answer the client's calls: botocore checks requests and answers against the service's own model."""
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def test_an_execution_is_named_after_its_request_and_told_no_more_than_where_it_lies(
    client: SFNClient, service: Stubber
) -> None:
    told = json.dumps({"EndpointName": "dev-chat", "RequestId": "request-1"})
    sent = {"stateMachineArn": MACHINE, "name": "request-1", "input": told}
    service.add_response("start_execution", {"executionArn": EXECUTION, "startDate": 0}, sent)
    AwsWorkflow(client, MACHINE).start("dev-chat", "request-1")


def test_a_trial_that_was_started_before_is_not_started_again(client: SFNClient, service: Stubber) -> None:
    service.add_client_error("start_execution", "ExecutionAlreadyExists")
    AwsWorkflow(client, MACHINE).start("dev-chat", "request-1")


def test_a_refused_start_says_what_was_refused(client: SFNClient, service: Stubber) -> None:
    service.add_client_error("start_execution", "AccessDeniedException", "not authorized")
    with pytest.raises(UnavailableError) as refused:
        AwsWorkflow(client, MACHINE).start("dev-chat", "request-1")
    assert str(refused.value) == (
        "starting the trial's workflow: An error occurred (AccessDeniedException) when calling the StartExecution "
        "operation: not authorized"
    )


def test_an_execution_is_stopped_with_its_reason(client: SFNClient, service: Stubber) -> None:
    sent = {"executionArn": EXECUTION, "error": "Stopped", "cause": "the stack is deleted"}
    service.add_response("stop_execution", {"stopDate": 0}, sent)
    AwsWorkflow(client, MACHINE).stop("request-1", "the stack is deleted")


def test_an_execution_that_was_never_started_needs_no_stop(client: SFNClient, service: Stubber) -> None:
    service.add_client_error("stop_execution", "ExecutionDoesNotExist")
    AwsWorkflow(client, MACHINE).stop("request-1", "the stack is deleted")


def test_an_execution_that_has_ended_needs_no_stop(client: SFNClient, service: Stubber) -> None:
    service.add_client_error("stop_execution", "ValidationException", "Execution is not running")
    AwsWorkflow(client, MACHINE).stop("request-1", "the stack is deleted")


FUNCTION = {
    "ENVIRONMENT": "dev",
    "RESULTS_BUCKET": "results",
    "SIGNING_KEY": "arn:aws:kms:us-east-1:123456789012:key/0f",
    "STATE_MACHINE": MACHINE,
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "x",
    "AWS_SECRET_ACCESS_KEY": "y",
}


class Call:
    """A call of the function that has some milliseconds left."""

    def __init__(self, left_ms: int) -> None:
        self.left_ms = left_ms

    def get_remaining_time_in_millis(self) -> int:
        return self.left_ms


def test_a_warm_function_has_its_clients_and_each_call_its_own_end() -> None:
    with environment(FUNCTION):
        first, second = aws_trial_context(Call(1_000)), aws_trial_context(Call(900_000))
    assert second.ends_s - first.ends_s > 800
    assert replace(second, ends_s=first.ends_s) == first, "nothing else is made anew: a client equals itself alone"
