"""CloudFormation templates, from JSON, YAML or what `cdk synth` writes: values, lines, resources across templates."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from seatrial_base.errors import SpecError
from seatrial_base.files import read_text
from seatrial_base.findings import Finding, Place
from seatrial_lint.cloudformation.intrinsic import (
    Reference,
    TemplateScope,
    evaluate,
    is_function,
    is_no_value,
    references,
    replace_references,
)
from seatrial_lint.text_nodes import MAX_DEPTH, Member, Node, plain_value, read_json, read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pydantic import JsonValue

_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")
MOST_STEPS = 500_000
"""Comparisons for one template: those of every pair would take hours for a template of a megabyte."""
_PSEUDO = "AWS::"
# No name holds it: what stands for a reference within a text.
_MARK = "\N{SYMBOL FOR NULL}"
_REFERENCE = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}([^{_MARK}]*){_MARK}")
MOST_BYTES = 64 * 2**20
"""CloudFormation takes at most 1 MiB; more is read, so that a template that is too long is checked all the same."""
MANIFEST = "manifest.json"


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
        path, raw = ".".join((self.path, *names)), self.raw
        for name in names:
            if not is_function(raw):
                below = raw.get(name) if isinstance(raw, dict) else None
                raw = None if is_no_value(below) else below
        return TemplateValue(path, raw)

    @property
    def is_absent(self) -> bool:
        """Nothing is written here; what only the deployment knows counts as written."""
        return self.raw is None

    @property
    def is_there(self) -> bool:
        """Something is written here, whatever a condition says: of `Fn::If` a branch may leave it out."""
        return self.raw is not None and not (isinstance(self.raw, dict) and "Fn::If" in self.raw)

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
        properties: Its properties, as `evaluate` writes them; a function when the whole of them is one.
        policies: What becomes of it when it is deleted or replaced, by the attribute that says so.
        depends_on: The logical IDs that `DependsOn` names.
        construct_path: The path of its CDK construct; empty without one.
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
        outputs: Its outputs by name, evaluated.
        text: The text that it was read from; empty without one.
    """

    resources: Mapping[str, TemplateResource]
    outputs: Mapping[str, JsonValue] = field(default_factory=dict)
    text: str = field(default="", compare=False, repr=False)

    def line(self, logical_id: str, path: str) -> int:
        """Return the line of a value of a resource, or of the innermost part of its path that is written.

        Without a text that is 0.

        `path`: names and indices from the resource on, with dots between them.
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
    written = document.get("Resources")
    if not isinstance(written, dict) and "planned_values" in document:
        raise _of_terraform("a Terraform plan", name)
    if not isinstance(written, dict):
        raise not_a_template("no Resources", name)
    resources: dict[str, Mapping[str, JsonValue]] = {}
    problems: list[Finding] = []
    for key, each in written.items():
        if key.startswith("Fn::"):
            continue
        if isinstance(each, dict) and isinstance(each.get("Type"), str):
            resources[key] = each
        else:
            problems += not_a_template(f"the resource {key} has no Type", name).problems
    if problems:
        raise SpecError(problems)
    pseudo = {"AWS::Region": region, "AWS::AccountId": account or "", "AWS::Partition": _partition(region)}
    scope = TemplateScope({key: value for key, value in pseudo.items() if value}, document.get("Mappings"))
    outputs = document.get("Outputs")
    return Template(
        {logical_id: _resource(name, logical_id, resource, scope) for logical_id, resource in resources.items()},
        {key: evaluate(value, scope) for key, value in outputs.items()} if isinstance(outputs, dict) else {},
        text,
    )


def not_a_template(why: str, where: str) -> SpecError:
    """Return the error of a text that is no template."""
    hint = "give a CloudFormation template (JSON or YAML), or the folder that `cdk synth` writes"
    return SpecError.of("SEA451", f"not a CloudFormation template: {why}", where=where, hint=hint)


def _of_terraform(what: str, where: str) -> SpecError:
    message = f"{what}: its roles, scaling and alarms are not checked"
    hint = "seatrial lint reads the containers of a plan: terraform show -json PLAN"
    return SpecError.of("SEA451", message, where=where, hint=hint)


def _partition(region: str) -> str:
    """Return the partition of a region where its name tells it, else nothing (botocore, endpoints.json, 1.43)."""
    for beginning, partition in (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov")):
        if region.startswith(beginning):
            return partition
    return "" if not region or region.startswith(("us-iso", "eu-iso", "eusc-")) else "aws"


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
        resource = self._named(resources.node if resources else self._root).get(logical_id)
        if resource is None:
            return 0
        node, line, rest = resource.node, resource.node.line, path
        while rest:
            name, _, after = rest.partition(".")
            items = node.value if isinstance(node.value, tuple) and not node.is_object else ()
            if name.isdecimal() and int(name) < len(items) and isinstance(item := items[int(name)], Node):
                node, rest = item, after
                line = node.line
                continue
            # The member whose name is the longest beginning of the path: names may hold dots.
            named, end = self._named(node), len(rest)
            while end >= 0 and rest[:end] not in named:
                end = rest.rfind(".", 0, end)
            member = named.get(rest[:end]) if end >= 0 else None
            if member is None:
                break
            line, node, rest = member.line, member.node, rest[len(member.name) + 1 :]
        return line

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


class TemplateResources:
    """The resources of several templates."""

    def __init__(self, templates: Mapping[str, Template]) -> None:
        self._all = {
            resource.key: resource for template in templates.values() for resource in template.resources.values()
        }
        self._exports = dict(self._exported(templates))
        self._kinds: dict[str, list[TemplateResource]] = {}
        for each in self._all.values():
            self._kinds.setdefault(each.resource_type, []).append(each)
        self._names: dict[tuple[str, str], Mapping[str, list[TemplateResource]]] = {}
        self._edges: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}
        self._steps_left = MOST_STEPS * max(1, len(templates))
        self.left_out: dict[str, None] = {}

    def takes(self, steps: int, *, of: str) -> bool:
        """Return whether so many comparisons are still made; what they were for is noted in `left_out` where not."""
        if steps > self._steps_left:
            self.left_out[of] = None
            return False
        self._steps_left -= steps
        return True

    def of(self, kind: str) -> tuple[TemplateResource, ...]:
        """Return the resources of a type, in the templates' order."""
        return tuple(self._kinds.get(kind, ()))

    def referred(self, template: str, value: TemplateValue) -> TemplateResource | None:
        """Return the resource that a value refers to as a whole; `None` of anything else."""
        match = _REFERENCE.fullmatch(self.written(template, value) or "")
        return self._all.get((match[1], match[2])) if match else None

    def named(self, template: str, value: TemplateValue, kind: str, name: str) -> TemplateResource | None:
        """Return the resource of a type that a value refers to or names.

        `template`: where the value stands; a name means a resource of this template first.
        """
        return self.by_text(template, self.written(template, value), kind, name)

    @staticmethod
    def readable(text: str) -> str:
        """Return a text of `written` for users: references as `${LogicalId}`."""
        return _REFERENCE.sub(r"${\2}", text)

    def leading(self, text: str) -> tuple[TemplateResource, str] | None:
        """Return the resource that a text of `written` begins with, and what follows; `None` without one."""
        match = _REFERENCE.match(text)
        resource = self._all.get((match[1], match[2])) if match else None
        return (resource, text[match.end() :]) if match and resource else None

    def by_text(self, template: str, text: str | None, kind: str, name: str) -> TemplateResource | None:
        """Return the resource of a type that a text of `written` refers to or names; `None` for several elsewhere."""
        match = _REFERENCE.fullmatch(text or "")
        referred = self._all.get((match[1], match[2])) if match else None
        if referred or not text:
            return referred if referred and referred.resource_type == kind else None
        if (kind, name) not in self._names:
            by_name: dict[str, list[TemplateResource]] = {}
            for each in self.of(kind):
                if name_text := self.written(each.template, each.at(name)):
                    by_name.setdefault(name_text, []).append(each)
            self._names[kind, name] = by_name
        same = self._names[kind, name].get(text, ())
        here = [each for each in same if each.template == template] or same
        return next(iter(here), None) if len({each.template for each in here}) == 1 else None

    def written(self, template: str, value: TemplateValue) -> str | None:
        """Return a value as text in which each reference is one mark; `None` when it is unknown.

        A reference is marked by what it refers to, whichever attribute it requests: names and ARNs of one resource are
        the same text.
        """
        return self._text(template, value.raw)

    def depends(self, resource: TemplateResource, on: TemplateResource) -> bool:
        """Return whether CloudFormation creates a resource after another of its template; true where not looked at."""
        waiting, seen = [resource.key], set[tuple[str, str]]()
        while waiting:
            key = waiting.pop()
            if key == on.key:
                return True
            if key not in seen:
                seen.add(key)
                before = self._before(key)
                if on.key in before or not self.takes(len(before), of=resource.template):
                    return True
                waiting.extend(before)
        return False

    def _before(self, key: tuple[str, str]) -> frozenset[tuple[str, str]]:
        if key not in self._edges:
            resource = self._all[key]
            names = {
                *resource.depends_on,
                *(reference.logical_id for reference in references(dict(resource.properties))),
            }
            self._edges[key] = frozenset((key[0], name) for name in names if (key[0], name) in self._all)
        return self._edges[key]

    def _text(self, template: str, value: JsonValue) -> str | None:
        def mark(reference: Reference) -> str:
            # The templates are of one account and region, so a pseudo parameter is of none of them.
            of = "" if reference.logical_id.startswith(_PSEUDO) else template
            return f"{_MARK}{of}{_MARK}{reference.logical_id}{_MARK}"

        match value:
            case {"Fn::ImportValue": exported}:
                return self._exports.get(self._text(template, exported) or "")
        return replace_references(value, mark)

    def _exported(self, templates: Mapping[str, Template]) -> Iterator[tuple[str, str]]:
        for name, template in templates.items():
            for output in template.outputs.values():
                match output:
                    case {"Value": value, "Export": {"Name": exported}}:
                        export, text = self._text(name, exported), self._text(name, value)
                        if export is not None and text is not None:
                            yield export, text


