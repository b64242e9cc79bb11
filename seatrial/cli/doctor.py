"""`seatrial doctor`: why an endpoint is stuck or failed, and the steps that unstick it."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.live_name import live_name, own_region
from seatrial.cli.support.options import (
    EnvironmentsFolder,
    LiveEndpoint,
    LiveEnvironment,
    LiveRegion,
    environments_folder,
)
from seatrial.cli.support.specs import ENDPOINTS
from seatrial_base.errors import BenchError, SeatrialError, SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.units import counted
from seatrial_lint.cli.judging import WRONG, FindingsFormat, lines_text, show_judgement

if TYPE_CHECKING:
    from seatrial.account.reader import AwsCalls
    from seatrial.deployment.document import Deployment
    from seatrial.operations.doctor.facts import Examination
    from seatrial.operations.doctor.gather import AskedEndpoint

_NAME = r"[A-Za-z0-9](-*[A-Za-z0-9]){0,62}"


def doctor_command(
    endpoint: LiveEndpoint,
    environment: LiveEnvironment = None,
    environments: EnvironmentsFolder = None,
    region: LiveRegion = None,
    *,
    why: Annotated[bool, typer.Option("--why", help="Show what each problem was seen by, and the logs.")] = False,
    output_format: FindingsFormat = "text",
    fix: Annotated[bool, typer.Option("--fix", help="Unstick it, step by step, after a confirmation.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --fix: show the steps, and do nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With --fix: do not ask for confirmation.")] = False,
) -> None:
    """Explain a stuck or failed endpoint; exit 0 when nothing is wrong, else 1.

    It reads endpoint, components, logs, scaling, alarms, stack, roles, weights, secrets and quotas. What could not be
    asked is told. `--fix` deletes nothing that serves.
    """
    from seatrial.operations.doctor.steps import fix_steps
    from seatrial.operations.doctor.view import doctor_judgement, is_healthy

    _check_options(fix=fix, dry_run=dry_run, yes=yes)
    asked = _asked(endpoint, environment, environments, region)
    found, diagnoses = _examined(asked)
    if output_format == "text":
        _show_text(found, diagnoses, why=why)
    is_deleted = False
    if fix and _fixed(found, asked.calls, dry_run=dry_run, yes=yes):
        found, diagnoses = _examined(asked)
        if is_deleted := found.is_empty:
            typer.echo(f"{found.name}: nothing is left of it", err=True)
        elif output_format == "text":
            _show_text(found, diagnoses, why=False)
    if output_format != "text":
        show_judgement(doctor_judgement(found, diagnoses, fix_steps(found)), output_format)
    if not (is_deleted or is_healthy(found, diagnoses)):
        raise typer.Exit(WRONG)


def _check_options(*, fix: bool, dry_run: bool, yes: bool) -> None:
    """Refuse options that only mean something with `--fix`.

    Raises:
        SpecError: SEA108, with each of them.
    """
    given = [name for name, is_given in (("--dry-run", dry_run), ("--yes", yes)) if is_given and not fix]
    if given:
        raise SpecError(
            Finding("SEA108", Place("command line", field=name), f"{name} needs --fix", "add --fix") for name in given
        )


def _examined(asked: AskedEndpoint) -> tuple[Examination, tuple[Finding, ...]]:
    """Return what there is now, and what is wrong with it."""
    from seatrial.operations.doctor.diagnose import diagnose
    from seatrial.operations.doctor.gather import examine

    found = examine(asked, datetime.now(UTC))
    return found, diagnose(found)


def _asked(endpoint: str, environment: str | None, environments: Path | None, region: str | None) -> AskedEndpoint:
    """Return the endpoint that is asked for.

    Raises:
        SpecError: SEA107, it is no name; SEA108, two options contradict each other; SEA512, no region is known.
    """
    from seatrial.account.clients import clients_of_region
    from seatrial.account.reader import Boto3Calls
    from seatrial.operations.doctor.gather import AskedEndpoint
    from seatrial_load.aws.promql import cloudwatch_promql

    if environment is not None:
        if region is not None:
            message = "--region contradicts --environment, which has a region"
            raise SpecError.of("SEA108", message, where="command line", field="--region", hint="leave one of them out")
        return _of_environment(endpoint, environment, environments)
    if not re.fullmatch(_NAME, endpoint):
        hint = "with the YAML file or the name of a spec, give its environment: -e ENV"
        raise SpecError.of("SEA107", f"{endpoint} is no name of an endpoint", where="command line", hint=hint)
    place = region or own_region()
    return AskedEndpoint(
        name=endpoint,
        region=place,
        calls=Boto3Calls(place),
        account=clients_of_region(place, where=endpoint),
        promql=cloudwatch_promql(place),
    )


def _of_environment(endpoint: str, environment: str, environments: Path | None) -> AskedEndpoint:
    from seatrial.account.clients import account_clients, check_account
    from seatrial.account.reader import Boto3Calls
    from seatrial.deployment.document import endpoint_name, stack_name
    from seatrial.operations.doctor.gather import AskedEndpoint
    from seatrial.specs.load import load_environment
    from seatrial_load.aws.promql import cloudwatch_promql

    name, generation, region = live_name(endpoint, environment, environments)
    file = Path(endpoint) if endpoint.endswith(".yaml") else ENDPOINTS / f"{name}.yaml"
    folder = environments_folder(environments, file)
    place = load_environment(folder, environment)
    account = account_clients(place)
    check_account(place, account.identity)
    return AskedEndpoint(
        name=endpoint_name(environment, name, generation),
        region=region,
        calls=Boto3Calls(region),
        account=account,
        stack=stack_name(environment, name),
        deployment=_deployment(file, folder, environment),
        promql=cloudwatch_promql(region),
    )


def _deployment(file: Path, environments: Path, environment: str) -> Deployment | None:
    """Return what the lock says; None where it can't be read, since the endpoint can be examined all the same."""
    from seatrial.deployment.load import load_deployment

    try:
        return load_deployment(file, environments, environment)
    except SeatrialError as error:
        typer.echo(f"the lock can't be used, so secrets are not checked: {error.problems[0].message}", err=True)
        return None


