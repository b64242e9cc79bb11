"""The resources of several templates, and what their references mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial_lint.cloudformation.intrinsic import references, replace_references

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import JsonValue

    from seatrial_lint.cloudformation.template import Template, TemplateResource, TemplateValue

MOST_STEPS = 500_000
"""Comparisons for one template: those of every pair would take hours for a template of a megabyte."""
_PSEUDO = "AWS::"
# No name holds it: what stands for a reference within a text.
_MARK = "\N{SYMBOL FOR NULL}"
_REFERENCE = re.compile(f"{_MARK}([^{_MARK}]*){_MARK}([^{_MARK}]*){_MARK}")


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
        """Tell whether so many comparisons are still made; what they were for is noted in `left_out` where not."""
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

        Args:
            template: Where the value stands; a name means a resource of this template first.
        """
        return self.by_text(template, self.written(template, value), kind, name)

    @staticmethod
    def readable(text: str) -> str:
        """Return a text of `written` for people: references as `${LogicalId}`."""
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
        """Return a value as text in which each reference is one mark; `None` when it can't be told.

        A reference is marked by what it refers to, whichever attribute it asks for: names and ARNs of one resource are
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
        match value:
            case {"Fn::ImportValue": exported}:
                return self._exports.get(self._text(template, exported) or "")
        return replace_references(value, lambda reference: self._mark(template, reference.logical_id))

    def _mark(self, template: str, name: str) -> str:
        # The templates are of one account and region.
        of = "" if name.startswith(_PSEUDO) else template
        return f"{_MARK}{of}{_MARK}{name}{_MARK}"

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
