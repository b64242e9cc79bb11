"""Continuous batching, request by request: each with its own prompt and answer, from its arrival to its last token.

`simulation.py` takes requests of one length in groups, which end together. Here lengths differ, so that a long answer
keeps its place in the batch and prompts come one by one; and requests may arrive at any time, so that they queue. Of
requests that are alike and arrive as there, both say the same. Iterations cost what they cost there
(`iteration_cost`), and decode steps that nothing interrupts are taken in one leap. A request reads the cache of the
middle of its answer in each of its steps.
"""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from seatrial.planner.predict.iteration_cost import costs_of
from seatrial_load.documents.arrivals import rest_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.iteration_cost import Costs
    from seatrial_load.measure.lengths import RequestLengths


class Served(NamedTuple):
    """One simulated request; times in seconds from the start, at the engine.

    Attributes:
        row: Its number, in the order in which they are sent.
        started_s: When the first iteration with tokens of its prompt began.
    """

    row: int
    due_s: float
    started_s: float
    first_token_s: float
    last_token_s: float
    output: int


class _Request(NamedTuple):
    """A request on its way: tokens of its prompt to compute, decode steps, and what it holds and reads of the cache."""

    row: int
    due_s: float
    prompt: int
    output: int
    steps: int
    reserved: float
    attended: float


class _Running(NamedTuple):
    """A request in the batch, ordered by the decode step after which it ends."""

    ends: int
    request: _Request
    started_s: float
    first_token_s: float


