"""The stacks of an app: what its context asks for, or everything that is locked; that of an environment's products."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import Annotations, CfnOutput, CfnParameter, Stack, Tags

from seatrial.deployment import load
from seatrial.deployment.document import products_stack
from seatrial.deployment.product import load_products, product_files
from seatrial.deployment.published import kept_templates, outputs_of, published_versions, secrets_of, weights_of
from seatrial.repository.shipped import cdk_cli_version
from seatrial.specs.load import load_environment
from seatrial.specs.pipeline import load_pipeline
from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.execution_role import RoleOptions
from seatrial_cdk.jobs.optimization_job import add_jobs
from seatrial_cdk.observability.environment_dashboard import define_environment_view
from seatrial_cdk.place import stack_environment
from seatrial_cdk.private_bucket import bound_emptying_role
from seatrial_cdk.trials.trials_stack import TrialsStack
from seatrial_cdk.vending.launch_role import LaunchRole
from seatrial_cdk.vending.product_portfolio import Offer, ProductPortfolio, ProjectTemplates
from seatrial_stacks.endpoint_stack import EndpointStack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from aws_cdk import App
    from constructs import Construct

    from seatrial.deployment.document import Deployment
    from seatrial.deployment.product import LoadedProduct
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.pipeline import PipelineSpec


_STACK_NAME = r"[A-Za-z][A-Za-z0-9-]{0,127}"  # CreateStack in the AWS CloudFormation API Reference
_PATTERN = re.compile(r"[A-Za-z0-9*?-]+")


class VendingStack(Stack):
    """The portfolio of one environment's products, their launch role, and the bucket for SageMaker Projects.

    Args:
        offers: What was published of each product.
        templates: Every published template, those of removed products included: teams may still run them.
        trials: The trial service that tries what is launched; it is deployed before.
    """

    def __init__(
        self,
        scope: Construct,
        *,
        environment: EnvironmentSpec,
        offers: Sequence[Offer],
        templates: Iterable[Path],
        trials: TrialsStack,
    ) -> None:
        name = products_stack(environment.name)
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Products for teams in {environment.name}",
            env=stack_environment(environment),
        )
        published = tuple(templates)
        # The objects of weights: those below a prefix, or one archive.
        weights = {
            f"arn:{self.partition}:s3:::{uri.removeprefix('s3://')}{'*' if uri.endswith('/') else ''}"
            for template in published
            for uri in weights_of(template)
        }
        written = sorted({each for template in published for each in outputs_of(template)})
        secrets = {secret for template in published for secret in secrets_of(template)}
        role_options = RoleOptions.of(self, environment.security)
        self.launch_role = LaunchRole(
            self,
            "LaunchRole",
            environment=environment.name,
            network=environment.network,
            role_options=role_options,
            weights=tuple(sorted(weights)),
            kms_key_arns=() if environment.kms_key_arn is None else (environment.kms_key_arn,),
            secrets=tuple(sorted(secrets)),
            outputs=tuple(written),
        )
        self.portfolio = ProductPortfolio(
            self,
            "Portfolio",
            environment=environment.name,
            owner=", ".join(sorted({offer.product.owner for offer in offers})),
            offers=offers,
            launch_role_arn=self.launch_role.role.role_arn,
        )
        self.templates = ProjectTemplates(
            self, "Templates", removal=environment.removal, kms_key_arn=environment.kms_key_arn
        )
        bound_emptying_role(self, role_options)
        outputs = {
            "PortfolioId": self.portfolio.portfolio.ref,
            "LaunchRoleArn": self.launch_role.role.role_arn,
            "TemplatesBucket": self.templates.bucket.bucket_name,
            "TemplatesLocation": f"s3://{self.templates.bucket.bucket_name}/{environment.name}/",
        }
        for output, value in outputs.items():
            CfnOutput(self, output, value=value)
        self.add_stack_dependency(trials)
        for tag, value in environment.tags.items():
            Tags.of(self).add(tag, value)


def add_vending(
    scope: App,
    services: dict[str, TrialsStack],
    products: Sequence[LoadedProduct],
    *,
    environments: Path,
    environment: str | None,
) -> bool:
    """Add the stack of each environment that offers products, and return whether there is any.

    Args:
        services: The trial services by environment; those that are missing are added.
        environment: Only this one; `None` for every one but the embedded AWS.

    Raises:
        SpecError: SEA494 when a product's version is not published.
    """
    added = False
    for name in sorted({name for each in products for name in each.product.environments}):
        spec = load_environment(environments, name)
        if name != environment if environment is not None else spec.is_embedded:
            continue
        if name not in services:
            services[name] = TrialsStack(scope, environment=spec)
        offered = [each for each in products if name in each.product.environments]
        versions = [{made.version: made.template for made in published_versions(each, name)} for each in offered]
        offers = [Offer(product=each.product, versions=made) for each, made in zip(offered, versions, strict=True)]
        folders = sorted({each.path.parent for each in products})
        templates = [file for folder in folders for file in kept_templates(folder, name)]
        VendingStack(scope, environment=spec, offers=offers, templates=templates, trials=services[name])
        added = True
    return added


def define_stacks(app: App) -> None:
    """Add one stack for each endpoint, by the stack's name, and one for the trials of each environment.

    The context narrows: `environment` to one environment, in which every endpoint must be locked then; `endpoint` to
    one file. Without `environment` every environment is defined but the embedded AWS, and what is left out is reported
    on stderr. Products add one stack for each environment that offers them. `endpoints`, `environments` and `products`
    name other folders, `serving_templates` one of templates that override ours file by file.

    Stacks stand directly below the app, not in stages: the CDK CLI takes a single stack without its name only there,
    and a path in the template would change.

    Warnings have no stack trace: it would hold paths of this process, and the same input would give other bytes.

    With `pipeline`, the file of a pipeline's spec, the pipeline alone is defined. With
    `destroy`, the name of a stack, it alone is, without a look at any spec: `cdk destroy` finds it whatever they say.

    An endpoint that is wrong gets a stack that can't be deployed, with an error that the CDK CLI shows for whoever
    selects it: the others go on.

    With `cdk -e` (`--exclusively`) an endpoint that is not named gets no stack: it costs no time.

    Raises:
        SpecError: With everything that is wrong, where no endpoint is right or one was named.
    """
    app.node.set_context("aws:cdk:disable-stack-trace", True)  # noqa: FBT003 (the context's value)
    # In that report the error of one stack fails the app; the CDK CLI heeds it only where the stack is selected.
    app.node.set_context("@aws-cdk/core:annotationsInValidationReport", False)  # noqa: FBT003 (the context's value)
    if pipeline := context_text(app, "pipeline"):
        _define_pipeline(app, Path(pipeline))
        return
    folders = _Folders.of(app)
    environment, endpoint = (context_text(app, name) or None for name in ("environment", "endpoint"))
    if name := context_text(app, "destroy"):
        if not re.fullmatch(_STACK_NAME, name):
            message = f"the context value `destroy` is {name!r}, not the name of one stack"
            raise SpecError.of("SEA404", message, hint="give one as `-c destroy=seatrial-ENV-NAME`; none is a pattern")
        place = load_environment(folders.environments, environment) if environment else None
        _undeployable_stack(app, name, place, "Context `destroy` is for `cdk destroy`: leave it out")
        return
    has_products = endpoint is None and bool(product_files(folders.products))
    locked = _locked(folders, environment, endpoint, required=not has_products)
    services = add_stacks(app, locked.deployments, locked.awaiting, selected=_selected(app))
    _add_broken(app, locked.broken, folders.environments)
    if not has_products:
        return
    loaded = load_products(folders.products, folders.environments)
    offered = add_vending(app, services, loaded, environments=folders.environments, environment=environment)
    if not (services or locked.deployments or offered):
        hint = "select one that offers products: -c environment=NAME"
        raise SpecError.of("SEA404", "no environment offers products", where=folders.products.as_posix(), hint=hint)


def _undeployable_stack(app: App, name: str, place: EnvironmentSpec | None, reason: str) -> Stack:
    """Return a stack that `cdk destroy` finds, and that `cdk deploy` refuses."""
    # A template must have a resource: the CDK's metadata, which is nothing. A parameter without a value keeps
    # `cdk deploy` from emptying the stack that is live: it would delete the endpoint without a question.
    stack = Stack(app, name, env=stack_environment(place) if place else None, analytics_reporting=True)
    CfnParameter(stack, "ForCdkDestroyAlone", description=reason)
    return stack


def _add_broken(app: App, broken: Sequence[load.BrokenEndpoint], environments: Path) -> None:
    """Add a stack for each endpoint that can't be synthesized, which the CDK CLI reports and refuses.

    Without it, `cdk deploy --all` would end well over an endpoint that was left out.
    """
    for each in broken:
        place, name = load_environment(environments, each.environment), each.stack_name
        while app.node.try_find_child(name):  # a file may be named as what endpoints share
            name += "-spec"
        stack = _undeployable_stack(app, name, place, "What is wrong is in the error beside it")
        Annotations.of(stack).add_error(str(SpecError(each.problems)))


@dataclass(frozen=True, slots=True)
class _Folders:
    """Where specs lie, by the app's context."""

    endpoints: Path
    environments: Path
    products: Path
    templates: Path | None

    @classmethod
    def of(cls, app: App) -> _Folders:
        endpoints, environments, products = (
            Path(context_text(app, name) or name) for name in ("endpoints", "environments", "products")
        )
        templates = context_text(app, "serving_templates")
        return cls(endpoints, environments, products, Path(templates) if templates else None)


