"""Continuous batching in virtual time: every request of a closed loop, from its arrival to its last token.

The loop is the engine's own: admit waiting prompts when its rule allows, run their prefill, decode. A run of decode
steps that nothing can interrupt is taken in one leap, so that a level of a hundred requests costs less than a
millisecond. Engines differ in when a prompt gets in (`Engine.scheduler`):

- `separate` (TGI): a prefill stops decoding. It starts when the waiting prompts that fit one prefill are at least
  `waiting_served_ratio` times the running batch, or when `steps_between_prefills` decode steps have passed. Read in
  router/src/infer.rs and router/src/queue.rs of text-generation-inference 1.1 to 1.3.
- `chunked` (vLLM V1): each iteration decodes the running batch and fills the rest of its token budget with prompts.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right, insort
from collections import deque
from dataclasses import dataclass, field, replace
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

from seatrial.planner.predict.closed_form import predict_at
from seatrial.planner.predict.iteration_cost import costs_of
from seatrial.planner.predict.memory import kv_bytes_per_token
from seatrial.planner.predict.request_simulation import simulate_closed, simulate_open
from seatrial_base.units import MS_PER_S
from seatrial_load.documents.arrivals import REST_SHARE, Poisson, rest_s, spread_starts
from seatrial_load.documents.distribution import Distribution
from seatrial_load.measure.interval import MeasuredTime, percentile, share_inside, steady_window
from seatrial_load.measure.lengths import BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.iteration_cost import Costs
    from seatrial_load.documents.arrivals import Arrivals
    from seatrial_load.documents.request import Start


_ENOUGH: Final = 384  # requests of lengths that differ: twelve times their distribution

SEED: Final = "level 0"  # as the first level of a trial
_FILLING: Final = 2.0  # times a request takes alone, until as many are in flight as there will be
_FEWEST_FILLING, _MOST_FILLING = 32, 1_024  # requests of that, whatever the load is

AT_RANDOM: Final = Poisson()
"""A Poisson process: users who know nothing of each other."""


class Request(NamedTuple):
    """One simulated request, times in seconds from the start of the level, at the client.

    A level has thousands of them: a tuple is made in a third of the time of a frozen dataclass.
    """

    sent_s: float
    first_token_s: float
    last_token_s: float
    output_tokens: int


@dataclass(slots=True)
class _Group:
    """Requests that were admitted together: they have the same length, so they end together.

    Attributes:
        entered: Decode steps that the engine had taken before.
    """

    size: int
    sent: list[float]
    first_token: float
    entered: int


@dataclass(slots=True)
class _EngineState:
    """The engine at one moment.

    Attributes:
        arrivals: When each request reached the engine, or will: sorted, admitted ones included.
        steps: Decode steps taken so far.
        slides: Requests begin to lose tokens from the cache while they decode: a window longer than the prompt.
        kept: Cached tokens of a request that has outgrown its window, that do not depend on its length.
        growing: Share of the layers whose cache grows with every token.
        context: Cached tokens of the batch, as long as no window slides.
        chunk_done: Tokens of the next waiting prompt that are prefilled already.
        prompt: Tokens of a prompt that are computed.
        iterations: Time of a mixed iteration without its attention, by batch and prompt tokens.
        decode_times: Time of a decode step without its attention, and of attention per cached token, by batch.
    """

    copy: Copy
    costs: Costs
    protocol: Protocol
    unsent: int
    arrivals: list[float]
    most_running: int
    per_prefill: int
    per_step: float
    decode_steps: int
    prompt: int
    slides: bool
    kept: float
    growing: float
    now: float = 0.0
    admitted: int = 0
    batch: int = 0
    steps: int = 0
    context: float = 0.0
    waited_steps: int = 0
    chunk_done: int = 0
    groups: deque[_Group] = field(default_factory=deque)
    done: list[Request] = field(default_factory=list)
    iterations: dict[tuple[int, int], float] = field(default_factory=dict)
    decode_times: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        admitted, arrivals = self.admitted, self.arrivals
        if admitted == len(arrivals) or arrivals[admitted] > self.now:
            return 0
        return bisect_right(arrivals, self.now, lo=admitted) - admitted

    @property
    def steps_left(self) -> int:
        """Decode steps until the oldest group ends."""
        return self.groups[0].entered + self.decode_steps - self.steps

    def context_after(self, steps: int) -> float:
        """Return the cached tokens of the batch, some decode steps from now."""
        if not self.slides:
            return self.batch * self.kept + self.growing * (self.context + self.batch * steps * self.per_step)
        cached, prompt, at = self.copy.architecture.attended_tokens, self.copy.input_tokens + 1, self.steps + steps
        return math.fsum(group.size * cached(prompt + (at - group.entered) * self.per_step) for group in self.groups)


def simulate(copy: Copy, concurrency: int, protocol: Protocol) -> list[Request]:
    """Run a closed loop to its end and return its requests, those of the ramp too, in the order in which they end."""
    half = protocol.round_trip_s / 2
    arrivals = [half + start_s for start_s in protocol.starts_s(copy, concurrency)]
    cached, longest = copy.architecture.attended_tokens, copy.input_tokens + copy.output_tokens
    outgrown = cached(copy.input_tokens + 1) < copy.input_tokens + 1
    growing = cached(longest + 1) - cached(longest) if outgrown else 1.0
    total = protocol.ramp(concurrency) + protocol.measured(concurrency)
    server = _EngineState(
        copy=copy,
        costs=costs_of(copy),
        protocol=protocol,
        unsent=total - concurrency,
        arrivals=arrivals,
        most_running=copy.most_running,
        per_prefill=copy.prompts_per_prefill,
        per_step=copy.tokens_per_step,
        decode_steps=copy.decode_steps,
        prompt=copy.prefilled_tokens,
        slides=not outgrown and cached(longest) < longest,
        kept=cached(longest) - growing * longest if outgrown else 0.0,
        growing=growing,
    )
    iterate = _chunked if copy.engine.scheduler == "chunked" else _separate
    while len(server.done) < total:
        if not server.batch and not server.chunk_done and not server.waiting:
            # Nothing runs and nothing waits: time goes to the next arrival.
            server.now = server.arrivals[server.admitted]
        iterate(server)
    return server.done


def _separate(server: _EngineState) -> None:
    """Run a prefill where prompts may enter, then decode steps until others may by the clock of steps."""
    engine, waiting = server.copy.engine, server.waiting
    prompts = min(waiting, server.per_prefill, server.most_running - server.batch)
    due = not server.batch or server.waited_steps >= engine.steps_between_prefills
    if prompts > 0 and (due or prompts >= math.floor(server.batch * engine.waiting_served_ratio)):
        server.now += server.costs.prefill(prompts, server.prompt)
        _admit(server, prompts)
        server.waited_steps = 1
        waiting = server.waiting
    if server.groups:
        prompts = min(waiting, server.per_prefill, server.most_running - server.batch)
        steps = server.steps_left
        if prompts >= max(1, math.floor(server.batch * engine.waiting_served_ratio)):
            steps = min(1, steps)
        elif prompts > 0:
            steps = min(max(1, engine.steps_between_prefills - server.waited_steps), steps)
        _decode(server, waiting, steps)


def _chunked(server: _EngineState) -> None:
    """Run one mixed iteration while prompts wait, or leap through decode steps."""
    waiting, batch = server.waiting, server.batch
    room = server.most_running - batch
    if room <= 0 or not (server.chunk_done or waiting):
        _decode(server, waiting, server.steps_left)
        return
    budget = max(1, server.copy.batched_tokens - batch * server.costs.verified)
    tokens = min(budget, min(waiting, room) * server.prompt - server.chunk_done)
    whole, server.chunk_done = divmod(server.chunk_done + tokens, server.prompt)
    # The time of a mixed iteration without its attention; the same few batches come again and again.
    key = server.batch, tokens
    known = server.iterations.get(key)
    if known is None:
        known = server.costs.mixed(server.batch, tokens)
        server.iterations[key] = known
    server.now += known
    if batch:
        server.now += server.context_after(0) * server.costs.attention(batch)
        _advance(server, 1)
    if whole:
        _admit(server, whole)


def _admit(server: _EngineState, prompts: int) -> None:
    sent = server.arrivals[server.admitted : server.admitted + prompts]
    server.admitted += prompts
    group = _Group(prompts, sent, server.now, server.steps)
    if not server.decode_steps:
        _end(server, group)
        return
    server.groups.append(group)
    server.batch += prompts
    server.context += prompts * (server.copy.input_tokens + 1)


def _decode(server: _EngineState, waiting: int, most: int) -> None:
    """Take decode steps in one leap: until a group ends, a prompt may enter, or one arrives that could."""
    steps, batch, now = most, server.batch, server.now
    # The time of a decode step without its attention, and of attention per cached token; likewise.
    known = server.decode_times.get(batch)
    if known is None:
        known = server.costs.step(batch), server.costs.attention(batch)
        server.decode_times[batch] = known
    step, attention = known
    context = server.context_after(0)
    following = server.admitted + waiting
    # A request that arrives during the leap may enter after the step in which it arrives: the leap ends there.
    if server.most_running > batch and following < len(server.arrivals):
        pause = math.ceil((server.arrivals[following] - now) / (step + attention * context))
        if pause < steps:
            steps = max(1, pause)
    # The cache grows by the same in each step, so the mean of the first and the last step is that of all.
    middle = (context + server.context_after(steps - 1)) / 2 if steps > 1 else context
    server.now = now + steps * (step + attention * middle)
    _advance(server, steps)


def _advance(server: _EngineState, steps: int) -> None:
    groups = server.groups
    server.waited_steps += steps
    server.steps += steps
    server.context += server.batch * steps * server.per_step
    ended = server.steps - server.decode_steps
    while groups and groups[0].entered == ended:
        group = groups.popleft()
        server.batch -= group.size
        server.context -= group.size * (server.copy.input_tokens + 1 + server.decode_steps * server.per_step)
        _end(server, group)


def _end(server: _EngineState, group: _Group) -> None:
    """Answer a group: each client sends its next request."""
    half = server.protocol.round_trip_s / 2
    answered = server.now + half
    output = server.copy.output_tokens
    server.done += [Request(sent - half, group.first_token + half, answered, output) for sent in group.sent]
    following = min(group.size, server.unsent)
    if following and server.protocol.rest_share:
        for sent in group.sent[:following]:
            rests_s = rest_s(server.protocol.rest_share, server.unsent, answered - sent + half)
            insort(server.arrivals, answered + half + rests_s, lo=server.admitted)
            server.unsent -= 1
    elif following:
        server.unsent -= following
        arrival = answered + half
        at = bisect_right(server.arrivals, arrival, lo=server.admitted)
        # First requests that are staggered may come after it, so it does not simply go to the end.
        server.arrivals[at:at] = [arrival] * following


@dataclass(frozen=True, slots=True)
class Batches:
    """How dynamic batches are made: the most requests of one, and how long the first of them waits for others."""

    size: int
    delay_s: float

    def most(self, copy: Copy) -> int:
        """Return the requests of a batch at most: no more than the KV room holds."""
        return max(1, min(self.size, copy.most_running))


def simulate_static(copy: Copy, concurrency: int, protocol: Protocol, batches: Batches) -> list[Request]:
    """Run a closed loop to its end and return its requests in the order in which they end.

    Args:
        copy: The copy; its degree is the number of accelerators that hold the layers.
    """
    half, most = protocol.round_trip_s / 2, batches.most(copy)
    arrivals = [half + start_s for start_s in protocol.starts_s(copy, concurrency)]
    unsent = concurrency * (protocol.requests_per_concurrency - 1)
    times = {size: batch_time_s(copy, size) for size in range(1, min(most, concurrency) + 1)}
    now, done = 0.0, list[Request]()
    while arrivals:
        batch = _next_batch(arrivals, now, most, batches.delay_s)
        closes = batch[-1] if len(batch) == most else batch[0] + batches.delay_s
        now = max(now, closes) + times[len(batch)]
        done += [Request(arrival - half, now + half, now + half, copy.output_tokens) for arrival in batch]
        following = min(len(batch), unsent)
        unsent -= following
        for _ in range(following):
            heapq.heappush(arrivals, now + 2 * half)
    return done


def closed_static(copy: Copy, concurrency: int, batches: Batches) -> tuple[float, float]:
    """Return output tokens per second, and the latency in seconds, of the steady state: all that wait come in turn."""
    size = min(concurrency, batches.most(copy))
    turn_s = batch_time_s(copy, size) + (batches.delay_s if concurrency < batches.most(copy) else 0.0)
    return size * copy.output_tokens / turn_s, concurrency / size * turn_s


def _next_batch(arrivals: list[float], now: float, most: int, delay_s: float) -> list[float]:
    """Take the arrivals of the next batch off the heap: those up to when it is full or its delay is over."""
    batch = [heapq.heappop(arrivals)]
    closes = max(now, batch[0] + delay_s)
    while arrivals and len(batch) < most and arrivals[0] <= closes:
        batch.append(heapq.heappop(arrivals))
    return batch


def batch_time_s(copy: Copy, batch: int) -> float:
    """Return how long a batch runs: its prefill, then a decode step for each further token."""
    whole = kv_bytes_per_token(copy.architecture, 1)
    pipeline = replace(copy, degree=1, kv_bytes_per_token=whole)  # one accelerator works at a time
    costs, steps = costs_of(pipeline), pipeline.decode_steps
    context = batch * copy.architecture.attended_tokens(copy.input_tokens + (copy.output_tokens + 1) / 2)
    return costs.prefill(batch, copy.input_tokens) + steps * (costs.step(batch) + context * costs.attention(batch))


@dataclass(frozen=True, slots=True)
class Level:
    """What one copy is predicted to do under a load; simulated, not measured. Latencies are at the client.

    Attributes:
        output_tok_s: Output tokens per second: over the steady window of a closed loop, or over the whole level where
            there is none; those that are requested where requests come at a rate.
        ttft_ms: Time to first token, queueing included.
        ms_per_token: End-to-end latency over output tokens.
        late: Share of the requests that take longer than the given time.
    """

    output_tok_s: float
    ttft_ms: Distribution
    tpot_ms: Distribution
    e2e_latency_ms: Distribution
    ms_per_token: Distribution
    late: float


def outcome(copy: Copy, concurrency: int, protocol: Protocol, timeout_s: float = math.inf) -> Level:
    """Simulate one level.

    Args:
        timeout_s: Time after which a request counts as late: 60 s is SageMaker's bound of an invocation.
    """
    protocol = protocol.at(copy, concurrency)
    requests = _requests(copy, concurrency, protocol)
    ramp = protocol.ramp(concurrency)
    measured = sorted(requests, key=attrgetter("sent_s"))[ramp:] if ramp else requests
    time = _measured_time(requests, measured)
    # A request that is partly outside the window counts by the part of its time within.
    inside = math.fsum(
        share_inside(request.sent_s, request.last_token_s, time) * (request.output_tokens / copy.output_tokens)
        for request in requests
    )
    return Level(
        output_tok_s=inside * copy.output_tokens / time.length_s,
        ttft_ms=distribution(each.first_token_s - each.sent_s for each in measured),
        tpot_ms=distribution(
            (each.last_token_s - each.first_token_s) / (each.output_tokens - 1 or 1) for each in measured
        ),
        e2e_latency_ms=distribution(map(_e2e, measured)),
        ms_per_token=distribution(_e2e(each) / each.output_tokens for each in measured),
        late=sum(_e2e(each) > timeout_s for each in measured) / len(measured),
    )


def _requests(copy: Copy, concurrency: int, protocol: Protocol) -> list[Request]:
    """Simulate a level; where lengths differ, enough requests for the whole distribution, and no more than it needs."""
    if copy.lengths is None:
        return simulate(copy, concurrency, protocol)
    enough = max(_ENOUGH, 2 * concurrency)
    count = protocol.ramp(concurrency) + max(BLOCK, min(protocol.measured(concurrency), enough))
    half = protocol.round_trip_s / 2
    served = simulate_closed(
        copy,
        protocol.starts_s(copy, concurrency),
        count,
        round_trip_s=protocol.round_trip_s,
        rest_share=protocol.rest_share,
    )
    return [
        Request(each.due_s - half, each.first_token_s + half, each.last_token_s + half, each.output) for each in served
    ]


def _measured_time(requests: Sequence[Request], measured: Sequence[Request]) -> MeasuredTime:
    """Return the steady window; the whole level without a ramp, or where the window is shorter than a request."""
    if len(measured) < len(requests):
        seconds = sorted(request.last_token_s - request.sent_s for request in measured)
        if window := steady_window([request.sent_s for request in measured], seconds):
            return window
    opened_s = min(request.sent_s for request in requests)
    return MeasuredTime(kind="whole", opened_s=opened_s, closed_s=max(request.last_token_s for request in requests))


def _e2e(request: Request) -> float:
    return request.last_token_s - request.sent_s


def distribution(seconds: Iterable[float]) -> Distribution:
    """Return the percentiles of some times, in milliseconds; at least one."""
    values = sorted(second * MS_PER_S for second in seconds)
    p50, p90, p95, p99 = (percentile(values, percent) for percent in (50, 90, 95, 99))
    mean = math.fsum(values) / len(values)
    return Distribution(count=len(values), mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, max=values[-1])


@dataclass(frozen=True, slots=True)
class Protocol:
    """A closed loop: each client sends its next request when the last one is answered.

    Attributes:
        requests_per_concurrency: Measured requests of a level, times its concurrency.
        stagger_s: Time between the first requests of two clients.
        round_trip_s: Time of a request outside the engine: network, the service's front end, tokenising.
        ramp_per_concurrency: First requests of a level, times its concurrency, which fill the batch and aren't
            measured. With them, throughput is that of the steady window; without, that of the whole level.
        start: How first requests begin that aren't staggered: together, or spread over the time of a request, after
            which clients rest a little between their requests (`seatrial_load.documents.arrivals`).
    """

    requests_per_concurrency: int
    stagger_s: float
    round_trip_s: float
    ramp_per_concurrency: int = 0
    start: Start = "together"

    @property
    def rest_share(self) -> float:
        """Return the longest rest of a client after a response, as a share of the time that it took."""
        return REST_SHARE if self.start == "spread" else 0.0

    def starts_s(self, copy: Copy, concurrency: int) -> Sequence[float]:
        """Return when each client sends its first request, from the start of the level."""
        if self.start == "spread":
            span_s = predict_at(copy, concurrency).e2e_latency_ms / MS_PER_S + self.round_trip_s
            return spread_starts(concurrency, span_s, f"level {concurrency}")
        return [client * self.stagger_s for client in range(concurrency)]

    def at(self, copy: Copy, concurrency: int) -> Protocol:
        """Return the protocol of a level: clients that start together wait in the engine's front end for each other.

        They then stay together: requests of one length that were sent at once end at once. On an H200 with vLLM 0.20.2
        a round trip of 20 ms gave a tenth of the measured TTFT with 256 in flight; one that grows like this is within
        10 % of it.
        """
        if self.start == "spread" or self.stagger_s:
            return self
        waiting_s = (concurrency - 1) * copy.engine.performance.front_end_s
        return replace(self, round_trip_s=self.round_trip_s + waiting_s)

    def ramp(self, concurrency: int) -> int:
        """Return the requests of a level that aren't measured."""
        return self.ramp_per_concurrency * concurrency

    def measured(self, concurrency: int) -> int:
        """Return the requests of a level that are measured."""
        return self.requests_per_concurrency * concurrency


# Three requests a client, no warm-up: the articles' public harness. It starts its clients one by one: 30 ms each fits
# the published latencies best; 20 ms a round trip is an assumption, on which the predictions hardly depend.
PUBLISHED = Protocol(requests_per_concurrency=3, stagger_s=0.030, round_trip_s=0.020)

# The trial's client opens every connection beforehand, and spreads the first requests of a level.
TRIAL = Protocol(requests_per_concurrency=3, stagger_s=0.0, round_trip_s=0.020, ramp_per_concurrency=1, start="spread")


REQUESTS_AT_A_RATE = 1_000  # simulated requests: the 95th percentile is that of the 50 that take longest


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
        requests: How many are measured, after those that fill the batch.
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


@cache
def saturation_per_s(copy: Copy) -> float:
    """Return the requests per second that a copy answers with a full batch, in closed form: the queue grows beyond."""
    loads = {2**power for power in range(copy.most_running.bit_length() + 1)} | {2 * copy.most_running}
    return max(predict_at(copy, load).output_tok_s for load in loads) / copy.output_tokens