def _show_text(found: Examination, diagnoses: tuple[Finding, ...], *, why: bool) -> None:
    from seatrial.operations.doctor.view import doctor_lines
    from seatrial_base.secrets import redacted
    from seatrial_base.terminal import show_text

    show_text(redacted(lines_text(doctor_lines(found, diagnoses, why=why))))


def _fixed(found: Examination, calls: AwsCalls, *, dry_run: bool, yes: bool) -> bool:
    """Show the steps, ask, and do them; tell whether anything was done.

    Raises:
        SpecError: SEA769, nobody confirmed.
        BenchError: SEA769, with every step that failed or was left out.
    """
    from seatrial.operations.doctor.fix import Patience, carry_out
    from seatrial.operations.doctor.steps import fix_steps

    steps = fix_steps(found)
    if not steps:
        typer.echo("nothing can be unstuck: no step is safe now", err=True)
        return False
    for number, step in enumerate(steps, 1):
        typer.echo(f"{number}. {step.why}\n   {step.command}", err=True)
    if dry_run:
        return False
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"do {counted(len(steps), 'step')}?", err=True)):
        hint = "confirm on a terminal, or give --yes"
        raise SpecError.of("SEA769", "nothing was changed", where="command line", field="--yes", hint=hint)
    failed = []
    for outcome in carry_out(steps, calls, Patience(time.sleep), lambda line: typer.echo(line, err=True)):
        typer.echo(f"  {outcome.status}{f': {outcome.told}' if outcome.told else ''}", err=True)
        if outcome.status != "done":
            failed.append(Finding("SEA769", Place.at(found.name, outcome.key), f"{outcome.status}: {outcome.told}"))
    if failed:
        raise BenchError(failed)
    return True
