"""`Fn::Join` in the conditions of a template, which MiniStack compares unresolved.

The CDK's bootstrap asks this way whether it was given policies; without an answer its role that deploys has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial_laptop.aws.json_document import Document

    Parameters = Mapping[str, Mapping[str, object]]


def join_in_conditions() -> None:
    """Let MiniStack evaluate conditions whose joins are resolved."""
    theirs = cast("Callable[[Document, Parameters], Document]", engine._evaluate_conditions)  # noqa: SLF001 (the contract)

    def evaluate(template: Document, parameters: Parameters) -> Document:
        return theirs({**template, "Conditions": joined(template.get("Conditions", {}), parameters)}, parameters)

    for module in (engine, stacks, changesets, handlers, provisioners):
        if hasattr(module, "_evaluate_conditions"):
            module._evaluate_conditions = evaluate  # noqa: SLF001 (the contract)


def joined(node: object, parameters: Parameters) -> object:
    """Return a condition with each `Fn::Join` of parameters and texts as its text.

    Args:
        node: The condition, or a part of it.
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