@dataclass(slots=True)
class _Engine:
    """The engine at one moment.

    Attributes:
        coming: Requests that have not arrived, by arrival.
        waiting: Those that have, and whose prompts are not computed.
        room: What is free of the KV cache, in tokens.
        began: When the last iteration began.
        steps: Decode steps so far.
        waited_steps: Decode steps since the last prefill.
        context: Cached tokens that a decode step reads.
        computed: Tokens of the first waiting prompt that are computed already, since `started`.
        stalled: How long a prefill has kept the batch from its next token.
        pauses: Each pause between two tokens, in seconds, and how many tokens came after it.
        ahead: Iterations that are decided on before the running one ends: what arrives meanwhile waits for them, too.
        missing: Requests up to `last` that are not answered.
        following: What the clients of a closed loop send, one whenever one is answered.
        round_trip_s: From the end of an answer to the arrival of the request that follows it.
        rest_share: Longest rest of a client in between, as a share of the time that its request took.
        mixed_s: Time of a mixed iteration without its attention, by batch and prompt tokens.
        decode_s: Time of a decode step without its attention, and of attention per cached token, by batch.
    """

    copy: Copy
    costs: Costs
    coming: deque[_Request]
    room: float
    ahead: int
    last: int
    missing: int
    following: deque[_Request] = field(default_factory=deque)
    round_trip_s: float = 0.0
    rest_share: float = 0.0
    waiting: deque[_Request] = field(default_factory=deque)
    running: list[_Running] = field(default_factory=list)
    done: list[Served] = field(default_factory=list)
    now: float = 0.0
    began: float = 0.0
    steps: int = 0
    waited_steps: int = 0
    context: float = 0.0
    computed: int = 0
    started: float = 0.0
    stalled: float = 0.0
    pauses: list[tuple[float, int]] = field(default_factory=list)
    mixed_s: dict[tuple[int, int], float] = field(default_factory=dict)
    decode_s: dict[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def free_slots(self) -> int:
        """Sequences that may enter the batch."""
        return self.copy.max_num_seqs - len(self.running)

    def fits(self, request: _Request, *, alone: bool) -> bool:
        """Tell whether the cache has room for a request; one alone is taken whatever it needs."""
        return request.reserved <= self.room or (alone and not self.running)

    def arrive(self) -> None:
        """Let requests wait that the next iteration can take."""
        busy = self.running or self.computed
        # An engine that schedules ahead decided on its next iteration when the running one began.
        horizon, coming = self.began if self.ahead and busy else self.now, self.coming
        while coming and coming[0].due_s <= horizon:
            self.waiting.append(coming.popleft())

    def decoding(self, batch: int) -> tuple[float, float]:
        """Return the time of a decode step without its attention, and of attention per cached token."""
        known = self.decode_s.get(batch)
        if known is None:
            known = self.decode_s[batch] = self.costs.step(batch), self.costs.attention(batch)
        return known

    def mixing(self, batch: int, tokens: int) -> float:
        """Return the time of an iteration with prompt tokens beside a batch, its attention included."""
        known = self.mixed_s.get((batch, tokens))
        if known is None:
            known = self.mixed_s[batch, tokens] = self.costs.mixed(batch, tokens)
        return known + (self.context * self.decoding(batch)[1] if batch else 0.0)


def simulate_open(copy: Copy, due_s: Sequence[float], last: int) -> tuple[list[Served], list[tuple[float, int]]]:
    """Run requests that arrive at given times; return them in the order in which they end, and the pauses of tokens.

    A pause comes with the number of tokens that came after it.

    Args:
        copy: The copy; requests have its lengths, in order. An engine that schedules ahead (`Engine.steps_ahead`) has
            decided on its next iteration before the running one ends.
        due_s: When they reach the engine, ascending.
        last: Number of the request with whose answer, and those before it, the run may end.
    """
    coming, ahead = deque(_requests(copy, due_s)), copy.engine.steps_ahead
    engine = _Engine(copy, costs_of(copy), coming, copy.own_room, ahead, last=last, missing=last + 1)
    _run(engine)
    return engine.done, engine.pauses


def simulate_closed(
    copy: Copy, starts_s: Sequence[float], requests: int, *, round_trip_s: float, rest_share: float = 0.0
) -> list[Served]:
    """Run a closed loop to its end; return its requests in the order in which they end.

    Args:
        copy: The copy; requests have its lengths, in order.
        starts_s: When each client sends its first request, ascending; no more than there are requests.
        rest_share: Longest rest of a client after a response, as a share of the time that it took.
    """
    concurrency, first = len(starts_s), [round_trip_s / 2 + start_s for start_s in starts_s]
    every = _requests(copy, first + [math.inf] * (requests - concurrency))
    engine = _Engine(
        copy,
        costs_of(copy),
        deque(every[:concurrency]),
        copy.own_room,
        ahead=0,
        last=requests - 1,
        missing=requests,
        following=deque(every[concurrency:]),
        round_trip_s=round_trip_s,
        rest_share=rest_share,
    )
    _run(engine)
    return engine.done


def _run(engine: _Engine) -> None:
    iterate = _chunked if engine.copy.engine.scheduler == "chunked" else _separate
    while engine.missing > 0:
        if not (engine.running or engine.waiting):
            engine.now = engine.began = max(engine.now, engine.coming[0].due_s)
        iterate(engine)


def _requests(copy: Copy, due_s: Sequence[float]) -> list[_Request]:
    if copy.lengths is None:
        alike = _request_of(copy, copy.input_tokens, copy.output_tokens, 0.0)
        return [alike._replace(row=row, due_s=at_s) for row, at_s in enumerate(due_s)]
    # Prompt, answer, and what is computed of the prompt over the average, of each request; in tokens.
    count = len(due_s)
    cached = copy.prefix_hit_rate > 0
    known = _known_rows(copy.lengths, cached)
    # In place: the list is the cached one, and every level of every candidate takes the same requests from it.
    known += ((*copy.lengths.of(row), copy.lengths.longer(row, cached=cached)) for row in range(len(known), count))
    rows = known[:count]
    return [
        _request_of(copy, prompt, output, longer)._replace(row=row, due_s=at_s)
        for row, (at_s, (prompt, output, longer)) in enumerate(zip(due_s, rows, strict=True))
    ]


@lru_cache(maxsize=8)
def _known_rows(lengths: RequestLengths, cached: bool) -> list[tuple[int, int, float]]:  # noqa: FBT001 (a key)
    """Return the rows that were needed so far: every level of every candidate takes the same ones."""
    del lengths, cached
    return []


def _request_of(copy: Copy, prompt: int, output: int, longer: float) -> _Request:
    per_step, size = copy.tokens_per_step, copy.engine.kv_block_tokens
    steps = math.ceil((output - 1) / per_step)
    held = math.ceil(output * copy.engine.kv_reserved_output)
    blocks = math.ceil(prompt / size) + math.ceil(held / size)
    cached = copy.architecture.cached_tokens(blocks * size)
    # Blocks that others hold too are off the room already; a shorter prompt has some of its own all the same.
    if copy.shared.tokens and copy.own_room < copy.kv_room_tokens:
        cached = max(float(size), cached - copy.shared_tokens)
    middle = prompt + 1 + max(0, steps - 1) * per_step / 2
    return _Request(
        row=0,
        due_s=0.0,
        prompt=max(1, round(copy.prefilled_tokens + longer)),
        output=output,
        steps=steps,
        reserved=copy.compiled_length or math.ceil(cached),
        attended=copy.architecture.attended_tokens(middle),
    )


def _chunked(engine: _Engine) -> None:
    """Run one mixed iteration where prompts wait and have room, or leap through decode steps."""
    engine.arrive()
    batch, began = len(engine.running), engine.now
    whole: list[tuple[_Request, float]] = []
    taken = _take_prompts(engine, whole) if engine.waiting else 0
    if not taken:
        _decode(engine, engine.running[0].ends - engine.steps)
        return
    took = engine.mixing(batch, taken)
    engine.began, engine.now = began, began + took
    if batch:
        engine.pauses.append((took, batch))
        _advance(engine, 1)
    _enter(engine, whole)


def _take_prompts(engine: _Engine, whole: list[tuple[_Request, float]]) -> int:
    """Take waiting prompts into the next iteration; return their tokens, and note those that are then computed."""
    batch, waiting, taken = len(engine.running), engine.waiting, 0
    budget = max(1, engine.copy.batched_tokens - batch * engine.costs.verified)
    slots = engine.free_slots
    while waiting and taken < budget and len(whole) < slots:
        head = waiting[0]
        if not engine.computed:
            if not engine.fits(head, alone=not whole):
                break
            # The whole request gets its cache with its first chunk, so that a prompt that was begun can end.
            engine.room -= head.reserved
            engine.started = engine.now
        part = min(budget - taken, head.prompt - engine.computed)
        taken += part
        engine.computed += part
        if engine.computed == head.prompt:
            whole.append((waiting.popleft(), engine.started))
            engine.computed = 0
    return taken


def _separate(engine: _Engine) -> None:
    """Run a prefill of whole prompts where they may enter, then decode steps until others may."""
    engine.arrive()
    prompts, facts = _next_prefill(engine), engine.copy.engine
    due = not engine.running or engine.waited_steps >= facts.steps_between_prefills
    if prompts and (due or len(prompts) >= math.floor(len(engine.running) * facts.waiting_served_ratio)):
        began, tokens = engine.now, sum(request.prompt for request in prompts)
        took = engine.costs.prefill(len(prompts), round(tokens / len(prompts)))
        engine.stalled += took if engine.running else 0.0
        for request in prompts:
            engine.waiting.popleft()
            engine.room -= request.reserved
        engine.began, engine.now = began, began + took
        _enter(engine, [(request, began) for request in prompts])
        engine.waited_steps = 1
        engine.arrive()
        prompts = _next_prefill(engine)
    if engine.running:
        steps = engine.running[0].ends - engine.steps
        if prompts:
            enough = len(prompts) >= math.floor(len(engine.running) * facts.waiting_served_ratio)
            until_entry = 1 if enough else max(1, facts.steps_between_prefills - engine.waited_steps)
            steps = min(steps, until_entry)
        _decode(engine, steps)


def _next_prefill(engine: _Engine) -> list[_Request]:
    """Return the waiting prompts that one prefill takes: those that fit its tokens, the batch and the cache."""
    copy, prompts, tokens, room = engine.copy, list[_Request](), 0, engine.room
    # Compiled shapes take one prompt at a time.
    most = min(1, engine.free_slots) if copy.compiled_length else engine.free_slots
    for request in engine.waiting:
        tokens += request.prompt
        room -= request.reserved
        alone = not (prompts or engine.running)
        if len(prompts) >= most or (room < 0 and not alone) or (tokens > copy.batched_tokens and prompts):
            break
        prompts.append(request)
    return prompts


def _enter(engine: _Engine, prompts: Sequence[tuple[_Request, float]]) -> None:
    """Put requests into the batch whose prompts are computed: that gave their first token."""
    for request, started in prompts:
        engine.context += request.attended
        heapq.heappush(engine.running, _Running(engine.steps + request.steps, request, started, engine.now))
    if prompts:
        # A request of a single token ends with its prefill.
        _advance(engine, 0)


def _decode(engine: _Engine, most: int) -> None:
    """Take decode steps in one leap: until a request ends, or one arrives that may enter."""
    batch, steps = len(engine.running), most
    plain, attention = engine.decoding(batch)
    step = plain + attention * engine.context
    if engine.coming and engine.free_slots > 0:
        pause = math.ceil((engine.coming[0].due_s - engine.now) / step) + engine.ahead
        steps = min(most, max(1, pause))
    pauses = engine.pauses
    if engine.stalled:
        pauses.append((step + engine.stalled, batch))
        engine.stalled = 0.0
        if steps > 1:
            pauses.append((step, batch * (steps - 1)))
    else:
        pauses.append((step, batch * steps))
    engine.now += steps * step
    engine.began = engine.now - step
    _advance(engine, steps)


def _advance(engine: _Engine, steps: int) -> None:
    """Count decode steps, and answer the requests that end with them."""
    engine.steps += steps
    engine.waited_steps += steps
    running, now = engine.running, engine.now
    while running and running[0].ends <= engine.steps:
        ended = heapq.heappop(running)
        request = ended.request
        engine.room += request.reserved
        engine.context -= request.attended
        engine.missing -= request.row <= engine.last
        if engine.following:
            took_s = now - request.due_s + engine.round_trip_s
            due_s = now + engine.round_trip_s + rest_s(engine.rest_share, request.row, took_s)
            # Clients that begin later, or rest longer, may come after it.
            insort(engine.coming, engine.following.popleft()._replace(due_s=due_s), key=attrgetter("due_s"))
        engine.done.append(
            Served(request.row, request.due_s, ended.started_s, ended.first_token_s, now, request.output)
        )
