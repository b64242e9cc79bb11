"""Finds the best deployments: estimates all in closed form, and simulates the best of them until their order is sure.

The estimates are a little better than what the simulation says, so the candidate at the front of the queue is the best
once it is simulated and still at the front (lazy best-first search).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from seatrial.plan.search.candidate import Candidate, Loss, Offer
from seatrial.plan.search.evaluate import estimate, judge, misses_alone
from seatrial.plan.search.fitting import candidates
from seatrial.plan.search.ranking import beats, front, order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.catalog.instances import Instance
    from seatrial.plan.search.candidate import Estimate, Merit
    from seatrial.plan.search.demand import Demand
    from seatrial.plan.search.ranking import Key


_Queued = tuple[tuple[int, float], "Key", int]
_BEST_SIMULATED = 8
_HOPELESS_SIMULATED = 8


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to.

    Attributes:
        ranked: Simulated deployments that satisfy everything, best first.
        losses: What fails, and why.
        considered: Deployments that come into question by the closed form.
    """

    ranked: tuple[Offer, ...]
    losses: tuple[Loss, ...]
    considered: int


@dataclass(slots=True)
class _Queue:
    """Estimates and offers by what is best; `judged` holds what was simulated."""

    demand: Demand
    estimates: list[Estimate]
    entries: list[_Queued]
    judged: dict[int, Offer | Loss] = field(default_factory=dict)

    def simulate(self, index: int) -> Offer | Loss:
        if index not in self.judged:
            self.judged[index] = judge(self.demand, self.estimates[index])
        return self.judged[index]

    @property
    def offers(self) -> list[Offer]:
        """What was simulated and satisfies everything."""
        return [result for result in self.judged.values() if isinstance(result, Offer)]


def search(demand: Demand, instances: Iterable[Instance]) -> Found:
    """Return the best deployments over some instance types with all their degrees; what fails says why."""
    fitted = [found for instance in instances for found in candidates(demand, instance)]
    losses = [found for found in fitted if isinstance(found, Loss)]
    estimates = []
    for candidate in (found for found in fitted if isinstance(found, Candidate)):
        missed = misses_alone(demand, candidate)
        if missed is None:
            estimates.append(estimate(demand, candidate))
        else:
            losses.append(missed)
    queue = _queued(demand, estimates)
    ranked = _best_first(queue)
    ranked += [offer for offer in _rest_of_the_front(queue) if offer not in ranked]
    losses += [result for result in queue.judged.values() if isinstance(result, Loss)]
    considered = sum(estimated.comes_into_question for estimated in estimates)
    return Found(tuple(ranked), tuple(losses), max(considered, len(ranked)))


def _queued(demand: Demand, estimates: list[Estimate]) -> _Queue:
    entries = [
        (estimated.shortfall, _order(demand, estimated.candidate, estimated.merit), index)
        for index, estimated in enumerate(estimates)
    ]
    heapify(entries)
    return _Queue(demand, estimates, entries)


def _best_first(queue: _Queue) -> list[Offer]:
    """Return the best offers in order: the winner and the nearest runners-up."""
    ranked: list[Offer] = []
    hopeless = 0
    while queue.entries and len(ranked) < _BEST_SIMULATED:
        shortfall, _, index = heappop(queue.entries)
        known = queue.judged.get(index)
        if isinstance(known, Offer):
            ranked.append(known)
            continue
        hopeless += shortfall[0] > 0
        if hopeless > _HOPELESS_SIMULATED:
            break
        found = queue.simulate(index)
        if isinstance(found, Offer):
            heappush(queue.entries, ((0, 0.0), _order(queue.demand, found.candidate, found.merit), index))
    return ranked


def _rest_of_the_front(queue: _Queue) -> list[Offer]:
    """Simulate every estimate that no simulated offer beats, those on the estimates' own front first."""
    hopeful = [index for index, estimated in enumerate(queue.estimates) if estimated.comes_into_question]
    likely = {hopeful[place] for place in front([queue.estimates[index].merit for index in hopeful])}
    for index in sorted(hopeful, key=lambda each: each not in likely):
        if not any(beats(offer.merit, queue.estimates[index].merit, earlier=True) for offer in queue.offers):
            queue.simulate(index)
    return sorted(queue.offers, key=lambda offer: _order(queue.demand, offer.candidate, offer.merit))


def _order(demand: Demand, candidate: Candidate, merit: Merit) -> Key:
    return order(candidate, merit, demand.endpoint.objective)