def begins_unknown(text: str) -> bool:
    """Return whether a text of `TemplateResources.written` begins with a reference."""
    return text.startswith(_MARK)


@dataclass(frozen=True, slots=True)
class TemplateGroup:
    """Templates of one account and region.

    `region`: their region; `None` when it is not known.
    """

    templates: Mapping[str, Template]
    region: str | None


@dataclass(frozen=True, slots=True)
class _TemplateFile:
    path: Path
    # `aws://ACCOUNT/REGION` of a manifest; empty when it is not known.
    environment: str

    @property
    def region(self) -> str | None:
        region = self.environment.rpartition("/")[2]
        return region if region and not region.startswith("unknown-") else None

    @property
    def account(self) -> str | None:
        account = self.environment.removeprefix("aws://").partition("/")[0]
        return account if account.isdecimal() else None


def read_template(text: str, *, name: str, region: str = "", account: str | None = None) -> Template:
    """Read a template from a text.

    Args:
        region: Stands for the pseudo parameter AWS::Region, and tells AWS::Partition; empty leaves both as they are.
        account: Stands for AWS::AccountId, likewise.

    Raises:
        SpecError: SEA451 when it is neither JSON nor YAML, or no template.
    """
    try:
        document = _read_document(text)
    except (ValueError, RecursionError) as error:
        raise not_a_template(_why(error), name) from error
    return template_of(document, name=name, region=region, account=account, text=text)


