"""The stacks of provisioned products: made from a version's template with its portfolio's rules, and read again."""

from __future__ import annotations

import functools
import itertools
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import ClientError

from seatrial_laptop.aws.runtime.artifacts import own_s3, read_s3_object
from seatrial_laptop.aws.service_catalog.catalog import invalid_parameters
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.literals import CapabilityType
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef

    from seatrial_laptop.aws.service_catalog.catalog import Artifact, Catalog, CatalogRecord, Provisioned

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
        answer = change(
            StackName=provisioned.stack_name,
            TemplateURL=_kept(provisioned, json.dumps(template)),
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
    record.status, record.error = "FAILED", _why(record.stack_id) or stack.get("StackStatusReason", status)
    provisioned.status = "ERROR" if record.kind == "PROVISION_PRODUCT" else "TAINTED"
    provisioned.message = record.error


def _why(stack_id: str) -> str:
    """Return the reason of the first resource that failed in the last operation."""
    events = own_stacks().describe_stack_events(StackName=stack_id)["StackEvents"]  # the newest first
    last = itertools.takewhile(lambda each: not _is_start(each, stack_id), events)
    reasons = [
        f"{each.get('LogicalResourceId', '')}: {each.get('ResourceStatusReason', '')}"
        for each in last
        if each.get("ResourceStatus", "").endswith("_FAILED")
        and "cancelled" not in each.get("ResourceStatusReason", "")
    ]
    return reasons[-1] if reasons else ""


def _is_start(event: StackEventTypeDef, stack_id: str) -> bool:
    """Tell whether an event begins an operation on the whole stack."""
    starts = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
    return event.get("PhysicalResourceId") == stack_id and event.get("ResourceStatus") in starts


def _kept(provisioned: Provisioned, template: str) -> str:
    """Keep a template where CloudFormation reads it, and return its URL."""
    bucket = f"sc-{own_account()}-{REGION}"
    s3, key = own_s3(), f"{provisioned.provisioned_id}/{time.time_ns()}.template"
    try:
        s3.create_bucket(Bucket=bucket)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("BucketAlreadyOwnedByYou", "BucketAlreadyExists"):
            raise
    s3.put_object(Bucket=bucket, Key=key, Body=template.encode(), Tagging="servicecatalog%3Aprovisioning=true")
    return f"https://s3.{REGION}.amazonaws.com/{bucket}/{key}"
