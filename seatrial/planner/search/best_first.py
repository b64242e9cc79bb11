"""Finds the best deployments: estimates all in closed form, and simulates the best of them until their order is sure.

The estimates are a little better than what the simulation says, so the candidate at the front of the queue is the best
once it is simulated and still at the front (lazy best-first search).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Literal

from seatrial.documents.plan import Alternative, Rejected
from seatrial.planner.search.candidate import STAGES, Candidate, FeasibleCandidate, RejectedCandidate, band_for, known
from seatrial.planner.search.evaluate import (
    LACKS_HEADROOM,
    by_headroom,
    carried_by,
    chance_of,
    estimate,
    evaluate,
    misses_alone,
    planned_load,
    without_headroom,
)
from seatrial.planner.search.fitting import candidates, sharing
from seatrial.planner.search.sizing import UNKNOWN
from seatrial_base.units import MS_PER_S, counted, hourly_words, tenths, usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.planner.search.candidate import Estimate, Score
    from seatrial.planner.search.demand import Demand
    from seatrial_base.catalog.instances import Instance

MOST_REJECTED = 12
_CHANCE_STEPS = 20
Goal = Literal["cost", "cost_per_token", "latency", "throughput"]
Key = tuple[tuple[float, ...], str, int]
_Queued = tuple[tuple[int, float], "Key", int]
# The winner, and the nearest runners-up, which the plan shows with why they lost.
_BEST_SIMULATED = 8
# Estimates are optimistic, so what falls short by its estimate fails: some are simulated for the sake of the message.
_HOPELESS_SIMULATED = 8
_NO_BOUNDS = {"usd_per_hour": None, "usd_per_million_output_tokens": None, "blended_usd_per_million_tokens": None}


def front(scores: Sequence[Score]) -> list[int]:
    """Return the places of the scores that no other dominates; of equal ones the first."""
    return [
        place
        for place, score in enumerate(scores)
        if not any(beats(other, score, earlier=index < place) for index, other in enumerate(scores) if index != place)
    ]


def beats(other: Score, score: Score, *, earlier: bool) -> bool:
    """Tell whether one is at least as good in everything, and better in something or the earlier of equals."""
    theirs, ours = _coordinates(other), _coordinates(score)
    return all(a <= b for a, b in zip(theirs, ours, strict=True)) and (theirs != ours or earlier)


def _coordinates(score: Score) -> tuple[float, ...]:
    return score.offer_is_unknown, score.usd_per_hour, score.ms_per_token_alone, -score.highest_tok_s


def alternatives(ranked: Sequence[FeasibleCandidate]) -> tuple[Alternative, ...]:
    """Return the front of the feasible candidates, by price; the first of them is the chosen one."""
    ranked = [feasible for feasible in ranked if feasible.score.offer_is_unknown <= ranked[0].score.offer_is_unknown]
    places = front([feasible.score for feasible in ranked])
    best = sorted(places, key=lambda place: (_coordinates(ranked[place].score), place))
    return tuple(alternative(ranked[place], chosen=place == 0) for place in best)


def alternative(feasible: FeasibleCandidate, *, chosen: bool = False) -> Alternative:
    """Return a deployment as the plan shows it."""
    score = feasible.score
    return Alternative(
        **feasible.size.fields,
        copies_per_instance=feasible.candidate.copies_per_instance,
        usd_per_million_output_tokens=known(score.usd_per_million_output_tokens),
        output_tok_s=round(score.output_tok_s, 1),
        highest_tok_s=round(score.highest_tok_s, 1),
        ms_per_token_alone=round(score.ms_per_token_alone, 2),
        chosen=chosen,
    )


def ranking_order(candidate: Candidate, score: Score, goal: Goal, chance: float | None = None) -> Key:
    """Return what sorts deployments best first: the goal, then what else counts; the name where all is equal.

    What is not known to be offered in the region comes last: a price there would be of no use.
    Of deployments at one price the one that is likelier to meet the SLO is the better buy. One whose chance is not
    known yet may be the likeliest.
    """
    price, highest, alone = score.usd_per_hour, -score.highest_tok_s, score.ms_per_token_alone
    key = {
        "cost": (price, -chance_step(chance), highest, alone),
        "cost_per_token": (score.usd_per_million_output_tokens, price, highest, alone),
        "latency": (alone, price, highest),
        "throughput": (highest, price, alone),
    }[goal]
    return (score.offer_is_unknown, *key), candidate.instance.instance_type, candidate.degree


def chance_step(chance: float | None) -> float:
    """Return a chance in steps of a twentieth: less makes no difference between two deployments; 1 for none."""
    return 1.0 if chance is None else round(_CHANCE_STEPS * chance) / _CHANCE_STEPS


def why_best(ranked: Sequence[FeasibleCandidate], considered: int, demand: Demand) -> str:
    """Return why the first feasible candidate won of those that keep the requirements, with the deciding numbers."""
    best, gate = ranked[0], ranked[0].at_gate
    of = f"of {counted(considered, 'candidate')} predicted to {demand.kept}"
    kept = [
        f"{'.'.join(objective.path)} {objective.predicted(gate):,.{1 if objective.metric == 'tpot_ms' else 0}f} ms "
        f"(bound {objective.bound_ms:,.12g} ms)"
        for objective in demand.objectives[:-1]
    ]
    slowest = f"longest request {tenths(gate.e2e_latency_ms.max / MS_PER_S)} s"
    rate = best.load.rate_per_copy
    load = counted(best.load.concurrency_per_copy, "concurrent request") if rate is None else f"{rate:.3g} requests/s"
    return f"{_merit_words(best, of, demand)} Simulated at {load} per copy: {', '.join([*kept, slowest])}."


def _merit_words(best: FeasibleCandidate, of: str, demand: Demand) -> str:
    """Say what a deployment is best at, with the number."""
    score, goal = best.score, demand.endpoint.objective.goal
    if by_headroom(demand, best.candidate, best.load)[0]:
        return f"Likeliest to carry the rate {of}: {carried_by(demand, best.candidate, best.load):.1%}."
    price, most = hourly_words(known(score.usd_per_hour), demand.discount), f"{score.highest_tok_s:,.0f} output tok/s"
    if goal in ("cost", "cost_per_token") and known(score.usd_per_hour) is None:
        return f"Price unknown. Highest throughput {of}: {most}."
    return {
        "cost": f"Cheapest {of}: {price}.",
        "cost_per_token": f"Cheapest token {of}: {usd(score.usd_per_million_output_tokens)} per million output tokens "
        f"({price}).",
        "latency": f"Lowest latency of a single request {of}: {tenths(score.ms_per_token_alone)} ms per token.",
        "throughput": f"Highest throughput {of}: {most} at up to {counted(best.capacity, 'concurrent request')} per "
        "copy.",
    }[goal]


def rejections(
    ranked: Sequence[FeasibleCandidate], rejections: Iterable[RejectedCandidate], goal: Goal
) -> tuple[Rejected, ...]:
    """Return the nearest losers, the best of each instance type first, each with one sentence why."""
    best = ranked[0]
    outdone = [
        Rejected(
            **{name: value for name, value in feasible.size.fields.items() if name in Rejected.model_fields},
            output_tok_s=round(feasible.score.output_tok_s, 1),
            because=_less_likely(best, feasible, goal) or why_outdone(best.score, feasible.score, goal),
            feasible=True,
        )
        for feasible in ranked[1:]
    ]
    failed = [
        Rejected(**rejection.fields)
        for rejection in sorted(
            rejections, key=lambda each: (-STAGES.index(each.stage), each.gap, each.instance_type, each.degree)
        )
    ]
    first: list[Rejected] = []
    others: list[Rejected] = []
    seen = {best.candidate.instance.instance_type}
    for rejected in (*outdone, *failed):
        (others if rejected.instance_type in seen else first).append(rejected)
        seen.add(rejected.instance_type)
    return (*first, *others)[:MOST_REJECTED]


def _less_likely(best: FeasibleCandidate, other: FeasibleCandidate, goal: Goal) -> str:
    """Return why a deployment at the same price is not the best, where the chance to meet the SLO decides."""
    same_price = known(other.score.usd_per_hour) is not None and other.score.usd_per_hour == best.score.usd_per_hour
    if (
        goal != "cost"
        or not same_price
        or other.score.offer_is_unknown > best.score.offer_is_unknown
        or chance_step(other.chance) >= chance_step(best.chance)
    ):
        return ""
    theirs, ours = (f"{100 * (each.chance or 0.0):.0f} %" for each in (other, best))
    return f"Same price, {theirs} to meet the SLO, against {ours} for the chosen one."


def why_outdone(best: Score, other: Score, goal: Goal) -> str:
    """Return why a deployment that keeps every objective is not the best."""
    if goal == "latency" and other.ms_per_token_alone > best.ms_per_token_alone:
        slower, faster = _distinct(other.ms_per_token_alone, best.ms_per_token_alone, decimals=1)
        return f"{slower} ms per token for a single request, against {faster} ms for the chosen one."
    if goal == "throughput" and other.highest_tok_s < best.highest_tok_s:
        fewer, more = _distinct(other.highest_tok_s, best.highest_tok_s)
        return f"At most {fewer} output tok/s, against {more} for the chosen one."
    lacks = "is not known to be offered in the region; what is" * (other.offer_is_unknown > best.offer_is_unknown)
    if known(other.usd_per_hour) is None and known(best.usd_per_hour) is not None:
        lacks = lacks or "its price is unknown; a known price"
    if lacks:
        return f"Meets the SLO, but {lacks} ranks first."
    if goal == "cost_per_token" and other.usd_per_million_output_tokens > best.usd_per_million_output_tokens:
        theirs, ours = other.usd_per_million_output_tokens, best.usd_per_million_output_tokens
        return f"{usd(theirs)} per million output tokens at the planned load, against {usd(ours)} for the chosen one."
    if other.usd_per_hour > best.usd_per_hour:
        dearer = usd(other.usd_per_hour - best.usd_per_hour)
        return f"Meets the SLO at {usd(other.usd_per_hour)}/h, {dearer}/h above the chosen one."
    fewer, more = _distinct(other.highest_tok_s, best.highest_tok_s)
    same = "Same price" if known(other.usd_per_hour) is not None else "Price unknown"
    return f"{same}, at most {fewer} output tok/s against {more} for the chosen one."


def _distinct(one: float, other: float, decimals: int = 0) -> tuple[str, str]:
    """Write two numbers with as many decimals as show that they differ, three more at most."""
    for digits in range(decimals, decimals + 4):
        texts = f"{one:,.{digits}f}", f"{other:,.{digits}f}"
        if texts[0] != texts[1]:
            break
    return texts


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search came to.

    Attributes:
        ranked: Simulated deployments that satisfy everything, best first.
        considered: Deployments that come into question by the closed form.
        fitted: Every deployment that holds the model.
        estimates: Those of them that keep the objectives with a single request, estimated.
    """

    ranked: tuple[FeasibleCandidate, ...]
    rejections: tuple[RejectedCandidate, ...]
    considered: int
    fitted: tuple[Candidate, ...] = ()
    estimates: tuple[Estimate, ...] = ()


