"""The resource types that MiniStack lacks, and those of its own with what it leaves out.

- SageMaker's Model, EndpointConfig, Endpoint and InferenceComponent: the physical ID (`Ref`) is the ARN (resource
  schemas). An update comes here only where no property needs a new resource (`register`); an inference
  component has none that does.
- Application Auto Scaling's ScalableTarget, whose physical ID is its resource, dimension and namespace, joined by `|`,
  and ScalingPolicy, whose is its ARN.
- Service Catalog's types of a portfolio: the physical ID of an association joins its parts with `|`, as `Ref` does;
  that of the others is their ID.
- AWS Chatbot's channels: they are recorded, and reach nobody.
- S3's Bucket with tags, rules, encryption, and no deletion of a full one, IAM's Role with its permissions boundary, and
  the Budget.
- CloudFormation's GuardHook, whose physical ID is its ARN.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import boto3
from botocore.exceptions import ClientError

from seatrial_laptop.aws.api import ApiError, coerced, coerced_request, input_shape, invalid
from seatrial_laptop.aws.autoscaling.scalable_targets import SERVICE as AUTOSCALING
from seatrial_laptop.aws.autoscaling.scalable_targets import call_autoscaling
from seatrial_laptop.aws.control_plane.records import Kind, Record, Status
from seatrial_laptop.aws.control_plane.sagemaker import SERVICE as SAGEMAKER
from seatrial_laptop.aws.control_plane.sagemaker import call_sagemaker
from seatrial_laptop.aws.json_document import Document, child, children, text_member
from seatrial_laptop.aws.ministack import find_role, physical_name
from seatrial_laptop.aws.runtime.artifacts import own_s3
from seatrial_laptop.aws.service_catalog import (
    Artifact,
    Constraint,
    Product,
    invalid_parameters,
    new_id,
    read_product_template,
)
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_s3.type_defs import BucketLifecycleConfigurationTypeDef, TagTypeDef

    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.json_document import Handlers
    from seatrial_laptop.aws.service_catalog import Catalog


POLL_S: Final = 0.05
LONGEST_NAME: Final = 63
SUFFIX_LENGTH: Final = 13
IDENTITY: Final = ("InferenceComponentName", "EndpointName")
"""The properties of a component that no update can change and no change replaces."""
UPDATE_ONLY: Final = {
    Kind.ENDPOINT: ("RetainAllVariantProperties", "ExcludeRetainedVariantProperties", "RetainDeploymentConfig"),
    Kind.INFERENCE_COMPONENT: ("DeploymentConfig",),
}
"""Properties that the update's request has and the creation's has not."""

Created = tuple[str, Document]
"""A physical ID and the attributes for Fn::GetAtt."""

PREFIX: Final = "AWS::ServiceCatalog::"
CONSTRAINTS: Final = {
    f"{PREFIX}LaunchRoleConstraint": "LAUNCH",
    f"{PREFIX}LaunchTemplateConstraint": "TEMPLATE",
    f"{PREFIX}ResourceUpdateConstraint": "RESOURCE_UPDATE",
}


BUDGET: Final = "AWS::Budgets::Budget"
BUDGETS: Final = "budgets"
HOOK: Final = "AWS::CloudFormation::GuardHook"
LONGEST_BUDGET_NAME: Final = 100
"""Characters of a budget's name (AWS Budgets API reference, Budget)."""

CHANNELS: Final = tuple(f"AWS::Chatbot::{chat}ChannelConfiguration" for chat in ("Slack", "MicrosoftTeams"))

BUCKET: Final = "AWS::S3::Bucket"
ROLE: Final = "AWS::IAM::Role"
ACTIONS: Final = frozenset({"Expiration", "AbortIncompleteMultipartUpload", "NoncurrentVersionExpiration"})
"""What a lifecycle rule may do here."""


def sagemaker_types(cloud: Cloud) -> dict[str, Handlers]:
    """Return MiniStack's tables of the four types."""
    return {
        f"AWS::SageMaker::{kind}": {**_table(SageMakerType(kind, cloud)), "update_with_logical_id": True}
        for kind in Kind
    }


