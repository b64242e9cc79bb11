"""`seatrial trial`: the trials that are made on AWS, by deployments, on a schedule or by hand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder
from seatrial.cli.support.specs import live_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.account.trials import LiveTrial

FAILED = 1

trial = typer.Typer(name="trial", help="Trials of live endpoints.", no_args_is_help=True)

Endpoint = Annotated[
    str, typer.Argument(metavar="ENDPOINT", help="YAML file or name of the endpoint.", show_default=False)
]


@trial.callback()
def trial_options() -> None:
    """Follow the trials that deployments make on AWS, or start one."""


@trial.command("watch")
def watch_trial(endpoint: Endpoint, environment: EnvironmentName, environments: EnvironmentsFolder = None) -> None:
    """Follow the trial of a deployment, level by level, to its verdict.

    It exits with 0 when the trial is passed, else with 1. Ctrl-C leaves the trial alone.
    """
    import boto3

    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import Bucket, describe_stack, follow
    from seatrial.deployment.document import endpoint_name, service_stack
    from seatrial_base.terminal import end_when_interrupted

    end_when_interrupted()
    name, generation, region = live_name(endpoint, environment, environments)
    stack = service_stack(environment)
    with aws_failures(stack):
        cloudformation = boto3.client("cloudformation", region_name=region)
        s3 = boto3.client("s3", region_name=region)
    bucket = Bucket(s3, describe_stack(stack, cloudformation).output("ResultsBucket"))
    live = endpoint_name(environment, name, generation)
    lines = TrialLines(typer.echo)
    try:
        for seen in follow(bucket, live, now_s=time.time, sleep=time.sleep):
            lines.write(seen, live)
    except KeyboardInterrupt:
        typer.echo("stopped watching; the trial continues")
        raise
    lines.conclude(seen, live)


@trial.command("start")
def start_trial(
    endpoint: Endpoint,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    trial_id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Name of the trial: a second start of the same name starts nothing."),
    ] = None,
) -> None:
    """Try an endpoint as it is live: a candidate on the same endpoint is loaded, and deleted.

    Users are not touched and nothing is updated. Exit 1 when no trial was started, as while a deployment is at work.
    """
    from uuid import uuid4

    import boto3

    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import start_trial

    name, generation, region = live_name(endpoint, environment, environments)
    with aws_failures(environment):
        function = boto3.client("lambda", region_name=region)
    identifier = start_trial(function, environment, name, generation, trial_id or f"{uuid4()}")
    typer.echo(f"started the trial {identifier}; follow it with `seatrial trial watch {endpoint} -e {environment}`")


class TrialLines:
    """The lines of a trial, each written once."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._request_id: str | None = None
        self._levels = 0
        self._loading: int | None = None

    def write(self, seen: LiveTrial, endpoint_name: str) -> None:
        """Write what is new."""
        from seatrial_base.units import minutes
        from seatrial_load.cli.show import level_line

        if seen.request_id != self._request_id:
            self._request_id, self._levels, self._loading = seen.request_id, 0, None
            self._write(_beginning(seen, endpoint_name))
        for level in seen.levels[self._levels :]:
            self._write(f"{level_line(level)} ({minutes(seen.left_s)} left)")
        self._levels = len(seen.levels)
        if seen.loading not in {None, self._loading} and not seen.has_ended:
            self._write(f"loading concurrency {seen.loading} per copy ({minutes(seen.left_s)} left)")
        self._loading = seen.loading

    @staticmethod
    def conclude(seen: LiveTrial, endpoint_name: str) -> None:
        """Write the verdict.

        Raises:
            BenchError: SEA507, the trial ended with an error; SEA521, there is none.
            Exit: With 1, it was not passed.
        """
        from seatrial_base.errors import BenchError
        from seatrial_load.cli.show import knee_line

        if seen.error:
            hint = "fix the cause and deploy again"
            raise BenchError.of("SEA507", seen.error, where=endpoint_name, hint=hint)
        if seen.result is None:
            message = "the last deployment needed no trial: it changed nothing that is tried, or was rolled back"
            hint = "see the last result: stack output TrialResultUri"
            raise BenchError.of("SEA521", message, where=endpoint_name, hint=hint)
        typer.echo(f"verdict: {seen.result.verdict.status}: {seen.result.verdict.because}")
        typer.echo(knee_line(seen.result))
        if seen.result.verdict.status != "pass":
            raise typer.Exit(FAILED)


def _beginning(seen: LiveTrial, endpoint_name: str) -> str:
    if not seen.request_id:
        return f"waiting for the deployment of {endpoint_name} to start a trial"
    return f"the trial of {endpoint_name}" if seen.is_due else f"the last change of {endpoint_name} needed no trial"
