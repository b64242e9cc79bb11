"""The chance that a deployment meets the SLO, from its predictions and how far they may be off.

Errors are log-normal, and a band holds 80 % of them. One error makes all latencies of a deployment longer, so the
chance is that of its tightest bound. `docs/explanation/accuracy.md` shows how often such chances come true.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

from seatrial.planner.search.demand import read_objectives

if TYPE_CHECKING:
    from seatrial.documents.prediction import Band
    from seatrial.planner.search.candidate import Candidate
    from seatrial.planner.search.capacity import LoadSpread
    from seatrial.specs.endpoint import EndpointSpec

_COVERAGE_Z = NormalDist().inv_cdf(0.9)  # a band holds 80 % of the errors: 10 % lie beyond either end


def chance_within(ratio: float, share: float) -> float:
    """Return the chance that a bound is kept.

    Args:
        ratio: The predicted value as a multiple of its bound: above 1 it misses; 0 is TPOT of a single token.
        share: The band of the prediction, as a share.
    """
    if share <= 0 or ratio <= 0:
        return float(ratio <= 1)
    return NormalDist().cdf(-math.log(ratio) / (math.log1p(share) / _COVERAGE_Z))


def chance_of(endpoint: EndpointSpec, candidate: Candidate, load: LoadSpread, band: Band) -> float | None:
    """Return the chance that a deployment meets the SLO; `None` where the spec bounds nothing.

    Args:
        endpoint: The spec.
        candidate: The deployment.
        load: The workload spread over its copies.
        band: How far its predictions may be off.
    """
    bounds, asked = read_objectives(endpoint)[:-1], endpoint.slo.output_tok_s
    outcome = candidate.levels.under(load) if bounds else None
    chances = [chance_within(bound.ratio(outcome), band.latency) for bound in bounds] if outcome else []
    if asked is not None:
        chances.append(chance_within(asked / load.output_tok_s, band.throughput))
    return min(chances, default=None)
