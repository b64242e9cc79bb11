"""Our resource types and rules in MiniStack's CloudFormation engine and its tagging API.

Each type is a table of functions, as MiniStack keeps them. Done through names that are not MiniStack's interface;
`packages/seatrial-laptop/tests/laptop` holds the contract on them.

MiniStack calls its handlers through three functions, which are wrapped here: properties and rights are checked first.
The schema of its type decides whether a change replaces a resource; one that has a name of its own is not replaced
under that name.
"""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ministack.services import tagging
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks

from seatrial_base.catalog.resource_types import find_replacement_rule, values_at
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.cloudformation.deployer import (
    check_right,
    deployer,
    handler_message,
    remember_deployers,
    resolve_with_rights,
)
from seatrial_laptop.aws.cloudformation.handler_rights import ResourceOperation, needed_rights
from seatrial_laptop.aws.cloudformation.property_checks import property_problem
from seatrial_laptop.aws.cloudformation.resource_types import (
    BUCKET,
    BUDGET,
    CHANNELS,
    HOOK,
    ROLE,
    autoscaling_types,
    bucket_type,
    budget_type,
    channel_type,
    hook_type,
    role_type,
    sagemaker_types,
    service_catalog_types,
)
from seatrial_laptop.aws.cloudformation.stacks_in_progress import (
    delete_what_is_still_created,
    end_waits_on_cancel,
    list_resources_in_progress,
    name_change_sets,
)
from seatrial_laptop.aws.control_plane.records import Kind
from seatrial_laptop.aws.json_document import child, text_member
from seatrial_laptop.aws.ministack import wrapper
from seatrial_laptop.aws.rights import Right, role_allows
from seatrial_laptop.environment import own_account
from seatrial_laptop.state import REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_laptop.aws.autoscaling.scalable_targets import Scaling
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.json_document import Document
    from seatrial_laptop.aws.service_catalog import Catalog

    Parameters = Mapping[str, Mapping[str, object]]
    Created = tuple[str, Document]

OURS: Final = ("AWS::SageMaker::", "AWS::ApplicationAutoScaling::", "AWS::ServiceCatalog::", "AWS::Budgets::")

SAGEMAKER: Final = frozenset(f"AWS::SageMaker::{kind}" for kind in Kind)
ONE_METRIC: Final = ("MetricName", "Namespace", "ComparisonOperator", "Threshold")
"""What MiniStack wants of every alarm, and an alarm by PromQL lacks."""
SENT_BACK: Final = "AWS::SageMaker::InferenceComponent"


def register_types(cloud: Cloud, scaling: Scaling, catalog: Catalog) -> None:
    """Teach MiniStack our types, and let their handlers run on worker threads: they wait, and call this process.

    The wait for a custom resource ends when its stack's update is cancelled. The tagging API lists tags of SageMaker.
    """
    types = provisioners._RESOURCE_HANDLERS  # noqa: SLF001 (the contract)
    types.update(sagemaker_types(cloud))
    types.update(autoscaling_types(scaling))
    types.update(service_catalog_types(catalog))
    types[BUCKET] = bucket_type(types[BUCKET])
    types[BUDGET] = budget_type()
    types.update(dict.fromkeys(CHANNELS, channel_type()))
    types[HOOK] = hook_type()
    types[ROLE] = role_type(types[ROLE])
    guard_resources(cloud)
    replace_by_schema()
    resolve_with_rights()
    remember_deployers()
    end_waits_on_cancel(cloud.clock.aws_date_s)
    delete_what_is_still_created()
    list_resources_in_progress()
    name_change_sets()
    tagging._COLLECTORS["sagemaker"] = cloud.store.tagged  # noqa: SLF001 (the contract)

    @wrapper("_evaluate_conditions", engine, stacks, changesets, handlers, provisioners)
    def evaluate(theirs: Callable[..., Document], template: Document, parameters: Parameters) -> Document:
        # MiniStack compares `Fn::Join` of a condition unresolved. By one the CDK's bootstrap knows whether it was given
        # policies: otherwise its role that deploys has none.
        return theirs({**template, "Conditions": joined(template.get("Conditions", {}), parameters)}, parameters)

    @wrapper("_cw_metric_alarm_record", provisioners)
    def alarm_record(theirs: Callable[..., Document], name: str, properties: Document) -> Document:
        # MiniStack knows alarms on one metric alone. One by PromQL is kept, and never evaluated: no metrics of
        # OpenTelemetry are here.
        kept = {key: properties[key] for key in ("EvaluationCriteria", "EvaluationInterval") if key in properties}
        if not kept:
            return theirs(name, properties)
        record = theirs(name, {**dict.fromkeys(ONE_METRIC, "0"), **properties})
        return {**{key: value for key, value in record.items() if key not in ONE_METRIC}, **kept}

    @wrapper("_sends_back_failed_update", stacks)
    def sends_back(theirs: Callable[[str], object], resource_type: str) -> bool:
        # MiniStack leaves a resource whose own update failed as it is, since the type's handler changed nothing. That
        # CloudFormation sends it its old properties, and that a raised alarm then ends this update too, is assumed.
        ours = resource_type == SENT_BACK and cloud.faults.settings().raised_alarms_end_updates
        return ours or bool(theirs(resource_type))

    @wrapper("_runs_on_worker_thread", stacks)
    def runs_on_worker_thread(theirs: Callable[[str], object], resource_type: str) -> bool:
        # Our handlers call this very process: on the event loop they would wait for a response that is never sent.
        return resource_type == BUCKET or resource_type.startswith(OURS) or bool(theirs(resource_type))


