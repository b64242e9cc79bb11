from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trial_service.runtime.fleet_start import FleetMachine, TrialStart
from seatrial_cdk.trial_service.runtime.store import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_stepfunctions import SFNClient

    from seatrial_cdk.trial_service.runtime.custom_resource import TrialOrder

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:Fleet"
EXECUTION = "arn:aws:states:us-east-1:123456789012:execution:Fleet:request-1-1"


@dataclass
class Starts:
    """Remembers the orders that were started."""

    orders: list[TrialOrder] = field(default_factory=list)

    def start(self, order: TrialOrder) -> None:
        self.orders.append(order)


@pytest.fixture
def client() -> SFNClient:
    return boto3.client("stepfunctions", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")


@pytest.fixture
def service(client: SFNClient) -> Iterator[Stubber]:
    """Answer the client's calls: botocore checks requests and answers against the service's own model."""
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("sockets_per_function", "by_fleet"),
    [
        (16, False),  # the dev trial's greatest level has 16 streams
        (15, True),
    ],
)
def test_a_trial_that_needs_more_than_one_function_is_the_fleets(
    order: TrialOrder, sockets_per_function: int, *, by_fleet: bool
) -> None:
    runner, fleet = Starts(), Starts()
    TrialStart(runner, fleet, sockets_per_function).start(order)
    assert (runner.orders, fleet.orders) == (([], [order]) if by_fleet else ([order], []))


def test_without_a_fleet_the_runner_tries_alone(order: TrialOrder) -> None:
    runner = Starts()
    TrialStart(runner, None, 1).start(order)
    assert runner.orders == [order]


def test_a_request_that_cannot_be_read_is_the_runners_to_refuse(order: TrialOrder) -> None:
    runner, fleet = Starts(), Starts()
    order["ResourceProperties"] = {**order["ResourceProperties"], "Request": '{"endpoint":"chat"}'}
    TrialStart(runner, fleet, 1).start(order)
    assert (runner.orders, fleet.orders) == ([order], [])


@pytest.mark.parametrize("run", [1, 2])
def test_each_run_is_an_execution_of_its_own(order: TrialOrder, client: SFNClient, service: Stubber, run: int) -> None:
    order["Run"] = run
    sent = {"stateMachineArn": MACHINE, "name": f"request-1-{run}", "input": json.dumps(order)}
    service.add_response("start_execution", {"executionArn": EXECUTION, "startDate": 0}, sent)
    FleetMachine(client, MACHINE).start(order)


def test_a_run_that_was_started_before_is_not_started_again(
    order: TrialOrder, client: SFNClient, service: Stubber
) -> None:
    service.add_client_error("start_execution", "ExecutionAlreadyExists")
    FleetMachine(client, MACHINE).start(order)


def test_a_refused_start_says_what_was_refused(order: TrialOrder, client: SFNClient, service: Stubber) -> None:
    service.add_client_error("start_execution", "AccessDeniedException", "not authorized")
    with pytest.raises(UnavailableError) as refused:
        FleetMachine(client, MACHINE).start(order)
    assert str(refused.value) == (
        "starting the trial's fleet: An error occurred (AccessDeniedException) when calling the StartExecution "
        "operation: not authorized"
    )