@dataclass(slots=True)
class _Queue:
    """Estimates and feasible candidates by what is best; `evaluated` holds what was simulated."""

    demand: Demand
    estimates: list[Estimate]
    entries: list[_Queued]
    evaluated: dict[int, FeasibleCandidate | RejectedCandidate] = field(default_factory=dict)

    def simulate(self, index: int) -> FeasibleCandidate | RejectedCandidate:
        if index not in self.evaluated:
            result = evaluate(self.demand, self.estimates[index])
            if isinstance(result, FeasibleCandidate):
                band = band_for(self.demand, result.candidate)
                chance = chance_of(self.demand.endpoint, result.candidate, result.load, band)
                result = replace(result, chance=chance)
            self.evaluated[index] = result
        return self.evaluated[index]

    @property
    def feasible(self) -> list[FeasibleCandidate]:
        """What was simulated and satisfies everything; the headroom as far as anything does."""
        every = [result for result in self.evaluated.values() if isinstance(result, FeasibleCandidate)]
        lacks = [by_headroom(self.demand, result.candidate, result.load) for result in every]
        return [result for result, lack in zip(every, lacks, strict=True) if lack == min(lacks)]


@dataclass(frozen=True, slots=True)
class Search:
    """Judges deployments by the requirements, and finds the best."""

    demand: Demand

    def judge(self, candidate: Candidate | RejectedCandidate) -> FeasibleCandidate | RejectedCandidate:
        """Simulate a candidate, first with a single request, then with the load."""
        if isinstance(candidate, RejectedCandidate):
            return candidate
        judged = misses_alone(self.demand, candidate) or evaluate(self.demand, estimate(self.demand, candidate))
        if isinstance(judged, FeasibleCandidate) and by_headroom(self.demand, candidate, judged.load)[0]:
            return without_headroom(self.demand, judged)
        return judged

    def on(self, instance: Instance) -> tuple[FeasibleCandidate | RejectedCandidate, ...]:
        """Judge every degree of an instance type."""
        return tuple(map(self.judge, candidates(self.demand, instance)))

    def estimates(self, instances: Iterable[Instance]) -> SearchResult:
        """Return what holds the model, and estimates of what keeps the objectives with a single request."""
        fitted = [judged for instance in instances for judged in candidates(self.demand, instance)]
        # Before anything is simulated: equal copies on sizes of one family then share what is.
        holding = sharing(judged for judged in fitted if isinstance(judged, Candidate))
        missed = [misses_alone(self.demand, candidate) for candidate in holding]
        keeping = (candidate for candidate, miss in zip(holding, missed, strict=True) if miss is None)
        estimates = tuple(estimate(self.demand, candidate) for candidate in keeping)
        rejections = [judged for judged in (*fitted, *missed) if isinstance(judged, RejectedCandidate)]
        considered = sum(estimated.comes_into_question for estimated in estimates)
        return SearchResult((), tuple(rejections), considered, holding, estimates)

    def best(self, instances: Iterable[Instance], *, winner_only: bool = False) -> SearchResult:
        """Return the best deployments over some instance types with all their degrees; what fails says why.

        Args:
            winner_only: Rank the best alone: nothing that it beats is simulated.
        """
        known = self.estimates(instances)
        estimates = list(known.estimates)
        entries = [
            (
                estimated.shortfall,
                ranking_order(estimated.candidate, estimated.score, self.demand.endpoint.objective.goal),
                index,
            )
            for index, estimated in enumerate(estimates)
        ]
        heapify(entries)
        queue = _Queue(self.demand, estimates, entries)
        ranked = _best_first(queue, 1 if winner_only else _BEST_SIMULATED)
        rest = () if winner_only else _rest_of_the_front(queue)
        ranked += [feasible for feasible in rest if feasible not in ranked]
        feasible = queue.feasible
        failed = (
            result if isinstance(result, RejectedCandidate) else without_headroom(self.demand, result)
            for result in queue.evaluated.values()
            if result not in feasible
        )
        return replace(
            known,
            ranked=tuple(ranked),
            rejections=(*known.rejections, *failed),
            considered=max(known.considered, len(ranked)),
        )


