"""Records of Service Catalog, kept until the embedded AWS stops, and the stacks of provisioned products.

A stack is made from a version's template with its portfolio's rules.
"""

from __future__ import annotations

import functools
import itertools
import json
import secrets
import string
import threading
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.runtime.artifacts import own_s3, read_s3_object
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.literals import CapabilityType
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef

    from seatrial_laptop.aws.json_document import Document


SERVICE: Final = "servicecatalog"
ID_SIGNS: Final = string.ascii_lowercase + string.digits
ID_DIGITS: Final = 13
Kept = TypeVar("Kept")

CAPABILITIES: Final[tuple[CapabilityType, ...]] = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")
NOTHING: Final = "No updates are to be performed"
ENDED: Final = {
    "PROVISION_PRODUCT": ("CREATE_COMPLETE", ("CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")),
    "UPDATE_PROVISIONED_PRODUCT": (
        "UPDATE_COMPLETE",
        ("UPDATE_FAILED", "UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_FAILED"),
    ),
    "TERMINATE_PROVISIONED_PRODUCT": ("DELETE_COMPLETE", ("DELETE_FAILED",)),
}
"""The state of a stack in which an operation has succeeded, and those in which it has failed."""


def root_arn() -> str:
    """Return the ARN of who calls with the key of this start: everything is allowed."""
    return f"arn:aws:iam::{own_account()}:root"


def new_id(prefix: str) -> str:
    """Return an ID of the form that the service gives: `prod-4xmplb6lr6abc`."""
    return f"{prefix}-{''.join(secrets.choice(ID_SIGNS) for _ in range(ID_DIGITS))}"


def not_found(what: str) -> ApiError:
    """Return the error for what isn't there, or isn't the caller's to see."""
    return ApiError("ResourceNotFoundException", f"{what} not found.")


def invalid_parameters(message: str) -> ApiError:
    """Return the error for parameters that the service does not take."""
    return ApiError("InvalidParametersException", message)


@dataclass(slots=True, kw_only=True)
class Artifact:
    """A version of a product.

    Attributes:
        url: Where its template was read.
        template: The template's text.
        guidance: DEFAULT or DEPRECATED.
        created_s: Seconds since the epoch.
    """

    name: str
    description: str
    url: str
    template: str
    artifact_id: str = field(default_factory=lambda: new_id("pa"))
    guidance: str = "DEFAULT"
    created_s: float = field(default_factory=time.time)

    def view(self) -> Document:
        """Return what the service tells of it."""
        return {
            "Id": self.artifact_id,
            "Name": self.name,
            "Description": self.description,
            "CreatedTime": self.created_s,
            "Guidance": self.guidance,
        }


