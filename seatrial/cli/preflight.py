"""`seatrial preflight`: whether the account has what a deployment needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from seatrial.cli.support.options import EnvironmentName, EnvironmentsFolder, SpecFiles, environments_folder
from seatrial_lint.cli.judging import FindingsFormat, exit_judged, lines_text, show_judgement

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seatrial.deployment.document import Deployment


def preflight_command(
    specs: SpecFiles,
    environment: EnvironmentName,
    environments: EnvironmentsFolder = None,
    output_format: FindingsFormat = "text",
) -> None:
    """Ask the account whether a deployment would find what it needs; exit 1 when something is missing.

    It asks for instance quotas (of all specs together, with the instances of an update), secrets, weights, KMS key,
    network and the CDK bootstrap. What could not be asked is told and is no problem.
    """
    from seatrial.account.clients import account_clients
    from seatrial.operations.preflight.preflight import check_environment as run_checks
    from seatrial.operations.preflight.preflight import preflight_judgement, preflight_lines

    deployments = _deployments(specs, environment, environments)
    place = deployments[0].environment
    checks = run_checks(deployments, place, account_clients(place))
    judgement = preflight_judgement(checks, place)
    show_judgement(judgement, output_format, {"text": lambda: lines_text(preflight_lines(checks))})
    exit_judged(judgement.findings)


def _deployments(specs: Sequence[Path], environment: str, environments: Path | None) -> tuple[Deployment, ...]:
    from seatrial.cli.support.specs import of_every, spec_files
    from seatrial.deployment.load import load_deployment

    def load(file: Path) -> Deployment:
        return load_deployment(file, environments_folder(environments, file), environment)

    found = of_every(spec_files(specs), load)
    if any(one.environment != found[0].environment for one in found):
        message = f"the specs have different environments named {environment}; give --environments"
        raise typer.BadParameter(message, param_hint="SPEC…")
    return found