def _best_first(queue: _Queue, most: int) -> list[FeasibleCandidate]:
    """Return the best feasible candidates in order: the winner and the nearest runners-up."""
    ranked: list[FeasibleCandidate] = []
    hopeless = 0
    while queue.entries and len(ranked) < most:
        shortfall, _, index = heappop(queue.entries)
        known = queue.evaluated.get(index)
        # What has less headroom than the best is no runner-up: some of it is simulated for the message alone.
        outdone = bool(ranked) and shortfall > _order_of(queue.demand, ranked[0])[0]
        if isinstance(known, FeasibleCandidate):
            ranked += () if outdone else (known,)
            continue
        hopeless += outdone or shortfall[0] > LACKS_HEADROOM
        if hopeless > _HOPELESS_SIMULATED:
            break
        result = queue.simulate(index)
        if isinstance(result, FeasibleCandidate):
            # Queued again with its simulated score: it is the best once it comes to the front a second time.
            heappush(queue.entries, (*_order_of(queue.demand, result), index))
    return ranked


def _rest_of_the_front(queue: _Queue) -> list[FeasibleCandidate]:
    """Simulate every estimate that no simulated candidate beats, those on the estimates' own front first."""
    hopeful = [index for index, estimated in enumerate(queue.estimates) if estimated.comes_into_question]
    likely = {hopeful[place] for place in front([queue.estimates[index].score for index in hopeful])}
    # What is likely on the front goes first: once simulated, it beats many others, which need no simulation then.
    for index in sorted(hopeful, key=lambda each: each not in likely):
        if not any(beats(feasible.score, queue.estimates[index].score, earlier=True) for feasible in queue.feasible):
            queue.simulate(index)
    return sorted(queue.feasible, key=lambda feasible: _order_of(queue.demand, feasible))