@dataclass(slots=True, kw_only=True)
class Product:
    """A product with its versions, the oldest first."""

    product_id: str
    properties: Document
    artifacts: list[Artifact]
    created_s: float = field(default_factory=time.time)

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.properties.get("Name", ""))

    def summary(self) -> Document:
        """Return what the service tells of it in lists."""
        names = {
            "Owner": "Owner",
            "Distributor": "Distributor",
            "Description": "ShortDescription",
            "SupportDescription": "SupportDescription",
            "SupportEmail": "SupportEmail",
            "SupportUrl": "SupportUrl",
        }
        members = {new: self.properties[old] for old, new in names.items() if old in self.properties}
        return {
            "Id": self.product_id.replace("prod-", "prodview-"),
            "ProductId": self.product_id,
            "Name": self.name,
            "Type": "CLOUD_FORMATION_TEMPLATE",
            "HasDefaultPath": False,
            **members,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A constraint of a product in a portfolio: LAUNCH, TEMPLATE or RESOURCE_UPDATE."""

    kind: str
    portfolio_id: str
    product_id: str
    properties: Document


@dataclass(slots=True, kw_only=True)
class CatalogRecord:
    """One operation on a provisioned product.

    Attributes:
        kind: PROVISION_PRODUCT, UPDATE_PROVISIONED_PRODUCT or TERMINATE_PROVISIONED_PRODUCT.
        artifact_id: The version that it leads to.
        token: The caller's token, by which a repeated request is known.
        parameters: What it gives; the stack's when it has succeeded, as a failed update is rolled back.
        status: IN_PROGRESS until the stack has ended.
    """

    kind: str
    provisioned_id: str
    stack_id: str
    artifact_id: str
    token: str
    parameters: dict[str, str] = field(default_factory=dict)
    status: str = "IN_PROGRESS"
    error: str = ""
    outputs: list[Document] = field(default_factory=list)
    record_id: str = field(default_factory=lambda: new_id("rec"))
    created_s: float = field(default_factory=time.time)
    updated_s: float = field(default_factory=time.time)


@dataclass(slots=True, kw_only=True)
class Provisioned:
    """A provisioned product: a stack of its own.

    Attributes:
        status: AVAILABLE, UNDER_CHANGE, TAINTED after a failed update, ERROR after a failed launch.
    """

    name: str
    product_id: str
    artifact_id: str
    portfolio_id: str
    principal: str
    stack_id: str = ""
    last: CatalogRecord | None = None
    parameters: dict[str, str] = field(default_factory=dict)
    tags: list[Document] = field(default_factory=list)
    status: str = "UNDER_CHANGE"
    message: str = ""
    provisioned_id: str = field(default_factory=lambda: new_id("pp"))
    created_s: float = field(default_factory=time.time)

    @property
    def stack_name(self) -> str:
        """Its stack's name."""
        return f"SC-{own_account()}-{self.provisioned_id}"

    @property
    def arn(self) -> str:
        """Its ARN."""
        return f"arn:aws:servicecatalog:{REGION}:{own_account()}:stack/{self.name}/{self.provisioned_id}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything; hold `lock` over every call."""

    portfolios: dict[str, Document] = field(default_factory=dict)
    products: dict[str, Product] = field(default_factory=dict)
    offered: set[tuple[str, str]] = field(default_factory=set)
    principals: set[tuple[str, str]] = field(default_factory=set)
    constraints: dict[str, Constraint] = field(default_factory=dict)
    provisioned: dict[str, Provisioned] = field(default_factory=dict)
    records: dict[str, CatalogRecord] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def portfolios_of(self, principal: str, product_id: str) -> list[str]:
        """Return the portfolios in which a principal may launch a product; the root's are all of them."""
        return [
            portfolio
            for portfolio, offered in sorted(self.offered)
            if offered == product_id
            and (
                principal == root_arn() or any(_names(arn, principal) for of, arn in self.principals if of == portfolio)
            )
        ]

    def product_for(self, principal: str, product_id: str) -> Product:
        """Return a product that a principal may launch."""
        product = self.products.get(product_id)
        if product is None or not self.portfolios_of(principal, product_id):
            raise not_found(f"Product {product_id}")
        return product

    def constraint(self, kind: str, portfolio_id: str, product_id: str) -> Constraint | None:
        """Return the constraint of a kind; `None` without one."""
        place = (kind, portfolio_id, product_id)
        return next(
            (
                constraint
                for constraint in self.constraints.values()
                if (constraint.kind, constraint.portfolio_id, constraint.product_id) == place
            ),
            None,
        )

    def provisioned_for(self, principal: str, request: Document) -> Provisioned:
        """Return what a principal has provisioned, by ID or name; that of another is not its to see."""
        wanted = {
            str(request[key])
            for key in ("Id", "Name", "ProvisionedProductId", "ProvisionedProductName")
            if key in request
        }
        for each in self.provisioned.values():
            if wanted & {each.provisioned_id, each.name} and principal in (root_arn(), each.principal):
                return each
        raise not_found(f"Provisioned product {', '.join(sorted(wanted))}")


def _names(associated: str, principal: str) -> bool:
    """Tell whether an associated ARN names a principal; a pattern has no account."""
    if ":iam:::" not in associated:
        return associated == principal
    return fnmatchcase(principal.replace(f":{own_account()}:", "::", 1), associated)


@functools.cache
def own_stacks() -> CloudFormationClient:
    """Return a client of this same process's CloudFormation; use it off the event loop only."""
    return boto3.client("cloudformation", region_name=REGION)


def read_product_template(url: str) -> str:
    """Return the template at an S3 URL, with the bucket in its path or in its host.

    Raises:
        ApiError: InvalidParametersException, there is none.
    """
    parts = urlsplit(url)
    host, path = parts.netloc, parts.path.lstrip("/")
    place = path if host.startswith(("s3.", "s3-")) or ".s3" not in host else f"{host.partition('.s3')[0]}/{path}"
    body = read_s3_object(f"s3://{place}")
    if body is None:
        raise invalid_parameters(f"Invalid templateURL. Template file isn't accessible: {url}")
    return body.decode()


def deploy(catalog: Catalog, provisioned: Provisioned, artifact: Artifact, parameters: Mapping[str, str]) -> str:
    """Create or update the stack of a provisioned product and return its ID; empty when there is nothing to update.

    Raises:
        ApiError: InvalidParametersException, CloudFormation refuses the request.
    """
    rules = catalog.constraint("TEMPLATE", provisioned.portfolio_id, provisioned.product_id)
    template = json.loads(artifact.template)
    if rules is not None:
        given = json.loads(str(rules.properties["Rules"]))
        template["Rules"] = {**template.get("Rules", {}), **given.get("Rules", given)}
    role = catalog.constraint("LAUNCH", provisioned.portfolio_id, provisioned.product_id)
    client = own_stacks()
    change = partial(client.update_stack if provisioned.stack_id else client.create_stack)
    if role is not None:
        change = partial(change, RoleARN=str(role.properties["RoleArn"]))
    try:
        bucket = f"sc-{own_account()}-{REGION}"
        s3, key = own_s3(), f"{provisioned.provisioned_id}/{time.time_ns()}.template"
        try:
            s3.create_bucket(Bucket=bucket)
        except ClientError as error:
            if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
                raise
        s3.put_object(
            Bucket=bucket, Key=key, Body=json.dumps(template).encode(), Tagging="servicecatalog%3Aprovisioning=true"
        )
        answer = change(
            StackName=provisioned.stack_name,
            TemplateURL=f"https://s3.{REGION}.amazonaws.com/{bucket}/{key}",
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            Capabilities=CAPABILITIES,
            Tags=[{"Key": str(tag["Key"]), "Value": str(tag["Value"])} for tag in provisioned.tags],
        )
    except ClientError as error:
        message = error.response["Error"]["Message"]
        if NOTHING in message:
            return ""
        raise invalid_parameters(message) from error
    return answer["StackId"]


def delete(provisioned: Provisioned) -> None:
    """Delete the stack of a provisioned product."""
    own_stacks().delete_stack(StackName=provisioned.stack_id)


def settle_record(provisioned: Provisioned, record: CatalogRecord) -> None:
    """Bring a record to what its stack is at."""
    if record.status != "IN_PROGRESS":
        return
    stack = own_stacks().describe_stacks(StackName=record.stack_id)["Stacks"][0]
    succeeded, failed = ENDED[record.kind]
    status = stack["StackStatus"]
    if status not in (succeeded, *failed):
        return
    record.updated_s = time.time()
    record.outputs = [
        {"OutputKey": each["OutputKey"], "OutputValue": each["OutputValue"], "Description": each.get("Description", "")}
        for each in stack.get("Outputs", [])
    ]
    if status == succeeded:
        record.status, provisioned.status = "SUCCEEDED", "AVAILABLE"
        provisioned.artifact_id, provisioned.message = record.artifact_id, ""
        provisioned.parameters = record.parameters
        return
    # The newest first.
    events = own_stacks().describe_stack_events(StackName=record.stack_id)["StackEvents"]
    last = itertools.takewhile(lambda each: not _is_start(each, record.stack_id), events)
    reasons = [
        f"{each.get('LogicalResourceId', '')}: {each.get('ResourceStatusReason', '')}"
        for each in last
        if each.get("ResourceStatus", "").endswith("_FAILED")
        and "cancelled" not in each.get("ResourceStatusReason", "")
    ]
    record.status, record.error = "FAILED", (reasons[-1] if reasons else "") or stack.get("StackStatusReason", status)
    provisioned.status = "ERROR" if record.kind == "PROVISION_PRODUCT" else "TAINTED"
    provisioned.message = record.error


def _is_start(event: StackEventTypeDef, stack_id: str) -> bool:
    """Tell whether an event begins an operation on the whole stack."""
    starts = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
    return event.get("PhysicalResourceId") == stack_id and event.get("ResourceStatus") in starts
