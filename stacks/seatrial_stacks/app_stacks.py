"""The stacks of an app: what its context asks for, or everything that is locked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.deployment import load
from seatrial.deployment.product import product_files
from seatrial.errors import SpecError
from seatrial.spec.pipeline_file import load_pipeline
from seatrial_stacks.context import context_text
from seatrial_stacks.endpoint_stack import EndpointStack
from seatrial_stacks.pipeline_stack import PipelineStack
from seatrial_stacks.trials_stack import TrialsStack
from seatrial_stacks.vending_stack import add_vending

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aws_cdk import App, Stage

    from seatrial.deployment.document import Deployment


def define_stacks(app: App) -> None:
    """Add one stack for each endpoint, by the stack's name, and one for the trials of each environment.

    The context narrows: `environment` to one environment, in which every endpoint must be locked then; `endpoint` to
    one file. Without `environment` every environment is defined but the embedded AWS, and what is left out is told on
    stderr. Products add one stack for each environment that offers them. `endpoints`, `environments` and `products`
    name other folders.

    Stacks stand directly below the app, not in stages: the CDK CLI takes a single stack without its name only there,
    and a path in the template would change.

    With `pipeline`, the file of a pipeline's spec, the pipeline alone is defined; its stages have these stacks.

    Raises:
        SpecError: With everything that is wrong in every environment.
    """
    if pipeline := context_text(app, "pipeline"):
        _define_pipeline(app, Path(pipeline))
        return
    endpoints, environments, products = (
        Path(context_text(app, name) or name) for name in ("endpoints", "environments", "products")
    )
    environment, endpoint = (context_text(app, name) or None for name in ("environment", "endpoint"))
    if endpoint is not None or not product_files(products):
        add_stacks(app, _asked(endpoints, environments, environment, endpoint))
        return
    locked = _asked(endpoints, environments, environment, endpoint) if any(endpoints.glob("*.yaml")) else ()
    services = add_stacks(app, locked)
    offered = add_vending(app, services, products=products, environments=environments, environment=environment)
    if not locked and not offered:
        hint = "select one that offers products: -c environment=NAME"
        raise SpecError.of("SEA404", "no environment offers products", where=products.as_posix(), hint=hint)


def add_stacks(app: App | Stage, deployments: Iterable[Deployment]) -> dict[str, TrialsStack]:
    """Add the stacks of deployments; what is tried is deployed after its environment's service, removed before it.

    Returns:
        The trial services, by environment.
    """
    services: dict[str, TrialsStack] = {}
    for deployment in deployments:
        stack = EndpointStack(app, deployment.stack_name, deployment=deployment)
        if deployment.endpoint.trial.mode != "off":
            name = deployment.environment.name
            if name not in services:
                services[name] = TrialsStack(app, environment=deployment.environment)
            stack.add_stack_dependency(services[name])
    return services


def _define_pipeline(app: App, file: Path) -> None:
    endpoints, environments = (Path(context_text(app, name) or name) for name in ("endpoints", "environments"))
    spec, order = load_pipeline(file, environments)
    deployments: dict[str, list[Deployment]] = {}
    for deployment in _asked(endpoints, environments, None, None):
        deployments.setdefault(deployment.environment.name, []).append(deployment)
    PipelineStack(app, spec=spec, environments=order, deployments=deployments, add_stacks=add_stacks)


def _asked(
    endpoints: Path, environments: Path, environment: str | None, endpoint: str | None
) -> tuple[Deployment, ...]:
    if environment is not None:
        return load.load_deployments(endpoints, environments, environment, endpoint)
    found = load.find_deployments(endpoints, environments, endpoint)
    sys.stderr.write("".join(f"note: {line}\n" for line in found.left_out))
    return found.deployments
