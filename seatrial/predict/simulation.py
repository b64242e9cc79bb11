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

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from seatrial.predict.costs import costs_of

if TYPE_CHECKING:
    from seatrial.predict.copy import Copy
    from seatrial.predict.costs import Costs
    from seatrial.predict.protocol import Protocol


class Request(NamedTuple):
    """One simulated request, times in seconds from the start of the level, at the client.

    A level has thousands of them: a tuple is made in a third of the time of a frozen dataclass.
    """

    sent_s: float
    first_token_s: float
    last_token_s: float


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
class _Server:
    """The engine at one moment.

    Attributes:
        copy: The copy, whose numbers that never change follow.
        arrivals: When each request reached the engine, or will: sorted, admitted ones included.
        steps: Decode steps taken so far.
        slides: Requests begin to lose tokens from the cache while they decode: a window longer than the prompt.
        kept: Cached tokens of a request that has outgrown its window, that do not depend on its length.
        growing: Share of the layers whose cache grows with every token.
        context: Cached tokens of the batch, as long as no window slides.
        chunk_done: Tokens of the next waiting prompt that are prefilled already.
        iterations: Time of a mixed iteration without its attention, by batch and prompt tokens.
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

    @property
    def waiting(self) -> int:
        admitted, arrivals = self.admitted, self.arrivals
        if admitted == len(arrivals) or arrivals[admitted] > self.now:
            return 0
        return bisect_right(self.arrivals, self.now, lo=self.admitted) - self.admitted

    @property
    def steps_left(self) -> int:
        """Decode steps until the oldest group ends."""
        return self.groups[0].entered + self.decode_steps - self.steps

    def context_after(self, steps: int) -> float:
        """Return the cached tokens of the batch, some decode steps from now."""
        if not self.slides:
            return self.batch * self.kept + self.growing * (self.context + self.batch * steps * self.per_step)
        cached, prompt, at = self.copy.architecture.cached_tokens, self.copy.input_tokens + 1, self.steps + steps
        return sum(group.size * cached(prompt + (at - group.entered) * self.per_step) for group in self.groups)


def simulate(copy: Copy, concurrency: int, protocol: Protocol) -> list[Request]:
    """Run a closed loop to its end and return its requests, those of the ramp too, in the order in which they end.

    Args:
        copy: The copy.
        concurrency: Clients.
        protocol: How they send.
    """
    half = protocol.round_trip_s / 2
    arrivals = [half + client * protocol.stagger_s for client in range(concurrency)]
    cached, longest = copy.architecture.cached_tokens, copy.input_tokens + copy.output_tokens
    outgrown = cached(copy.input_tokens + 1) < copy.input_tokens + 1
    growing = cached(longest + 1) - cached(longest) if outgrown else 1.0
    total = protocol.ramp(concurrency) + protocol.measured(concurrency)
    server = _Server(
        copy=copy,
        costs=costs_of(copy),
        protocol=protocol,
        unsent=total - concurrency,
        arrivals=arrivals,
        most_running=copy.most_running,
        per_prefill=copy.prompts_per_prefill,
        per_step=copy.tokens_per_step,
        decode_steps=copy.decode_steps,
        slides=not outgrown and cached(longest) < longest,
        kept=cached(longest) - growing * longest if outgrown else 0.0,
        growing=growing,
    )
    iterate = _chunked if copy.engine.scheduler == "chunked" else _separate
    while len(server.done) < total:
        if not server.batch and not server.chunk_done and not server.waiting:
            server.now = server.arrivals[server.admitted]
        iterate(server)
    return server.done


def _separate(server: _Server) -> None:
    waiting = server.waiting
    prompts = min(waiting, server.per_prefill, server.most_running - server.batch)
    if prompts > 0 and _may_enter(server, prompts):
        server.now += server.costs.prefill(prompts, server.copy.input_tokens)
        _admit(server, prompts)
        server.waited_steps = 1
        waiting = server.waiting
    if server.groups:
        _decode(server, waiting, _steps_until_entry(server, waiting))


def _may_enter(server: _Server, prompts: int) -> bool:
    engine = server.copy.engine
    if not server.batch or server.waited_steps >= engine.steps_between_prefills:
        return True
    return prompts >= math.floor(server.batch * engine.waiting_served_ratio)


def _steps_until_entry(server: _Server, waiting: int) -> int:
    """Return the decode steps after which a waiting prompt may enter by the clock of steps."""
    prompts = min(waiting, server.per_prefill, server.most_running - server.batch)
    if prompts <= 0:
        return server.steps_left
    if prompts >= math.floor(server.batch * server.copy.engine.waiting_served_ratio):
        return 1
    return max(1, server.copy.engine.steps_between_prefills - server.waited_steps)


def _chunked(server: _Server) -> None:
    """Run one mixed iteration while prompts wait, or leap through decode steps."""
    waiting, room = server.waiting, server.most_running - server.batch
    if room <= 0 or not (server.chunk_done or waiting):
        _decode(server, waiting, server.steps_left)
        return
    prompt = server.copy.input_tokens
    budget = max(1, server.copy.batched_tokens - server.batch)
    tokens = min(budget, min(waiting, room) * prompt - server.chunk_done)
    whole, server.chunk_done = divmod(server.chunk_done + tokens, prompt)
    server.now += _iteration_s(server, tokens)
    if server.batch:
        server.now += server.context_after(0) * server.costs.attention(server.batch)
        _advance(server, 1)
    if whole:
        _admit(server, whole)


def _iteration_s(server: _Server, tokens: int) -> float:
    """Return the time of a mixed iteration without its attention; the same few batches come again and again."""
    key = server.batch, tokens
    known = server.iterations.get(key)
    if known is None:
        costs = server.costs
        busy = max(costs.host, costs.device(server.batch * costs.verified + tokens) + tokens * costs.prompt_token)
        known = busy * (1 + costs.draft) + server.batch * costs.sequence + tokens * costs.input_token
        server.iterations[key] = known
    return known


def _admit(server: _Server, prompts: int) -> None:
    sent = server.arrivals[server.admitted : server.admitted + prompts]
    server.admitted += prompts
    group = _Group(prompts, sent, server.now, server.steps)
    if not server.decode_steps:
        _end(server, group)
        return
    server.groups.append(group)
    server.batch += prompts
    server.context += prompts * (server.copy.input_tokens + 1)


def _decode(server: _Server, waiting: int, most: int) -> None:
    """Take decode steps in one leap: until a group ends, a prompt may enter, or one arrives that could."""
    steps = min(most, server.steps_left)
    step, attention = server.costs.step(server.batch), server.costs.attention(server.batch)
    context = server.context_after(0)
    following = server.admitted + waiting
    if server.most_running > server.batch and following < len(server.arrivals):
        pause = server.arrivals[following] - server.now
        steps = min(steps, max(1, math.ceil(pause / (step + attention * context))))
    middle = (context + server.context_after(steps - 1)) / 2
    server.now += steps * (step + attention * middle)
    _advance(server, steps)


def _advance(server: _Server, steps: int) -> None:
    server.waited_steps += steps
    server.steps += steps
    server.context += server.batch * steps * server.per_step
    ended = server.steps - server.decode_steps
    while server.groups and server.groups[0].entered == ended:
        group = server.groups.popleft()
        server.batch -= group.size
        server.context -= group.size * (server.copy.input_tokens + 1 + server.decode_steps * server.per_step)
        _end(server, group)


def _end(server: _Server, group: _Group) -> None:
    """Answer a group: each client sends its next request."""
    half = server.protocol.round_trip_s / 2
    answered = server.now + half
    server.done += [Request(sent - half, group.first_token + half, answered) for sent in group.sent]
    following = min(group.size, server.unsent)
    server.unsent -= following
    arrival = answered + half
    at = bisect_right(server.arrivals, arrival, lo=server.admitted)
    server.arrivals[at:at] = [arrival] * following
