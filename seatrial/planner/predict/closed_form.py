"""The closed form: what one copy does in the steady state of a closed loop, all means, in microseconds of work.

Every decode step carries its share of the prefills:

    step(B)     = decode(B) + B / S * prefill(k) / k                     s; S decode steps a request
    throughput  = C / end-to-end * O                                     tokens/s
    end-to-end  = C / B * S * step + r                                   s; r outside the engine
    TTFT        = end-to-end - S * step + prefill(k) * ahead + step / 2  s: queue, others' prefills, its own
    TPOT        = (end-to-end - TTFT) / (O - 1)                          s

B is the concurrency C, less those that wait for the next prefill, or what the KV room, the batch limit or the admission
of prefills leave of it; k is the number of prompts in one prefill. An engine that mixes chunks of prompts into its
decode steps has no separate prefill: some of its steps take a chunk of prompts beside the running batch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.documents.prediction import Limit
from seatrial.planner.predict.iteration_cost import costs_of
from seatrial_base.units import MS_PER_S

if TYPE_CHECKING:
    from seatrial.planner.predict.copy_model import Copy
    from seatrial.planner.predict.iteration_cost import Costs


STEP_PARTS = (Limit.MEMORY, Limit.COMPUTE, Limit.HOST, Limit.LINK)


@dataclass(frozen=True, slots=True)
class EstimatedLevel:
    """The means of one copy at one concurrency, and what bounds it there."""

    output_tok_s: float
    ttft_ms: float
    tpot_ms: float
    e2e_latency_ms: float
    ms_per_token: float
    limit: Limit


@dataclass(frozen=True, slots=True)
class Seconds:
    """Where the time of a mean step goes; `prefill` is what a prompt waits for its own prefill."""

    memory: float
    compute: float
    host: float
    link: float
    prefill: float

    @property
    def total(self) -> float:
        """All of a step."""
        return self.memory + self.compute + self.host + self.link

    @property
    def largest(self) -> Limit:
        """The largest part."""
        return max(STEP_PARTS, key=lambda part: float(getattr(self, part)))


_NOTHING = Seconds(0.0, 0.0, 0.0, 0.0, 0.0)


def predict_at(copy: Copy, concurrency: int) -> EstimatedLevel:
    """Predict what a copy does with this many requests in flight."""
    batch, bound = running_batch(copy, concurrency)
    constants = copy.engine.performance
    step = mean_step(copy, batch)
    service_s = max(1, copy.decode_steps) * step.total
    end_to_end_s = constants.request_s + concurrency / batch * service_s
    # A prompt waits for half of those that arrive with it, as far as requests bunch.
    ahead = 1 + constants.bunching * (batch - 1) / 2
    waited_s = min(step.prefill * ahead + (step.total / 2 if batch > 1 else 0.0), service_s)
    ttft_s = end_to_end_s - service_s + waited_s
    return EstimatedLevel(
        output_tok_s=concurrency / end_to_end_s * copy.output_tokens,
        ttft_ms=ttft_s * MS_PER_S,
        tpot_ms=(end_to_end_s - ttft_s) / (copy.output_tokens - 1 or 1) * MS_PER_S,
        e2e_latency_ms=end_to_end_s * MS_PER_S,
        ms_per_token=end_to_end_s / copy.output_tokens * MS_PER_S,
        limit=bound or step.largest,
    )


def running_batch(copy: Copy, concurrency: int) -> tuple[float, Limit | None]:
    """Return the sequences in the running batch, and what keeps others out of it; None where all are in it."""
    steps, between, inside = max(1, copy.decode_steps), copy.engine.steps_between_prefills, float(concurrency)
    # Admitted is the batch at which as many prompts enter as end. Others wait half the steps between two prefills.
    if copy.engine.scheduler == "chunked":
        admitted = copy.batched_tokens * steps / (steps * copy.verified_tokens + copy.prefilled_tokens)
    else:
        admitted = copy.prompts_per_prefill * (steps / between + 1)
        inside = max(1.0, concurrency * steps / (steps + between / 2)) if concurrency > 1 else inside
    limits = {Limit.KV: copy.kv_limited_batch, Limit.BATCH_LIMIT: copy.max_num_seqs, Limit.ADMISSION: admitted}
    # The least of the bounds is the one that is felt; it is none where fewer are in the batch anyway.
    bound = min(limits, key=lambda name: limits[name])
    return (max(1.0, float(limits[bound])), bound) if limits[bound] < inside else (inside, None)


def mean_step(copy: Copy, batch: float) -> Seconds:
    """Return where the time of a mean step goes, its share of the prefills included."""
    costs, steps = costs_of(copy), max(1, copy.decode_steps)
    entering = batch / steps  # prompts a step
    server = entering * (copy.prefilled_tokens * costs.input_token + costs.sequence)
    if copy.engine.scheduler == "chunked":
        return _mixed(copy, costs, batch, server)
    decoding = _decoding(copy, costs, batch)
    prompts = max(1.0, min(copy.prompts_per_prefill, copy.engine.steps_between_prefills * entering, batch))
    tokens = prompts * copy.prefilled_tokens
    prefill = _linear(costs, 0.0, tokens)
    own_s = costs.prefill(prompts, copy.prefilled_tokens)
    return _with_share(decoding, prefill, entering / prompts, server=server, prefill=own_s)


def _decoding(copy: Copy, costs: Costs, batch: float) -> Seconds:
    """Return the time of a decode step in the middle of the outputs; nothing when a prefill yields the only token."""
    if not copy.decode_steps:
        return _NOTHING
    context = batch * copy.architecture.attended_tokens(copy.input_tokens + int(copy.running_output_tokens) // 2)
    linear = _linear(costs, batch * costs.verified)
    busy = _with_share(linear, _drafting(costs, linear, batch), 1.0, server=batch * costs.sequence, prefill=0.0)
    return replace(busy, memory=busy.memory + context * costs.attention(batch))


def _drafting(costs: Costs, step: Seconds, batch: float) -> Seconds:
    """Return the time of drafting beside an iteration: as the draft's shape has it, or a share of the iteration."""
    if costs.drafter is None:
        return _with_share(_NOTHING, step, costs.draft, server=0.0, prefill=0.0)
    first = _linear(costs.drafter, batch * costs.verified)
    return _with_share(first, _linear(costs.drafter, batch), costs.verified - 2, server=0.0, prefill=0.0)


