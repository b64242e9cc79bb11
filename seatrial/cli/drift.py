"""`seatrial drift`: live endpoints compared with their locks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder
from seatrial.cli.support.specs import given_or_own_specs, load_specs
from seatrial_lint.cli.run import FindingsFormat, exit_judged, lines_text, show_judgement

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_base.findings import Format


def drift_command(
    environment: EnvironmentName,
    specs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[SPEC…]", help="YAML files of endpoints, or folders of them. Default: `endpoints`."),
    ] = None,
    environments: EnvironmentsFolder = None,
    output_format: FindingsFormat = "text",
    day: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="A day (UTC) whose copies are compared with their simulation."),
    ] = None,
    *,
    max_trial_age_days: Annotated[
        float,
        typer.Option("--max-trial-age-days", min=0, help="Age in days above which a scheduled trial is a finding."),
    ] = 14,
) -> None:
    """Compare what runs in an environment with what is locked for it; exit 1 with an error or a warning.

    It reads stacks, endpoints, container variables, images, quotas and results of trials, with `--day` also CloudWatch,
    and changes nothing. What
    could not be read is listed and is no finding.
    """
    from seatrial.operations.drift.check import DriftClients, check_drift, read_locked
    from seatrial.operations.drift.report import drift_judgement, drift_lines, drift_markdown

    locked = read_locked(given_or_own_specs(specs), environment, environments)
    clients = DriftClients.of(locked.environment)
    report = check_drift(locked, clients, now=datetime.now(UTC), most_days=max_trial_age_days)
    if day is not None:
        from seatrial.operations.drift.day import with_day

        loaded = load_specs(given_or_own_specs(specs), environment, environments)
        of_name = {each.endpoint.name: each for each in loaded}
        endpoints = (with_day(each, of_name[each.endpoint], clients.account, day.date()) for each in report.endpoints)
        report = replace(report, endpoints=tuple(endpoints))
    judgement = drift_judgement(report)
    views: dict[Format, Callable[[], str]] = {
        "text": lambda: lines_text(drift_lines(report)),
        "markdown": lambda: drift_markdown(report),
    }
    show_judgement(judgement, output_format, views)
    exit_judged(judgement.findings)
