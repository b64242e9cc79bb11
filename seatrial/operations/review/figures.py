"""Figures of an endpoint before and after: what it costs, and what it is predicted to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.operations.review.review import EndpointReview


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """A figure on both sides; `None` where it is unknown, or there is no such side."""

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class CurveRow:
    """What one copy is predicted to do at one concurrency on both sides; `None` where that is no level of the plan."""

    concurrency: int
    before: CurvePoint | None
    after: CurvePoint | None


COSTS = ("usd_per_hour", "usd_per_million_output_tokens", "blended_usd_per_million_tokens")


def costs(review: EndpointReview) -> tuple[BeforeAfter, ...]:
    """Return the prices of the planned size, in US dollars, by the names of the plan's fields."""
    return tuple(BeforeAfter(name, *(_cost(plan, name) for plan in review.plans)) for name in COSTS)


def _cost(plan: Plan | None, name: str) -> float | None:
    return None if plan is None else dict(plan.cost)[name]


def update_usd_per_hour(review: EndpointReview) -> float | None:
    """Return what the instances cost while the update lasts, in US dollars per hour; `None` when it is unknown.

    A first deployment costs what the endpoint costs; a second endpoint runs beside the first.
    """
    found, (before, _) = review.consequences, review.plans
    if found is None:
        return None
    extra = found.size.hourly(found.instances)
    running = 0.0 if review.before is None else _cost(before, COSTS[0])
    return None if extra is None or running is None else running + extra


def knees(review: EndpointReview) -> BeforeAfter:
    """Return the predicted knee of one copy, in requests in flight."""
    return BeforeAfter("knee", *(None if plan is None else float(plan.knee.concurrency) for plan in review.plans))


def gates(review: EndpointReview) -> BeforeAfter:
    """Return the gate of the trial per copy, in requests in flight."""
    values = (None if plan is None else float(plan.gate_concurrency_per_copy.value) for plan in review.plans)
    return BeforeAfter("gate", *values)


def curve(review: EndpointReview) -> tuple[CurveRow, ...]:
    """Return the predicted curves of both sides, level by level."""
    before, after = (
        {} if plan is None else {point.concurrency: point for point in plan.curve} for plan in review.plans
    )
    return tuple(CurveRow(level, before.get(level), after.get(level)) for level in sorted(before.keys() | after.keys()))


def changed_curve(review: EndpointReview) -> tuple[CurveRow, ...]:
    """Return the predicted curves of both sides; none where they are the same, or a side that exists has none."""
    before, after = review.plans
    is_known = after is not None and (before is not None or review.before is None)
    rows = curve(review) if is_known else ()
    return rows if any(row.before != row.after for row in rows) else ()
