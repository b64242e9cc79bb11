"""One copy in the steady state of a closed loop: means and percentiles of many requests a client.

    throughput = concurrency / end-to-end mean * output tokens                                   (Little's law)
    end-to-end = TTFT + TPOT * (output tokens - 1)                                               means

Clients begin one after the other, spread over the time of one request. Were they to begin at once, requests of one
length would also end at once, and all prompts would wait for each other in every round: TTFT would be that of a queue,
which real lengths and real clients lose after a few rounds.

A level that is too large to be simulated is computed in closed form. The closed form is then scaled by what the
simulation of the same copy says at the largest concurrency that is simulated: of the end-to-end mean, p50 and p90, and
of TPOT.
Several instances behind one endpoint: what routing makes of the requests in flight.

SageMaker's default routes every request to an instance at random. A closed loop over n such instances is a closed
queueing network of n equal stations, and its steady state has the product form (Gordon and Newell 1967; Baskett,
Chandy, Muntz and Palacios 1975, for stations whose rate depends on their load):

    P(k requests at one station) ~ f(k) * G_{n-1}(C - k),    f(k) = prod_{j<=k} 1 / mu(j)
    G_1 = f,    G_n(c) = sum_k f(k) * G_{n-1}(c - k)
    throughput = n * sum_k P(k) * mu(k)

mu(k) is the throughput of one instance with k requests in flight. A level of a few requests per client also ends with
the last answer of its fullest instance:

    wall time = requests / throughput + L(fullest) - L(C / n),    L(k) = k / mu(k)

The fullest of n instances is expected from the standard deviation of P, or from that of the random choices of the
requests in flight where it is smaller: few requests do not reach the steady state. A request meets 1 + (C - 1) / n
requests on average, itself included. The 90th percentile of its latency is that of an instance with as many, and with
1.1 standard deviations of the random choices more: 1.28 of a normal distribution, times 0.86 because an instance's load
changes while a request stays. Both rules are approximations; docs/how-to/predict.md says how far they were off from a
simulation of the routing, request by request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, pairwise
from operator import attrgetter, mul
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Literal

from seatrial.planner.predict.closed_form import mean_step, predict_at, running_batch
from seatrial.planner.predict.simulation import (
    PUBLISHED,
    TRIAL,
    Protocol,
    closed_static,
    outcome,
    simulate,
    simulate_static,
)
from seatrial_base.units import MS_PER_S
from seatrial_load.measure.interval import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.simulation import Batches, Request
    from seatrial_load.documents.request import Start

_RAMP = 3  # requests a client before the measured ones
_ROUNDS = 6  # requests a client: the ramp, two that are measured, one during which others end
_MOST_SIMULATED = 512  # requests in flight on one copy
_MOST_ITERATIONS = 30_000  # prefills and chunks of one simulated level: about a second of work
Routing = Literal["random", "least_outstanding"]
_SPREAD_SEEN = 1.1


@dataclass(frozen=True, slots=True)
class SteadyLevel:
    """What a copy, or several, do in the steady state with some requests in flight; times in milliseconds.

    Attributes:
        output_tokens: Generated length of a request.
        ttft_ms: Mean time to first token, queueing included.
        e2e_ms: Mean from sending to the last token.
        e2e_p50_ms: Its median; `None` in closed form.
        e2e_p90_ms: Its 90th percentile; `None` in closed form.
    """

    concurrency: float
    output_tokens: int
    ttft_ms: float
    e2e_ms: float
    e2e_p50_ms: float | None
    e2e_p90_ms: float | None

    @property
    def output_tok_s(self) -> float:
        """Output tokens per second, by Little's law."""
        return self.concurrency * self.output_tokens / self.e2e_ms * MS_PER_S

    @property
    def tpot_ms(self) -> float:
        """Mean time per output token after the first; 0 where there is none."""
        return (self.e2e_ms - self.ttft_ms) / (self.output_tokens - 1 or 1)

    @property
    def late_ms(self) -> float:
        """The 90th percentile of the end-to-end latency, or its mean in closed form."""
        return self.e2e_ms if self.e2e_p90_ms is None else self.e2e_p90_ms


