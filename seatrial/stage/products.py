"""Brings products to an account: their templates for SageMaker Projects, and which versions are deprecated.

Studio shows the templates below the location that the domain's tag `sagemaker:projectS3TemplatesLocation` names and
that have the tag `sagemaker:studio-visibility` (SageMaker AI developer guide, "Use an Amazon S3 template").
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from seatrial.deployment.published import published_versions
from seatrial.specs.load import load_environment
from seatrial_base.errors import StageError
from seatrial_base.files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.deployment.product import LoadedProduct

VISIBLE = {"sagemaker:studio-visibility": "true"}


def upload_templates(loaded: LoadedProduct, environment: str, bucket: str, environments: Path) -> Iterator[str]:
    """Upload each published version of a product, and yield its S3 URI; deprecated ones lose the tag of Studio.

    Args:
        environment: The environment's name.
        bucket: Output `TemplatesBucket` of the vending stack.
        environments: Folder of environments.

    Raises:
        SpecError: SEA494 when the current version is not published.
        StageError: SEA497 when S3 refuses.
    """
    region = load_environment(environments, environment).region
    client = boto3.client("s3", region_name=region)
    for each in published_versions(loaded, environment):
        key = f"{environment}/{loaded.product.name}-{each.version}.yaml"  # Studio lists YAML, which JSON is too
        visible = each.version not in loaded.product.deprecated
        try:
            client.put_object(
                Bucket=bucket,
                Key=key,
                Body=read_text(each.template).encode(),
                ContentType="application/yaml",
                Tagging=urlencode(VISIBLE) if visible else "",
            )
        except (ClientError, BotoCoreError) as error:
            hint = "the credentials need s3:PutObject and s3:PutObjectTagging there"
            raise StageError.of("SEA497", f"{error}", where=f"s3://{bucket}/{key}", hint=hint) from error
        yield f"s3://{bucket}/{key}"


def mark_deprecated(loaded: LoadedProduct, environment: str, portfolio: str, environments: Path) -> Iterator[str]:
    """Set the guidance of each version in AWS Service Catalog, and yield one line for each version that changes.

    CloudFormation has no property for it.

    Args:
        environment: The environment's name.
        portfolio: Output `PortfolioId` of the vending stack.
        environments: Folder of environments.

    Raises:
        StageError: SEA497 when Service Catalog refuses, or the portfolio has no such product.
    """
    client = boto3.client("servicecatalog", region_name=load_environment(environments, environment).region)
    name = loaded.product.name
    try:
        products = client.search_products_as_admin(PortfolioId=portfolio)["ProductViewDetails"]
        ids = [
            each["ProductViewSummary"]["ProductId"] for each in products if each["ProductViewSummary"]["Name"] == name
        ]
        if not ids:
            raise StageError.of(
                "SEA497", f"the portfolio has no product {name}", where=portfolio, hint="deploy it first"
            )
        for each in client.list_provisioning_artifacts(ProductId=ids[0])["ProvisioningArtifactDetails"]:
            guidance = "DEPRECATED" if each["Name"] in loaded.product.deprecated else "DEFAULT"
            if each.get("Guidance", "DEFAULT") != guidance:
                client.update_provisioning_artifact(
                    ProductId=ids[0], ProvisioningArtifactId=each["Id"], Guidance=guidance
                )
                yield f"{name} {each['Name']}: {guidance}"
    except (ClientError, BotoCoreError) as error:
        raise StageError.of(
            "SEA497", f"{error}", where=portfolio, hint="see the rights that the command needs"
        ) from error
