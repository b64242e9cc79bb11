"""The closed form's estimate of a candidate: what is worth simulating, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.plan.candidate import Estimate
from seatrial.plan.copies import estimated_capacity
from seatrial.plan.sizing import UNKNOWN, bounds_money, excesses, merit_of, size
from seatrial.predict.closed_form import predict

if TYPE_CHECKING:
    from seatrial.plan.candidate import Candidate, Merit
    from seatrial.plan.demand import Demand
    from seatrial.plan.sizing import Sizing

# The closed form's means lie near the simulated percentiles: a quarter more keeps it from refusing what would hold.
_LATENCY_SLACK = 1.25
# Simulated throughputs lie at most about this much above the closed form's: an estimate must not be too low.
_THROUGHPUT_SLACK = 1.05
_TOO_MANY_COPIES, _TOO_SLOW, _TOO_DEAR, _NO_PRICE = 4, 3, 1, 2


def estimate(demand: Demand, candidate: Candidate) -> Estimate:
    """Estimate a candidate that keeps the objectives with a single request."""

    def tok_s(concurrency: int) -> float:
        return predict(candidate.copy, concurrency).output_tok_s * _THROUGHPUT_SLACK

    highest = max(1, estimated_capacity(candidate.copy, demand.objectives, _LATENCY_SLACK))
    sized = size(demand, candidate, highest, tok_s)
    merit = merit_of(demand, candidate, sized.load, tok_s(highest))
    likely = estimated_capacity(candidate.copy, demand.objectives)
    return Estimate(candidate, likely, merit, _shortfall(demand, candidate, sized, merit))


def _shortfall(demand: Demand, candidate: Candidate, sized: Sizing, merit: Merit) -> tuple[int, float]:
    most, asked = demand.endpoint.scaling.max_copies, demand.endpoint.slo.output_tok_s or 0.0
    if sized.needed > most:
        return _TOO_MANY_COPIES, sized.needed / most
    if sized.load.output_tok_s < asked:
        return _TOO_SLOW, asked / sized.load.output_tok_s
    if merit.usd_per_hour == UNKNOWN:
        return (_NO_PRICE, 0.0) if bounds_money(demand) else (0, 0.0)
    beyond = excesses(demand, candidate, merit)
    return (_TOO_DEAR, max(excess.price / excess.bound for excess in beyond)) if beyond else (0, 0.0)