def steady(copy: Copy, concurrency: int, batches: Batches | None = None) -> SteadyLevel:
    """Predict the steady state of one copy, with percentiles."""
    # The largest concurrency that is simulated: a power of two.
    chunks = 1.0
    if copy.engine.scheduler == "chunked":
        chunks += copy.input_tokens / copy.batched_tokens
    largest = _MOST_SIMULATED
    while largest > 1 and _ROUNDS * largest * chunks > _MOST_ITERATIONS:
        largest //= 2
    if batches is not None:
        return (
            _dynamic(copy, concurrency, batches) if concurrency <= largest else steady_mean(copy, concurrency, batches)
        )
    if concurrency <= largest:
        return _simulated(copy, concurrency)
    # Scale a closed form by how far it is off the simulation at another concurrency. The time of decoding takes
    # no larger share of a request than in the simulation: what is in flight beyond it waits.
    closed = steady_mean(copy, concurrency)
    simulated = _simulated(copy, largest)
    closed_there = steady_mean(copy, largest)
    e2e = closed.e2e_ms * simulated.e2e_ms / closed_there.e2e_ms
    decoding = (simulated.e2e_ms - simulated.ttft_ms) / simulated.e2e_ms * e2e
    if closed_there.tpot_ms > 0:
        factor = simulated.tpot_ms / closed_there.tpot_ms
        decoding = min(decoding, factor * (closed.e2e_ms - closed.ttft_ms))
    return replace(
        closed,
        ttft_ms=e2e - decoding,
        e2e_ms=e2e,
        e2e_p50_ms=e2e * (simulated.e2e_p50_ms or simulated.e2e_ms) / simulated.e2e_ms,
        e2e_p90_ms=e2e * simulated.late_ms / simulated.e2e_ms,
    )


@cache
def steady_level(copy: Copy, concurrency: int, start: Start) -> SteadyLevel:
    """Predict a level of a trial, whose clients begin together or spread; the means are those of its requests."""
    level = outcome(copy, concurrency, replace(TRIAL, start=start, round_trip_s=round_trip_s(copy)))
    latency = level.e2e_latency_ms
    return SteadyLevel(concurrency, copy.output_tokens, level.ttft_ms.mean, latency.mean, latency.p50, latency.p90)


def steady_mean(copy: Copy, concurrency: int, batches: Batches | None = None) -> SteadyLevel:
    """Predict the steady state of one copy in closed form, without percentiles; the arguments are those of `steady`."""
    if batches is not None:
        _, seconds = closed_static(copy, concurrency, batches)
        latency = seconds * MS_PER_S
        return SteadyLevel(concurrency, copy.output_tokens, latency, latency, None, None)
    point = predict_at(copy, concurrency)
    return SteadyLevel(concurrency, copy.output_tokens, point.ttft_ms, point.e2e_latency_ms, None, None)


@cache
def _simulated(copy: Copy, concurrency: int) -> SteadyLevel:
    latency_s = predict_at(copy, concurrency).e2e_latency_ms / MS_PER_S
    protocol = _protocol(copy, stagger_s=latency_s / concurrency)
    measured = _measured(simulate(copy, concurrency, protocol), concurrency)
    ttft_s = fmean(request.first_token_s - request.sent_s for request in measured)
    # A prompt waits for prompts that arrive with it, as the closed form has it.
    batch, _ = running_batch(copy, concurrency)
    behind_others_s = copy.engine.performance.bunching * (batch - 1) / 2 * mean_step(copy, batch).prefill
    return _level(concurrency, copy, measured, (ttft_s + behind_others_s) * MS_PER_S)


