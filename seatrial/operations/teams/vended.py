"""Endpoints that were made from products: no spec knows them, their tags do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from seatrial.account.reader import aws_failures, rows, text_at
from seatrial.account.trials import describe_stack
from seatrial.operations.drift.trials import LastTrial, deployed_trial
from seatrial_base.errors import BenchError
from seatrial_base.tags import ENVIRONMENT_TAG, PRODUCT_TAG, PRODUCT_VERSION_TAG, STACK_TAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client


class TaggedResources(Protocol):
    """The one call of the Resource Groups Tagging API that is made."""

    def get_resources(
        self,
        *,
        TagFilters: list[dict[str, object]],  # noqa: N803 (the service's words)
        ResourceTypeFilters: list[str],  # noqa: N803
        PaginationToken: str,  # noqa: N803
    ) -> Mapping[str, object]:
        """Return a page of the resources that have the tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VendedEndpoint:
    """An endpoint that was made from a product; what is unknown is empty or `None`."""

    endpoint_name: str
    tags: Mapping[str, str]
    plan_digest: str = ""
    verdict: str = ""
    usd_per_hour: float | None = None
    trial: LastTrial = field(default_factory=LastTrial)

    @property
    def product(self) -> str:
        """The product."""
        return self.tags.get(PRODUCT_TAG, "")

    @property
    def product_version(self) -> str:
        """The version of the product."""
        return self.tags.get(PRODUCT_VERSION_TAG, "")


def vended_endpoints(
    environment: str, tagged: TaggedResources, stacks: CloudFormationClient, results: S3Client
) -> tuple[tuple[VendedEndpoint, ...], tuple[str, ...]]:
    """Return the endpoints of products in an environment, and what could not be asked."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    try:
        with aws_failures("products"):
            found = sorted(_tagged(environment, tagged))
    except BenchError as error:
        return (), (f"products: {error.problems[0].message}",)
    except ClientError as error:
        return (), (f"products: {error}",)
    unasked: list[str] = []
    vended = tuple(_vended(name, dict(tags), stacks, results, unasked) for name, tags in found)
    return vended, tuple(unasked)


def _tagged(environment: str, tagged: TaggedResources) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield the endpoints that have the tags of a product and of the environment, with all their tags."""
    filters: list[dict[str, object]] = [{"Key": ENVIRONMENT_TAG, "Values": [environment]}, {"Key": PRODUCT_TAG}]
    token = ""
    while True:
        page = tagged.get_resources(
            TagFilters=filters, ResourceTypeFilters=["sagemaker:endpoint"], PaginationToken=token
        )
        for row in rows(page, "ResourceTagMappingList"):
            tags = tuple(sorted((text_at(tag, "Key"), text_at(tag, "Value")) for tag in rows(row, "Tags")))
            yield text_at(row, "ResourceARN").rpartition("/")[2], tags
        token = text_at(page, "PaginationToken")
        if not token:
            return


def _vended(
    name: str, tags: Mapping[str, str], stacks: CloudFormationClient, results: S3Client, unasked: list[str]
) -> VendedEndpoint:
    try:
        stack = describe_stack(tags.get(STACK_TAG, name), stacks)
        trial = deployed_trial(stack, results)
    except BenchError as error:
        unasked.append(f"{name}: {error.problems[0].message}")
        return VendedEndpoint(endpoint_name=name, tags=tags)
    request = None if trial.result is None else trial.result.request
    price = None if request is None else request.usd_per_hour_per_copy
    return VendedEndpoint(
        endpoint_name=name,
        tags=tags,
        plan_digest=stack.outputs.get("PlanDigest", ""),
        verdict=stack.outputs.get("Verdict", ""),
        usd_per_hour=None if request is None or price is None else price * request.copy_count,
        trial=trial,
    )
