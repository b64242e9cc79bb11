"""Finds the best deployments: estimates all in closed form, and simulates the best of them until their order is sure.

The estimates are a little better than what the simulation says, so the candidate at the front of the queue is the best
once it is simulated and still at the front (lazy best-first search).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from seatrial.planner.search.candidate import Candidate, FeasibleCandidate, RejectedCandidate
from seatrial.planner.search.candidate_band import band_for
from seatrial.planner.search.chance import chance_of
from seatrial.planner.search.evaluate import estimate, evaluate, misses_alone
from seatrial.planner.search.fitting import candidates, sharing
from seatrial.planner.search.ranking import beats, front, ranking_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.planner.search.candidate import Estimate, Score
    from seatrial.planner.search.demand import Demand
    from seatrial.planner.search.ranking import Key
    from seatrial_base.catalog.instances import Instance


_Queued = tuple[tuple[int, float], "Key", int]
_BEST_SIMULATED = 8
_HOPELESS_SIMULATED = 8


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search came to.

    Attributes:
        ranked: Simulated deployments that satisfy everything, best first.
        rejections: What fails, and why.
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
            found = evaluate(self.demand, self.estimates[index])
            self.evaluated[index] = _with_chance(self.demand, found) if isinstance(found, FeasibleCandidate) else found
        return self.evaluated[index]

    @property
    def feasible(self) -> list[FeasibleCandidate]:
        """What was simulated and satisfies everything."""
        return [result for result in self.evaluated.values() if isinstance(result, FeasibleCandidate)]


@dataclass(frozen=True, slots=True)
class Search:
    """Judges deployments by what is asked, and finds the best.

    Attributes:
        demand: What is asked.
    """

    demand: Demand

    def judge(self, candidate: Candidate | RejectedCandidate) -> FeasibleCandidate | RejectedCandidate:
        """Simulate a candidate, first with a single request, then with the load."""
        if isinstance(candidate, RejectedCandidate):
            return candidate
        return misses_alone(self.demand, candidate) or evaluate(self.demand, estimate(self.demand, candidate))

    def on(self, instance: Instance) -> tuple[FeasibleCandidate | RejectedCandidate, ...]:
        """Judge every degree of an instance type."""
        return tuple(map(self.judge, candidates(self.demand, instance)))

    def estimates(self, instances: Iterable[Instance]) -> SearchResult:
        """Return what holds the model, and estimates of what keeps the objectives with a single request."""
        fitted = [found for instance in instances for found in candidates(self.demand, instance)]
        holding = sharing(found for found in fitted if isinstance(found, Candidate))
        missed = [misses_alone(self.demand, candidate) for candidate in holding]
        keeping = (candidate for candidate, miss in zip(holding, missed, strict=True) if miss is None)
        estimates = tuple(estimate(self.demand, candidate) for candidate in keeping)
        rejections = [found for found in (*fitted, *missed) if isinstance(found, RejectedCandidate)]
        considered = sum(estimated.comes_into_question for estimated in estimates)
        return SearchResult((), tuple(rejections), considered, holding, estimates)

    def best(self, instances: Iterable[Instance], *, winner_only: bool = False) -> SearchResult:
        """Return the best deployments over some instance types with all their degrees; what fails says why.

        Args:
            instances: The instance types.
            winner_only: Rank the best alone: nothing that it beats is simulated.
        """
        known = self.estimates(instances)
        queue = _queued(self.demand, list(known.estimates))
        ranked = _best_first(queue, 1 if winner_only else _BEST_SIMULATED)
        rest = () if winner_only else _rest_of_the_front(queue)
        ranked += [feasible for feasible in rest if feasible not in ranked]
        failed = (result for result in queue.evaluated.values() if isinstance(result, RejectedCandidate))
        return replace(
            known,
            ranked=tuple(ranked),
            rejections=(*known.rejections, *failed),
            considered=max(known.considered, len(ranked)),
        )


def _queued(demand: Demand, estimates: list[Estimate]) -> _Queue:
    entries = [
        (estimated.shortfall, _order(demand, estimated.candidate, estimated.score), index)
        for index, estimated in enumerate(estimates)
    ]
    heapify(entries)
    return _Queue(demand, estimates, entries)


def _best_first(queue: _Queue, most: int) -> list[FeasibleCandidate]:
    """Return the best feasible candidates in order: the winner and the nearest runners-up."""
    ranked: list[FeasibleCandidate] = []
    hopeless = 0
    while queue.entries and len(ranked) < most:
        shortfall, _, index = heappop(queue.entries)
        known = queue.evaluated.get(index)
        if isinstance(known, FeasibleCandidate):
            ranked.append(known)
            continue
        hopeless += shortfall[0] > 0
        if hopeless > _HOPELESS_SIMULATED:
            break
        found = queue.simulate(index)
        if isinstance(found, FeasibleCandidate):
            heappush(queue.entries, ((0, 0.0), _order_of(queue.demand, found), index))
    return ranked


def _rest_of_the_front(queue: _Queue) -> list[FeasibleCandidate]:
    """Simulate every estimate that no simulated candidate beats, those on the estimates' own front first."""
    hopeful = [index for index, estimated in enumerate(queue.estimates) if estimated.comes_into_question]
    likely = {hopeful[place] for place in front([queue.estimates[index].score for index in hopeful])}
    for index in sorted(hopeful, key=lambda each: each not in likely):
        if not any(beats(feasible.score, queue.estimates[index].score, earlier=True) for feasible in queue.feasible):
            queue.simulate(index)
    return sorted(queue.feasible, key=lambda feasible: _order_of(queue.demand, feasible))


def _order(demand: Demand, candidate: Candidate, score: Score) -> Key:
    return ranking_order(candidate, score, demand.endpoint.objective)


def _order_of(demand: Demand, feasible: FeasibleCandidate) -> Key:
    return ranking_order(feasible.candidate, feasible.score, demand.endpoint.objective, feasible.chance)


def _with_chance(demand: Demand, feasible: FeasibleCandidate) -> FeasibleCandidate:
    band = band_for(demand, "", feasible.candidate)  # the version is for words alone
    return replace(feasible, chance=chance_of(demand.endpoint, feasible.candidate, feasible.load, band))