def _protocol(copy: Copy, stagger_s: float = 0.0) -> Protocol:
    return Protocol(requests_per_concurrency=_ROUNDS, stagger_s=stagger_s, round_trip_s=round_trip_s(copy))


def round_trip_s(copy: Copy) -> float:
    """Return the time of a request outside the engine; that of the published protocol where none was fitted."""
    return copy.engine.performance.request_s or PUBLISHED.round_trip_s


@cache
def _dynamic(copy: Copy, concurrency: int, batches: Batches) -> SteadyLevel:
    """Simulate dynamic batches, whose tokens all come at the end."""
    measured = _measured(simulate_static(copy, concurrency, _protocol(copy), batches), concurrency)
    return _level(concurrency, copy, measured, ttft_ms=None)


def _measured(requests: list[Request], concurrency: int) -> list[Request]:
    """Leave out the rounds in which the batch fills, and the one in which clients have nothing left to send."""
    return sorted(requests, key=attrgetter("sent_s"))[_RAMP * concurrency : (_ROUNDS - 1) * concurrency]


def _level(concurrency: int, copy: Copy, measured: list[Request], ttft_ms: float | None) -> SteadyLevel:
    waits = sorted((request.last_token_s - request.sent_s) * MS_PER_S for request in measured)
    mean_ms = fmean(waits)
    first_ms = mean_ms if ttft_ms is None else min(ttft_ms, mean_ms)
    p50_ms, p90_ms = percentile(waits, 50), percentile(waits, 90)
    return SteadyLevel(concurrency, copy.output_tokens, first_ms, mean_ms, p50_ms, p90_ms)


