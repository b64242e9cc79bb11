"""One copy under requests that come at a rate and wait for nobody: latencies with the queue in them.

Requests come at random or as they were recorded, and queue where the engine has no room. So the percentiles hold what a
closed loop can't have: two prompts at once, a burst, a batch that fills up for a while.

All draws have a fixed seed: at another rate the same gaps are longer or shorter, and the same requests come in the same
order, so that two rates, or two deployments, differ by nothing else.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.request_simulation import simulate_open
from seatrial.planner.predict.simulation import Level, distribution
from seatrial_base.units import MS_PER_S
from seatrial_load.documents.arrivals import Poisson
from seatrial_load.documents.distribution import Distribution

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial_load.documents.arrivals import Arrivals

SEED: Final = "level 0"  # as the first level of a trial
_FILLING: Final = 2.0  # times a request takes alone, until as many are in flight as there will be
_FEWEST_FILLING, _MOST_FILLING = 32, 1_024


AT_RANDOM: Final = Poisson()
"""A Poisson process: users who know nothing of each other."""


@dataclass(frozen=True, slots=True)
class OpenLevel(Level):
    """A level at one rate.

    Attributes:
        rate_per_s: Requests per second at this copy.
        in_flight: Mean number of requests in flight, by Little's law.
        most_in_flight: So many are in flight when 99 % of the requests arrive.
        queue_ms: From the arrival at the engine until the first tokens of the prompt are computed.
        itl_ms: Pause between two tokens of a request.
    """

    rate_per_s: float
    in_flight: float
    most_in_flight: int
    queue_ms: Distribution
    itl_ms: Distribution


def open_level(
    copy: Copy,
    arrivals: Arrivals,
    rate_per_s: float,
    *,
    requests: int,
    round_trip_s: float,
    timeout_s: float = math.inf,
) -> OpenLevel:
    """Simulate one rate at one copy.

    Args:
        rate_per_s: Requests per second, above 0.
        requests: How many are measured, after those that fill the batch.
        round_trip_s: Time of a request outside the engine.
        timeout_s: Time after which a request counts as late.
    """
    if arrivals.needs_times and copy.lengths is not None and copy.lengths.pairs:
        copy = replace(copy, lengths=replace(copy.lengths, in_order=True))
    alone_s = predict_at(copy, 1).e2e_latency_ms / MS_PER_S
    filling = min(_MOST_FILLING, max(_FEWEST_FILLING, math.ceil(_FILLING * rate_per_s * alone_s)))
    # As many come after the measured requests as before them: the last one that is measured meets a full copy, too.
    due_s = arrivals.due_s(rate_per_s, (requests + 2 * filling) / rate_per_s, SEED)
    last = min(filling + requests, len(due_s)) - 1
    done, pauses = simulate_open(copy, due_s, last)
    measured = sorted((each for each in done if min(filling, last) <= each.row <= last), key=attrgetter("row"))
    took_s = [each.last_token_s - each.due_s + round_trip_s for each in measured]
    e2e = distribution(took_s)
    ended = sorted(each.last_token_s + round_trip_s for each in done)
    seen = sorted(request.row + 1 - bisect_right(ended, request.due_s) for request in measured)
    return OpenLevel(
        rate_per_s=rate_per_s,
        in_flight=rate_per_s * e2e.mean / MS_PER_S,
        most_in_flight=seen[math.ceil(0.99 * len(seen)) - 1],
        queue_ms=distribution(each.started_s - each.due_s for each in measured),
        ttft_ms=distribution(each.first_token_s - each.due_s + round_trip_s for each in measured),
        tpot_ms=distribution((each.last_token_s - each.first_token_s) / (each.output - 1 or 1) for each in measured),
        itl_ms=_pauses(pauses),
        e2e_latency_ms=e2e,
        ms_per_token=distribution(seconds / each.output for seconds, each in zip(took_s, measured, strict=True)),
        output_tok_s=rate_per_s * copy.output_tokens,
        late=sum(seconds > timeout_s for seconds in took_s) / len(took_s),
    )


def _pauses(pauses: list[tuple[float, int]]) -> Distribution:
    """Return the percentiles of pauses, each as often as tokens came after it, in ms; zeros where there are none."""
    pauses = sorted(pauses) or [(0.0, 1)]
    total = sum(count for _, count in pauses)
    wanted, percentiles, seen = [0.5 * total, 0.9 * total, 0.95 * total, 0.99 * total], list[float](), 0
    for seconds, count in pauses:
        seen += count
        while len(percentiles) < len(wanted) and seen >= wanted[len(percentiles)]:
            percentiles.append(seconds * MS_PER_S)
    mean = math.fsum(seconds * count for seconds, count in pauses) / total * MS_PER_S
    p50, p90, p95, p99 = percentiles
    return Distribution(count=total, mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, max=pauses[-1][0] * MS_PER_S)


def saturation_per_s(copy: Copy) -> float:
    """Return the requests per second that a copy answers with a full batch, in closed form: the queue grows beyond."""
    loads = {2**power for power in range(copy.most_running.bit_length() + 1)} | {2 * copy.most_running}
    return max(predict_at(copy, load).output_tok_s for load in loads) / copy.output_tokens
