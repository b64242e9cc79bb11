"""An update and its consequences as text, as Markdown for a pull request, and as a document for programs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import takewhile
from typing import TYPE_CHECKING

from seatrial.operations.effect import TITLES
from seatrial.operations.template_diff import ORDER
from seatrial_base.printer import finding_rows
from seatrial_base.text import code, escaped
from seatrial_base.units import GIB, counted, usd
from seatrial_lint.cloudformation.intrinsic import SUB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

    from seatrial.operations.consequences import ChangeWithEffects, Consequences
    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.template_diff import PropertyChange, ResourceChange

SCHEMA = "2"
LONGEST = 72
CONTEXT = 16
MOST_PROPERTIES = 8
WORDS = {"updated": "updated in place"}
PREFLIGHT = "`seatrial preflight` asks the account whether its quotas have room for it."
UNTOUCHED = "No copy that serves is started, stopped or moved."


def consequences_text(found: Consequences, *, title: str) -> str:
    """Return an update as lines for a terminal; what is unchanged is only counted."""
    return "".join(f"{line}\n" for line in (title, "", *consequences_lines(found)))


def consequences_lines(found: Consequences) -> list[str]:
    """Return an update as lines for a terminal, without a title."""
    lines = [line for row in _changed(found) for line in _text_of(row, found.size)]
    return [*lines, *([""] if lines else []), *_summary(found)]


def _text_of(row: ChangeWithEffects, size: PlannedSize) -> Iterator[str]:
    change = row.change
    yield f"{_action(change)}: {change.logical_id} ({change.resource_type})"
    for each in change.properties[:MOST_PROPERTIES]:
        yield f"    {_property(each)}"
    if (more := len(change.properties) - MOST_PROPERTIES) > 0:
        yield f"    and {counted(more, 'more value')}: --format json lists them"
    for effect in row.effects:
        yield f"  {TITLES[effect.kind]}: {effect.because}"
        if needs := _needs(effect.instances, effect.most_instances, size):
            yield f"    needs {needs}"


def consequences_markdown(found: Consequences, *, title: str) -> str:
    """Return an update as Markdown; what is unchanged is only counted."""
    return "".join(f"{line}\n" for line in (f"### {escaped(title)}", "", *consequences_markdown_lines(found)))


def consequences_markdown_lines(found: Consequences, *, is_brief: bool = False) -> list[str]:
    """Return an update as a table and a list in Markdown, without a title.

    Args:
        found: The update.
        is_brief: Only count the resources whose change has no effect on what serves, by type.
    """
    counted_only = [row for row in _changed(found) if is_brief and all(one.kind == "none" for one in row.effects)]
    lines = []
    if listed := [row for row in _changed(found) if row not in counted_only]:
        lines += ["| resource | change | effect | needs meanwhile |", "| --- | --- | --- | --- |"]
        lines += [f"| {' | '.join('<br>'.join(cell) for cell in _markdown_cells(row, found.size))} |" for row in listed]
        lines.append("")
    lines += [f"- {line}" for line in _without_effect(counted_only)]
    return [*lines, *(f"- {line if line == PREFLIGHT else escaped(line)}" for line in _summary(found))]


def _markdown_cells(row: ChangeWithEffects, size: PlannedSize) -> Iterator[list[str]]:
    change = row.change
    yield [code(change.logical_id), escaped(change.resource_type)]
    yield [escaped(_action(change)), *_paths(change)]
    yield [f"**{TITLES[effect.kind]}**: {escaped(effect.because)}" for effect in row.effects]
    needs = (_needs(effect.instances, effect.most_instances, size) for effect in row.effects)
    yield [escaped(need) for need in needs if need]


def _without_effect(rows: Iterable[ChangeWithEffects]) -> Iterator[str]:
    """Count resources by what becomes of them and by type, with the properties that differ."""
    kinds: dict[str, dict[str, list[ResourceChange]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        kinds[row.change.action][row.change.resource_type].append(row.change)
    for action in (one for one in ORDER if one in kinds):
        parts = (
            f"{len(some)} × {escaped(name)}{_property_names(some)}" for name, some in sorted(kinds[action].items())
        )
        yield f"{WORDS.get(action, action)}, without effect on what serves: {', '.join(parts)}."


def _property_names(changes: Iterable[ResourceChange]) -> str:
    names = sorted({each.path for change in changes for each in change.properties})
    shown = [code(name) for name in names[:MOST_PROPERTIES]]
    more = [counted(len(names) - MOST_PROPERTIES, "more value")] if len(names) > MOST_PROPERTIES else []
    return f" ({', '.join([*shown, *more])})" if names else ""


def _paths(change: ResourceChange) -> Iterator[str]:
    for each in change.properties[:MOST_PROPERTIES]:
        yield code(each.path)
    if (more := len(change.properties) - MOST_PROPERTIES) > 0:
        yield f"and {counted(more, 'more value')}"


def consequences_document(found: Consequences, *, stack: str, old: str, new: str) -> dict[str, object]:
    """Return an update as a document, with every resource.

    Args:
        found: The update.
        stack: The stack's name.
        old: What the old template is.
        new: What the new one is.
    """
    return {
        "schema_version": SCHEMA,
        "stack": stack,
        "old": old,
        "new": new,
        "is_empty": found.diff.is_empty,
        "touches_copies": found.touches_copies,
        "resources": [document_of(row, found.size) for row in found.rows],
        "outputs": list(found.diff.outputs),
        "needs": needs_document(found.instances, found.most_instances, found.size),
        "refused": finding_rows(found.refused),
        "warned": finding_rows(found.warned),
    }


def document_of(row: ChangeWithEffects, size: PlannedSize) -> dict[str, object]:
    """Return one resource with its effects as a document."""
    change = row.change
    return {
        "logical_id": change.logical_id,
        "type": change.resource_type,
        "action": change.action,
        "replaced_by": list(change.replaced_by),
        "is_retained": change.is_retained,
        "properties": [
            {"path": each.path, "old": each.old, "new": each.new, "follows": each.follows} for each in change.properties
        ],
        "effects": [
            {
                "kind": effect.kind,
                "because": effect.because,
                "needs": needs_document(effect.instances, effect.most_instances, size),
                "download_gib_per_copy": round(size.weights_bytes / GIB, 1) if effect.kind == "download" else None,
            }
            for effect in row.effects
        ],
    }


def needs_document(instances: int, most: int, size: PlannedSize) -> dict[str, object]:
    """Return what is needed beside what serves, as a document."""
    prices = [size.hourly(count) for count in (instances, most)]
    usd_per_hour, most_usd_per_hour = (None if price is None else round(price, 4) for price in prices)
    return {
        "instance_type": size.instance_type,
        "instances": instances,
        "usd_per_hour": usd_per_hour,
        "most_instances": most,
        "most_usd_per_hour": most_usd_per_hour,
    }


def _changed(found: Consequences) -> list[ChangeWithEffects]:
    return [row for row in found.rows if row.change.action != "unchanged"]


def _summary(found: Consequences) -> Iterator[str]:
    if found.diff.is_empty:
        yield "Nothing changes."
        return
    for each in found.warned:
        yield f"{each.rule}: {each.message}; {each.hint}."
    numbers = Counter(row.change.action for row in found.rows)
    parts = [f"{numbers[action]} {WORDS.get(action, action)}" for action in ORDER if numbers[action]]
    yield f"{counted(len(found.rows), 'resource')}: {', '.join(parts)}."
    is_first = not found.diff.old.resources
    if found.diff.outputs and not is_first:
        yield f"Outputs that change: {', '.join(found.diff.outputs)}."
    if not found.touches_copies:
        yield UNTOUCHED
    if needs := _needs(found.instances, found.most_instances, found.size):
        yield f"Most that is needed at once{'' if is_first else ' beside what serves'}: {needs}."
        yield PREFLIGHT
    if found.refused:
        yield f"Refused: {counted(len(found.refused), 'change')}, told below."


def _needs(instances: int, most: int, size: PlannedSize) -> str:
    """Write what is needed at the planned copies, and at the most copies where that is more."""
    if not most:
        return ""
    at_planned = f"{instances} × {size.instance_type}{_price(instances, size)}"
    if most == instances:
        return at_planned
    return f"{at_planned}; at {size.max_copies} copies {most} × {size.instance_type}{_price(most, size)}"


def _price(instances: int, size: PlannedSize) -> str:
    price = size.hourly(instances)
    if not instances:
        return ""
    return ", at an unknown price" if price is None else f", {usd(price)} per hour"


def _action(change: ResourceChange) -> str:
    word = WORDS.get(change.action, change.action)
    because = f" (by {', '.join(change.replaced_by)})" if change.replaced_by else ""
    kept = "; the old one stays in the account" if change.is_retained else ""
    return f"{word}{because}{kept}"


def _property(change: PropertyChange) -> str:
    if change.follows:
        return f"{change.path}: follows {change.follows}"
    old, new = _value(change.old), _value(change.new)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    begin = max(0, same - CONTEXT) if max(len(old), len(new)) > LONGEST else 0
    return f"{change.path}: {_cut(old, begin)} → {_cut(new, begin)}"


def _value(value: JsonValue) -> str:
    if value is None:
        return "(none)"
    text = value.get(SUB) if isinstance(value, dict) and len(value) == 1 else value
    return text if isinstance(text, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _cut(text: str, begin: int) -> str:
    """Return what is worth showing of a long text: from shortly before the place where the other one differs."""
    end = begin + LONGEST
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if len(text) > end else ''}"