@dataclass(frozen=True, slots=True)
class InstanceLevel:
    """What an instance, or several, do with some requests in flight.

    Attributes:
        output_tok_s: Output tokens per second.
        ms_per_token: 90th percentile of end-to-end latency over output tokens.
        longest_s: The longest end-to-end latency.
    """

    output_tok_s: float
    ms_per_token: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The steady state of one of n equal stations.

    Attributes:
        throughput: Of all stations, in the unit of the rates.
        deviation: Standard deviation of the requests at one station.
    """

    throughput: float
    deviation: float


def fleet(
    one: Callable[[int], InstanceLevel],
    *,
    concurrency: int,
    instances: int,
    requests_per_client: int,
    routing: Routing = "random",
) -> InstanceLevel:
    """Predict what some equal instances do.

    Args:
        one: What one instance does with this many requests in flight; at least one.
        requests_per_client: Requests of the level, over the concurrency.
        routing: `random`, or `least_outstanding` requests, which spreads them evenly.
    """
    if instances == 1:
        return one(concurrency)
    if routing == "least_outstanding":
        return even_split(one, concurrency, instances)
    rates = rising(lambda load: one(load).output_tok_s, concurrency, concurrency / instances)
    spread = product_form(rates, concurrency, instances)
    _, met = met_by_a_request(concurrency, instances)
    below = math.floor(met)  # between whole loads the latency is taken as linear
    low = one(below).ms_per_token
    mean, total = concurrency / instances, requests_per_client * concurrency
    deviation = min(spread.deviation, _chosen_deviation(concurrency, instances))
    # By how many deviations the fullest exceeds the mean (Blom 1958), for stations that share a total.
    alone = NormalDist().inv_cdf((instances - 0.375) / (instances + 0.25))
    fullest = min(concurrency, mean + alone * math.sqrt(instances / (instances - 1)) * deviation)
    longer = max(0.0, _latency(rates, max(1.0, fullest)) - _latency(rates, max(1.0, mean)))
    return InstanceLevel(
        output_tok_s=total / (total / spread.throughput + longer),
        ms_per_token=low if below == met else low + (one(below + 1).ms_per_token - low) * (met - below),
        longest_s=one(math.ceil(met)).longest_s,
    )


def met_by_a_request(concurrency: int, instances: int) -> tuple[float, float]:
    """Return how many requests a request shares its instance with, itself included: on average, and at its p90."""
    usual = 1 + (concurrency - 1) / instances
    return usual, usual + _SPREAD_SEEN * _chosen_deviation(concurrency - 1, instances)


def even_split(one: Callable[[int], InstanceLevel], concurrency: int, parts: int) -> InstanceLevel:
    """Predict equal stations among which requests are dealt out evenly: copies of one instance, for example."""
    each, fuller = divmod(concurrency, parts)
    loads = [(each + 1, fuller), (each, parts - fuller)]
    levels = [(one(load), count) for load, count in loads if load and count]
    return InstanceLevel(
        output_tok_s=math.fsum(level.output_tok_s * count for level, count in levels),
        ms_per_token=max(level.ms_per_token for level, _ in levels),
        longest_s=max(level.longest_s for level, _ in levels),
    )


def rising(tok_s: Callable[[int], float], most: int, middle: float) -> tuple[float, ...]:
    """Return the throughput of one instance with 1, 2, … requests, that never falls.

    It is evaluated at doubling loads until they pass twice the mean load and four; between them it is linear, above it
    stays.
    """
    known = [(0, 0.0), (1, tok_s(1))]
    while known[-1][0] < min(most, 2 * middle + 4):
        load = 2 * known[-1][0]
        known.append((load, max(known[-1][1], tok_s(load))))
    rates = [
        below + (above - below) * step / (load - start)
        for (start, below), (load, above) in pairwise(known)
        for step in range(1, load - start + 1)
    ]
    return tuple(rates[:most] + [rates[-1]] * (most - len(rates)))


@cache
def product_form(rates: tuple[float, ...], concurrency: int, stations: int) -> Spread:
    """Return the steady state of a closed network of equal stations with random routing.

    Args:
        rates: Throughput of one station with 1, 2, … requests, one for each in flight.
        concurrency: Requests in flight on all stations.
        stations: At least two.
    """
    here = _weights(rates, concurrency / stations)
    elsewhere = _power(here, stations - 1)
    shares = [weight * other for weight, other in zip(here, reversed(elsewhere), strict=True)]
    total, mean = math.fsum(shares), concurrency / stations
    variance = math.fsum(share * (load - mean) ** 2 for load, share in enumerate(shares)) / total
    rate = math.fsum(map(mul, shares[1:], rates)) / total
    return Spread(throughput=stations * rate, deviation=math.sqrt(variance))


def _weights(rates: Sequence[float], middle: float) -> list[float]:
    """Return f(0), f(1), …, scaled so that none overflows: a factor c^k on f(k) changes no probability."""
    scale = math.log(rates[max(0, math.ceil(middle) - 1)])
    logs = list(accumulate((scale - math.log(rate) for rate in rates), initial=0.0))
    highest = max(logs)
    return [math.exp(log - highest) for log in logs]


def _power(weights: list[float], exponent: int) -> list[float]:
    """Convolve weights with themselves, by repeated squaring; each time scaled to a highest of one."""
    if exponent == 1:
        return weights
    half = _power(weights, exponent // 2)
    whole = _convolve(half, half)
    return _convolve(whole, weights) if exponent % 2 else whole


def _convolve(left: list[float], right: list[float]) -> list[float]:
    sums = [math.fsum(map(mul, left, reversed(right[: end + 1]))) for end in range(len(left))]
    highest = max(sums)
    return [value / highest for value in sums]


def _chosen_deviation(requests: int, stations: int) -> float:
    """Return the standard deviation of the requests that chance gives one station: the binomial's."""
    return math.sqrt(requests / stations * (1 - 1 / stations))


def _latency(rates: Sequence[float], load: float) -> float:
    """Return load / mu(load), linear between whole loads."""
    below = math.floor(load)
    above = min(below + 1, len(rates))
    low, high = below / rates[below - 1], above / rates[above - 1]
    return low + (high - low) * (load - below)
