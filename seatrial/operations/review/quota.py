"""How many instances of each type an environment runs before, during and after a change."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.operations.review.side import instances_of_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seatrial.documents.plan import Plan
    from seatrial.operations.review.review import EndpointReview
    from seatrial.operations.review.side import EndpointPlace, RepositorySide


@dataclass(frozen=True, slots=True)
class QuotaNeed:
    """The most instances of one type that an environment runs, all its endpoints together.

    Attributes:
        environment: The environment.
        instance_type: The type.
        before: Of the base, where each endpoint has its most copies; none of what goes to another account or region.
        during: While every endpoint of the change is updated at once.
        after: Of the checkout.
    """

    environment: str
    instance_type: str
    before: int
    during: int
    after: int


def quota_needs(
    reviews: Iterable[EndpointReview], others: Iterable[EndpointPlace], side: RepositorySide
) -> tuple[QuotaNeed, ...]:
    """Sum what the endpoints of each environment need, by environment and instance type.

    Args:
        reviews: What changes.
        others: The endpoints of the checkout in the environments that change; those that change count once.
        side: The checkout.
    """
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    changed = set()
    for review in reviews:
        changed.add(review.place)
        for when, needed in _needed(review).items():
            for instance_type, number in needed.items():
                counts[review.place.environment, instance_type][when] += number
    for place in others:
        if place not in changed:
            for instance_type, number in instances_of_plan(side, place).items():
                counts[place.environment, instance_type].update(before=number, during=number, after=number)
    return tuple(
        QuotaNeed(*key, count["before"], count["during"], count["after"]) for key, count in sorted(counts.items())
    )


def more_instances(review: EndpointReview) -> Mapping[str, int]:
    """Return how many instances more an endpoint needs at most, during the update or afterwards, by type."""
    needed = _needed(review)
    return dict(sorted(((needed["during"] | needed["after"]) - needed["before"]).items()))


def _needed(review: EndpointReview) -> Mapping[str, Counter[str]]:
    """Return the instances of one endpoint by type, before, during and after."""
    before, after = (_most(plan) for plan in review.plans)
    if review.after is not None and review.plans[1] is None:  # nothing is deployed that can't be read
        return {"before": before, "during": before, "after": before}
    if review.after is None:
        return {"before": before, "during": before, "after": Counter()}
    if review.is_moved:
        return {"before": Counter(), "during": after, "after": after}
    surge: Counter[str] = Counter()
    if review.consequences is not None and not _is_another_endpoint(review):
        surge[review.consequences.size.instance_type] = review.consequences.most_instances
    during = before + after if _is_another_endpoint(review) else (before | after) + surge
    return {"before": before, "during": during, "after": after}


def _is_another_endpoint(review: EndpointReview) -> bool:
    """Tell whether a first or a second endpoint starts: its own instances are the surge."""
    before, after = (None if side is None else side.deployment for side in (review.before, review.after))
    if review.before is None:
        return True
    return before is not None and after is not None and before.endpoint_name != after.endpoint_name


def _most(plan: Plan | None) -> Counter[str]:
    return Counter() if plan is None else Counter({plan.instance_type.value: plan.max_instances})
