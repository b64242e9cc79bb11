"""An update and a review as text for a terminal."""

from __future__ import annotations

import json
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from seatrial.operations.review.view import (
    MOST_PROPERTIES,
    OF_A_PRODUCT,
    EndpointView,
    UpdateView,
    changed_quotas,
    level_figures,
    more_values,
    review_headlines,
)
from seatrial_base.printer import text_lines
from seatrial_base.units import counted
from seatrial_lint.cloudformation.intrinsic import SUB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import JsonValue

    from seatrial.operations.consequences import Consequences
    from seatrial.operations.review.changes import FieldChange
    from seatrial.operations.review.review import EndpointReview, Review
    from seatrial.operations.template_diff import PropertyChange

LONGEST: Final = 72
"""Characters of a value that are shown."""
CONTEXT: Final = 16
"""Characters before the first difference of two long values."""


def consequences_text(update: Consequences, *, title: str) -> str:
    """Return an update as lines for a terminal; what is unchanged is only counted."""
    return "".join(f"{line}\n" for line in (title, "", *_update_lines(update)))


def _update_lines(update: Consequences) -> Iterator[str]:
    view = UpdateView(update)
    for row in view.rows:
        change = row.change
        yield f"{view.action(change)}: {change.logical_id} ({change.resource_type})"
        yield from (f"    {_property(value)}" for value in change.properties[:MOST_PROPERTIES])
        if more := more_values(len(change.properties)):
            yield f"    and {more}: --format json lists them"
        for effect in view.effects(row):
            yield f"  {effect.title}: {effect.because}"
            if effect.needs:
                yield f"    needs {effect.needs}"
    if view.rows:
        yield ""
    yield from view.summary()


def _property(change: PropertyChange) -> str:
    if change.follows:
        return f"{change.path}: follows {change.follows}"
    old, new = _value(change.old), _value(change.new)
    # Two long values often differ far behind what a line shows: both are cut from shortly before the first difference.
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    begin = max(0, same - CONTEXT) if max(len(old), len(new)) > LONGEST else 0
    shown = [
        f"{'…' if begin else ''}{text[begin : begin + LONGEST]}{'…' if len(text) > begin + LONGEST else ''}"
        for text in (old, new)
    ]
    return f"{change.path}: {' → '.join(shown)}"


def _value(value: JsonValue) -> str:
    if value is None:
        return "(none)"
    text = value.get(SUB) if isinstance(value, dict) and len(value) == 1 else value
    return text if isinstance(text, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def review_text(review: Review, *, base: str) -> str:
    """Return a review as text; `base` is the revision that is compared with."""
    lines = [f"revision {base} → this checkout", "", *review_headlines(review, base)]
    lines += [f"{name}: no plan yet; run `seatrial plan`" for name in review.unlocked]
    for endpoint in review.endpoints:
        lines += _endpoint(endpoint)
    for product in review.products:
        lines += ["", f"product {product.name}: {product.change}. {OF_A_PRODUCT[product.change]}"]
        lines += [f"  {line}" for line in (*text_lines(product.findings), *_fields("product", product.fields))]
        for size in product.sizes:
            lines += _endpoint(size)
    for service in review.services:
        changed = sum(1 for change in service.diff.changes if change.action != "unchanged")
        lines += ["", f"trial service of {service.environment}: {counted(changed, 'resource')}"]
    if quotas := changed_quotas(review):
        lines += ["", "instances at the most copies: before, during, after"]
    lines += [
        f"  {need.environment}: {need.instance_type}: {need.before}, {need.during}, {need.after}" for need in quotas
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _endpoint(review: EndpointReview) -> list[str]:
    view = EndpointView(review)
    title = f"{review.place.endpoint} in {review.place.environment}: {view.changed_parts}; {view.effect}"
    return ["", title, *(f"  {line}" for line in _details(view))]


def _details(view: EndpointView) -> Iterator[str]:
    review = view.review
    yield from text_lines(review.findings)
    yield from _fields("spec", review.spec)
    for decision in review.plan:
        because = f" ({decision.because})" if decision.because else ""
        yield f"plan {decision.field}: {decision.old} → {decision.new}{because}"
    for file in review.files:
        yield f"configuration {file.name}:"
        yield from (f"  {line}" for line in file.lines)
    if view.note:
        yield view.note
    if review.consequences is not None:
        yield from _update_lines(review.consequences)
    if any(review.plans):
        yield from (f"cost {line}" for line in view.cost_lines)
        for row in view.changed_curve:
            before, after = (", ".join(level_figures(point)) for point in (row.before, row.after))
            levels = before if before == after else f"{before} → {after}"
            yield f"concurrency {row.concurrency}: tok/s, TTFT p95 ms, TPOT p95 ms: {levels}"


def _fields(name: str, fields: Iterable[FieldChange]) -> Iterator[str]:
    for field in fields:
        old, new = ("(none)" if value is None else value for value in (field.old, field.new))
        yield f"{name} {field.field}: {old} → {new}"
