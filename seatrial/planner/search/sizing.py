"""The size of a deployment: its copies, their cost, their score, and whether that is affordable."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.documents.plan import Cost
from seatrial.planner.predict.band import carried_share
from seatrial.planner.predict.simulation import saturation_per_s
from seatrial.planner.search.candidate import Excess, FeasibleCandidate, Score, SustainedRate, band_for
from seatrial.planner.search.capacity import LoadSpread, copies_needed, spread
from seatrial.specs.guardrails.fleets import ModelInstances, fleets_of
from seatrial.specs.scaling import copies_replaced_at_once
from seatrial_base.units import BLENDED_TOKENS_PER_OUTPUT_TOKEN, S_PER_HOUR, counted, usd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.planner.search.candidate import Candidate
    from seatrial.planner.search.capacity import Levels
    from seatrial.planner.search.demand import Demand, LatencyBound
    from seatrial.specs.endpoint import Budget, EndpointSpec, WorkloadSpec
    from seatrial.specs.guardrails.limits import GuardRails
    from seatrial.specs.scaling import ScalingSpec
    from seatrial_base.catalog.instances import Instance

_MILLION = 1_000_000
UNKNOWN = math.inf  # an unknown price comes after every known one
_HALVINGS = 4  # of the way from the planned rate to saturation


def usd_per_hour(instance: Instance, instance_count: int, discount: float = 0.0) -> float | None:
    """Return the price of some instances; `None` when the catalog has no price."""
    # Hours that are bought another way have their own price; a discount is off the list price.
    if instance.purchase_usd_per_hour is not None:
        return instance.purchase_usd_per_hour * instance_count
    return None if instance.usd_per_hour is None else instance.usd_per_hour * (1 - discount) * instance_count


def usd_per_million(usd_per_hour: float, output_tok_s: float) -> float:
    """Return the price of a million output tokens: dollars per hour over millions of tokens per hour."""
    return usd_per_hour / (output_tok_s * S_PER_HOUR) * _MILLION


def blended(usd_per_million_output_tokens: float) -> float:
    """Return the price of a million tokens at three input tokens to one output token."""
    return usd_per_million_output_tokens / BLENDED_TOKENS_PER_OUTPUT_TOKEN


def cost_of(best: FeasibleCandidate, discount: float = 0.0) -> Cost:
    """Return the cost of a deployment at its planned load."""
    instance = best.candidate.instance
    hourly, each = usd_per_hour(instance, best.instance_count, discount), usd_per_hour(instance, 1, discount)
    if hourly is None or each is None:
        return Cost(
            usd_per_hour=None,
            usd_per_hour_per_copy=None,
            usd_per_million_output_tokens=None,
            blended_usd_per_million_tokens=None,
            discount=discount,
            price_source=None,
            price_date=None,
        )
    per_million = usd_per_million(hourly, best.load.output_tok_s)
    saved = instance.savings_plan_usd_per_hour  # it takes no other discount
    listed = None if instance.purchase_usd_per_hour is None else instance.usd_per_hour
    return Cost(
        usd_per_hour=round(hourly, 4),
        usd_per_hour_per_copy=round(each / best.candidate.copies_per_instance, 4),
        usd_per_million_output_tokens=round(per_million, 4),
        blended_usd_per_million_tokens=round(blended(per_million), 4),
        discount=discount,
        price_source=instance.price_source,
        price_date=instance.price_date,
        price_region=instance.price_region if instance.has_other_price else None,
        savings_plan_usd_per_hour=None if saved is None else round(saved * best.instance_count, 4),
        purchase=instance.purchase,
        on_demand_usd_per_hour=None if listed is None else round(listed * best.instance_count, 4),
    )


@dataclass(frozen=True, slots=True)
class Sizing:
    """A size of one candidate.

    Attributes:
        needed: Copies that the workload needs at least; may be more than are allowed.
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
        highest: Concurrency that a copy takes.
        tok_s: Output tokens per second of one copy at a concurrency.
        fewest: Copies that the workload needs at least, where something else than `highest` says it.
    """
    workload, scaling, wanted_tok_s = (
        demand.endpoint.workload,
        demand.endpoint.scaling,
        demand.endpoint.slo.output_tok_s,
    )

    def loaded(copies: int) -> LoadSpread:
        return spread(candidate.copy, workload, copies, tok_s)

    needed = copies_needed(candidate.copy, workload, highest) if fewest is None else fewest
    needed = max(needed, carrying_copies(demand, candidate))
    load = loaded(
        _enough_copies(loaded, max(needed, scaling.min_copies), scaling.max_copies, workload, wanted_tok_s or 0.0)
    )
    more = min(scaling.max_copies, _useful_copies(demand, candidate, load.copy_count))
    return Sizing(needed, loaded(more) if more > load.copy_count else load)


def _enough_copies(
    loaded: Callable[[int], LoadSpread], fewest: int, most: int, workload: WorkloadSpec, wanted_tok_s: float
) -> int:
    """Return the fewest copies that give an output rate, or as many as get a request each.

    More copies do not raise the output of a request rate: all of it is served.
    """
    most = min(most, workload.concurrency or fewest)
    if most <= fewest or loaded(fewest).output_tok_s >= wanted_tok_s:
        return fewest
    enough = bisect_left(range(most), wanted_tok_s, lo=fewest, key=lambda copies: loaded(copies).output_tok_s)
    return min(enough, most)


def _useful_copies(demand: Demand, candidate: Candidate, copies: int) -> int:
    each, budget = candidate.copies_per_instance, demand.endpoint.budget
    if demand.endpoint.objective.goal == "throughput":
        price = usd_per_hour(candidate.instance, 1, demand.discount)
        if budget.usd_per_hour is None or price is None:
            return demand.endpoint.scaling.max_copies
        return math.floor(budget.usd_per_hour / price) * each
    per_token = [bound for bounds in (budget, demand.rails) for bound in _bounds_per_token(bounds)]
    if demand.endpoint.objective.goal == "cost_per_token" or any(bound is not None for bound in per_token):
        return min(math.ceil(copies / each) * each, demand.endpoint.workload.concurrency or copies)
    return copies


def carrying_copies(demand: Demand, candidate: Candidate) -> int:
    """Return the fewest copies that carry the workload's rate with the wanted headroom; 1 where it is no rate.

    Where limits of the spec don't allow so many: as many as they do, but no fewer than are predicted to carry it.
    """
    rate_per_s = demand.endpoint.workload.requests_per_second
    if rate_per_s is None:
        return 1
    loaded = rate_per_s / saturation_per_s(candidate.copy)
    share = carried_share(demand.endpoint.objective.headroom, band_for(demand, candidate))
    fewest, wanted = math.ceil(loaded), math.ceil(loaded / share)
    tok_s, most = rate_per_s * demand.endpoint.workload.output_tokens, demand.endpoint.scaling.max_copies

    def is_refused(copies: int) -> bool:
        score = score_of(demand, candidate, LoadSpread(copies, 1, tok_s), tok_s)
        return copies > most or (score.usd_per_hour != UNKNOWN and bool(excesses(demand, candidate, score)))

    return bisect_left(range(wanted + 1), x=True, lo=fewest + 1, key=is_refused) - 1 if wanted > fewest else fewest


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
        offer_is_unknown=not candidate.instance.is_offered,
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
    paid, listed_price = usd_per_hour(candidate.instance, 1, demand.discount), candidate.instance.usd_per_hour
    listed = token * (listed_price / paid if listed_price is not None and paid else 1.0)
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


def keeps(levels: Levels, objectives: Sequence[LatencyBound], rate_per_s: float) -> bool:
    """Tell whether a copy keeps every objective when requests arrive at a rate."""
    outcome = levels.at_rate(rate_per_s)
    return all(objective.ratio(outcome) <= 1 for objective in objectives)


def copies_at_rate(
    levels: Levels, objectives: Sequence[LatencyBound], rate_per_s: float, scaling: ScalingSpec, fewest: int
) -> int:
    """Return the fewest copies among which a rate keeps every objective; one more than are allowed where none does.

    Each copy gets its share of the requests, as they come: routing at random splits a Poisson process into such ones.
    """
    most = scaling.max_copies
    least = max(fewest, math.ceil(rate_per_s / saturation_per_s(levels.copy)))
    if least > most:
        return least
    # The step doubles until a count keeps the objectives: each count is a simulation, and there may be thousands.
    step, low, high = 1, least, least
    while high <= most and not keeps(levels, objectives, rate_per_s / high):
        low, high, step = high + 1, high + step, 2 * step
    if high > most and (low > most or not keeps(levels, objectives, rate_per_s / most)):
        return most + 1
    high = min(high, most)
    return bisect_left(range(high), x=True, lo=low, key=lambda count: keeps(levels, objectives, rate_per_s / count))


def settled(best: FeasibleCandidate, demand: Demand) -> FeasibleCandidate:
    """Return the chosen deployment with the highest rate that one of its copies sustains, where its trial is open.

    It is found to a sixteenth of what is left from the planned rate to saturation.
    """
    low = best.load.rate_per_copy
    if low is None or not demand.open_trial:
        return best
    levels = best.candidate.levels
    high = max(low, saturation_per_s(levels.copy))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(levels, demand.objectives, middle) else (low, middle)
    level = levels.at_rate(low)
    sustained = SustainedRate(low, level.in_flight, level.most_in_flight)
    capacity = max(best.load.concurrency_per_copy, math.floor(level.in_flight))
    return replace(best, capacity=capacity, sustained=sustained)


def too_fast(levels: Levels, objectives: Sequence[LatencyBound], rate_per_s: float, most_copies: int) -> str:
    """Say what the most copies miss at a rate, in a full sentence."""
    saturation = saturation_per_s(levels.copy)
    each = rate_per_s / most_copies
    among = counted(most_copies, "copy", "copies")
    if each >= saturation:
        return f"One copy answers {saturation:.3g} requests per second; {rate_per_s:g} over {among} are more."
    outcome = levels.at_rate(each)
    missed = [
        f"{objective.predicted(outcome):,.0f} ms against {objective}"
        for objective in objectives
        if objective.ratio(outcome) > 1
    ]
    return f"At {rate_per_s:g} requests per second over {among}: {', '.join(missed)}."
