"""The instance types without a price: what the best deployment of each is predicted to do, whatever it costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.planner.search.evaluate import planned_load
from seatrial.planner.search.ranking import ranking_order
from seatrial.planner.search.sizing import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.planner.search.best_first import SearchResult
    from seatrial.planner.search.candidate import Estimate, FeasibleCandidate
    from seatrial.planner.search.demand import Demand

_NO_BOUNDS = {"usd_per_hour": None, "usd_per_million_output_tokens": None, "blended_usd_per_million_tokens": None}


def unpriced_candidates(demand: Demand, found: SearchResult) -> tuple[FeasibleCandidate, ...]:
    """Return the best deployment of each instance type that has no price and is not ranked, the fastest first.

    Only what satisfies everything but the bounds on money, which nothing without a price can be held against.
    """
    ranked = {feasible.candidate.instance.instance_type for feasible in found.ranked}
    free = _without_bounds_on_money(demand)
    by_type: dict[str, list[Estimate]] = {}
    for estimated in found.estimates:
        name = estimated.candidate.instance.instance_type
        if estimated.score.usd_per_hour == UNKNOWN and name not in ranked:
            by_type.setdefault(name, []).append(estimated)
    best = (next(_feasible(free, estimates), None) for estimates in by_type.values())
    shown = [feasible for feasible in best if feasible is not None]
    return tuple(sorted(shown, key=lambda each: ranking_order(each.candidate, each.score, "throughput")))


def _feasible(demand: Demand, estimates: list[Estimate]) -> Iterator[FeasibleCandidate]:
    """Yield the deployments of one type that satisfy the demand, best first, simulated at their planned load."""
    goal = demand.endpoint.objective
    for estimated in sorted(estimates, key=lambda each: ranking_order(each.candidate, each.score, goal)):
        result = planned_load(demand, estimated)
        if result is not None:
            yield result


def _without_bounds_on_money(demand: Demand) -> Demand:
    budget = demand.endpoint.budget.model_copy(update=_NO_BOUNDS)
    return replace(
        demand,
        endpoint=demand.endpoint.model_copy(update={"budget": budget}),
        rails=demand.rails.model_copy(update=_NO_BOUNDS),
        unknown_price_accepted=True,
    )
