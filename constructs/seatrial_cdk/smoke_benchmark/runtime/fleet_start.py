"""How a run of a trial is started: by the runner, or by the fleet where one function is not enough."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.errors import BenchError
from seatrial_cdk.smoke_benchmark.runtime.fleet_size import SOCKETS_PER_FUNCTION, workers_of_property
from seatrial_cdk.smoke_benchmark.runtime.runner_start import runner_function
from seatrial_cdk.smoke_benchmark.runtime.unavailable import calling

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder

ALREADY_STARTED = "ExecutionAlreadyExists"


class RunStart(Protocol):
    """Something that starts runs of trials."""

    def start(self, order: TrialOrder) -> None:
        """Start a run and return at once."""


@dataclass(frozen=True, slots=True)
class FleetMachine:
    """The fleet's state machine on AWS."""

    client: SFNClient
    arn: str

    def start(self, order: TrialOrder) -> None:
        """Start a run and return at once; one that was started before, under the same name, is the one.

        Raises:
            UnavailableError: It may not have been started.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        name = f"{order['RequestId']}-{order['Run']}"
        with calling("starting the trial's fleet"):
            try:
                self.client.start_execution(stateMachineArn=self.arn, name=name, input=json.dumps(order))
            except ClientError as refused:
                if refused.response["Error"]["Code"] != ALREADY_STARTED:
                    raise


@dataclass(frozen=True, slots=True)
class TrialStart:
    """Starts a run with as many functions as the trial's greatest level needs."""

    runner: RunStart
    fleet: RunStart | None
    sockets_per_function: int = SOCKETS_PER_FUNCTION

    def start(self, order: TrialOrder) -> None:
        """Start a run and return at once.

        Raises:
            UnavailableError: It may not have been started.
        """
        if self.fleet and self._workers(order) > 1:
            self.fleet.start(order)
        else:
            self.runner.start(order)

    def _workers(self, order: TrialOrder) -> int:
        """Return the functions that the trial needs; of one that can't be read the runner says so in its document."""
        try:
            return workers_of_property(
                order["ResourceProperties"]["Request"], sockets_per_function=self.sockets_per_function
            )
        except BenchError:
            return 1


def trial_start() -> TrialStart:
    """Return the starter of this function's environment: `RUNNER_FUNCTION`, and `TRIAL_FLEET` where there is one."""
    arn = os.environ.get("TRIAL_FLEET")
    if not arn:
        return TrialStart(runner_function(), None)
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    machine = FleetMachine(boto3.client("stepfunctions"), arn)
    return TrialStart(runner_function(), machine, int(os.environ["SOCKETS_PER_FUNCTION"]))