def _table(
    of: SageMakerType
    | ScalableTargetType
    | ScalingPolicyType
    | PortfolioType
    | ProductType
    | AssociationType
    | ConstraintType,
) -> Handlers:
    return {"create": of.create, "update": of.update, "delete": of.delete}


@dataclass(frozen=True, slots=True)
class SageMakerType:
    """One resource type, done by calls of our own control plane; its methods are called on worker threads."""

    kind: Kind
    cloud: Cloud

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:
        """Create the resource and wait until it serves; what fails is removed again, as the stack has no ID of it.

        Raises:
            ResourceFailed: The resource's status is Failed.
        """
        name = text_member(properties, f"{self.kind}Name")
        if not name:
            name = physical_name(stack, logical_id, LONGEST_NAME).strip("-")
            if self.cloud.store.find(self.kind, name) is not None:
                # The name follows from the stack and the logical ID alone: that of a replaced resource is still taken
                # by the old one.
                name = name[:-SUFFIX_LENGTH] + uuid.uuid4().hex[:SUFFIX_LENGTH].upper()
        self._call("Create", {**self._request(properties), f"{self.kind}Name": name})
        record = self._settle(name)
        if record is not None and record.failure_reason:
            # The stack has no physical ID of it yet, so nothing else would remove it.
            self._delete(name)
            raise ResourceFailed(f"{self.kind} {name} failed: {record.failure_reason}")
        return self._created(name)

    def update(self, physical_id: str, old: Document, new: Document, stack: str, logical_id: str) -> Created:
        """Update in place; what is gone is created again.

        Raises:
            ResourceFailed: The update was rolled back.
        """
        record = self._record(physical_id)
        if record is None:
            return self.create(logical_id, new, stack)
        # Another name or endpoint of a component: CloudFormation updates it in place, and the API can't.
        changed = [name for name in IDENTITY if old.get(name) != new.get(name)]
        if self.kind is Kind.INFERENCE_COMPONENT and changed:
            raise invalid(
                f"An inference component's {' and '.join(changed)} can't be updated: give it another logical ID."
            )
        self.cloud.store.untag(record.arn, [text_member(tag, "Key") for tag in children(old, "Tags")])
        self.cloud.store.tag(record.arn, children(new, "Tags"))
        if self.kind in UPDATE_ONLY:
            self._call("Update", {**self._request(new, for_update=True), f"{self.kind}Name": record.name})
            settled = self._settle(record.name)
            if settled is None or settled.failure_reason:
                reason = settled.failure_reason if settled else "gone"
                raise ResourceFailed(f"{self.kind} {record.name} failed: {reason}")
        return self._created(record.name)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the resource and wait until it's gone; one that is gone already is fine."""
        record = self._record(physical_id)
        if record is not None:
            # The API refuses to delete what is still changing.
            self._settle(record.name)
            self._delete(record.name)

    def _request(self, properties: Document, *, for_update: bool = False) -> dict[str, object]:
        operation = f"{'Update' if for_update else 'Create'}{self.kind}"
        allowed = input_shape(SAGEMAKER, f"Create{self.kind}").members.keys() | {*UPDATE_ONLY.get(self.kind, ())}
        for name in properties:
            if name not in allowed:
                raise invalid(f"Encountered unsupported property {name}")
        members = input_shape(SAGEMAKER, operation).members
        kept = {name: value for name, value in properties.items() if name in members}
        return coerced_request(SAGEMAKER, operation, kept)

    def _call(self, verb: str, request: Document) -> None:
        call_sagemaker(self.cloud, f"{verb}{self.kind}", request)

    def _record(self, physical_id: str) -> Record | None:
        return next((record for record in self.cloud.store.all(self.kind) if record.arn == physical_id), None)

    def _settle(self, name: str) -> Record | None:
        while (record := self.cloud.store.find(self.kind, name)) and record.status and record.status.in_transit:
            time.sleep(POLL_S)
        return record

    def _delete(self, name: str) -> None:
        try:
            self._call("Delete", {f"{self.kind}Name": name})
        except ApiError:
            if self.cloud.store.find(self.kind, name) is not None:
                raise
        self._settle(name)

    def _created(self, name: str) -> Created:
        record = self.cloud.store.need(self.kind, name)
        attributes: dict[str, object] = {f"{self.kind}Name": name, f"{self.kind}Arn": record.arn, "Id": record.arn}
        if self.kind is Kind.INFERENCE_COMPONENT:
            attributes["InferenceComponentStatus"] = record.status or Status.FAILED
        return record.arn, attributes


