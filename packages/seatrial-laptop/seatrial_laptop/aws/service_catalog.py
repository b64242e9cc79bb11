"""Service Catalog: its records, kept until the embedded AWS stops, the stacks of provisioned products, and its API.

A stack is made from a version's template with its portfolio's rules. The API's operations are those of who launches
products, and few of who offers them.
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

from seatrial_laptop.aws.api import ApiError, absent, check_api_request, service_model
from seatrial_laptop.aws.json_document import Document, child, children, text_member, text_members
from seatrial_laptop.aws.runtime.artifacts import own_s3, read_s3_object
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
        """Return it as the service lists it."""
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
        """Return its summary in lists."""
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
        for product in self.provisioned.values():
            if wanted & {product.provisioned_id, product.name} and principal in (root_arn(), product.principal):
                return product
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


def call_service_catalog(catalog: Catalog, operation: str, request: Document, principal: str) -> Document:
    """Do one operation of the Service Catalog API.

    Raises:
        ApiError: The request isn't valid, or the embedded AWS has no such operation.
    """
    if operation not in service_model(SERVICE).operation_names or operation not in OPERATIONS:
        raise absent(operation)
    check_api_request(SERVICE, operation, request)
    with catalog.lock:
        return OPERATIONS[operation](catalog, principal, request)


def _search_products(catalog: Catalog, principal: str, request: Document) -> Document:
    words = [word.lower() for word in text_members(child(request, "Filters"), "FullTextSearch")]
    products = [
        product
        for product in catalog.products.values()
        if catalog.portfolios_of(principal, product.product_id) and all(word in product.name.lower() for word in words)
    ]
    return {"ProductViewSummaries": [product.summary() for product in products], "ProductViewAggregations": {}}


def _search_as_admin(catalog: Catalog, principal: str, request: Document) -> Document:
    _admin(principal)
    portfolio = text_member(request, "PortfolioId")
    products = [
        product
        for product in catalog.products.values()
        if not portfolio or (portfolio, product.product_id) in catalog.offered
    ]
    details = [
        {
            "ProductViewSummary": product.summary(),
            "Status": "AVAILABLE",
            "ProductARN": f"arn:aws:catalog:{REGION}:{own_account()}:product/{product.product_id}",
            "CreatedTime": product.created_s,
        }
        for product in products
    ]
    return {"ProductViewDetails": details}


def _describe_product(catalog: Catalog, principal: str, request: Document) -> Document:
    product = _requested_product(catalog, principal, request, ("Id", "Name"))
    return {
        "ProductViewSummary": product.summary(),
        "ProvisioningArtifacts": [artifact.view() for artifact in product.artifacts],
        "BudgetDetails": [],
        "LaunchPaths": [
            {"Id": portfolio, "Name": str(catalog.portfolios[portfolio]["DisplayName"])}
            for portfolio in catalog.portfolios_of(principal, product.product_id)
        ],
    }


def _list_artifacts(catalog: Catalog, principal: str, request: Document) -> Document:
    product = _requested_product(catalog, principal, request, ("ProductId", "ProductName"))
    details = [
        {**artifact.view(), "Type": "CLOUD_FORMATION_TEMPLATE", "Active": True} for artifact in product.artifacts
    ]
    return {"ProvisioningArtifactDetails": details}


def _update_artifact(catalog: Catalog, principal: str, request: Document) -> Document:
    _admin(principal)
    product = _requested_product(catalog, principal, request, ("ProductId",))
    artifact = _artifact(product, request, ("ProvisioningArtifactId",))
    artifact.guidance = text_member(request, "Guidance", artifact.guidance)
    detail = {**artifact.view(), "Type": "CLOUD_FORMATION_TEMPLATE", "Active": True}
    return {"ProvisioningArtifactDetail": detail, "Info": {}, "Status": "AVAILABLE"}


def _launch_paths(catalog: Catalog, principal: str, request: Document) -> Document:
    product = catalog.product_for(principal, text_member(request, "ProductId"))
    return {
        "LaunchPathSummaries": [
            {
                "Id": portfolio,
                "Name": str(catalog.portfolios[portfolio]["DisplayName"]),
                "ConstraintSummaries": [
                    {"Type": constraint.kind}
                    for constraint in catalog.constraints.values()
                    if (constraint.portfolio_id, constraint.product_id) == (portfolio, product.product_id)
                ],
                "Tags": [],
            }
            for portfolio in catalog.portfolios_of(principal, product.product_id)
        ]
    }


def _provisioning_parameters(catalog: Catalog, principal: str, request: Document) -> Document:
    product = _requested_product(catalog, principal, request, ("ProductId", "ProductName"))
    artifact = _artifact(product, request, ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    declared: dict[str, dict[str, object]] = json.loads(artifact.template).get("Parameters", {})
    described = []
    for key, each in declared.items():
        values = each.get("AllowedValues")
        constraints = {
            "AllowedPattern": each.get("AllowedPattern"),
            "ConstraintDescription": each.get("ConstraintDescription"),
            **{name: str(each[name]) for name in ("MaxLength", "MinLength") if each.get(name) is not None},
            "AllowedValues": ([str(value) for value in values] if isinstance(values, list) else None),
        }
        described.append(
            {
                "ParameterKey": key,
                "ParameterType": str(each.get("Type", "String")),
                "IsNoEcho": bool(each.get("NoEcho", False)),
                "Description": str(each.get("Description", "")),
                **({"DefaultValue": str(each["Default"])} if "Default" in each else {}),
                "ParameterConstraints": {name: value for name, value in constraints.items() if value is not None},
            }
        )
    return {
        "ProvisioningArtifactParameters": described,
        "ConstraintSummaries": [],
        "UsageInstructions": [],
        "TagOptions": [],
    }


def _provision(catalog: Catalog, principal: str, request: Document) -> Document:
    token = text_member(request, "ProvisionToken")
    if repeated := _repeated(catalog, token):
        return _record_document(catalog, repeated)
    product = _requested_product(catalog, principal, request, ("ProductId", "ProductName"))
    artifact = _artifact(product, request, ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    if artifact.guidance == "DEPRECATED":
        raise invalid_parameters(
            f"Provisioning artifact {artifact.artifact_id} is deprecated and can't be provisioned."
        )
    paths = catalog.portfolios_of(principal, product.product_id)
    path = text_member(request, "PathId") or next(iter(paths))
    if path not in paths:
        raise not_found(f"Launch path {path}")
    name = text_member(request, "ProvisionedProductName")
    if any(each.name == name for each in catalog.provisioned.values()):
        raise invalid_parameters(f"A stack named {name} already exists.")
    new = Provisioned(
        name=name,
        product_id=product.product_id,
        artifact_id=artifact.artifact_id,
        portfolio_id=path,
        principal=principal,
        tags=[*children(request, "Tags")],
    )
    parameters = {
        text_member(parameter, "Key"): text_member(parameter, "Value")
        for parameter in children(request, "ProvisioningParameters")
    }
    new.stack_id = deploy(catalog, new, artifact, parameters)
    catalog.provisioned[new.provisioned_id] = new
    return _started(catalog, new, "PROVISION_PRODUCT", artifact.artifact_id, token=token, parameters=parameters)


def _update(catalog: Catalog, principal: str, request: Document) -> Document:
    token = text_member(request, "UpdateToken")
    if repeated := _repeated(catalog, token):
        return _record_document(catalog, repeated)
    given = catalog.provisioned_for(principal, request)
    _check_idle(given)
    product = catalog.product_for(principal, given.product_id)
    named = any(key in request for key in ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    wanted = request if named else {"ProvisioningArtifactId": given.artifact_id}
    artifact = _artifact(product, wanted, ("ProvisioningArtifactId", "ProvisioningArtifactName"))
    tags = catalog.constraint("RESOURCE_UPDATE", given.portfolio_id, given.product_id)
    if "Tags" in request and tags and tags.properties.get("TagUpdateOnProvisionedProduct") == "NOT_ALLOWED":
        raise invalid_parameters("Updating the tags of the provisioned product is not allowed.")
    parameters = dict(given.parameters)
    for parameter in children(request, "ProvisioningParameters"):
        if not parameter.get("UsePreviousValue"):
            parameters[text_member(parameter, "Key")] = text_member(parameter, "Value")
    stack_id = deploy(catalog, given, artifact, parameters)
    document = _started(
        catalog, given, "UPDATE_PROVISIONED_PRODUCT", artifact.artifact_id, token=token, parameters=parameters
    )
    if not stack_id and given.last is not None:
        given.parameters = parameters
        given.last.status, given.status, given.artifact_id = "SUCCEEDED", "AVAILABLE", artifact.artifact_id
        return _record_document(catalog, given.last)
    return document


def _terminate(catalog: Catalog, principal: str, request: Document) -> Document:
    if request.get("RetainPhysicalResources"):
        raise absent("RetainPhysicalResources")
    token = text_member(request, "TerminateToken")
    if repeated := _repeated(catalog, token):
        return _record_document(catalog, repeated)
    given = catalog.provisioned_for(principal, request)
    _check_idle(given)
    delete(given)
    return _started(
        catalog, given, "TERMINATE_PROVISIONED_PRODUCT", given.artifact_id, token=token, parameters=given.parameters
    )


def _describe_provisioned(catalog: Catalog, principal: str, request: Document) -> Document:
    given = catalog.provisioned_for(principal, request)
    if given.last is not None:
        _settle(catalog, given.last)
    if given.provisioned_id not in catalog.provisioned:
        raise not_found(f"Provisioned product {given.name}")
    last = {} if given.last is None else {"LastRecordId": given.last.record_id}
    return {
        "ProvisionedProductDetail": {
            "Name": given.name,
            "Arn": given.arn,
            "Type": "CFN_STACK",
            "Id": given.provisioned_id,
            "Status": given.status,
            "StatusMessage": given.message,
            "CreatedTime": given.created_s,
            "ProductId": given.product_id,
            "ProvisioningArtifactId": given.artifact_id,
            **last,
        },
        "CloudWatchDashboards": [],
    }


def _describe_record(catalog: Catalog, principal: str, request: Document) -> Document:
    record = catalog.records.get(text_member(request, "Id"))
    given = None if record is None else catalog.provisioned.get(record.provisioned_id)
    if record is None or (given is not None and principal not in (root_arn(), given.principal)):
        raise not_found(f"Record {text_member(request, 'Id')}")
    _settle(catalog, record)
    return {**_record_document(catalog, record), "RecordOutputs": record.outputs}


def _outputs(catalog: Catalog, principal: str, request: Document) -> Document:
    given = catalog.provisioned_for(principal, request)
    if given.last is None:
        return {"Outputs": []}
    _settle(catalog, given.last)
    return {"Outputs": given.last.outputs}


OPERATIONS: Final[dict[str, Callable[[Catalog, str, Document], Document]]] = {
    "SearchProducts": _search_products,
    "SearchProductsAsAdmin": _search_as_admin,
    "DescribeProduct": _describe_product,
    "ListProvisioningArtifacts": _list_artifacts,
    "UpdateProvisioningArtifact": _update_artifact,
    "ListLaunchPaths": _launch_paths,
    "DescribeProvisioningParameters": _provisioning_parameters,
    "ProvisionProduct": _provision,
    "UpdateProvisionedProduct": _update,
    "TerminateProvisionedProduct": _terminate,
    "DescribeProvisionedProduct": _describe_provisioned,
    "DescribeRecord": _describe_record,
    "GetProvisionedProductOutputs": _outputs,
}


def _admin(principal: str) -> None:
    if principal != root_arn():
        message = f"{principal} is not the root of the embedded AWS, which alone offers products by calls"
        raise ApiError("AccessDeniedException", message)


def _requested_product(catalog: Catalog, principal: str, request: Document, keys: tuple[str, ...]) -> Product:
    wanted = {text_member(request, key) for key in keys if key in request}
    for product in catalog.products.values():
        if wanted & {product.product_id, product.name}:
            return catalog.product_for(principal, product.product_id)
    raise not_found(f"Product {', '.join(sorted(wanted))}")


def _artifact(product: Product, request: Document, keys: tuple[str, ...]) -> Artifact:
    wanted = {text_member(request, key) for key in keys if key in request}
    for artifact in product.artifacts:
        if wanted & {artifact.artifact_id, artifact.name}:
            return artifact
    raise not_found(f"Provisioning artifact {', '.join(sorted(wanted))}")


def _repeated(catalog: Catalog, token: str) -> CatalogRecord | None:
    return next((record for record in catalog.records.values() if token and record.token == token), None)


def _check_idle(provisioned: Provisioned) -> None:
    if provisioned.last is not None:
        settle_record(provisioned, provisioned.last)
    if provisioned.status == "UNDER_CHANGE":
        raise invalid_parameters(f"Provisioned product {provisioned.provisioned_id} is under change.")


def _started(
    catalog: Catalog, provisioned: Provisioned, kind: str, artifact_id: str, *, token: str, parameters: dict[str, str]
) -> Document:
    record = CatalogRecord(
        kind=kind,
        provisioned_id=provisioned.provisioned_id,
        stack_id=provisioned.stack_id,
        artifact_id=artifact_id,
        token=token,
        parameters=parameters,
    )
    catalog.records[record.record_id] = record
    provisioned.last, provisioned.status = record, "UNDER_CHANGE"
    return _record_document(catalog, record)


def _settle(catalog: Catalog, record: CatalogRecord) -> None:
    """Bring a record to what its stack is at; what was terminated is forgotten."""
    given = catalog.provisioned.get(record.provisioned_id)
    if given is None:
        return
    settle_record(given, record)
    if record.kind == "TERMINATE_PROVISIONED_PRODUCT" and record.status == "SUCCEEDED":
        del catalog.provisioned[record.provisioned_id]


def _record_document(catalog: Catalog, record: CatalogRecord) -> Document:
    given = catalog.provisioned.get(record.provisioned_id)
    known = {} if given is None else {"ProvisionedProductName": given.name, "ProductId": given.product_id}
    errors = [{"Code": "ResourceFailed", "Description": record.error}] if record.error else []
    return {
        "RecordDetail": {
            "RecordId": record.record_id,
            "Status": record.status,
            "RecordType": record.kind,
            "ProvisionedProductId": record.provisioned_id,
            "ProvisionedProductType": "CFN_STACK",
            "ProvisioningArtifactId": record.artifact_id,
            "CreatedTime": record.created_s,
            "UpdatedTime": record.updated_s,
            "RecordErrors": errors,
            "RecordTags": [],
            **known,
        }
    }
