"""What a template or program says of a value before it is deployed: the text, the text with holes, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_lint.cloudformation.intrinsic import SUB, TemplateScope, evaluate, is_function, replace_references
from seatrial_lint.text.json_text import Member, Node, plain_value

if TYPE_CHECKING:
    from pydantic import JsonValue

    from seatrial_lint.lint.source import Span

HOLE = "${…}"


def scalar_text(node: Node) -> str | None:
    """Return a scalar as text, with `HOLE` for each part that only the deployment knows; `None` for anything else."""
    if not node.is_object:
        return node.text()
    value = plain_value(node)
    return _with_holes(evaluate(value, TemplateScope())) if is_function(value) else None


def _with_holes(value: JsonValue) -> str:
    match value:
        case {"Fn::Sub": [str(text), _]}:
            return _with_holes({SUB: text})
        case {"Fn::Join": [str(separator), [*parts]]}:
            return separator.join(map(_with_holes, parts))
    known = replace_references(value, lambda _: HOLE)
    return HOLE if known is None else known


def is_known(text: str) -> bool:
    """Say whether a text has no hole."""
    return HOLE not in text


def unknown_node(line: int, text: str = HOLE) -> Node:
    """Return a value that is not known before it runs, or of which only a part is."""
    value = Node(text.replace(HOLE, "${?}"), quoted=True, line=line, span=(0, 0))
    return as_object({SUB: value}, line)


def as_object(members: dict[str, Node], line: int, span: Span = (0, 0)) -> Node:
    """Return an object of these members."""
    found = tuple(Member(name, node.line, (0, 0), node) for name, node in members.items())
    return Node(found, quoted=False, line=line, span=span, is_object=True)
