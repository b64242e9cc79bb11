"""A CloudFormation template as a document: its resources and outputs, with functions evaluated, and their lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from seatrial_base.errors import SpecError
from seatrial_lint.cloudformation.intrinsic import TemplateScope, evaluate, is_function, is_no_value
from seatrial_lint.text_nodes import MAX_DEPTH, Member, Node, read_json, read_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import JsonValue

    from seatrial_base.findings import Finding

_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")


@dataclass(frozen=True, slots=True)
class TemplateValue:
    """A value at a path of a resource.

    Attributes:
        path: Names and indices from the resource on, with dots between them.
        raw: What the template has there; `None` where it has nothing.
    """

    path: str
    raw: JsonValue

    def at(self, *names: str) -> TemplateValue:
        """Return the value below; below an intrinsic function everything is that function."""
        value = self
        for name in names:
            value = value._below(name)
        return value

    def _below(self, name: str) -> TemplateValue:
        path = f"{self.path}.{name}"
        if is_function(self.raw):
            return TemplateValue(path, self.raw)
        below = self.raw.get(name) if isinstance(self.raw, dict) else None
        return TemplateValue(path, None if is_no_value(below) else below)

    @property
    def is_absent(self) -> bool:
        """Nothing is written here; what only the deployment knows counts as written."""
        return self.raw is None

    @property
    def is_known(self) -> bool:
        """Something is written here that the template alone tells."""
        return self.raw is not None and not is_function(self.raw)

    @property
    def text(self) -> str | None:
        """The text or the number written here; `None` when there is none."""
        if isinstance(self.raw, str):
            return self.raw
        return f"{self.raw}" if isinstance(self.raw, int | float) and not isinstance(self.raw, bool) else None

    @property
    def number(self) -> float | None:
        """The number written here, also as text, which CloudFormation accepts; `None` when there is none."""
        if isinstance(self.raw, bool) or not isinstance(self.raw, int | float | str):
            return None
        try:
            return float(self.raw)
        except (ValueError, OverflowError):
            return None

    @property
    def flag(self) -> bool | None:
        """The boolean written here, also as text; `None` when there is none."""
        return {"true": True, "false": False}.get(f"{self.raw}".lower())

    @property
    def items(self) -> tuple[TemplateValue, ...]:
        """The items of the list written here; none of anything else."""
        if not isinstance(self.raw, list):
            return ()
        given = enumerate(self.raw)
        return tuple(TemplateValue(f"{self.path}.{index}", item) for index, item in given if not is_no_value(item))

    @property
    def fields(self) -> Mapping[str, TemplateValue]:
        """The fields of the mapping written here; none of anything else."""
        if not isinstance(self.raw, dict) or is_function(self.raw):
            return {}
        return {name: self.at(name) for name, value in self.raw.items() if value is not None and not is_no_value(value)}


@dataclass(frozen=True, slots=True)
class TemplateResource:
    """One resource.

    Attributes:
        resource_type: CloudFormation's name of its type.
        properties: Its properties, as `evaluate` writes them; a function when the whole of them is one.
        policies: What becomes of it when it is deleted or replaced, by the attribute that says so.
        depends_on: The logical IDs that `DependsOn` names.
        construct_path: The path of its CDK construct; empty without one.
        template: The template's name.
    """

    logical_id: str
    resource_type: str
    properties: Mapping[str, JsonValue]
    policies: Mapping[str, str] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    construct_path: str = ""
    template: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other resource: its template and logical ID."""
        return self.template, self.logical_id

    def at(self, *names: str) -> TemplateValue:
        """Return a property."""
        return TemplateValue("Properties", dict(self.properties)).at(*names)


@dataclass(frozen=True, slots=True)
class Template:
    """A template.

    Attributes:
        resources: Its resources by logical ID.
        outputs: Its outputs by name, evaluated.
        text: The text that it was read from; empty without one.
    """

    resources: Mapping[str, TemplateResource]
    outputs: Mapping[str, JsonValue] = field(default_factory=dict)
    text: str = field(default="", compare=False, repr=False)

    def line(self, logical_id: str, path: str) -> int:
        """Return the line of a value of a resource, or of the innermost part of its path that is written.

        Without a text that is 0.

        Args:
            path: Names and indices from the resource on, with dots between them.
        """
        try:
            return _text_lines(self.text).of(logical_id, path)
        except (ValueError, RecursionError):
            return 0


EMPTY = Template({})
"""The template of a stack that is not there."""