def _mixed(copy: Copy, costs: Costs, batch: float, server: float) -> Seconds:
    """Return the mean of decode steps and of iterations that take a chunk of prompts beside the running batch.

    Requests of one length end together, so their successors' prompts fill whole iterations.
    """
    chunk = max(1.0, min(copy.batched_tokens - batch * costs.verified, max(1.0, batch * copy.prefilled_tokens)))
    iterations = batch * copy.prefilled_tokens / chunk
    running = batch * costs.verified if copy.decode_steps else 0.0
    decoding = _decoding(copy, costs, batch)
    plain = _linear(costs, running) if copy.decode_steps else _NOTHING
    extra = _with_share(_linear(costs, running, chunk), plain, -1.0, server=0.0, prefill=0.0)
    if costs.drafter is not None:
        beside = _linear(costs.drafter, running, chunk)
        before = _linear(costs.drafter, running) if copy.decode_steps else _NOTHING
        drafted = _with_share(beside, before, -1.0, server=0.0, prefill=0.0)
        extra = _with_share(extra, drafted, 1.0, server=0.0, prefill=0.0)
    alone = min(float(copy.prefilled_tokens), chunk)
    own_s = copy.prefilled_tokens / alone * (_linear(costs, running, alone).total + alone * costs.input_token)
    share = iterations / max(1, copy.decode_steps)
    return _with_share(decoding, extra, share, server=server, prefill=own_s)


def _linear(costs: Costs, tokens: float, prompt_tokens: float = 0.0) -> Seconds:
    """Return the time of everything but attention over the cache, named after what bounds it."""
    attention_s = costs.prompt_attention(prompt_tokens)
    host = costs.prompt_host if prompt_tokens else costs.host
    busy, link = costs.busy(tokens, prompt_tokens), costs.link(tokens + prompt_tokens)
    if host >= costs.fixed + busy + attention_s + link:
        if costs.compiled:
            return Seconds(0.0, host, 0.0, 0.0, 0.0) if prompt_tokens else Seconds(host, 0.0, 0.0, 0.0, 0.0)
        return Seconds(0.0, 0.0, host, costs.ranks, 0.0)
    link += costs.ranks
    if costs.read(tokens + prompt_tokens) >= costs.arithmetic(tokens, prompt_tokens):
        return Seconds(busy, attention_s, costs.fixed, link, 0.0)
    return Seconds(0.0, busy + attention_s, costs.fixed, link, 0.0)


def _with_share(step: Seconds, other: Seconds, share: float, *, server: float, prefill: float) -> Seconds:
    """Add a share of something that happens less than once a step."""
    return Seconds(
        memory=step.memory + share * other.memory,
        compute=step.compute + share * other.compute,
        host=step.host + share * other.host + server,
        link=step.link + share * other.link,
        prefill=prefill,
    )
