"""Checks of properties and rights, and the decision on a replacement, around every resource handler of CloudFormation.

MiniStack calls its handlers through three functions, which are wrapped here. Whether a change replaces a resource is
told by its type's schema; one that has a name of its own is not replaced under that name.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from ministack.services.cloudformation import provisioners, stacks

from seatrial_base.catalog.resource_types import find_replacement_rule, values_at
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.cloudformation.deployer import check_right, deployer, handler_message
from seatrial_laptop.aws.cloudformation.handler_rights import ResourceOperation, needed_rights
from seatrial_laptop.aws.cloudformation.property_checks import property_problem
from seatrial_laptop.aws.json_document import child, text_member
from seatrial_laptop.aws.ministack import wrap
from seatrial_laptop.aws.rights.role_rights import Right, role_allows
from seatrial_laptop.environment import REGION, own_account

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.json_document import Document

    Created = tuple[str, Document]


def guard_resources() -> None:
    """Let MiniStack check, ask and replace as CloudFormation does."""
    wrap("_provision_resource", _guarded_creation, stacks)
    wrap("_update_resource", _guarded_update, stacks)
    wrap("_delete_resource", _guarded_deletion, stacks)
    # For the types that have a schema its answer holds; the others keep MiniStack's own.
    wrap("_property_recreation", _recreation_by_schema, provisioners, stacks)
    wrap("_replacing_change", _change_by_schema, provisioners, stacks)
    wrap("_custom_named_replacement_error", _named_replacement_by_schema, provisioners, stacks)


def _guarded_creation(theirs: Callable[..., Created]) -> Callable[..., Created]:
    def provision(resource_type: str, logical_id: str, properties: Document, stack: str) -> Created:
        _check_properties(logical_id, resource_type, properties)
        _check_rights(ResourceOperation(resource_type, "create", stack, logical_id, "", {}, properties))
        _check_network(resource_type, properties)
        return theirs(resource_type, logical_id, properties, stack)

    return provision


def _guarded_update(theirs: Callable[..., Created]) -> Callable[..., Created]:
    def update(  # noqa: PLR0917 (MiniStack's signature)
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
            replaced = replaces(resource_type, old, new)
            operation = (
                ResourceOperation(resource_type, "create", stack, logical_id, "", {}, new)
                if replaced
                else ResourceOperation(resource_type, "update", stack, logical_id, physical_id, old, new)
            )
            _check_rights(operation)
            _check_network(resource_type, new)
        return theirs(resource_type, physical_id, old, new, stack, logical_id, old_attributes)

    return update


def _guarded_deletion(theirs: Callable[..., None]) -> Callable[..., None]:
    def delete(resource_type: str, physical_id: str, properties: Document, stack: str, logical_id: str) -> None:
        _check_rights(ResourceOperation(resource_type, "delete", stack, logical_id, physical_id, properties, {}))
        theirs(resource_type, physical_id, properties, stack, logical_id)

    return delete


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


def _change_by_schema(theirs: Callable[..., object]) -> Callable[..., bool]:
    def replacing_change(resource_type: str, old: Document, new: Document) -> bool:
        if find_replacement_rule(resource_type) is None:
            return bool(theirs(resource_type, old, new))
        return replaces(resource_type, old, new)

    return replacing_change


def _recreation_by_schema(theirs: Callable[..., object]) -> Callable[..., str]:
    def property_recreation(resource_type: str, name: str) -> str:
        if find_replacement_rule(resource_type) is None:
            return str(theirs(resource_type, name))
        paths = _fixed_paths(resource_type)
        nested = any(path.startswith(f"{name}.") for path in paths)
        return "Always" if name in paths else "Conditionally" if nested else "Never"

    return property_recreation


def _named_replacement_by_schema(theirs: Callable[..., str | None]) -> Callable[..., str | None]:
    def named_replacement_error(resource_type: str, old: Document, new: Document, physical_id: str = "") -> str | None:
        if find_replacement_rule(resource_type) is None:
            return theirs(resource_type, old, new, physical_id)
        return named_replacement_problem(resource_type, old, new)

    return named_replacement_error


def _check_properties(logical_id: str, resource_type: str, properties: Document) -> None:
    """Refuse properties that the schema does not allow."""
    if problem := property_problem(logical_id, resource_type, properties):
        raise ApiError("ValidationError", problem)


def _check_rights(operation: ResourceOperation) -> None:
    """Refuse an operation that the role that deploys may not do."""
    by = deployer.get()
    if by is None:
        return
    for right in needed_rights(operation):
        check_right(by, right)


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
