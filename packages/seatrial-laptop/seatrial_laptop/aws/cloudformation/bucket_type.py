"""AWS::S3::Bucket of MiniStack, with what it leaves out: tags, rules, encryption, and no deletion of a full one.

CDK's auto-delete function empties a bucket only when it finds its tag there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import boto3
from botocore.exceptions import ClientError
from ministack.services.cloudformation import provisioners

from seatrial_laptop.aws.api import coerced, input_shape
from seatrial_laptop.aws.json_document import Document, child, children, text_member
from seatrial_laptop.aws.runtime.artifacts import own_s3
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3.type_defs import BucketLifecycleConfigurationTypeDef, TagTypeDef

    from seatrial_laptop.aws.json_document import Handlers


BUDGET: Final = "AWS::Budgets::Budget"
BUDGETS: Final = "budgets"
LONGEST_NAME: Final = 100
"""Characters of a budget's name (AWS Budgets API reference, Budget)."""
Created = tuple[str, Document]
"""A physical ID and the attributes for Fn::GetAtt."""

BUCKET: Final = "AWS::S3::Bucket"
ACTIONS: Final = frozenset({"Expiration", "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration"})
"""What a lifecycle rule may do here."""


def bucket_type(theirs: Handlers) -> Handlers:
    """Return MiniStack's table of the bucket with our creation, update and deletion around its own."""
    each = BucketType(theirs)
    return {**theirs, "create": each.create, "update": each.update, "delete": each.delete}


@dataclass(frozen=True, slots=True)
class BucketType:
    """The bucket type around MiniStack's; its methods are called on worker threads."""

    theirs: Handlers

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:
        """Create the bucket with its tags, its rules and its encryption."""
        return _completed(self._call("create", logical_id, properties, stack), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:
        """Update the bucket, its tags, its rules and its encryption."""
        return _completed(self._call("update", physical_id, old, new, stack), new)

    def delete(self, physical_id: str, properties: Document) -> None:
        """Delete the bucket; one that is gone already is fine.

        Raises:
            ClientError: BucketNotEmpty, it holds objects.
        """
        try:
            own_s3().delete_bucket(Bucket=physical_id)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
        cast("Callable[..., None]", self.theirs["delete"])(physical_id, properties)

    def _call(self, verb: str, *arguments: object) -> Created:
        return cast("Callable[..., Created]", self.theirs[verb])(*arguments)


def _completed(created: Created, properties: Document) -> Created:
    """Do what MiniStack's handlers leave out."""
    _set_tags(created[0], properties)
    _set_rules(created[0], properties)
    _set_encryption(created[0], properties)
    return created


def _set_tags(bucket: str, properties: Document) -> None:
    tags: list[TagTypeDef] = [
        {"Key": text_member(tag, "Key"), "Value": text_member(tag, "Value")} for tag in children(properties, "Tags")
    ]
    if tags:
        own_s3().put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    else:
        own_s3().delete_bucket_tagging(Bucket=bucket)


def _set_encryption(bucket: str, properties: Document) -> None:
    """Set the key of the bucket; MiniStack has none of AWS's own, and refuses uploads that ask for that."""
    defaults = [
        child(each, "ServerSideEncryptionByDefault")
        for each in children(child(properties, "BucketEncryption"), "ServerSideEncryptionConfiguration")
    ]
    rules = [{"ApplyServerSideEncryptionByDefault": each} for each in defaults if "KMSMasterKeyID" in each]
    if rules:
        own_s3().put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": rules})  # type: ignore[arg-type, misc] # the words of the API


def _set_rules(bucket: str, properties: Document) -> None:
    """Set the lifecycle rules that expire objects or end uploads; others are left out, as nothing executes them."""
    rules = [_rule(each) for each in children(child(properties, "LifecycleConfiguration"), "Rules")]
    kept = [rule for rule in rules if rule.keys() & ACTIONS]
    if kept:
        shape = input_shape("s3", "PutBucketLifecycleConfiguration").members["LifecycleConfiguration"]
        configuration = cast("BucketLifecycleConfigurationTypeDef", coerced(shape, {"Rules": kept}))
        own_s3().put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=configuration)
    else:
        own_s3().delete_bucket_lifecycle(Bucket=bucket)


def _rule(rule: Document) -> Document:
    """Return a rule of CloudFormation as S3's API has it."""
    sizes = {key: rule[key] for key in ("ObjectSizeGreaterThan", "ObjectSizeLessThan") if key in rule}
    tags = {"Tags": children(rule, "TagFilters")} if "TagFilters" in rule else {}
    prefix = {"Prefix": text_member(rule, "Prefix")}
    chosen = {"And": {**prefix, **sizes, **tags}} if sizes or tags else prefix
    name = {"ID": rule["Id"]} if "Id" in rule else {}
    expiry = {"Expiration": {"Days": rule["ExpirationInDays"]}} if "ExpirationInDays" in rule else {}
    same = {key: rule[key] for key in ACTIONS if key != "Expiration" and key in rule}
    return {**name, "Status": rule["Status"], "Filter": chosen, **expiry, **same}


def budget_type() -> Handlers:
    """Return MiniStack's table of the type."""
    return {"create": _create, "update": _update, "delete": _delete}


def _create(logical_id: str, properties: Document, stack: str) -> Created:
    """Create the budget with its notifications; CloudFormation names one without a name."""
    name = provisioners._physical_name(stack, logical_id, max_len=LONGEST_NAME)  # noqa: SLF001 (the contract)
    budget = {"BudgetName": name, **child(properties, "Budget")}
    notifications = children(properties, "NotificationsWithSubscribers")
    _call("CreateBudget", {"Budget": budget, "NotificationsWithSubscribers": notifications})
    return text_member(budget, "BudgetName"), {}


def _update(physical_id: str, old: Document, new: Document, stack: str) -> Created:
    """Make the budget anew under its name; another name, or other notifications, replace it."""
    _delete(physical_id, old)
    return _create("", {**new, "Budget": {**child(new, "Budget"), "BudgetName": physical_id}}, stack)


def _delete(physical_id: str, _properties: Document) -> None:
    """Delete the budget; one that is gone already is fine."""
    try:
        _call("DeleteBudget", {"BudgetName": physical_id})
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise


def _call(operation: str, request: Document) -> None:
    """Call AWS Budgets of this same process; use it off the event loop only."""
    written = coerced(input_shape(BUDGETS, operation), {"AccountId": own_account(), **request})
    if not isinstance(written, dict):
        raise TypeError(f"not a request: {written!r}")
    client = cast("Callable[..., object]", boto3.session.Session().client)(BUDGETS, region_name=REGION)
    method = "create_budget" if operation == "CreateBudget" else "delete_budget"
    cast("Callable[..., object]", getattr(client, method))(**written)
