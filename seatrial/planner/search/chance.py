"""The chance that a deployment meets the SLO, from its predictions and how far they may be off.

Errors are log-normal, and a band holds 80 % of them; of TTFT, which is less certain, a wider one does. One error makes
all latencies of a deployment longer, so the chance is that of its least likely bound. `docs/explanation/accuracy.md`
shows how often such chances come true.
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
# Cheaper deployments in doubt were slower than predicted more often than faster while their model or degree was left
# out, and as often as not while only lengths were. With this number their chances come true about as often as stated
# (the table of benchmarks/planner_accuracy/chances.py).
SLOWER_IN_DOUBT = 0.2


def chance_within(ratio: float, share: float, slower: float = 0.0) -> float:
    """Return the chance that a bound is kept.

    Args:
        ratio: The predicted value as a multiple of its bound: above 1 it misses; 0 is TPOT of a single token.
        share: The band of the prediction, as a share.
        slower: By how many standard deviations the truth is taken to be slower than predicted.
    """
    if share <= 0 or ratio <= 0:
        return float(ratio <= 1)
    return NormalDist().cdf(-math.log(ratio) / (math.log1p(share) / _COVERAGE_Z) - slower)


def slower_in_doubt(band: Band) -> float:
    """Return by how many standard deviations a cheaper deployment in doubt is slower than predicted."""
    return 0.0 if band.of_same_deployment else SLOWER_IN_DOUBT


def chance_of(
    endpoint: EndpointSpec, candidate: Candidate, load: LoadSpread, band: Band, slower: float = 0.0
) -> float | None:
    """Return the chance that a deployment meets the SLO; `None` where the spec bounds nothing.

    Args:
        endpoint: The spec.
        candidate: The deployment.
        load: The workload spread over its copies.
        band: How far its predictions may be off.
        slower: By how many standard deviations it is taken to be slower than predicted.
    """
    bounds, asked = read_objectives(endpoint)[:-1], endpoint.slo.output_tok_s
    outcome = candidate.levels.under(load) if bounds else None
    chances = [
        chance_within(bound.ratio(outcome), band.latency_of(bound.metric), slower) for bound in bounds if outcome
    ]
    if asked is not None:
        chances.append(chance_within(asked / load.output_tok_s, band.throughput, slower))
    return min(chances, default=None)
