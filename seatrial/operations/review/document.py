"""A review as a document for programs: all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.render import consequences_lines, document_of, needs_document
from seatrial.operations.review.figures import changed_curve, costs, curve, gates, knees, update_usd_per_hour
from seatrial.operations.review.words import (
    OF_A_PRODUCT,
    changed_parts,
    changed_quotas,
    cost_lines,
    figures_of,
    missing_commits,
    moved_line,
    not_compared,
    review_headline,
    summarize_effect,
)
from seatrial_base.printer import finding_rows
from seatrial_base.printer import text_lines as finding_lines
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.operations.consequences import Consequences
    from seatrial.operations.review.changes import FieldChange
    from seatrial.operations.review.figures import BeforeAfter
    from seatrial.operations.review.review import EndpointReview, Review


REVIEW_SCHEMA = "2"


def review_document(review: Review, *, base: str) -> dict[str, object]:
    """Return a review as a document.

    Args:
        review: The review.
        base: The revision that is compared with, as the user gave it.
    """
    return {
        "schema_version": REVIEW_SCHEMA,
        "base": base,
        "is_empty": review.is_empty,
        "compared": review.compared,
        "base_commits_ahead": review.ahead,
        "endpoints": [_endpoint(one) for one in review.endpoints],
        "services": [
            {
                "environment": one.environment,
                "resources": [
                    {"logical_id": change.logical_id, "type": change.resource_type, "action": change.action}
                    for change in one.diff.changes
                    if change.action != "unchanged"
                ],
            }
            for one in review.services
        ],
        "quotas": [
            {
                "environment": one.environment,
                "instance_type": one.instance_type,
                "before": one.before,
                "during": one.during,
                "after": one.after,
            }
            for one in review.quotas
        ],
        "unlocked": list(review.unlocked),
        "products": [
            {
                "product": one.name,
                "change": one.change,
                "fields": [_field(field) for field in one.fields],
                "sizes": [_endpoint(size) for size in one.sizes],
                "findings": finding_rows(one.findings),
            }
            for one in review.products
        ],
    }


def _endpoint(review: EndpointReview) -> dict[str, object]:
    found, (before, after) = review.consequences, review.plans
    return {
        "endpoint": review.place.endpoint,
        "environment": review.place.environment,
        "change": review.change,
        "is_blocked": review.is_blocked,
        "is_moved": review.is_moved,
        "risk": None if found is None else found.risk,
        "touches_copies": None if found is None else found.touches_copies,
        "spec": [_field(one) for one in review.spec],
        "plan": [{"field": one.field, "old": one.old, "new": one.new, "because": one.because} for one in review.plan],
        "files": [{"name": one.name, "diff": list(one.lines)} for one in review.files],
        "resources": [] if found is None else [document_of(row, found.size) for row in found.rows],
        "needs": None if found is None else _needs(found),
        "curve": [
            {"concurrency": row.concurrency, "before": _point(row.before), "after": _point(row.after)}
            for row in curve(review)
        ],
        "band": {"before": _band(before), "after": _band(after)},
        "costs": {one.name: _pair(one) for one in costs(review)},
        "update_usd_per_hour": update_usd_per_hour(review),
        "knee": _pair(knees(review)),
        "gate": _pair(gates(review)),
        "findings": finding_rows(review.findings),
        "known_findings": finding_rows(review.known_findings),
        "refused": finding_rows(review.refused),
    }


def _field(change: FieldChange) -> dict[str, str | None]:
    return {"field": change.field, "old": change.old, "new": change.new}


def _needs(found: Consequences) -> dict[str, object]:
    return needs_document(found.instances, found.most_instances, found.size)


def _pair(one: BeforeAfter) -> dict[str, float | None]:
    return {"before": one.before, "after": one.after}


def _point(point: CurvePoint | None) -> dict[str, float] | None:
    if point is None:
        return None
    return {
        "output_tok_s": point.output_tok_s,
        "ttft_p95_ms": point.ttft_p95_ms,
        "tpot_p95_ms": point.tpot_p95_ms,
    }


def _band(plan: Plan | None) -> dict[str, float] | None:
    return None if plan is None else {"throughput": plan.band.throughput, "latency": plan.band.latency}


def review_text(review: Review, *, base: str) -> str:
    """Return a review as text.

    Args:
        review: The review.
        base: The revision that is compared with.
    """
    lines = [
        f"revision {base} → this checkout",
        "",
        review_headline(review),
        *filter(None, [missing_commits(review, base)]),
    ]
    lines += [f"{one}: no plan yet; run `seatrial plan`" for one in review.unlocked]
    for one in review.endpoints:
        lines += ["", f"{one.place.endpoint} in {one.place.environment}: {changed_parts(one)}; {summarize_effect(one)}"]
        lines += [f"  {line}" for line in _details(one)]
    for product in review.products:
        lines += ["", f"product {product.name}: {product.change}. {OF_A_PRODUCT[product.change]}"]
        lines += [f"  {line}" for line in (*finding_lines(product.findings), *_fields("product", product.fields))]
        for size in product.sizes:
            lines += [
                "",
                f"{size.place.endpoint} in {size.place.environment}: {changed_parts(size)}; {summarize_effect(size)}",
            ]
            lines += [f"  {line}" for line in _details(size)]
    for service in review.services:
        changed = sum(1 for one in service.diff.changes if one.action != "unchanged")
        lines += ["", f"trial service of {service.environment}: {counted(changed, 'resource')}"]
    quotas = changed_quotas(review)
    if quotas:
        lines += ["", "instances at the most copies: before, during, after"]
    lines += [f"  {one.environment}: {one.instance_type}: {one.before}, {one.during}, {one.after}" for one in quotas]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _details(review: EndpointReview) -> Iterator[str]:
    yield from finding_lines(review.findings)
    yield from _fields("spec", review.spec)
    for decision in review.plan:
        yield f"plan {decision.field}: {decision.old} → {decision.new}" + (
            f" ({decision.because})" if decision.because else ""
        )
    for file in review.files:
        yield f"configuration {file.name}:"
        yield from (f"  {line}" for line in file.lines)
    if review.consequences is not None:
        yield from filter(None, [moved_line(review)])
        yield from consequences_lines(review.consequences)
    elif told := not_compared(review):
        yield told
    if any(review.plans):
        yield from (f"cost {line}" for line in cost_lines(review))
        for row in changed_curve(review):
            before, after = (", ".join(figures_of(point)) for point in (row.before, row.after))
            levels = before if before == after else f"{before} → {after}"
            yield f"concurrency {row.concurrency}: tok/s, TTFT p95 ms, TPOT p95 ms: {levels}"


def _fields(what: str, fields: Iterable[FieldChange]) -> Iterator[str]:
    yield from (f"{what} {field.field}: {_shown(field.old)} → {_shown(field.new)}" for field in fields)


def _shown(value: str | None) -> str:
    return "(none)" if value is None else value