def joined(node: object, parameters: Parameters) -> object:
    """Return a condition with each `Fn::Join` of parameters and texts as its text.

    Args:
        parameters: Each parameter's `Value`, by its name; that of a list is one text with commas.
    """
    if isinstance(node, list):
        return [joined(each, parameters) for each in node]
    if not isinstance(node, dict):
        return node
    if "Fn::Join" in node:
        separator, items = node["Fn::Join"]
        return str(separator).join(_items(items, parameters))
    return {key: joined(value, parameters) for key, value in node.items()}


def _items(items: object, parameters: Parameters) -> list[str]:
    """Return the texts of a list, or of a parameter that is one."""
    if isinstance(items, list):
        return [text for item in items for text in ([item] if isinstance(item, str) else _items(item, parameters))]
    name = items["Ref"] if isinstance(items, dict) else items
    value = parameters.get(str(name), {}).get("Value", "")
    return [part.strip() for part in f"{value}".split(",")]


def guard_resources(cloud: Cloud) -> None:
    """Let MiniStack check properties and rights as CloudFormation does."""

    def check_rights(operation: ResourceOperation) -> None:
        record = cloud.store.of_arn(operation.physical_id)
        born_s = record.born_s if record else cloud.clock.now_s()
        sees_tags = operation.resource_type not in SAGEMAKER or not cloud.faults.hides_tags(born_s)
        if by := deployer.get():
            for right in needed_rights(replace(operation, sees_tags=sees_tags)):
                check_right(by, right)

    @wrapper("_provision_resource", stacks)
    def provision(
        theirs: Callable[..., Created], resource_type: str, logical_id: str, properties: Document, stack: str
    ) -> Created:
        _check_properties(logical_id, resource_type, properties)
        check_rights(ResourceOperation(resource_type, "create", stack, logical_id, "", {}, properties))
        _check_network(resource_type, properties)
        return theirs(resource_type, logical_id, properties, stack)

    @wrapper("_update_resource", stacks)
    def update(  # noqa: PLR0917 (MiniStack's signature)
        theirs: Callable[..., Created],
        resource_type: str,
        physical_id: str,
        old: Document,
        new: Document,
        stack: str,
        logical_id: str,
        old_attributes: Document | None = None,
    ) -> Created:
        # Without a change CloudFormation calls no handler: nothing is checked, and no right is needed.
        if old != new:
            _check_properties(logical_id, resource_type, new)
            # A replacement is a creation, with the rights of its handler; the old resource is deleted by
            # itself later.
            check_rights(
                ResourceOperation(resource_type, "create", stack, logical_id, "", {}, new)
                if replaces(resource_type, old, new)
                else ResourceOperation(resource_type, "update", stack, logical_id, physical_id, old, new)
            )
            _check_network(resource_type, new)
        return theirs(resource_type, physical_id, old, new, stack, logical_id, old_attributes)

    @wrapper("_delete_resource", stacks)
    def delete(  # noqa: PLR0917 (MiniStack's signature)
        theirs: Callable[..., None],
        resource_type: str,
        physical_id: str,
        properties: Document,
        stack: str,
        logical_id: str,
    ) -> None:
        check_rights(ResourceOperation(resource_type, "delete", stack, logical_id, physical_id, properties, {}))
        theirs(resource_type, physical_id, properties, stack, logical_id)


