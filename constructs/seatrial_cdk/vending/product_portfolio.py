"""An environment's products in AWS Service Catalog: who may launch them, with which role, and which of their values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from aws_cdk import RemovalPolicy, Tags
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from aws_cdk import aws_servicecatalog as servicecatalog
from constructs import Construct

from seatrial_base.frozen_model import digest
from seatrial_base.tags import TEAM_TAG
from seatrial_cdk.policy import acknowledge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from aws_cdk import CfnResource

    from seatrial.specs.product import ProductSpec


LONGEST_PROVIDER = 50
STUDIO = "https://*.sagemaker.aws"
ACKNOWLEDGED = {"S1": "The bucket has templates alone; CloudTrail data events log who reads them."}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A product with what was published of it.

    Attributes:
        versions: Files of the templates by version, the oldest first.
    """

    product: ProductSpec
    versions: Mapping[str, Path]


class ProductPortfolio(Construct):
    """Portfolios with a product for each offer, each with a version for every template that was published.

    One is of the principals that may launch for every team. Each team that a product names principals of has one more:
    its rule lets `Team` be that team alone, whatever a principal of it asks for. The rule is CloudFormation's, which
    Service Catalog adds to the template (template constraint); a principal sees no portfolio but its own.

    A version's template is an asset by its content, and never another one: what was launched from it is left alone.
    Every product has a launch role, so that who launches it needs no right to what it creates, and may not change the
    tags of what was launched. The team is a parameter of each product and no TagOption: two choices of it could
    contradict each other.

    Args:
        owner: Who offers the portfolios; at most 50 characters are shown.
        launch_role_arn: The role that makes their resources.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: str,
        owner: str,
        offers: Sequence[Offer],
        launch_role_arn: str,
    ) -> None:
        super().__init__(scope, construct_id)
        self.launch_role_arn = launch_role_arn
        self.portfolio = self._portfolio(self, f"Endpoints in {environment}", f"for teams in {environment}", owner)
        self.products = {offer.product.name: _Product(self, offer.product.name, offer=offer) for offer in offers}
        for each in self.products.values():
            each.offer_in(each, self.portfolio, each.offer.product.parameters.teams)
        allow_principals(self, self.portfolio, (who for offer in offers for who in offer.product.principals))
        self.team_portfolios: dict[str, servicecatalog.CfnPortfolio] = {}
        for team in sorted({team for offer in offers for team in offer.product.team_principals}):
            home = Construct(self, f"Team{team.capitalize()}")
            portfolio = self._portfolio(
                home, f"Endpoints of {team} in {environment}", f"for team {team} in {environment}", owner
            )
            Tags.of(portfolio).add(TEAM_TAG, team)
            ours = [each for each in self.products.values() if team in each.offer.product.team_principals]
            for each in ours:
                each.offer_in(Construct(home, each.offer.product.name), portfolio, (team,))
            listed = (who for each in ours for who in each.offer.product.team_principals[team])
            allow_principals(home, portfolio, listed)
            self.team_portfolios[team] = portfolio

    @staticmethod
    def _portfolio(scope: Construct, name: str, whom: str, owner: str) -> servicecatalog.CfnPortfolio:
        return servicecatalog.CfnPortfolio(
            scope,
            "Resource",
            display_name=name,
            provider_name=owner[:LONGEST_PROVIDER],
            description=f"LLM endpoints {whom}",
        )


def allow_principals(scope: Construct, portfolio: servicecatalog.CfnPortfolio, principals: Iterable[str]) -> None:
    """Let principals launch the products of a portfolio; those without an account may have wildcards."""
    for principal in sorted({*principals}):
        servicecatalog.CfnPortfolioPrincipalAssociation(
            scope,
            f"Principal{digest(principal)[:8].upper()}",
            portfolio_id=portfolio.ref,
            principal_arn=principal,
            principal_type="IAM_PATTERN" if ":iam:::" in principal else "IAM",
        )


class _Product(Construct):
    """One product, with its constraints in each portfolio."""

    def __init__(self, scope: ProductPortfolio, construct_id: str, *, offer: Offer) -> None:
        super().__init__(scope, construct_id)
        product = offer.product
        self.offer, self._launch_role_arn = offer, scope.launch_role_arn
        self.resource = servicecatalog.CfnCloudFormationProduct(
            self,
            "Resource",
            name=product.name,
            owner=product.owner,
            description=product.description,
            distributor=product.owner,
            support_description=product.support.description or None,
            support_email=product.support.email,
            support_url=product.support.url,
            provisioning_artifact_parameters=[self._artifact(version, offer) for version in offer.versions],
        )

    def offer_in(self, home: Construct, portfolio: servicecatalog.CfnPortfolio, teams: Sequence[str] | None) -> None:
        """Offer it in a portfolio.

        Args:
            home: What the association and its constraints belong to.
            teams: Those that a launch may name; `None` for any.
        """
        association = servicecatalog.CfnPortfolioProductAssociation(
            home, "Association", portfolio_id=portfolio.ref, product_id=self.resource.ref
        )
        for constraint in self._constraints(home, portfolio.ref, teams):
            constraint.node.add_dependency(association)

    def _constraints(self, home: Construct, portfolio_id: str, teams: Sequence[str] | None) -> Iterator[CfnResource]:
        """Define who makes the resources, that their tags stay, and which teams there are."""
        product_id = self.resource.ref
        yield servicecatalog.CfnLaunchRoleConstraint(
            home, "LaunchRole", portfolio_id=portfolio_id, product_id=product_id, role_arn=self._launch_role_arn
        )
        yield servicecatalog.CfnResourceUpdateConstraint(
            home,
            "TagUpdates",
            portfolio_id=portfolio_id,
            product_id=product_id,
            tag_update_on_provisioned_product="NOT_ALLOWED",
        )
        if teams:
            # It holds for every version, also those that were published when more teams were declared.
            known = {"Fn::Contains": [list(teams), {"Ref": "Team"}]}
            assertion = {"Assert": known, "AssertDescription": "the team is unknown, or not yours"}
            rules = json.dumps({"TeamIsKnown": {"Assertions": [assertion]}}, sort_keys=True)
            yield servicecatalog.CfnLaunchTemplateConstraint(
                home, "Teams", portfolio_id=portfolio_id, product_id=product_id, rules=rules
            )

    def _artifact(
        self, version: str, offer: Offer
    ) -> servicecatalog.CfnCloudFormationProduct.ProvisioningArtifactPropertiesProperty:
        asset = assets.Asset(self, f"Version{version}", path=str(offer.versions[version]))
        return servicecatalog.CfnCloudFormationProduct.ProvisioningArtifactPropertiesProperty(
            name=version,
            description=f"{offer.product.name} {version}",
            type="CLOUD_FORMATION_TEMPLATE",
            info={"LoadTemplateFromURL": asset.http_url},
        )


class ProjectTemplates(Construct):
    """A private bucket of templates, which Studio reads with its user's rights from the browser.

    Studio shows the templates that have the tag `sagemaker:studio-visibility: true` below the location that the tag
    `sagemaker:projectS3TemplatesLocation` of its domain names (SageMaker AI developer guide, "Use an Amazon S3
    template", asks for both tags and for CORS). `seatrial products upload` puts them there.

    Args:
        kms_key_arn: Key that encrypts the objects; default: S3's own key.
        removal: `destroy` empties and deletes the bucket with the stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        removal: Literal["destroy", "retain"],
        kms_key_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        destroy = removal == "destroy"
        key = kms.Key.from_key_arn(self, "Key", kms_key_arn) if kms_key_arn else None
        self.bucket = s3.Bucket(
            self,
            "Resource",
            encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
            encryption_key=key,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            enforce_ssl=True,
            versioned=True,
            removal_policy=RemovalPolicy.DESTROY if destroy else RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            auto_delete_objects=destroy,
            cors=[
                s3.CorsRule(
                    allowed_methods=[s3.HttpMethods.GET, s3.HttpMethods.HEAD],
                    allowed_origins=[STUDIO],
                    allowed_headers=["*"],
                    exposed_headers=["ETag"],
                )
            ],
        )
        acknowledge(self.bucket, ACKNOWLEDGED)
