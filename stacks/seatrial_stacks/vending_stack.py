"""The stack of the products that one environment offers to its teams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput, Stack, Tags

from seatrial.deployment.document import products_stack
from seatrial.deployment.published import kept_templates, outputs_of, published_versions, secrets_of, weights_of
from seatrial.specs.load import load_environment
from seatrial_cdk.endpoint.execution_role import RoleOptions
from seatrial_cdk.place import stack_environment
from seatrial_cdk.private_bucket import bound_emptying_role
from seatrial_cdk.trials.trials_stack import TrialsStack
from seatrial_cdk.vending.launch_role import LaunchRole
from seatrial_cdk.vending.product_portfolio import Offer, ProductPortfolio, ProjectTemplates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from aws_cdk import App, Stage
    from constructs import Construct

    from seatrial.deployment.product import LoadedProduct
    from seatrial.specs.environment import EnvironmentSpec


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
    scope: App | Stage,
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
