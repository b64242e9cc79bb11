"""`seatrial teams`: what each team runs, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from seatrial.cli.support.options import EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import ENDPOINTS, given_or_own_specs, load_specs, of_every

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.operations.teams import TeamEndpoint


def teams_command(
    specs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SPEC…]", help="YAML files of endpoints, or folders of them. Default: `endpoints`."),
    ] = None,
    environment: Annotated[
        list[str] | None,
        typer.Option("--environment", "-e", metavar="ENV", help="Only this environment; may be repeated."),
    ] = None,
    environments: EnvironmentsFolder = None,
    output_format: Annotated[
        Literal["text", "json", "markdown", "csv"], typer.Option("--format", help="Output format.")
    ] = "text",
    *,
    no_account: Annotated[
        bool, typer.Option("--no-account", help="Read the locks alone; no credentials are needed.")
    ] = False,
) -> None:
    """List the endpoints of each team (tag `team`): version, planned cost, last trial, drift; and its cost this month.

    Endpoints of products are listed by their tags. What could not be read is listed too.
    """
    from seatrial.operations.teams import teams_csv, teams_document, teams_lines, teams_markdown
    from seatrial.specs.load import environment_names, load_environment
    from seatrial_base.terminal import show_json, show_text

    files = given_or_own_specs(specs)
    folder = environments_folder(environments, files[0] if files else ENDPOINTS / "spec.yaml")
    places = of_every(environment or environment_names(folder), lambda name: load_environment(folder, name))
    names = [place.name for place in places if environment or not place.is_embedded]
    endpoints: list[TeamEndpoint] = []
    unread: list[str] = []
    spent: dict[str, float] | None = None if no_account else {}
    for name in dict.fromkeys(names):
        locked = _locked(files, name, environments)
        listed, missing, cost = (locked, (), {}) if no_account else _with_account(locked, files, name, environments)
        for team, usd in cost.items():
            spent = {**(spent or {}), team: (spent or {}).get(team, 0.0) + usd}
        endpoints += listed
        unread += [f"{name}: {line}" for line in missing]
    if output_format == "json":
        show_json(teams_document(endpoints, unread, spent))
    elif output_format == "csv":
        show_text(teams_csv(endpoints))
        for line in unread:
            typer.echo(f"could not be read: {line}", err=True)
    elif output_format == "markdown":
        show_text(teams_markdown(endpoints, unread, spent))
    else:
        show_text("".join(f"{line}\n" for line in teams_lines(endpoints, unread, spent)))


def _locked(files: Sequence[Path], environment: str, environments: Path | None) -> tuple[TeamEndpoint, ...]:
    from seatrial.locks.lock_file import locked_environments
    from seatrial.operations.teams import locked_endpoint
    from seatrial.specs.spec_files import hosts

    here = [file for file in files if environment in locked_environments(file)]
    endpoints = of_every(load_specs(here, environment, environments), locked_endpoint)
    hosted = {(folder, name) for folder in {file.parent for file in here} for name in hosts(folder, environment)}
    return tuple(
        replace(each, usd_per_hour=0.0) if (file.parent, file.stem) in hosted else each  # its host has the instances
        for file, each in zip(here, endpoints, strict=True)
    )


def _with_account(
    locked: tuple[TeamEndpoint, ...], files: Sequence[Path], environment: str, environments: Path | None
) -> tuple[tuple[TeamEndpoint, ...], tuple[str, ...], dict[str, float]]:
    """Return the endpoints as the account has them, with the cost of the month by team.

    Where the credentials are of another account, the endpoints are returned as they are locked.
    """
    import boto3

    from seatrial.operations.drift.check import DriftClients, read_locked
    from seatrial.operations.teams import spent_this_month, with_account
    from seatrial_base.errors import SeatrialError

    plans = read_locked(files, environment, environments)
    try:
        clients = DriftClients.of(plans.environment)
        tagged = boto3.client("resourcegroupstaggingapi", region_name=plans.environment.region)
        place, now = plans.environment, datetime.now(UTC)
        of_china = place.region.startswith("cn-")
        explorer = boto3.client("ce", region_name="cn-northwest-1" if of_china else "us-east-1")
        listed, unread = with_account(locked, plans, clients, tagged, now=now)
    except SeatrialError as error:
        return locked, (error.problems[0].message,), {}
    spent, because = spent_this_month(place, None if place.is_embedded else explorer, now=now)
    return listed, (*unread, *because), spent