class ResourceFailed(Exception):  # noqa: N818 (named after the status)
    """The resource didn't come into service; the message goes into the stack's event."""


def autoscaling_types(scaling: Scaling) -> dict[str, Handlers]:
    """Return MiniStack's tables of the two types."""
    return {
        "AWS::ApplicationAutoScaling::ScalableTarget": _table(ScalableTargetType(scaling)),
        "AWS::ApplicationAutoScaling::ScalingPolicy": _table(ScalingPolicyType(scaling)),
    }


@dataclass(frozen=True, slots=True)
class ScalableTargetType:
    """A scalable target; registering it again changes it."""

    scaling: Scaling

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Register the target with its scheduled actions."""
        self._put(properties)
        return self._schedule(properties, children(properties, "ScheduledActions"))

    def _put(self, properties: Document) -> None:
        tags = {text_member(tag, "Key"): text_member(tag, "Value") for tag in children(properties, "Tags")}
        plain = {name: value for name, value in properties.items() if name not in ("ScheduledActions", "Tags")}
        _call_autoscaling(self.scaling, "RegisterScalableTarget", {**plain, **({"Tags": tags} if tags else {})})

    def _schedule(self, properties: Document, actions: Sequence[Document]) -> Created:
        for action in actions:
            _call_autoscaling(self.scaling, "PutScheduledAction", {**_place(properties), **action})
        physical_id = "|".join(_place(properties).values())
        return physical_id, {"Id": physical_id}

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Register the target again, and write the scheduled actions that differ; another place replaces it."""
        before, after = children(old, "ScheduledActions"), children(new, "ScheduledActions")
        kept = {text_member(action, "ScheduledActionName") for action in after}
        for action in before:
            if (name := text_member(action, "ScheduledActionName")) not in kept:
                request = {**_place(old), "ScheduledActionName": name}
                _call_unless_gone(self.scaling, "DeleteScheduledAction", request)
        self._put(new)
        return self._schedule(new, [action for action in after if action not in before])

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Deregister the target; one that is gone already is fine."""
        _call_unless_gone(self.scaling, "DeregisterScalableTarget", _place_of_target(physical_id))


@dataclass(frozen=True, slots=True)
class ScalingPolicyType:
    """A scaling policy; putting it again changes it."""

    scaling: Scaling

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Put the policy, with the alarms that target tracking needs."""
        plain = {name: value for name, value in properties.items() if name != "ScalingTargetId"}
        answer = _call_autoscaling(self.scaling, "PutScalingPolicy", {**plain, **_place_of_policy(properties)})
        arn = text_member(answer, "PolicyARN")
        return arn, {"Arn": arn}

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Put the policy again; another name or place replaces it."""
        return self.create("", new, stack)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the policy and its alarms; one that is gone already is fine."""
        request = {**_place_of_policy(properties), "PolicyName": text_member(properties, "PolicyName")}
        _call_unless_gone(self.scaling, "DeleteScalingPolicy", request)


def _place(properties: Document) -> dict[str, str]:
    return {name: text_member(properties, name) for name in ("ResourceId", "ScalableDimension", "ServiceNamespace")}


def _place_of_target(physical_id: str) -> dict[str, str]:
    resource, dimension, namespace = physical_id.split("|")
    return {"ResourceId": resource, "ScalableDimension": dimension, "ServiceNamespace": namespace}


