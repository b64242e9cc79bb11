"""The resources of several templates, and what their references mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial_lint.template_rules.template_value import Json, TemplateValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOLE = re.compile(r"\$\{([^!}][^}]*)\}")
_MARK = "\N{SYMBOL FOR NULL}"  # no name holds it: what stands for a reference within a text
_REFERENCE = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}([^{_MARK}]*){_MARK}")


@dataclass(frozen=True, slots=True)
class HostedResource:
    """One resource.

    Attributes:
        template: The template's name.
        logical_id: Its logical ID.
        kind: CloudFormation's name of its type.
        properties: Its properties.
        depends_on: The logical IDs that `DependsOn` names.
        construct_path: The path of its CDK construct; empty without one.
    """

    template: str
    logical_id: str
    kind: str
    properties: TemplateValue
    depends_on: tuple[str, ...]
    construct_path: str

    def at(self, *names: str) -> TemplateValue:
        """Return a property."""
        return self.properties.at(*names)

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from every other resource: its template and logical ID."""
        return self.template, self.logical_id


class HostedResources:
    """The resources of several templates.

    Args:
        templates: The templates by name; a part that is none, or no resource, is left out.
    """

    def __init__(self, templates: Mapping[str, Mapping[str, Json]]) -> None:
        self._all = {each.key: each for name, one in templates.items() for each in _resources(name, one)}
        self._exports = dict(self._exported(templates))
        self._kinds: dict[str, list[HostedResource]] = {}
        for each in self._all.values():
            self._kinds.setdefault(each.kind, []).append(each)
        self._names: dict[tuple[str, str], Mapping[str, list[HostedResource]]] = {}
        self._edges: dict[tuple[str, str], frozenset[tuple[str, str]]] = {}

    def of(self, kind: str) -> tuple[HostedResource, ...]:
        """Return the resources of a type, in the templates' order."""
        return tuple(self._kinds.get(kind, ()))

    def referred(self, template: str, value: TemplateValue) -> HostedResource | None:
        """Return the resource that a value refers to as a whole; `None` of anything else."""
        found = _REFERENCE.fullmatch(self.written(template, value) or "")
        return self._all.get((found[1], found[2])) if found else None

    def named(self, template: str, value: TemplateValue, kind: str, name: str) -> HostedResource | None:
        """Return the resource of a type that a value refers to or names.

        Args:
            template: Where the value stands; a name means a resource of this template first.
            value: The reference, or a name.
            kind: The resource's type.
            name: The property that holds its name.
        """
        return self.by_text(template, self.written(template, value), kind, name)

    @staticmethod
    def readable(text: str) -> str:
        """Return a text of `written` for people: references as `${LogicalId}`."""
        return _REFERENCE.sub(r"${\2}", text)

    def by_text(self, template: str, text: str | None, kind: str, name: str) -> HostedResource | None:
        """Return the resource of a type that a text of `written` refers to or names; `None` for several elsewhere."""
        found = _REFERENCE.fullmatch(text or "")
        referred = self._all.get((found[1], found[2])) if found else None
        if referred or not text:
            return referred if referred and referred.kind == kind else None
        same = self._by_name(kind, name).get(text, ())
        here = [each for each in same if each.template == template] or same
        return next(iter(here), None) if len({each.template for each in here}) == 1 else None

    def _by_name(self, kind: str, name: str) -> Mapping[str, list[HostedResource]]:
        if (kind, name) not in self._names:
            by_name: dict[str, list[HostedResource]] = {}
            for each in self.of(kind):
                if text := self.written(each.template, each.at(name)):
                    by_name.setdefault(text, []).append(each)
            self._names[kind, name] = by_name
        return self._names[kind, name]

    def written(self, template: str, value: TemplateValue) -> str | None:
        """Return a value as text in which each reference is one mark; `None` when it can't be told.

        A reference is marked by what it refers to, whichever attribute it asks for: names and ARNs of one resource are
        the same text.
        """
        return self._text(template, value.raw)

    def depends(self, resource: HostedResource, on: HostedResource) -> bool:
        """Return whether CloudFormation creates a resource after another of the same template."""
        waiting, seen = [resource.key], set[tuple[str, str]]()
        while waiting:
            key = waiting.pop()
            if key == on.key:
                return True
            if key not in seen:
                seen.add(key)
                waiting.extend(self._before(key))
        return False

    def _before(self, key: tuple[str, str]) -> frozenset[tuple[str, str]]:
        if key not in self._edges:
            resource = self._all[key]
            names = {*resource.depends_on, *_references(resource.properties.raw)}
            self._edges[key] = frozenset((key[0], name) for name in names if (key[0], name) in self._all)
        return self._edges[key]

    def _text(self, template: str, value: Json) -> str | None:
        if isinstance(value, str) or not isinstance(value, dict):
            return value if isinstance(value, str) else None
        if name := _referred_name(value):
            return self._mark(template, name)
        match value:
            case {"Fn::ImportValue": exported}:
                return self._exports.get(self._text(template, exported) or "")
            case {"Fn::Sub": str(text)}:
                return _HOLE.sub(lambda found: self._mark(template, found[1].partition(".")[0]), text)
            case {"Fn::Join": [str(between), list(parts)]}:
                texts = [self._text(template, part) for part in parts]
                return between.join(text or "" for text in texts) if None not in texts else None
        return None

    def _mark(self, template: str, name: str) -> str:
        return f"{_MARK}{template}{_MARK}{name}{_MARK}"

    def _exported(self, templates: Mapping[str, Mapping[str, Json]]) -> Iterator[tuple[str, str]]:
        for template, document in templates.items():
            outputs = document.get("Outputs")
            for output in outputs.values() if isinstance(outputs, dict) else ():
                match output:
                    case {"Value": value, "Export": {"Name": str(name)}}:
                        text = self._text(template, value)
                        if text is not None:
                            yield name, text


def begins_unknown(text: str) -> bool:
    """Return whether a text of `HostedResources.written` begins with a reference."""
    return text.startswith(_MARK)


def _resources(template: str, document: Mapping[str, Json]) -> Iterator[HostedResource]:
    resources = document.get("Resources")
    for logical_id, resource in resources.items() if isinstance(resources, dict) else ():
        if not isinstance(resource, dict) or not isinstance(kind := resource.get("Type"), str):
            continue
        metadata = resource.get("Metadata")
        path = metadata.get("aws:cdk:path") if isinstance(metadata, dict) else ""
        yield HostedResource(
            template=template,
            logical_id=logical_id,
            kind=kind,
            properties=TemplateValue("Properties", resource.get("Properties", {})),
            depends_on=_names(resource.get("DependsOn")),
            construct_path=path if isinstance(path, str) else "",
        )


def _names(value: Json) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()


def _references(value: Json) -> Iterator[str]:
    """Yield the logical IDs that a value refers to; parameters among them."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case {"Fn::Sub": str(text) | [str(text), *_] as given}:
                yield from (found.partition(".")[0] for found in _HOLE.findall(text))
                waiting.append(given if isinstance(given, list) else None)
            case dict() as fields if name := _referred_name(fields):
                yield name
            case dict() as fields:
                waiting.extend(fields.values())
            case list() as items:
                waiting.extend(items)


def _referred_name(value: dict[str, Json]) -> str | None:
    """Return the logical ID that `Ref` or `Fn::GetAtt` refers to; `None` of anything else."""
    match value:
        case {"Ref": str(name), **rest} if not rest:
            return name
        case {"Fn::GetAtt": [str(name), *_], **rest} if not rest:
            return name
        case {"Fn::GetAtt": str(path), **rest} if not rest:
            return path.partition(".")[0]
    return None
