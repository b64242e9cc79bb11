"""`seatrial drift`: whether live endpoints are what their locks say."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, environments_folder
from seatrial.cli.support.specs import ENDPOINTS, given_or_own_specs
from seatrial_lint.cli.judging import FindingsFormat, exit_judged, lines_text, show_judgement

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.operations.drift.check import DriftClients, Locked
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_base.findings import Format


def drift_command(
    environment: EnvironmentName,
    specs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SPEC…]", help="YAML files of endpoints, or folders of them. Default: `endpoints`."),
    ] = None,
    environments: EnvironmentsFolder = None,
    output_format: FindingsFormat = "text",
    *,
    max_trial_age_days: Annotated[
        float,
        typer.Option("--max-trial-age-days", min=0, help="Age in days above which a scheduled trial is a finding."),
    ] = 14,
) -> None:
    """Compare what runs in an environment with what is locked for it; exit 1 with an error or a warning.

    It reads stacks, endpoints, container variables, images, quotas and results of trials, and changes nothing. What
    could not be asked is told and is no finding.
    """
    from seatrial.operations.drift.check import check_drift
    from seatrial.operations.drift.report import drift_judgement, drift_lines, drift_markdown

    locked = read_locked(given_or_own_specs(specs), environment, environments)
    clients = drift_clients(locked.environment)
    report = check_drift(locked, clients, now=datetime.now(UTC), most_days=max_trial_age_days)
    judgement = drift_judgement(report)
    views: dict[Format, Callable[[], str]] = {
        "text": lambda: lines_text(drift_lines(report)),
        "markdown": lambda: drift_markdown(report),
    }
    show_judgement(judgement, output_format, views)
    exit_judged(judgement.findings)


def read_locked(files: Sequence[Path], environment: str, environments: Path | None) -> Locked:
    """Return what is locked for an environment; a lock that can't be read is told with its endpoint.

    Raises:
        SpecError: With every problem of the environment.
    """
    from seatrial.deployment.load import load_deployment
    from seatrial.locks.lock_file import locked_environments
    from seatrial.operations.drift.check import Locked as LockedPlans
    from seatrial.specs.load import load_environment
    from seatrial.specs.spec_files import hosts
    from seatrial_base.errors import SeatrialError

    folder = environments_folder(environments, files[0] if files else ENDPOINTS / "spec.yaml")
    deployments, unreadable = [], {}
    hosted = {each: hosts(each, environment) for each in {file.parent for file in files}}
    for file in files:
        if file.stem in hosted[file.parent]:
            continue
        try:
            if environment in locked_environments(file):
                place = environments_folder(environments, file)
                deployments.append(load_deployment(file, place, environment, hosted=hosted[file.parent]))
        except SeatrialError as error:
            unreadable[_name_of(file)] = error.problems
    beside = {each for file in files for each in file.parent.glob("*.yaml")}
    return LockedPlans(
        environment=load_environment(folder, environment),
        deployments=tuple(deployments),
        unreadable=unreadable,
        names=tuple(sorted({_name_of(file) for file in (*files, *beside)})),
    )


def _name_of(file: Path) -> str:
    """Return the endpoint's name in a spec, be it wrong in all else; the file's where it has none."""
    from seatrial.specs.yaml_source import read_source

    name = read_source(file).data.get("name")
    return name if isinstance(name, str) else file.stem


def drift_clients(environment: EnvironmentSpec) -> DriftClients:
    """Return clients of an environment's account; it must be the credentials' own.

    Raises:
        SpecError: SEA455 when the credentials belong to another account.
        BenchError: As `aws_failures`.
    """
    import boto3

    from seatrial.account.clients import account_clients, check_account
    from seatrial.account.reader import aws_failures
    from seatrial.operations.drift.check import DriftClients as Clients

    account, region = account_clients(environment), environment.region
    check_account(environment, account.identity)
    with aws_failures(environment.name):
        return Clients(
            stacks=boto3.client("cloudformation", region_name=region),
            endpoints=boto3.client("sagemaker", region_name=region),
            results=boto3.client("s3", region_name=region),
            account=account,
        )
