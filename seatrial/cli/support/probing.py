"""Measurements of a command: clients of the account, the confirmation of a deployment, the view of a trial."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from seatrial_base.errors import SpecError
from seatrial_base.terminal import console
from seatrial_load.cli.show import levels_noted, watched_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from seatrial.probe.run import ProbeTools
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.progress import TrialEvent, Watch
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import TrialResult


def aws_tools(loaded: LoadedSpec, root: Path, folder: Path) -> ProbeTools:
    """Return clients of the region, once the credentials are known to be the environment's; `folder` is for logs.

    Raises:
        SeatrialError: The credentials are of another account, or AWS does not respond.
    """
    import boto3

    from seatrial.account.clients import check_account
    from seatrial.account.reader import aws_failures
    from seatrial.probe.run import AwsStacks, ProbeTools

    environment = loaded.environment
    with aws_failures(environment.name):
        identity = boto3.client("sts", region_name=environment.region)
        stacks = AwsStacks(
            boto3.client("cloudformation", region_name=environment.region),
            boto3.client("s3", region_name=environment.region),
        )
    check_account(environment, identity)
    return ProbeTools(root, stacks, folder / "tools.log")


def confirm(lines: Iterable[str], *, yes: bool, err: bool = False) -> None:
    """Print what a measurement deploys and costs, and ask for confirmation unless `yes`.

    Raises:
        SpecError: SEA526 when it is not confirmed, or there is no terminal.
    """
    for line in lines:
        typer.echo(line, err=err)
    if yes:
        return
    if not sys.stdin.isatty() or not typer.confirm("deploy?", err=err):
        hint = "confirm on a terminal, or give --yes"
        raise SpecError.of("SEA526", "nothing was deployed", where="command line", field="--yes", hint=hint)


def watched(request: TrialRequest, run: Callable[[Watch], TrialResult]) -> TrialResult:
    """Run a trial and show it: a live table on a terminal, a line for each level elsewhere."""
    from rich.live import Live

    from seatrial.report.terminal.trial import TrialScreen

    shown_on, screen = console(), TrialScreen(request)
    if not shown_on.is_terminal:
        return watched_lines(request, run)
    with Live(screen, console=shown_on, auto_refresh=False, transient=False) as live:  # a thread would delay us

        def refresh(event: TrialEvent) -> None:
            screen.watch(event)
            live.refresh()

        with levels_noted(refresh) as watch:
            return run(watch)