def _place_of_policy(properties: Document) -> dict[str, str]:
    target = text_member(properties, "ScalingTargetId")
    return _place_of_target(target) if target else _place(properties)


def _call_autoscaling(scaling: Scaling, operation: str, properties: Document) -> Document:
    return call_autoscaling(scaling, operation, coerced_request(AUTOSCALING, operation, properties))


def _call_unless_gone(scaling: Scaling, operation: str, request: Document) -> None:
    try:
        _call_autoscaling(scaling, operation, request)
    except ApiError as error:
        if error.code != "ObjectNotFoundException":
            raise


def service_catalog_types(catalog: Catalog) -> dict[str, Handlers]:
    """Return MiniStack's tables of the types."""
    return {
        f"{PREFIX}Portfolio": _table(PortfolioType(catalog)),
        f"{PREFIX}CloudFormationProduct": _table(ProductType(catalog)),
        f"{PREFIX}PortfolioProductAssociation": _table(AssociationType(catalog, "ProductId")),
        f"{PREFIX}PortfolioPrincipalAssociation": _table(AssociationType(catalog, "PrincipalARN")),
        **{name: _table(ConstraintType(catalog, kind)) for name, kind in CONSTRAINTS.items()},
    }


@dataclass(frozen=True, slots=True)
class PortfolioType:
    """A portfolio; every property can be updated."""

    catalog: Catalog

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Create the portfolio."""
        return self._keep(new_id("port"), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Update the portfolio."""
        return self._keep(physical_id, new)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the portfolio.

        Raises:
            ApiError: ResourceInUseException, something is still associated with it.
        """
        with self.catalog.lock:
            if any(physical_id == portfolio for portfolio, _ in self.catalog.offered | self.catalog.principals):
                raise ApiError("ResourceInUseException", f"Portfolio {physical_id} has associations.")
            self.catalog.portfolios.pop(physical_id, None)

    def _keep(self, portfolio_id: str, properties: Document) -> Created:
        with self.catalog.lock:
            self.catalog.portfolios[portfolio_id] = properties
        return portfolio_id, {"PortfolioName": text_member(properties, "DisplayName")}


@dataclass(frozen=True, slots=True)
class ProductType:
    """A product; an update matches versions by name and template and leaves those that match alone."""

    catalog: Catalog

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Create the product with its versions.

        Raises:
            ApiError: InvalidParametersException, a template isn't there.
        """
        return self._keep(Product(product_id=new_id("prod"), properties=properties, artifacts=[]), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Update the product: versions that are new are added, those that are gone are removed."""
        return self._keep(self.catalog.products[physical_id], new)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the product; what was provisioned of it stays.

        Raises:
            ApiError: ResourceInUseException, a portfolio still offers it.
        """
        with self.catalog.lock:
            if any(physical_id == product for _, product in self.catalog.offered):
                raise ApiError("ResourceInUseException", f"Product {physical_id} is associated with a portfolio.")
            self.catalog.products.pop(physical_id, None)

    def _keep(self, product: Product, properties: Document) -> Created:
        known = {(artifact.name, artifact.url): artifact for artifact in product.artifacts}
        artifacts = []
        for each in children(properties, "ProvisioningArtifactParameters"):
            name, url = text_member(each, "Name"), text_member(child(each, "Info"), "LoadTemplateFromURL")
            description = text_member(each, "Description")
            artifacts.append(
                known.get((name, url))
                or Artifact(name=name, description=description, url=url, template=read_product_template(url))
            )
        if not artifacts:
            raise invalid_parameters("A product needs a provisioning artifact.")
        with self.catalog.lock:
            product.properties, product.artifacts = properties, artifacts
            self.catalog.products[product.product_id] = product
        return product.product_id, {
            "ProductName": product.name,
            "ProvisioningArtifactIds": ",".join(artifact.artifact_id for artifact in artifacts),
            "ProvisioningArtifactNames": ",".join(artifact.name for artifact in artifacts),
        }


@dataclass(frozen=True, slots=True)
class AssociationType:
    """A product, or a principal, of a portfolio; every change replaces it."""

    catalog: Catalog
    member: str

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Associate."""
        pair = text_member(properties, "PortfolioId"), text_member(properties, self.member)
        with self.catalog.lock:
            self._pairs().add(pair)
        return "|".join(pair), {}

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Associate again; another physical ID lets the engine remove this one."""
        return self.create("", new, stack)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Disassociate; what is gone already is fine."""
        portfolio, _, member = physical_id.partition("|")
        with self.catalog.lock:
            self._pairs().discard((portfolio, member))

    def _pairs(self) -> set[tuple[str, str]]:
        return self.catalog.offered if self.member == "ProductId" else self.catalog.principals


@dataclass(frozen=True, slots=True)
class ConstraintType:
    """A constraint of a product in a portfolio."""

    catalog: Catalog
    kind: str

    def create(self, logical_id: str, properties: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Create the constraint.

        Raises:
            ApiError: ResourceNotFoundException, the portfolio does not offer the product.
        """
        return self._keep(new_id("cons"), properties)

    def update(self, physical_id: str, old: Document, new: Document, stack: str) -> Created:  # noqa: ARG002 (MiniStack's signature)
        """Update the constraint."""
        return self._keep(physical_id, new)

    def delete(self, physical_id: str, properties: Document) -> None:  # noqa: ARG002 (MiniStack's signature)
        """Delete the constraint; one that is gone already is fine."""
        with self.catalog.lock:
            self.catalog.constraints.pop(physical_id, None)

    def _keep(self, constraint_id: str, properties: Document) -> Created:
        portfolio, product = text_member(properties, "PortfolioId"), text_member(properties, "ProductId")
        with self.catalog.lock:
            if (portfolio, product) not in self.catalog.offered:
                raise ApiError("ResourceNotFoundException", f"Portfolio {portfolio} does not offer {product}.")
            self.catalog.constraints[constraint_id] = Constraint(
                kind=self.kind, portfolio_id=portfolio, product_id=product, properties=properties
            )
        return constraint_id, {}


def _completing(theirs: Handlers, complete: Callable[[Created, Document], Created]) -> Handlers:
    """Return MiniStack's table of a type that does more after its creations and updates."""

    def create(*arguments: object) -> Created:
        created = cast("Callable[..., Created]", theirs["create"])(*arguments)
        return complete(created, cast("Document", arguments[1]))

    def update(*arguments: object) -> Created:
        updated = cast("Callable[..., Created]", theirs["update"])(*arguments)
        return complete(updated, cast("Document", arguments[2]))

    return {**theirs, "create": create, "update": update}


def role_type(theirs: Handlers) -> Handlers:
    """Return MiniStack's table of the role, which has its permissions boundary."""

    def bounded(created: Created, properties: Document) -> Created:
        role = find_role(created[0])
        if role is not None:
            role["PermissionsBoundary"] = text_member(properties, "PermissionsBoundary")
        return created

    return _completing(theirs, bounded)


def bucket_type(theirs: Handlers) -> Handlers:
    """Return MiniStack's table of the bucket with our creation, update and deletion around its own."""

    def delete(physical_id: str, properties: Document) -> None:
        # One that is gone already is fine; one that holds objects is BucketNotEmpty.
        try:
            own_s3().delete_bucket(Bucket=physical_id)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchBucket":
                raise
        cast("Callable[..., object]", theirs["delete"])(physical_id, properties)

    return {**_completing(theirs, _completed), "delete": delete}


def _completed(created: Created, properties: Document) -> Created:
    """Do what MiniStack's handlers leave out."""
    bucket, _ = created
    tags: list[TagTypeDef] = [
        {"Key": text_member(tag, "Key"), "Value": text_member(tag, "Value")} for tag in children(properties, "Tags")
    ]
    if tags:
        own_s3().put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    else:
        own_s3().delete_bucket_tagging(Bucket=bucket)
    # Lifecycle rules that expire objects or end uploads; others are left out, as nothing executes them.
    rules = [_rule(rule) for rule in children(child(properties, "LifecycleConfiguration"), "Rules")]
    if kept := [rule for rule in rules if rule.keys() & ACTIONS]:
        shape = input_shape("s3", "PutBucketLifecycleConfiguration").members["LifecycleConfiguration"]
        configuration = cast("BucketLifecycleConfigurationTypeDef", coerced(shape, {"Rules": kept}))
        own_s3().put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration=configuration)
    else:
        own_s3().delete_bucket_lifecycle(Bucket=bucket)
    # MiniStack has no key of AWS's own, and refuses uploads that name it: no such default is set.
    defaults = [
        child(each, "ServerSideEncryptionByDefault")
        for each in children(child(properties, "BucketEncryption"), "ServerSideEncryptionConfiguration")
    ]
    keys = [{"ApplyServerSideEncryptionByDefault": default} for default in defaults if "KMSMasterKeyID" in default]
    if keys:
        own_s3().put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": keys})  # type: ignore[arg-type, misc] # the words of the API
    return created


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


