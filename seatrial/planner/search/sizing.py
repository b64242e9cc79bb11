"""How many copies a deployment gets, what they are compared by, and whether that is affordable."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.planner.cost import blended, usd_per_hour, usd_per_million
from seatrial.planner.search.candidate import Excess, Score
from seatrial.planner.search.capacity import copies_needed, spread
from seatrial.specs.guardrails.references import ModelInstances, fleets_of
from seatrial.specs.scaling import copies_replaced_at_once
from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.planner.search.candidate import Candidate
    from seatrial.planner.search.capacity import LoadSpread
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.endpoint import Budget, EndpointSpec, WorkloadSpec
    from seatrial.specs.guardrails.limits import GuardRails
    from seatrial.specs.scaling import ScalingSpec
    from seatrial_base.catalog.instances import Instance


UNKNOWN = math.inf  # an unknown price comes after every known one


@dataclass(frozen=True, slots=True)
class Sizing:
    """A size of one candidate.

    Attributes:
        needed: Copies that the workload needs at least; may be more than are allowed.
        load: The workload spread over the copies of the planned size.
    """

    needed: int
    load: LoadSpread


def size(
    demand: Demand, candidate: Candidate, highest: int, tok_s: Callable[[int], float], fewest: int | None = None
) -> Sizing:
    """Return the size that serves the workload, and the objective of the spec best.

    At least min_copies. Where the price of a token counts, free places of the instances are filled, which costs
    nothing; for throughput, as many copies as the budget pays.

    Args:
        demand: What is asked.
        candidate: The deployment.
        highest: Concurrency that a copy takes.
        tok_s: Output tokens per second of one copy at a concurrency.
        fewest: Copies that the workload needs at least, where something else than `highest` says it.
    """
    workload, scaling, asked = demand.endpoint.workload, demand.endpoint.scaling, demand.endpoint.slo.output_tok_s

    def loaded(copies: int) -> LoadSpread:
        return spread(candidate.copy, workload, copies, tok_s)

    needed = copies_needed(candidate.copy, workload, highest) if fewest is None else fewest
    load = loaded(_enough_copies(loaded, max(needed, scaling.min_copies), scaling.max_copies, workload, asked or 0.0))
    more = min(scaling.max_copies, _useful_copies(demand, candidate, load.copy_count))
    return Sizing(needed, loaded(more) if more > load.copy_count else load)


def _enough_copies(
    loaded: Callable[[int], LoadSpread], fewest: int, most: int, workload: WorkloadSpec, asked_tok_s: float
) -> int:
    """Return the fewest copies that give an output rate, or as many as get a request each.

    More copies do not raise the output of a request rate: all of it is served.
    """
    most = min(most, workload.concurrency or fewest)
    if most <= fewest or loaded(fewest).output_tok_s >= asked_tok_s:
        return fewest
    found = bisect_left(range(most), asked_tok_s, lo=fewest, key=lambda copies: loaded(copies).output_tok_s)
    return min(found, most)


def _useful_copies(demand: Demand, candidate: Candidate, copies: int) -> int:
    each, budget = candidate.copies_per_instance, demand.endpoint.budget
    if demand.endpoint.objective == "throughput":
        price = usd_per_hour(candidate.instance, 1, demand.discount)
        if budget.usd_per_hour is None or price is None:
            return demand.endpoint.scaling.max_copies
        return math.floor(budget.usd_per_hour / price) * each
    per_token = [bound for bounds in (budget, demand.rails) for bound in _bounds_per_token(bounds)]
    if demand.endpoint.objective == "cost_per_token" or any(bound is not None for bound in per_token):
        return min(math.ceil(copies / each) * each, demand.endpoint.workload.concurrency or copies)
    return copies


def instances_for(candidate: Candidate, copies: int) -> int:
    """Return the instances that some copies need."""
    return math.ceil(copies / candidate.copies_per_instance)


def score_of(demand: Demand, candidate: Candidate, load: LoadSpread, copy_highest_tok_s: float) -> Score:
    """Return what a size is compared by."""
    hourly = usd_per_hour(candidate.instance, instances_for(candidate, load.copy_count), demand.discount)
    return Score(
        usd_per_hour=UNKNOWN if hourly is None else hourly,
        usd_per_million_output_tokens=UNKNOWN if hourly is None else usd_per_million(hourly, load.output_tok_s),
        ms_per_token_alone=candidate.alone.ms_per_token.mean,
        output_tok_s=load.output_tok_s,
        highest_tok_s=load.copy_count * copy_highest_tok_s,
    )


def bounds_money(demand: Demand) -> bool:
    """Tell whether the spec or the environment bounds what the endpoint may cost."""
    every = (demand.endpoint.budget, demand.rails)
    return any(bound is not None for bounds in every for bound in (bounds.usd_per_hour, *_bounds_per_token(bounds)))


def _bounds_per_token(bounds: Budget | GuardRails) -> tuple[float | None, float | None]:
    return bounds.usd_per_million_output_tokens, bounds.blended_usd_per_million_tokens


def excesses(demand: Demand, candidate: Candidate, score: Score) -> list[Excess]:
    """Return every bound on money that a size exceeds; its price is known.

    A budget is held against the discounted price, as its author knows both. A guard rail is held against the list price
    of all instances that may run, an update's included: nothing that a spec says lifts it.
    """
    budget, rails, most = demand.endpoint.budget, demand.rails, demand.endpoint.scaling.max_copies
    off = f" ({demand.discount:.0%} off the list price)" if demand.discount else ""
    at_most = most_usd_per_hour(demand.endpoint, candidate)
    token = score.usd_per_million_output_tokens
    listed = token * _list_price_share(candidate.instance, demand.discount)
    hourly, output, mix = "usd_per_hour", "usd_per_million_output_tokens", "blended_usd_per_million_tokens"
    per_hour, per_output, per_mixed = "per hour", "per million output tokens", "per million tokens, blended"
    what = f"{{}} {{}}{off}, above the budget of {{}}."
    rail = "{} {} at list prices, above the environment's guard rail of {}."
    place = f"at list prices at max_copies {most}, with an update's instances"
    most_rail = f"{{}} {{}} {place}, above the environment's guard rail of {{}}."
    checks = (
        (("budget", hourly), score.usd_per_hour, budget.usd_per_hour, per_hour, what),
        (("budget", output), token, budget.usd_per_million_output_tokens, per_output, what),
        (("budget", mix), blended(token), budget.blended_usd_per_million_tokens, per_mixed, what),
        (("scaling", "max_copies"), at_most, rails.usd_per_hour, per_hour, most_rail),
        (("guard_rails", output), listed, rails.usd_per_million_output_tokens, per_output, rail),
        (("guard_rails", mix), blended(listed), rails.blended_usd_per_million_tokens, per_mixed, rail),
    )
    return [
        Excess(field, price, bound, words.format(usd(price), unit, usd(bound)))
        for field, price, bound, unit, words in checks
        if bound is not None and price > bound
    ]


def _list_price_share(instance: Instance, discount: float) -> float:
    """Return the list price over what is paid for an instance; 1 where either is unknown."""
    paid = usd_per_hour(instance, 1, discount)
    return instance.usd_per_hour / paid if instance.usd_per_hour is not None and paid else 1.0


def most_usd_per_hour(endpoint: EndpointSpec, candidate: Candidate) -> float:
    """Return the list price of all instances of a deployment that may run; its price is known.

    Further pools and variants of other specs are left out: they cost the same whatever is chosen, and the plan is held
    against the guard rails with them in the end.
    """
    scaling, kind = endpoint.scaling, candidate.instance.instance_type
    most, surge = instances_for(candidate, scaling.max_copies), surge_instances(candidate, scaling)
    size = ModelInstances(
        instance_type=kind,
        instance_count=1,
        most_copies=scaling.max_copies,
        most_instances=most,
        surge_instances=surge,
    )
    price = candidate.instance.usd_per_hour or 0.0
    return math.fsum(fleet.updating * price for fleet in fleets_of(endpoint, size))


def surge_instances(candidate: Candidate, scaling: ScalingSpec) -> int:
    """Return the instances that an update needs beside those for the most copies: new copies run beside old ones."""
    most = scaling.max_copies
    beside = copies_replaced_at_once(scaling.min_copies, most) or most
    return instances_for(candidate, most + beside) - instances_for(candidate, most)