def replace_by_schema() -> None:
    """Let the schema of a type decide what replaces a resource; a type without one keeps MiniStack's own answer."""

    @wrapper("_property_recreation", provisioners, stacks)
    def property_recreation(theirs: Callable[..., object], resource_type: str, name: str) -> str:
        if find_replacement_rule(resource_type) is None:
            return str(theirs(resource_type, name))
        paths = _fixed_paths(resource_type)
        nested = any(path.startswith(f"{name}.") for path in paths)
        return "Always" if name in paths else "Conditionally" if nested else "Never"

    @wrapper("_replacing_change", provisioners, stacks)
    def replacing_change(theirs: Callable[..., object], resource_type: str, old: Document, new: Document) -> bool:
        if find_replacement_rule(resource_type) is None:
            return bool(theirs(resource_type, old, new))
        return replaces(resource_type, old, new)

    @wrapper("_custom_named_replacement_error", provisioners, stacks)
    def named_replacement_error(
        theirs: Callable[..., str | None], resource_type: str, old: Document, new: Document, physical_id: str = ""
    ) -> str | None:
        if find_replacement_rule(resource_type) is None:
            return theirs(resource_type, old, new, physical_id)
        return named_replacement_problem(resource_type, old, new)


def replaces(resource_type: str, old: Document, new: Document) -> bool:
    """Tell whether an update of a resource makes a new one, by the properties that only a new one can have."""
    return any(values_at(old, path) != values_at(new, path) for path in _fixed_paths(resource_type))


def named_replacement_problem(resource_type: str, old: Document, new: Document) -> str | None:
    """Return why a resource can't be replaced: its successor would have its name; `None` when it can, or needs not."""
    rule = find_replacement_rule(resource_type)
    if rule is None or not replaces(resource_type, old, new):
        return None
    before, after = ([values_at(each, path) for path in rule.named_by] for each in (old, new))
    names = [str(value) for values in before for value in values]
    if before != after or not names:
        return None
    return (
        "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
        f"Rename {names[0]} and update the stack again."
    )


def _fixed_paths(resource_type: str) -> tuple[str, ...]:
    rule = find_replacement_rule(resource_type)
    return rule.replaced_by if rule else ()


def _check_properties(logical_id: str, resource_type: str, properties: Document) -> None:
    if problem := property_problem(logical_id, resource_type, properties):
        raise ApiError("ValidationError", problem)


def _check_network(resource_type: str, properties: Document) -> None:
    """Refuse a function in a VPC whose role may not make and remove its network interfaces.

    Lambda asks before there is an interface, so that a statement on `network-interface/*` does not match
    (hashicorp/terraform-provider-aws issue 20698); the Lambda developer guide names `arn:…:*/*` or `*`.

    Raises:
        ApiError: InvalidRequest, in Lambda's words.
    """
    if resource_type != "AWS::Lambda::Function" or not child(properties, "VpcConfig").get("SubnetIds"):
        return
    prefix, role = f"arn:aws:ec2:{REGION}:{own_account()}", text_member(properties, "Role")
    for action, resource in (
        ("CreateNetworkInterface", f"{prefix}:network-interface/*"),
        ("DescribeNetworkInterfaces", "*"),
        ("DeleteNetworkInterface", f"{prefix}:*/*"),
    ):
        if not role_allows(role, Right(f"ec2:{action}", resource)):
            refused = f"The provided execution role does not have permissions to call {action} on EC2"
            where = f"(Service: Lambda, Status Code: 400, Request ID: {uuid.uuid4()})"
            raise ApiError("InvalidRequest", handler_message(f"{refused} {where}", "InvalidRequest"))
