"""Clients of the account and the confirmation, for the commands that deploy for a measurement."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seatrial.probe.run import ProbeTools
    from seatrial.specs.load import LoadedSpec


def aws_tools(loaded: LoadedSpec, root: Path, folder: Path) -> ProbeTools:
    """Return clients of the region, once the credentials are known to be the environment's; `folder` is for logs.

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
    check_account(environment, identity)
    return ProbeTools(root, stacks, folder / "tools.log")


def confirm(lines: Iterable[str], *, yes: bool, err: bool = False) -> None:
    """Print what a measurement deploys and costs, and ask for confirmation unless `yes`.

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
