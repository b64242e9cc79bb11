"""How a run of a trial is started: by an asynchronous call of the runner, which returns at once."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_cdk.smoke_benchmark.runtime.unavailable import calling

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder


@dataclass(frozen=True, slots=True)
class RunnerFunction:
    """The runner on AWS."""

    client: LambdaClient
    name: str

    def start(self, order: TrialOrder) -> None:
        """Start a run and return at once.

        Raises:
            UnavailableError: It may not have been started.
        """
        with calling("starting the trial's runner"):
            self.client.invoke(FunctionName=self.name, InvocationType="Event", Payload=json.dumps(order).encode())


def runner_function() -> RunnerFunction:
    """Return the runner of this function's environment (`RUNNER_FUNCTION`)."""
    import boto3  # noqa: PLC0415 (a second of start that tests and synth need not wait for)

    return RunnerFunction(boto3.client("lambda"), os.environ["RUNNER_FUNCTION"])
