"""A review as the comment of a pull request: a table, then the details of each endpoint, folded."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from seatrial.operations.render import consequences_markdown_lines
from seatrial.operations.review.figures import COSTS, changed_curve, costs, gates, knees
from seatrial.operations.review.words import (
    OF_A_PRODUCT,
    band_line,
    changed_parts,
    changed_quotas,
    cost_lines,
    extra_instances,
    figures_of,
    format_concurrency,
    has_new_costs,
    missing_commits,
    moved_line,
    not_compared,
    price_words,
    review_headline,
    summarize_effect,
)
from seatrial_base.markdown import code, escaped, fenced, folded
from seatrial_base.printer import markdown_lines as finding_lines
from seatrial_base.printer import tally
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seatrial.operations.review.changes import FieldChange
    from seatrial.operations.review.products import ProductReview
    from seatrial.operations.review.review import EndpointReview, Review
    from seatrial.operations.review.side import EndpointPlace

MOST_CHARACTERS = 65_000
"""Of a comment: GitHub takes 65,536 ("body is too long (maximum is 65536 characters)"), a workflow adds a mark."""
_RESERVED = 200  # characters, for the line that tells what is left out
LONGEST_VALUE = 120
MOST_NAMES = 3
"""Of endpoints and environments in the title of a folded part."""


def review_markdown(review: Review, *, base: str, most: int = MOST_CHARACTERS) -> str:
    """Return a review as Markdown of at most so many characters; details that do not fit are left out and counted.

    Args:
        review: The review.
        base: The revision that is compared with.
        most: Characters.
    """
    told = [escaped(one) for one in (review_headline(review), missing_commits(review, base)) if one]
    text = "".join(f"{one}\n\n" for one in (f"### Seatrial: {code(base)} → this checkout", *told))
    sizes = [size for product in review.products for size in product.sizes]
    rows = [*map(_row, review.endpoints), *map(_product_row, review.products), *map(_row, sizes)]
    details = (*_details(review.endpoints), *_details(sizes))
    blocks = [*_shared(review), *("\n".join(lines) + "\n" for lines in details)]
    table = [*_HEAD, *rows] if rows else []
    kept, left_rows = _fitting([f"{line}\n" for line in table], most - len(text) - _RESERVED)
    text += "".join(kept) + ("\n" if kept else "")
    shown, left_blocks = _fitting(blocks, most - len(text) - _RESERVED)
    text += "".join(shown)
    if left_rows or left_blocks:
        told = [counted(left, noun) for left, noun in ((left_rows, "row"), (left_blocks, "detail")) if left]
        text += f"\nLeft out, as a comment has at most {most:,} characters: {', '.join(told)}.\n"
    return text


_HEAD = (
    "| endpoint | environment | change | effect | more instances | per hour | knee | gate | new findings |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
)


def _fitting(texts: Sequence[str], room: int) -> tuple[list[str], int]:
    """Return as many texts as fit, in order, and how many do not; a short one behind a long one is kept."""
    kept: list[str] = []
    left = 0
    for text in texts:
        if len(text) <= room:
            kept.append(text)
            room -= len(text)
        else:
            left += 1
    return kept, left


def _row(review: EndpointReview) -> str:
    hourly = next(one for one in costs(review) if one.name == COSTS[0])
    cells = (
        code(review.place.endpoint),
        code(review.place.environment),
        escaped(changed_parts(review)),
        escaped(summarize_effect(review)),
        "<br>".join(escaped(one) for one in extra_instances(review)),
        escaped(price_words(hourly, review)),
        escaped(format_concurrency(knees(review), review)),
        escaped(format_concurrency(gates(review), review)),
        escaped(tally(review.findings)),
    )
    return _table_row(cells)


def _product_row(review: ProductReview) -> str:
    stays = {"new": "teams can launch it"}.get(review.change, "what is launched stays")
    told = tally(review.findings)
    return _table_row((code(review.name), "product", review.change, stays, "", "", "", "", escaped(told)))


def _shared(review: Review) -> Iterator[str]:
    """Yield what concerns whole environments."""
    if review.unlocked:
        yield "".join(f"- {code(one)} has no plan yet: run `seatrial plan`.\n" for one in review.unlocked) + "\n"
    for product in review.products:
        found = [*finding_lines(product.findings), ""] if product.findings else []
        fields = [*_field_table(product.fields), ""] if product.fields else []
        told = [OF_A_PRODUCT[product.change], "", *found, *fields]
        yield "\n".join(folded(f"Product {code(product.name)}: {product.change}", told)) + "\n"
    for service in review.services:
        changes = [one for one in service.diff.changes if one.action != "unchanged"]
        lines = [f"- {one.action}: {code(one.logical_id)} ({escaped(one.resource_type)})" for one in changes]
        title = f"Trial service of {service.environment}: {counted(len(changes), 'resource')}"
        yield "\n".join(folded(title, lines)) + "\n"
    if quotas := changed_quotas(review):
        rows = [
            _table_row(
                (code(one.environment), code(one.instance_type), f"{one.before}", f"{one.during}", f"{one.after}")
            )
            for one in quotas
        ]
        head = ("| environment | instance type | before | during | after |", "| --- | --- | --- | --- | --- |")
        yield "\n".join(folded("Quota need, in instances at the most copies", [*head, *rows])) + "\n"


def _details(reviews: Iterable[EndpointReview]) -> Iterator[list[str]]:
    """Yield what is folded, once for all endpoints and environments that it is the same of."""
    alike: dict[tuple[str, tuple[str, ...]], list[EndpointPlace]] = defaultdict(list)
    for one in reviews:
        lines = tuple(line for section in _sections(one) for line in (*section, ""))
        alike[changed_parts(one), lines].append(one.place)
    for (changed, lines), places in alike.items():
        title, listed = _named(places), []
        if len(places) > MOST_NAMES:
            title, listed = counted(len(places), "endpoint and environment", "endpoints and environments"), [title, ""]
        yield folded(f"{title}: {changed}", [*listed, *lines])


def _named(places: Iterable[EndpointPlace]) -> str:
    by_environment: dict[str, list[str]] = defaultdict(list)
    for place in places:
        by_environment[place.environment].append(code(place.endpoint))
    by_names: dict[str, list[str]] = defaultdict(list)
    for environment, names in by_environment.items():
        by_names[", ".join(names)].append(code(environment))
    return "; ".join(f"{names} in {', '.join(environments)}" for names, environments in by_names.items())


def _sections(review: EndpointReview) -> Iterator[list[str]]:
    if review.findings:
        yield ["**Findings**", "", *_findings(review)]
    if review.spec:
        yield ["**Spec**", "", *_field_table(review.spec)]
    if review.plan:
        yield ["**Plan**", "", *_plan(review)]
    for each in review.files:
        yield [f"**Configuration** {code(each.name)}", "", *fenced(each.lines, "diff")]
    if review.consequences is not None:
        moved = [moved_line(review), ""] if review.is_moved else []
        yield ["**Resources**", "", *moved, *consequences_markdown_lines(review.consequences, is_brief=True)]
    elif told := not_compared(review):
        yield ["**Resources**", "", told]
    if has_new_costs(review):
        yield ["**Cost**", "", *(f"- {escaped(line)}" for line in cost_lines(review))]
    if changed_curve(review):
        yield ["**Predicted for one copy**", "", *_curve(review)]


def _plan(review: EndpointReview) -> Iterator[str]:
    """Yield the decisions that differ; of a new plan those that have a reason."""
    if review.before is None:
        yield from ("| decision | value | because |", "| --- | --- | --- |")
        yield from (
            _table_row((code(one.field), _value(one.new), escaped(one.because))) for one in review.plan if one.because
        )
        return
    yield from ("| decision | old | new | because |", "| --- | --- | --- | --- |")
    for one in review.plan:
        yield _table_row((code(one.field), _value(one.old), _value(one.new), escaped(one.because)))


def _field_table(fields: Iterable[FieldChange]) -> Iterator[str]:
    yield from ("| field | old | new |", "| --- | --- | --- |")
    yield from (_table_row((code(one.field), _value(one.old), _value(one.new))) for one in fields)


def _findings(review: EndpointReview) -> list[str]:
    known = counted(len(review.known_findings), "finding") if review.known_findings else ""
    return [*finding_lines(review.findings), *(["", f"{known} the base has too."] if known else [])]


def _curve(review: EndpointReview) -> Iterator[str]:
    yield "| concurrency | tok/s | TTFT p95, ms | TPOT p95, ms |"
    yield "| --- | --- | --- | --- |"
    for row in changed_curve(review):
        after = figures_of(row.after)
        before = after if review.before is None else figures_of(row.before)
        pairs = zip(before, after, strict=True)
        yield _table_row((f"{row.concurrency}", *(one if one == other else f"{one} → {other}" for one, other in pairs)))
    former, latter = (band_line(plan) for plan in review.plans)
    yield ""
    yield f"Before: {former}. After: {latter}." if former and former != latter else f"{latter}."


def _table_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _value(value: str | None) -> str:
    return "(none)" if value is None else code(value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}…")
