"""What CloudFormation does around every resource handler: properties checked, rights asked, replacement decided.

MiniStack calls its handlers through three functions, which are wrapped here. Whether a change replaces a resource is
told by its type's schema; one that has a name of its own is not replaced under that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ministack.services.cloudformation import provisioners, stacks

from seatrial_base.catalog.handler_conditions import values_at
from seatrial_base.catalog.resource_types import find_replacement_rule
from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.cloudformation.deployer import check_right, deployer
from seatrial_laptop.aws.cloudformation.handler_rights import ResourceOperation, needed_rights
from seatrial_laptop.aws.cloudformation.property_checks import property_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_laptop.aws.json_document import Document

    Created = tuple[str, Document]


def guard_resources() -> None:
    """Let MiniStack check, ask and replace as CloudFormation does."""
    _guard_creation()
    _guard_update()
    _guard_deletion()
    _replace_by_schema()


def _guard_creation() -> None:
    theirs: Callable[..., Created] = stacks._provision_resource  # noqa: SLF001 (the contract)

    def provision(resource_type: str, logical_id: str, properties: Document, stack: str) -> Created:
        _check_properties(logical_id, resource_type, properties)
        _check_rights(ResourceOperation(resource_type, "create", stack, logical_id, "", {}, properties))
        return theirs(resource_type, logical_id, properties, stack)

    stacks._provision_resource = provision  # noqa: SLF001 (the contract)


def _guard_update() -> None:
    theirs: Callable[..., Created] = stacks._update_resource  # noqa: SLF001 (the contract)

    def update(  # noqa: PLR0917 (MiniStack's signature)
        resource_type: str,
        physical_id: str,
        old: Document,
        new: Document,
        stack: str,
        logical_id: str,
        old_attributes: Document | None = None,
    ) -> Created:
        if old != new:
            _check_properties(logical_id, resource_type, new)
            replaced = replaces(resource_type, old, new)
            operation = (
                ResourceOperation(resource_type, "create", stack, logical_id, "", {}, new)
                if replaced
                else ResourceOperation(resource_type, "update", stack, logical_id, physical_id, old, new)
            )
            _check_rights(operation)
        return theirs(resource_type, physical_id, old, new, stack, logical_id, old_attributes)

    stacks._update_resource = update  # noqa: SLF001 (the contract)


def _guard_deletion() -> None:
    theirs: Callable[..., None] = stacks._delete_resource  # noqa: SLF001 (the contract)

    def delete(resource_type: str, physical_id: str, properties: Document, stack: str, logical_id: str) -> None:
        _check_rights(ResourceOperation(resource_type, "delete", stack, logical_id, physical_id, properties, {}))
        theirs(resource_type, physical_id, properties, stack, logical_id)

    stacks._delete_resource = delete  # noqa: SLF001 (the contract)


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


def _replace_by_schema() -> None:
    """Give MiniStack the schemas' answers, for the types that have one; the others keep its own."""
    recreation = provisioners._property_recreation  # noqa: SLF001 (the contract)
    changes = provisioners._replacing_change  # noqa: SLF001 (the contract)
    kept = provisioners._custom_named_replacement_error  # noqa: SLF001 (the contract)

    def replacing_change(resource_type: str, old: Document, new: Document) -> bool:
        if find_replacement_rule(resource_type) is None:
            return bool(changes(resource_type, old, new))
        return replaces(resource_type, old, new)

    def property_recreation(resource_type: str, name: str) -> str:
        if find_replacement_rule(resource_type) is None:
            return str(recreation(resource_type, name))
        paths = _fixed_paths(resource_type)
        nested = any(path.startswith(f"{name}.") for path in paths)
        return "Always" if name in paths else "Conditionally" if nested else "Never"

    def kept_name_error(resource_type: str, old: Document, new: Document, physical_id: str = "") -> str | None:
        if find_replacement_rule(resource_type) is None:
            return cast("str | None", kept(resource_type, old, new, physical_id))
        return named_replacement_problem(resource_type, old, new)

    for module in (provisioners, stacks):
        module._replacing_change = replacing_change  # noqa: SLF001 (the contract)
        module._property_recreation = property_recreation  # noqa: SLF001 (the contract)
        module._custom_named_replacement_error = kept_name_error  # noqa: SLF001 (the contract)


def _check_properties(logical_id: str, resource_type: str, properties: Document) -> None:
    """Refuse properties that the schema does not allow.

    Raises:
        ApiError: ValidationError, in CloudFormation's words.
    """
    if problem := property_problem(logical_id, resource_type, properties):
        raise ApiError("ValidationError", problem)


def _check_rights(operation: ResourceOperation) -> None:
    """Refuse an operation that the role that deploys may not do.

    Raises:
        ApiError: AccessDenied, in CloudFormation's words.
    """
    by = deployer.get()
    if by is None:
        return
    for right in needed_rights(operation):
        check_right(by, right)
