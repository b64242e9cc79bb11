"""`seatrial preflight`: what the account lacks for a deployment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from seatrial.cli.support.model_options import (
    EnvironmentOrDefault,
    ModelOptions,
    SpecsOrModel,
    load_specs_or_model,
    takes_model,
)
from seatrial.cli.support.options import EnvironmentsFolder
from seatrial.cli.support.specs import of_every
from seatrial_lint.cli.run import FindingsFormat, exit_judged, lines_text, show_judgement

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment
    from seatrial.specs.load import LoadedSpec


@takes_model
def preflight_command(
    specs: SpecsOrModel,
    environment: EnvironmentOrDefault = None,
    environments: EnvironmentsFolder = None,
    output_format: FindingsFormat = "text",
    *,
    model_options: ModelOptions,
) -> None:
    """Check that the account has what a deployment needs; exit 1 when something is missing.

    It checks instance quotas (of all specs together, with the instances of an update), secrets, weights, KMS key,
    network, the CDK bootstrap and reserved capacity. What could not be checked is listed and is no problem.
    """
    from seatrial.account.clients import account_clients
    from seatrial.operations.preflight import check_environment as run_checks
    from seatrial.operations.preflight import preflight_judgement, preflight_lines

    loaded = load_specs_or_model(specs, environment, environments, model_options)
    deployments = of_every(loaded, _deployment)
    # Specs of two folders may each have a `dev` of its own: quotas are read once, of one account and region.
    if any(deployment.environment != deployments[0].environment for deployment in deployments):
        message = f"the specs have different environments named {deployments[0].environment.name}; give --environments"
        raise typer.BadParameter(message, param_hint="SPEC…")
    place = deployments[0].environment
    checks = run_checks(deployments, place, account_clients(place), now=datetime.now(UTC))
    judgement = preflight_judgement(checks, place)
    show_judgement(judgement, output_format, {"text": lambda: lines_text(preflight_lines(checks))})
    # A warning is of what comes: a pipeline that it ended could not deploy what averts it.
    exit_judged(finding for finding in judgement.findings if finding.severity == "error")


def _deployment(loaded: LoadedSpec) -> Deployment:
    """Return what is locked, or what would be planned where nothing can be locked yet."""
    from seatrial.deployment.load import deployment_of, refuse_hosted
    from seatrial.specs.spec_files import hosts

    if loaded.has_spec and loaded.has_environment:
        refuse_hosted(loaded, hosts(loaded.path.parent, loaded.environment.name))
        return deployment_of(loaded)
    from seatrial.planner.planner import make_plan  # what is locked needs none of it

    return deployment_of(loaded, make_plan(loaded))
