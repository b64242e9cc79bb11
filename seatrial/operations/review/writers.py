"""An update and a review as text for a terminal, as Markdown for a pull request, and as documents for programs."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from seatrial.operations.review.view import (
    COSTS,
    MOST_PROPERTIES,
    OF_A_PRODUCT,
    PREFLIGHT,
    EndpointView,
    UpdateView,
    action_words,
    band_words,
    changed_quotas,
    level_figures,
    more_values,
    review_headlines,
)
from seatrial.operations.template_diff import ORDER
from seatrial_base.printer import finding_rows, markdown_lines, tally, text_lines
from seatrial_base.text import code, escaped, fenced, folded
from seatrial_base.units import GIB, counted
from seatrial_lint.cloudformation.intrinsic import SUB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pydantic import JsonValue

    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.operations.consequences import ChangeWithEffects, Consequences
    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.review.changes import FieldChange
    from seatrial.operations.review.review import EndpointReview, Review
    from seatrial.operations.review.side import EndpointPlace
    from seatrial.operations.template_diff import PropertyChange, ResourceChange

LONGEST_TEXT: Final = 72
"""Characters of a value that are shown."""
CONTEXT: Final = 16
"""Characters before the first difference of two long values."""
MOST_CHARACTERS: Final = 65_000
"""Of a comment: GitHub takes 65,536 ("body is too long (maximum is 65536 characters)"), a workflow adds a mark."""
LONGEST_VALUE: Final = 120
MOST_NAMES: Final = 3
"""Of endpoints and environments in the title of a folded part."""
_RESERVED: Final = 200  # characters, for the line on what is left out
_HEAD: Final = (
    "endpoint",
    "environment",
    "change",
    "effect",
    "more instances",
    "per hour",
    "knee",
    "gate",
    "new findings",
)
SCHEMA: Final = "2"
REVIEW_SCHEMA: Final = "2"


def consequences_text(update: Consequences, *, title: str) -> str:
    """Return an update as lines for a terminal; what is unchanged is only counted."""
    return "".join(f"{line}\n" for line in (title, "", *_update_text(update)))


def _update_text(update: Consequences) -> Iterator[str]:
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
    old, new = _value_text(change.old), _value_text(change.new)
    # Two long values often differ far behind what a line shows: both are cut from shortly before the first difference.
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    begin = max(0, same - CONTEXT) if max(len(old), len(new)) > LONGEST_TEXT else 0
    shown = [
        f"{'…' if begin else ''}{text[begin : begin + LONGEST_TEXT]}{'…' if len(text) > begin + LONGEST_TEXT else ''}"
        for text in (old, new)
    ]
    return f"{change.path}: {' → '.join(shown)}"


def _value_text(value: JsonValue) -> str:
    if value is None:
        return "(none)"
    text = value.get(SUB) if isinstance(value, dict) and len(value) == 1 else value
    return text if isinstance(text, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def review_text(review: Review, *, base: str) -> str:
    """Return a review as text; `base` is the revision that is compared with."""
    lines = [f"revision {base} → this checkout", "", *review_headlines(review, base)]
    lines += [f"{name}: no plan yet; run `seatrial plan`" for name in review.unlocked]
    for endpoint in review.endpoints:
        lines += _endpoint_text(endpoint)
    for product in review.products:
        lines += ["", f"product {product.name}: {product.change}. {OF_A_PRODUCT[product.change]}"]
        lines += [f"  {line}" for line in (*text_lines(product.findings), *_fields_text("product", product.fields))]
        for size in product.sizes:
            lines += _endpoint_text(size)
    for service in review.services:
        changed = sum(1 for change in service.diff.changes if change.action != "unchanged")
        lines += ["", f"trial service of {service.environment}: {counted(changed, 'resource')}"]
    if quotas := changed_quotas(review):
        lines += ["", "instances at the most copies: before, during, after"]
    lines += [
        f"  {need.environment}: {need.instance_type}: {need.before}, {need.during}, {need.after}" for need in quotas
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _endpoint_text(review: EndpointReview) -> list[str]:
    view = EndpointView(review)
    title = f"{review.place.endpoint} in {review.place.environment}: {view.changed_parts}; {view.effect}"
    return ["", title, *(f"  {line}" for line in _details_text(view))]


def _details_text(view: EndpointView) -> Iterator[str]:
    review = view.review
    yield from text_lines(review.findings)
    yield from _fields_text("spec", review.spec)
    for decision in review.plan:
        because = f" ({decision.because})" if decision.because else ""
        yield f"plan {decision.field}: {decision.old} → {decision.new}{because}"
    for file in review.files:
        yield f"configuration {file.name}:"
        yield from (f"  {line}" for line in file.lines)
    if view.note:
        yield view.note
    if review.consequences is not None:
        yield from _update_text(review.consequences)
    if any(review.plans):
        yield from (f"cost {line}" for line in view.cost_lines)
        for row in view.changed_curve:
            before, after = (", ".join(level_figures(point)) for point in (row.before, row.after))
            levels = before if before == after else f"{before} → {after}"
            yield f"concurrency {row.concurrency}: tok/s, TTFT p95 ms, TPOT p95 ms: {levels}"


def _fields_text(name: str, fields: Iterable[FieldChange]) -> Iterator[str]:
    for field in fields:
        old, new = ("(none)" if value is None else value for value in (field.old, field.new))
        yield f"{name} {field.field}: {old} → {new}"


def consequences_markdown(update: Consequences, *, title: str) -> str:
    """Return an update as Markdown; what is unchanged is only counted."""
    lines = (f"### {escaped(title)}", "", *_update_lines(update, is_brief=False))
    return "".join(f"{line}\n" for line in lines)


def _update_lines(update: Consequences, *, is_brief: bool) -> list[str]:
    """Return an update as a table and a list; briefly, what has no effect on what serves is counted by type."""
    view = UpdateView(update)
    uneventful = [row for row in view.rows if is_brief and all(effect.kind == "none" for effect in row.effects)]
    lines = []
    if listed := [row for row in view.rows if row not in uneventful]:
        rows = [["<br>".join(cell) for cell in _resource_cells(view, row)] for row in listed]
        lines = [*_table(("resource", "change", "effect", "needs meanwhile"), rows), ""]
    lines += [f"- {line}" for line in _without_effect(uneventful)]
    # The hint names a command in backticks, which are its markup; everything else may hold texts of others.
    return [*lines, *(f"- {line if line == PREFLIGHT else escaped(line)}" for line in view.summary())]


def _resource_cells(view: UpdateView, row: ChangeWithEffects) -> Iterator[list[str]]:
    change, effects = row.change, view.effects(row)
    yield [code(change.logical_id), escaped(change.resource_type)]
    more = more_values(len(change.properties))
    paths = [code(value.path) for value in change.properties[:MOST_PROPERTIES]]
    yield [escaped(view.action(change)), *paths, *([f"and {more}"] if more else [])]
    yield [f"**{effect.title}**: {escaped(effect.because)}" for effect in effects]
    yield [escaped(effect.needs) for effect in effects if effect.needs]


def _without_effect(rows: Iterable[ChangeWithEffects]) -> Iterator[str]:
    """Count resources by what becomes of them and by type, with the properties that differ."""
    kinds: dict[str, dict[str, list[ResourceChange]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        kinds[row.change.action][row.change.resource_type].append(row.change)
    for action in (action for action in ORDER if action in kinds):
        parts = []
        for resource_type, changes in sorted(kinds[action].items()):
            names = sorted({value.path for change in changes for value in change.properties})
            shown = [*map(code, names[:MOST_PROPERTIES]), *filter(None, [more_values(len(names))])]
            parts.append(f"{len(changes)} × {escaped(resource_type)}" + (f" ({', '.join(shown)})" if names else ""))
        yield f"{action_words(action)}, without effect on what serves: {', '.join(parts)}."


def review_markdown(review: Review, *, base: str, most: int = MOST_CHARACTERS) -> str:
    """Return a review as Markdown of at most `most` characters; details that do not fit are counted."""
    title = f"### Seatrial: {code(base)} → this checkout"
    text = "".join(f"{line}\n\n" for line in (title, *map(escaped, review_headlines(review, base))))
    sizes = [size for product in review.products for size in product.sizes]
    rows = [_row(endpoint) for endpoint in review.endpoints]
    for product in review.products:
        effect = "teams can launch it" if product.change == "new" else "what is launched stays"
        findings = escaped(tally(product.findings))
        rows.append([code(product.name), "product", product.change, effect, "", "", "", "", findings])
    rows += [_row(size) for size in sizes]
    details = (*_details(review.endpoints), *_details(sizes))
    blocks = [*_shared(review), *("\n".join(lines) + "\n" for lines in details)]
    kept, left_rows = _fitting([f"{line}\n" for line in (_table(_HEAD, rows) if rows else [])], most - len(text))
    text += "".join(kept) + ("\n" if kept else "")
    shown, left_blocks = _fitting(blocks, most - len(text))
    text += "".join(shown)
    if left_rows or left_blocks:
        left = [counted(number, noun) for number, noun in ((left_rows, "row"), (left_blocks, "detail")) if number]
        text += f"\nLeft out, as a comment has at most {most:,} characters: {', '.join(left)}.\n"
    return text


def _fitting(texts: Sequence[str], most: int) -> tuple[list[str], int]:
    """Return as many texts as fit, in order, and how many do not; a short one behind a long one is kept."""
    capacity = most - _RESERVED
    kept: list[str] = []
    for text in texts:
        if len(text) <= capacity:
            kept.append(text)
            capacity -= len(text)
    return kept, len(texts) - len(kept)


def _row(review: EndpointReview) -> list[str]:
    view = EndpointView(review)
    return [
        code(review.place.endpoint),
        code(review.place.environment),
        escaped(view.changed_parts),
        escaped(view.effect),
        "<br>".join(map(escaped, view.extra_instances)),
        escaped(view.price_words("usd_per_hour")),
        escaped(view.concurrency_words(view.knee)),
        escaped(view.concurrency_words(view.gate)),
        escaped(tally(review.findings)),
    ]


def _shared(review: Review) -> Iterator[str]:
    if review.unlocked:
        yield "".join(f"- {code(name)} has no plan yet: run `seatrial plan`.\n" for name in review.unlocked) + "\n"
    for product in review.products:
        findings = [*markdown_lines(product.findings), ""] if product.findings else []
        fields = [*_field_table(product.fields), ""] if product.fields else []
        lines = [OF_A_PRODUCT[product.change], "", *findings, *fields]
        yield "\n".join(folded(f"Product {code(product.name)}: {product.change}", lines)) + "\n"
    for service in review.services:
        changes = [change for change in service.diff.changes if change.action != "unchanged"]
        lines = [
            f"- {change.action}: {code(change.logical_id)} ({escaped(change.resource_type)})" for change in changes
        ]
        title = f"Trial service of {service.environment}: {counted(len(changes), 'resource')}"
        yield "\n".join(folded(title, lines)) + "\n"
    if quotas := changed_quotas(review):
        rows = [
            (code(need.environment), code(need.instance_type), f"{need.before}", f"{need.during}", f"{need.after}")
            for need in quotas
        ]
        lines = _table(("environment", "instance type", "before", "during", "after"), rows)
        yield "\n".join(folded("Quota need, in instances at the most copies", lines)) + "\n"


def _details(reviews: Iterable[EndpointReview]) -> Iterator[list[str]]:
    """Yield what is folded, once for all endpoints and environments that it is the same of."""
    # A change of one shared file does the same to dozens of endpoints: repeated for each, it would not fit into a
    # comment.
    alike: dict[tuple[str, tuple[str, ...]], list[EndpointPlace]] = defaultdict(list)
    for review in reviews:
        view = EndpointView(review)
        lines = tuple(line for section in _sections(view) for line in (*section, ""))
        alike[view.changed_parts, lines].append(review.place)
    for (changed, lines), places in alike.items():
        # Environments that hold the same endpoints are named together: one line for a change of all of them.
        by_environment: dict[str, list[str]] = defaultdict(list)
        for place in places:
            by_environment[place.environment].append(code(place.endpoint))
        by_names: dict[str, list[str]] = defaultdict(list)
        for environment, names in by_environment.items():
            by_names[", ".join(names)].append(code(environment))
        title = "; ".join(f"{names} in {', '.join(environments)}" for names, environments in by_names.items())
        listed: list[str] = []
        if len(places) > MOST_NAMES:
            title, listed = counted(len(places), "endpoint and environment", "endpoints and environments"), [title, ""]
        yield folded(f"{title}: {changed}", [*listed, *lines])


def _sections(view: EndpointView) -> Iterator[list[str]]:
    review = view.review
    if review.findings:
        known = counted(len(review.known_findings), "finding")
        also = ["", f"{known} the base has too."] if review.known_findings else []
        yield ["**Findings**", "", *markdown_lines(review.findings), *also]
    if review.spec:
        yield ["**Spec**", "", *_field_table(review.spec)]
    if review.plan:
        yield ["**Plan**", "", *_decisions(review)]
    for file in review.files:
        yield [f"**Configuration** {code(file.name)}", "", *fenced(file.lines, "diff")]
    if review.consequences is not None:
        note = [view.note, ""] if view.note else []
        yield ["**Resources**", "", *note, *_update_lines(review.consequences, is_brief=True)]
    elif view.note:
        yield ["**Resources**", "", view.note]
    if view.has_new_costs:
        yield ["**Cost**", "", *(f"- {escaped(line)}" for line in view.cost_lines)]
    if view.changed_curve:
        yield ["**Predicted for one copy**", "", *_curve(view)]


def _decisions(review: EndpointReview) -> list[str]:
    """Return the decisions that differ; of a new plan those that have a reason."""
    rows = [
        (code(decision.field), _value(decision.old), _value(decision.new), escaped(decision.because))
        for decision in review.plan
        if decision.because or review.before is not None
    ]
    if review.before is None:
        return _table(("decision", "value", "because"), [(field, new, because) for field, _, new, because in rows])
    return _table(("decision", "old", "new", "because"), rows)


def _field_table(fields: Iterable[FieldChange]) -> list[str]:
    rows = [(code(field.field), _value(field.old), _value(field.new)) for field in fields]
    return _table(("field", "old", "new"), rows)


def _value(value: str | None) -> str:
    return "(none)" if value is None else code(value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}…")


def _curve(view: EndpointView) -> list[str]:
    rows = []
    for row in view.changed_curve:
        after = level_figures(row.after)
        before = after if view.review.before is None else level_figures(row.before)
        pairs = zip(before, after, strict=True)
        rows.append((f"{row.concurrency}", *(old if old == new else f"{old} → {new}" for old, new in pairs)))
    former, latter = map(band_words, view.review.plans)
    bands = f"Before: {former}. After: {latter}." if former and former != latter else f"{latter}."
    return [*_table(("concurrency", "tok/s", "TTFT p95, ms", "TPOT p95, ms"), rows), "", bands]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


def consequences_document(update: Consequences, *, stack: str, old: str, new: str) -> dict[str, object]:
    """Return an update as a document, with every resource; `old` and `new` name its templates."""
    return {
        "schema_version": SCHEMA,
        "stack": stack,
        "old": old,
        "new": new,
        "is_empty": update.diff.is_empty,
        "touches_copies": update.touches_copies,
        "resources": [_resource(row, update.size) for row in update.rows],
        "outputs": list(update.diff.outputs),
        "needs": _needs(update.instances, update.most_instances, update.size),
        "refused": finding_rows(update.refused),
        "warned": finding_rows(update.warned),
    }


def _resource(row: ChangeWithEffects, size: PlannedSize) -> dict[str, object]:
    change = row.change
    return {
        "logical_id": change.logical_id,
        "type": change.resource_type,
        "action": change.action,
        "replaced_by": list(change.replaced_by),
        "is_retained": change.is_retained,
        "properties": [
            {"path": value.path, "old": value.old, "new": value.new, "follows": value.follows}
            for value in change.properties
        ],
        "effects": [
            {
                "kind": effect.kind,
                "because": effect.because,
                "needs": _needs(effect.instances, effect.most_instances, size),
                "download_gib_per_copy": round(size.weights_bytes / GIB, 1) if effect.kind == "download" else None,
            }
            for effect in row.effects
        ],
    }


def _needs(instances: int, most: int, size: PlannedSize) -> dict[str, object]:
    prices = [size.hourly(count) for count in (instances, most)]
    usd_per_hour, most_usd_per_hour = (None if price is None else round(price, 4) for price in prices)
    return {
        "instance_type": size.instance_type,
        "instances": instances,
        "usd_per_hour": usd_per_hour,
        "most_instances": most,
        "most_usd_per_hour": most_usd_per_hour,
    }


def review_document(review: Review, *, base: str) -> dict[str, object]:
    """Return a review as a document; `base` is the revision that is compared with, as the user gave it."""
    return {
        "schema_version": REVIEW_SCHEMA,
        "base": base,
        "is_empty": review.is_empty,
        "compared": review.compared,
        "base_commits_ahead": review.ahead,
        "loosened": {name: [asdict(change) for change in changes] for name, changes in review.loosened.items()},
        "endpoints": [_endpoint(endpoint) for endpoint in review.endpoints],
        "services": [
            {
                "environment": service.environment,
                "resources": [
                    {"logical_id": change.logical_id, "type": change.resource_type, "action": change.action}
                    for change in service.diff.changes
                    if change.action != "unchanged"
                ],
            }
            for service in review.services
        ],
        "quotas": [asdict(need) for need in review.quotas],
        "unlocked": list(review.unlocked),
        "products": [
            {
                "product": product.name,
                "change": product.change,
                "fields": [asdict(field) for field in product.fields],
                "sizes": [_endpoint(size) for size in product.sizes],
                "findings": finding_rows(product.findings),
            }
            for product in review.products
        ],
    }


def _endpoint(review: EndpointReview) -> dict[str, object]:
    view, update, (before, after) = EndpointView(review), review.consequences, review.plans
    return {
        "endpoint": review.place.endpoint,
        "environment": review.place.environment,
        "change": review.change,
        "is_blocked": review.is_blocked,
        "is_moved": review.is_moved,
        "renamed": review.renamed,
        "licences": [asdict(change) for change in review.licences],
        "risk": None if update is None else update.risk,
        "touches_copies": None if update is None else update.touches_copies,
        "spec": [asdict(field) for field in review.spec],
        "plan": [asdict(decision) for decision in review.plan],
        "files": [{"name": file.name, "diff": list(file.lines)} for file in review.files],
        "resources": [] if update is None else [_resource(row, update.size) for row in update.rows],
        "needs": None if update is None else _needs(update.instances, update.most_instances, update.size),
        "curve": [
            {"concurrency": row.concurrency, "before": _point(row.before), "after": _point(row.after)}
            for row in view.curve
        ],
        "band": {"before": _band(before), "after": _band(after)},
        "costs": {name: asdict(view.cost(name)) for name in COSTS},
        "update_usd_per_hour": view.update_usd_per_hour,
        "knee": asdict(view.knee),
        "gate": asdict(view.gate),
        "findings": finding_rows(review.findings),
        "known_findings": finding_rows(review.known_findings),
        "refused": finding_rows(review.refused),
    }


def _point(point: CurvePoint | None) -> dict[str, float] | None:
    names = ("output_tok_s", "ttft_p95_ms", "tpot_p95_ms")
    return None if point is None else {name: getattr(point, name) for name in names}


def _band(plan: Plan | None) -> dict[str, float] | None:
    return None if plan is None else {"throughput": plan.band.throughput, "latency": plan.band.latency}