def template_of(
    document: Mapping[str, JsonValue], *, name: str, region: str = "", account: str | None = None, text: str = ""
) -> Template:
    """Return a template of its document; what a transform makes of `Fn::…` among the resources is left out.

    Args:
        region: Stands for the pseudo parameter AWS::Region, and tells AWS::Partition; empty leaves both as they are.
        account: Stands for AWS::AccountId, likewise.
        text: The text that the document was read from.

    Raises:
        SpecError: SEA451 when it has no resources, or one of them has no type.
    """
    resources = document.get("Resources")
    if not isinstance(resources, dict):
        raise not_a_template("no Resources", name)
    written = {key: one for key, one in resources.items() if not key.startswith("Fn::")}
    if problems := [finding for key, one in written.items() for finding in _without_type(key, one, name)]:
        raise SpecError(problems)
    pseudo = {"AWS::Region": region, "AWS::AccountId": account or "", "AWS::Partition": _partition(region)}
    scope = TemplateScope({key: value for key, value in pseudo.items() if value}, document.get("Mappings"))
    outputs = document.get("Outputs")
    return Template(
        {
            logical_id: _resource(name, logical_id, resource, scope)
            for logical_id, resource in written.items()
            if isinstance(resource, dict)
        },
        {key: evaluate(value, scope) for key, value in outputs.items()} if isinstance(outputs, dict) else {},
        text,
    )


def not_a_template(why: str, where: str) -> SpecError:
    """Return the error of a text that is no template."""
    hint = "give a CloudFormation template (JSON or YAML), or the folder that `cdk synth` writes"
    return SpecError.of("SEA451", f"not a CloudFormation template: {why}", where=where, hint=hint)


def _partition(region: str) -> str:
    """Return the partition of a region where its name tells it, else nothing (botocore, endpoints.json, 1.43)."""
    for beginning, partition in (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov")):
        if region.startswith(beginning):
            return partition
    return "" if not region or region.startswith(("us-iso", "eu-iso", "eusc-")) else "aws"


def _without_type(logical_id: str, resource: JsonValue, template: str) -> tuple[Finding, ...]:
    if isinstance(resource, dict) and isinstance(resource.get("Type"), str):
        return ()
    return not_a_template(f"the resource {logical_id} has no Type", template).problems


def _resource(
    template: str, logical_id: str, resource: Mapping[str, JsonValue], scope: TemplateScope
) -> TemplateResource:
    metadata, properties = resource.get("Metadata"), evaluate(resource.get("Properties"), scope)
    path = metadata.get("aws:cdk:path") if isinstance(metadata, dict) else ""
    return TemplateResource(
        logical_id=logical_id,
        resource_type=f"{resource['Type']}",
        properties=properties if isinstance(properties, dict) else {},
        policies={name: f"{resource[name]}" for name in _POLICIES if name in resource},
        depends_on=_names(resource.get("DependsOn")),
        construct_path=path if isinstance(path, str) else "",
        template=template,
    )


def _names(value: JsonValue) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()


# The findings of one template follow each other.
@lru_cache(maxsize=1)
def _text_lines(text: str) -> _Lines:
    if text.lstrip().startswith("{"):
        return _Lines(read_json(text))
    (node, *_) = read_yaml(text) or (Node(None, quoted=False, line=1, span=(0, 0)),)
    return _Lines(node)


class _Lines:
    """Where the values of a text stand; the members of an object are looked up by name, as findings are many."""

    def __init__(self, root: Node) -> None:
        self._root = root
        # By the identity of nodes, which the root keeps alive.
        self._members: dict[int, dict[str, Member]] = {}

    def of(self, logical_id: str, path: str) -> int:
        """Return the line of a value of a resource: that of its name in an object; 0 without the resource."""
        resources = self._named(self._root).get("Resources")
        named = self._named(resources.node if resources else self._root).get(logical_id)
        if named is None:
            return 0
        node, line, rest = named.node, named.node.line, path
        while rest:
            name, _, after = rest.partition(".")
            items = node.value if isinstance(node.value, tuple) and not node.is_object else ()
            if name.isdecimal() and int(name) < len(items) and isinstance(item := items[int(name)], Node):
                node, rest = item, after
                line = node.line
                continue
            member = self._longest(node, rest)
            if member is None:
                break
            line, node, rest = member.line, member.node, rest[len(member.name) + 1 :]
        return line

    def _longest(self, node: Node, path: str) -> Member | None:
        """Return the member whose name is the longest beginning of a path: names may hold dots."""
        named, end = self._named(node), len(path)
        while end >= 0:
            if (member := named.get(path[:end])) is not None:
                return member
            end = path.rfind(".", 0, end)
        return None

    def _named(self, node: Node) -> dict[str, Member]:
        if id(node) not in self._members:
            self._members[id(node)] = {member.name: member for member in node.members()}
        return self._members[id(node)]


def check_depth(value: JsonValue) -> None:
    """Refuse what is nested deeper than `MAX_DEPTH`.

    Raises:
        ValueError: When it is.
    """
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            below
            for one in level
            if isinstance(one, dict | list)
            for below in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")