def read_template_file(path: Path, *, name: str = "", region: str = "", account: str | None = None) -> Template:
    """Read a template from a file.

    Raises:
        SpecError: SEA101 when it can't be read, SEA451 when it is no template.
    """
    where = name or path.as_posix()
    if path.suffix == ".tf":
        raise _of_terraform("a file of Terraform", where)
    return read_template(_read_text(path, where), name=where, region=region, account=account)


def read_templates(paths: Iterable[Path], region: str | None = None) -> tuple[TemplateGroup, ...]:
    """Read templates, grouped by account and region.

    Args:
        paths: Files, or folders: of `cdk synth`, with a manifest, or others with `*.template.json` below.
        region: The region of templates whose folder names none.

    Raises:
        SpecError: SEA101 for what can't be read, SEA451 for what is no template; all of them at once.
    """
    problems: list[Finding] = []
    groups: dict[str, tuple[dict[str, Template], str | None]] = {}
    for file in _files(paths, problems):
        of = file.region or region
        try:
            template = read_template_file(file.path, region=of or "", account=file.account)
        except SpecError as error:
            problems += error.problems
        else:
            templates, _ = groups.setdefault(file.environment, ({}, of))
            templates[file.path.as_posix()] = template
    if problems:
        raise SpecError(problems)
    return tuple(TemplateGroup(templates, of) for templates, of in groups.values())


def _files(paths: Iterable[Path], problems: list[Finding]) -> Iterator[_TemplateFile]:
    for path in paths:
        if not path.is_dir():
            yield _TemplateFile(path, "")
            continue
        manifests = sorted(path.rglob(MANIFEST)) if (path / MANIFEST).is_file() else []
        files = [] if manifests else [_TemplateFile(file, "") for file in sorted(path.rglob("*.template.json"))]
        for manifest, artifact in ((each, artifact) for each in manifests for artifact in _artifacts(each, problems)):
            match artifact:
                case {
                    "type": "aws:cloudformation:stack",
                    "environment": str(environment),
                    "properties": {"templateFile": str(name)},
                }:
                    files.append(_TemplateFile(manifest.parent / name, environment))
        if not files and not problems:
            hint = "give a CloudFormation template (JSON or YAML), or the folder that `cdk synth` writes"
            problems.append(Finding("SEA101", Place.at(path.as_posix()), "the folder has no template", hint))
        yield from files


def _why(error: ValueError | RecursionError) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else f"{error}".partition("\n")[0]


def _artifacts(manifest: Path, problems: list[Finding]) -> Iterable[JsonValue]:
    where = manifest.as_posix()
    try:
        artifacts = _read_document(_read_text(manifest, where)).get("artifacts")
    except SpecError as error:
        problems += error.problems
    except (ValueError, RecursionError) as error:
        problems += not_a_template(_why(error), where).problems
    else:
        if isinstance(artifacts, dict):
            return artifacts.values()
        problems += not_a_template("no artifacts", where).problems
    return ()


def _read_text(path: Path, where: str) -> str:
    try:
        return read_text(path, most_bytes=MOST_BYTES)
    except OSError as error:
        raise SpecError.of(
            "SEA101", f"it can't be read: {error.strerror}", where=where, hint="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise not_a_template("it is not UTF-8 text", where) from error
    except ValueError as error:
        raise not_a_template(f"{error}", where) from error


def _read_document(text: str) -> dict[str, JsonValue]:
    if text.lstrip().startswith("{"):
        document: JsonValue = json.loads(text)
        check_depth(document)
    else:
        document = next((plain_value(node) for node in read_yaml(text, takes_aliases=False)), None)
    if not isinstance(document, dict):
        raise ValueError("it is no mapping")  # noqa: TRY004 (of the text, not of a type)
    return document