def _order_of(demand: Demand, feasible: FeasibleCandidate) -> tuple[tuple[int, float], Key]:
    key = ranking_order(feasible.candidate, feasible.score, demand.endpoint.objective.goal, feasible.chance)
    return by_headroom(demand, feasible.candidate, feasible.load), key


def unpriced_candidates(demand: Demand, result: SearchResult) -> tuple[FeasibleCandidate, ...]:
    """Return the best deployment of each instance type that has no price and is not ranked, the fastest first.

    Only what satisfies everything but the bounds on money, which nothing without a price can be held against.
    """
    ranked = {feasible.candidate.instance.instance_type for feasible in result.ranked}
    budget = demand.endpoint.budget.model_copy(update=_NO_BOUNDS)
    free = replace(
        demand,
        endpoint=demand.endpoint.model_copy(update={"budget": budget}),
        rails=demand.rails.model_copy(update=_NO_BOUNDS),
        unknown_price_accepted=True,
    )
    by_type: dict[str, list[Estimate]] = {}
    for estimated in result.estimates:
        name = estimated.candidate.instance.instance_type
        if estimated.score.usd_per_hour == UNKNOWN and name not in ranked:
            by_type.setdefault(name, []).append(estimated)
    shown: list[FeasibleCandidate] = []
    for estimates in by_type.values():
        estimates.sort(key=lambda each: ranking_order(each.candidate, each.score, demand.endpoint.objective.goal))
        # Lazily: each is simulated at its planned load.
        shown += islice(filter(None, (planned_load(free, each) for each in estimates)), 1)
    return tuple(sorted(shown, key=lambda each: ranking_order(each.candidate, each.score, "throughput")))
