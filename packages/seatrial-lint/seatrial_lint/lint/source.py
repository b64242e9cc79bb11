"""Keys and values with their place in a file, whatever its form.

Of a value that a template or program says before it is deployed: the text, the text with holes, or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from seatrial_lint.cloudformation.intrinsic import SUB, TemplateScope, evaluate, is_function, replace_references
from seatrial_lint.text_nodes import Member, Node, plain_value

if TYPE_CHECKING:
    from pydantic import JsonValue

Form = Literal["properties", "env"]
Kind = Literal[
    "serving.properties",
    "environment file",
    "environment JSON",
    "model definition",
    "endpoint config",
    "CloudFormation template",
    "Terraform plan",
    "container manifest",
]
Span = tuple[int, int]
HOLE = "${…}"


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """One key with its value.

    Attributes:
        key: As it is written, unescaped.
        line: Line of the key, counted from 1.
        key_span: Characters of the key in the text, quotes included.
        whole_span: Characters that go when the entry goes, line end included; `None` in JSON.
        is_known: The value is written there; otherwise only the deployment knows it, and nothing is said of it.
    """

    key: str
    value: str
    line: int
    form: Form
    key_span: Span = (0, 0)
    value_span: Span = (0, 0)
    whole_span: Span | None = None
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """One container's configuration in one file.

    Attributes:
        entries: Its keys in order; those of the environment, or of the properties.
        facts: What is said beside the container's own keys (`image`, `instance_type`, …), by the names in `model.py`.
        is_json: Written as JSON, so that a replaced key is quoted.
        line: Line at which the container's configuration begins.
        is_fixable: Keys and values are in the text as their spans say, so that `--fix` may change them.
        is_partial: It may have more keys than were read, so that nothing is said to be missing.
        unread: What of the container is not read, in words; empty when all is.
    """

    file: str
    kind: Kind
    entries: tuple[SourceEntry, ...]
    facts: dict[str, SourceEntry] = field(default_factory=dict)
    is_json: bool = False
    text: str = ""
    encoding: str = "utf-8"
    line: int = 1
    is_fixable: bool = True
    is_partial: bool = False
    unread: str = ""

    @property
    def image(self) -> str:
        """The image as it is written; empty where none is."""
        return self.fact("image") or ""

    def fact(self, name: str) -> str | None:
        """Return a fact's value, or `None` when nothing is said."""
        entry = self.facts.get(name)
        return entry.value if entry else None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that can't be linted, and why.

    `is_failure`: it may hold a configuration; otherwise it is passed over in a folder.
    """

    file: str
    because: str
    is_failure: bool = False


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
    """Return whether a text has no hole."""
    return HOLE not in text


def unknown_node(line: int, text: str = HOLE) -> Node:
    """Return a value that is not known before it runs, or of which only a part is."""
    value = Node(text.replace(HOLE, "${?}"), quoted=True, line=line, span=(0, 0))
    return as_object({SUB: value}, line)


def as_object(members: dict[str, Node], line: int, span: Span = (0, 0)) -> Node:
    """Return an object of these members."""
    listed = tuple(Member(name, node.line, (0, 0), node) for name, node in members.items())
    return Node(listed, quoted=False, line=line, span=span, is_object=True)