def channel_type() -> Handlers:
    """Return MiniStack's table of a channel of AWS Chatbot: an ARN of its name, and nothing behind it."""

    def create(_logical_id: str, properties: Document, _stack: str) -> Created:
        name = text_member(properties, "ConfigurationName")
        arn = f"arn:aws:chatbot::{own_account()}:chat-configuration/channel/{name}"
        return arn, {"Arn": arn}

    def update(_physical_id: str, _old: Document, new: Document, stack: str) -> Created:
        return create("", new, stack)

    def delete(_physical_id: str, _properties: Document) -> None:
        """Delete nothing: nothing is there."""

    return {"create": create, "update": update, "delete": delete}


def budget_type() -> Handlers:
    """Return MiniStack's table of the type."""

    def update(physical_id: str, old: Document, new: Document, stack: str) -> Created:
        # Made again under its name: another name, or other notifications, replace it.
        _delete_budget(physical_id, old)
        return _create_budget("", {**new, "Budget": {**child(new, "Budget"), "BudgetName": physical_id}}, stack)

    return {"create": _create_budget, "update": update, "delete": _delete_budget}


def hook_type() -> Handlers:
    """Return MiniStack's table of a Guard hook, which is kept and judges nothing here."""

    def create(_logical_id: str, properties: Document, _stack: str) -> Created:
        name = text_member(properties, "Alias").replace("::", "-")
        arn = f"arn:aws:cloudformation:{REGION}:{own_account()}:type/hook/{name}"
        return arn, {"HookArn": arn}

    def update(_physical_id: str, _old: Document, new: Document, stack: str) -> Created:
        return create("", new, stack)

    return {"create": create, "update": update, "delete": lambda _physical_id, _properties: None}


def _create_budget(logical_id: str, properties: Document, stack: str) -> Created:
    """Create the budget with its notifications; CloudFormation names one without a name."""
    name = physical_name(stack, logical_id, LONGEST_BUDGET_NAME)
    budget = {"BudgetName": name, **child(properties, "Budget")}
    notifications = children(properties, "NotificationsWithSubscribers")
    _call_budgets("CreateBudget", {"Budget": budget, "NotificationsWithSubscribers": notifications})
    return text_member(budget, "BudgetName"), {}


def _delete_budget(physical_id: str, _properties: Document) -> None:
    """Delete the budget; one that is gone already is fine."""
    try:
        _call_budgets("DeleteBudget", {"BudgetName": physical_id})
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise


def _call_budgets(operation: str, request: Document) -> None:
    """Call AWS Budgets of this same process; use it off the event loop only."""
    written = coerced_request(BUDGETS, operation, {"AccountId": own_account(), **request})
    client = cast("Callable[..., object]", boto3.session.Session().client)(BUDGETS, region_name=REGION)
    method = "create_budget" if operation == "CreateBudget" else "delete_budget"
    cast("Callable[..., object]", getattr(client, method))(**written)