def add_stacks(
    scope: App,
    deployments: Iterable[Deployment],
    awaiting: Iterable[EnvironmentSpec] = (),
    *,
    selected: tuple[str, ...] = ("*",),
) -> dict[str, TrialsStack]:
    """Add the stacks of deployments; what is tried is deployed after its environment's service, removed before it.

    Args:
        awaiting: Environments in which endpoints await a promotion; each has its trial service.
        selected: Patterns of the stacks that are wanted; an endpoint without gets none. What endpoints share is defined
            as with all of them.

    Returns:
        The trial services, by environment.
    """
    deployments = tuple(deployments)
    services = {environment.name: TrialsStack(scope, environment=environment) for environment in awaiting}
    for deployment in deployments:
        stack, models = None, (deployment, *deployment.guests, *deployment.variants)
        # The jobs of endpoints are added to a stack that they share, which must have those of all.
        has_jobs = any(each.optimization_job is not None for each in models)
        if has_jobs or any(fnmatchcase(deployment.stack_name, pattern) for pattern in selected):
            stack = EndpointStack(scope, deployment.stack_name, deployment=deployment)
        if deployment.needs_trial_service:
            name = deployment.environment.name
            if name not in services:
                services[name] = TrialsStack(scope, environment=deployment.environment)
            if stack is not None:
                stack.add_stack_dependency(services[name])
        if stack is not None:
            add_jobs(stack, deployment)
    for environment in {each.environment.name: each.environment for each in deployments}.values():
        if environment.name in services:
            define_environment_view(services[environment.name], environment, deployments)
    return services


