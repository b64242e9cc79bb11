"""`seatrial deploy`: the CDK's deployment of one endpoint and its trial, in one view."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import endpoint_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.status import Status

    from seatrial.account.trials import LiveTrial
    from seatrial.deployment.document import Deployment

FAILED = 1


def deploy_command(
    endpoint: Annotated[
        str, typer.Argument(metavar="ENDPOINT", help="YAML file or name of the endpoint.", show_default=False)
    ],
    environment: EnvironmentName,
    cdk_options: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- CDK_OPTION…", help="More options of `cdk deploy`, after `--`.", show_default=False),
    ] = None,
    environments: EnvironmentsFolder = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Deploy without asking.")] = False,
) -> None:
    """Run `cdk deploy` of one endpoint, and show its trial level by level meanwhile; exit 1 when it fails.

    The lock is checked first. In a terminal the last line shows the state of both; elsewhere each line is complete.
    Ctrl-C ends the CDK CLI, and CloudFormation continues. With `--yes`, or with `-- --require-approval never`, it
    deploys without confirmation.
    """
    from seatrial.cli.support.probing import confirm
    from seatrial.deployment.load import load_deployment
    from seatrial.operations.app import APPROVAL, deploy_command_of, run_cdk, trial_looked_at
    from seatrial_base.terminal import end_when_interrupted
    from seatrial_base.units import hourly_words

    end_when_interrupted()
    file = endpoint_file(endpoint)
    folder = environments_folder(environments, file)
    deployment = load_deployment(file, folder, environment)
    more = cdk_options or []
    root, command = deploy_command_of(file, folder, deployment, more)
    look = _looks_of(deployment)
    approved = [APPROVAL, "never"] in [more[at : at + 2] for at in range(len(more))]
    place = deployment.environment
    account = place.account or "the account of your credentials"
    cost = hourly_words(deployment.plan.cost.usd_per_hour, deployment.endpoint.budget.discount)
    lines = (
        f"deploys {deployment.stack_name} in {account}, {place.region}: {cost}",
        f"`seatrial diff {deployment.endpoint.name} -e {place.name}` shows what it changes",
    )
    confirm(lines, yes=yes or approved or place.is_embedded)
    with _view(deployment.stack_name) as view:
        with trial_looked_at(look, view.trial):
            code = run_cdk(command, root, view.line)
        view.conclude()
    if code:
        raise typer.Exit(FAILED)


def _looks_of(deployment: Deployment) -> Callable[[], LiveTrial | None]:
    """Return a function that reads the endpoint's last trial; before the first deployment it reads none."""
    import boto3

    from seatrial.account.clients import check_account
    from seatrial.account.reader import aws_failures
    from seatrial.account.trials import Bucket, describe_stack, look
    from seatrial.deployment.document import service_stack
    from seatrial_base.errors import BenchError

    place = deployment.environment
    with aws_failures(place.name):
        sts, cloudformation, s3 = (
            boto3.client("sts", region_name=place.region),
            boto3.client("cloudformation", region_name=place.region),
            boto3.client("s3", region_name=place.region),
        )
    check_account(place, sts)

    def look_at() -> LiveTrial | None:
        try:
            bucket = describe_stack(service_stack(place.name), cloudformation).output("ResultsBucket")
            return look(Bucket(s3, bucket), deployment.endpoint_name, now_s=time.time())
        # The deployment goes on whether its trial can be watched or not: a later look may see it.
        except BenchError:
            return None

    return look_at


class _View:
    """Writes lines of the CDK CLI and of the trial; `status` is the last line of a terminal, where there is one."""

    def __init__(self, title: str, status: Status | None) -> None:
        from seatrial.cli.trial import TrialLines

        # Lines come from the CLI and from the looks at the trial, in two threads: without the lock they would mix.
        self._title, self._status, self._lock = title, status, Lock()
        self._began_s, self._detail = time.monotonic(), "synthesizes"
        self._lines = TrialLines(self.line_of_trial)
        self._seen: LiveTrial | None = None

    def line(self, text: str) -> None:
        """Write a line of the CDK CLI."""
        if self._seen is None and "_IN_PROGRESS" in text:
            self._detail = "CloudFormation deploys"
        self._write(text)

    def line_of_trial(self, text: str) -> None:
        """Write a line of the trial."""
        self._write(f"trial: {text}")

    def trial(self, seen: LiveTrial) -> None:
        """Write what is new of the trial."""
        from seatrial_base.units import minutes

        self._seen = seen
        self._detail = "CloudFormation deploys"
        if seen.is_due and not seen.has_ended:
            loading = "proves the endpoint" if seen.loading is None else f"loads {seen.loading} in flight per copy"
            self._detail = f"trial: {loading}, {minutes(seen.left_s)} left"
        self._lines.write(seen, self._title)
        self._update()

    def conclude(self) -> None:
        """Write the verdict, where there is one."""
        from seatrial_load.cli.show import knee_line

        if self._seen is not None and self._seen.result is not None:
            verdict = self._seen.result.verdict
            self.line_of_trial(f"verdict: {verdict.status}: {verdict.because}")
            self.line_of_trial(knee_line(self._seen.result))
        elif self._seen is not None and self._seen.error:
            self.line_of_trial(self._seen.error)

    def _write(self, text: str) -> None:
        with self._lock:
            typer.echo(text)
        self._update()

    def _update(self) -> None:
        from rich.markup import escape

        from seatrial.operations.app import elapsed_words

        if self._status is not None:
            self._status.update(escape(f"{self._title} {elapsed_words(self._began_s)}  {self._detail}"))


@contextmanager
def _view(title: str) -> Iterator[_View]:
    from seatrial_base.terminal import console

    terminal = console(markup=True)
    if not terminal.is_terminal:
        yield _View(title, None)
        return
    with terminal.status(title) as status:
        yield _View(title, status)
