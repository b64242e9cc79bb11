"""What the commands that deploy for a measurement share: clients of the account, and the question whether they may."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import typer

from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seatrial.account.clients import Identity
    from seatrial.probe.run import ProbeTools
    from seatrial.specs.load import LoadedSpec


def aws_tools(loaded: LoadedSpec, root: Path, folder: Path) -> ProbeTools:
    """Return clients of the region, once the credentials are known to be the environment's.

    Args:
        loaded: The spec in its environment.
        root: Folder of the CDK app.
        folder: Where the log of the CDK CLI is written.

    Raises:
        SeatrialError: The credentials are of another account, or AWS can't be asked.
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
    check_account(environment, cast("Identity", identity))
    return ProbeTools(root, stacks, folder / "tools.log")


def confirm(lines: Iterable[str], *, yes: bool, err: bool = False) -> None:
    """Tell what a measurement costs, and ask whether it may.

    Args:
        lines: What it deploys and costs.
        yes: Whether nobody need be asked.
        err: Whether standard error is written to, where standard output is for a document.

    Raises:
        SpecError: SEA526 when the answer is no, or nobody can be asked.
    """
    for line in lines:
        typer.echo(line, err=err)
    if yes:
        return
    if not sys.stdin.isatty() or not typer.confirm("deploy?", err=err):
        hint = "confirm on a terminal, or give --yes"
        raise SpecError.of("SEA526", "nothing was deployed", where="command line", field="--yes", hint=hint)