def _selected(app: App) -> tuple[str, ...]:
    """Return the patterns of the stacks that the CDK CLI selects, as far as it says: with `-e` (`--exclusively`) alone.

    It says which stacks to bundle assets of: with `-e` those that are named, as they are written; without, all. A
    command that bundles none, as `cdk ls`, names none and wants every stack.
    """
    named: object = app.node.try_get_context("aws:cdk:bundling-stacks")
    patterns = tuple(f"{each}" for each in named) if isinstance(named, list) else ()
    # Of its patterns, those that are written otherwise in Python might leave out a stack that is wanted.
    return patterns if patterns and all(_PATTERN.fullmatch(each) for each in patterns) else ("*",)


def _define_pipeline(app: App, file: Path) -> None:
    """Define the pipeline; it deploys from the repository, so that no lock is read here."""
    spec, order = load_pipeline(file, _Folders.of(app).environments)
    PipelineStack(app, spec=spec, environments=order)


def _locked(
    folders: _Folders, environment: str | None, endpoint: str | None, *, required: bool
) -> load.LockedDeployments:
    """Load what is locked; without any spec nothing, unless one is required."""
    if not required and not any(folders.endpoints.glob("*.yaml")):
        return load.LockedDeployments((), ())
    if environment is not None:
        deployments = load.load_deployments(
            folders.endpoints, folders.environments, environment, endpoint, templates=folders.templates
        )
    else:
        deployments = load.find_deployments(
            folders.endpoints, folders.environments, endpoint, templates=folders.templates
        )
    sys.stderr.write("".join(f"note: {line}\n" for line in deployments.left_out))
    return deployments


def context_text(app: App, name: str) -> str | None:
    """Return a context value; `None` when there is none.

    Raises:
        SpecError: SEA404 when the value is no text.
    """
    value: object = app.node.try_get_context(name)
    if value is None or isinstance(value, str):
        return value
    message = f"the context value `{name}` is {value!r}, not a string"
    raise SpecError.of("SEA404", message, hint=f"give it as `-c {name}=TEXT`")


class PipelineStack(Stack):
    """The pipeline, in the account and Region of its spec.

    Args:
        environments: The environments that get a stage, each after its source.
    """

    def __init__(self, scope: Construct, *, spec: PipelineSpec, environments: Sequence[EnvironmentSpec]) -> None:
        name = f"{spec.name}-pipeline"
        super().__init__(
            scope,
            name,
            stack_name=name,
            description=f"Pipeline of {spec.repository}",
            env=stack_environment(spec),
        )
        # It loads two services of the CDK that no other app needs, at every synthesis.
        from seatrial_cdk.delivery.delivery_pipeline import DeliveryPipeline  # noqa: PLC0415

        self.pipeline = DeliveryPipeline(self, "Pipeline", spec=spec, cdk_cli=cdk_cli_version())
        for environment in environments:
            self.pipeline.add_environment(environment)
        self.pipeline.build()
