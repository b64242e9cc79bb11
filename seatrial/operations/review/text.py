"""A review as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.render import consequences_lines
from seatrial.operations.review.figures import changed_curve
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
from seatrial_base.printer import text_lines as finding_lines
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.operations.review.fields import FieldChange
    from seatrial.operations.review.review import EndpointReview, Review


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
