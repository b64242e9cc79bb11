"""What a template or program says of a value before it is deployed: the text, the text with holes, or nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial_lint.lint.json_text import Member, Node

if TYPE_CHECKING:
    from seatrial_lint.lint.source import Span

HOLE = "${…}"
_NO_VALUE = "AWS::NoValue"
_SUBSTITUTED = re.compile(r"\$\{(!?)[^}]*\}")


def is_intrinsic(node: Node) -> bool:
    """Say whether a value is an intrinsic function, so that only the deployment knows it."""
    members = node.members()
    return len(members) == 1 and (members[0].name == "Ref" or members[0].name.startswith("Fn::"))


def is_no_value(node: Node) -> bool:
    """Say whether a value is `AWS::NoValue`, so that the property is left out."""
    reference = node.member("Ref") if is_intrinsic(node) else None
    return reference is not None and reference.text() == _NO_VALUE


def scalar_text(node: Node) -> str | None:
    """Return a scalar as text, with `HOLE` for each part that only the deployment knows; `None` for anything else."""
    if not is_intrinsic(node):
        return node.text()
    if (whole := node.member("Fn::Sub")) is not None:
        template = whole if whole.text() is not None else next(iter(whole.items()), whole)
        written = template.text()
        return _SUBSTITUTED.sub(HOLE, written) if written is not None else HOLE
    joined = node.member("Fn::Join")
    return HOLE if joined is None else _joined_text(joined.items())


def _joined_text(items: tuple[Node, ...]) -> str:
    if len(items) != 2:  # noqa: PLR2004 (delimiter and parts)
        return HOLE
    delimiter, parts = items[0].text(), items[1].items()
    return HOLE if delimiter is None or not parts else delimiter.join(scalar_text(one) or HOLE for one in parts)


def is_known(text: str) -> bool:
    """Say whether a text has no hole."""
    return HOLE not in text


def unknown_node(line: int, text: str = HOLE) -> Node:
    """Return a value that is not known before it runs, or of which only a part is."""
    value = Node(text.replace(HOLE, "${?}"), quoted=True, line=line, span=(0, 0))
    return as_object({"Fn::Sub": value}, line)


def as_object(members: dict[str, Node], line: int, span: Span = (0, 0)) -> Node:
    """Return an object of these members."""
    found = tuple(Member(name, node.line, (0, 0), node) for name, node in members.items())
    return Node(found, quoted=False, line=line, span=span, is_object=True)
