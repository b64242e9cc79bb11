"""What bounds a copy, in words: one sentence for each limit that the closed form names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.predict.costs import costs_of
from seatrial.units import MS_PER_S, tenths

if TYPE_CHECKING:
    from seatrial.predict.closed import Seconds
    from seatrial.predict.copy import Copy

_PARTS = {
    "memory": "reading weights and KV cache takes {share:.0%} of it",
    "compute": "arithmetic takes {share:.0%} of it",
    "link": "the all-reduces between {degree} accelerators take {share:.0%} of it",
    "host": "the server's work on every sequence and prompt takes {share:.0%} of it",
}
_GROWING = {
    "memory": "most of what a further request adds to a step is reading its KV cache",
    "compute": "most of what a further request adds to a step is arithmetic",
    "link": "most of what a further request adds to a step is carried by the all-reduces",
    "host": "most of what a further request adds to a step is the server's work on it",
}


def step_sentence(copy: Copy, concurrency: int, batch: float, step: Seconds) -> str:
    """Return what bounds a step at a concurrency: `At 1 request in flight a step of 31.0 ms is bound by memory: …`."""
    name = step.largest
    some = "" if round(batch) >= concurrency else f", of which {round(batch):,} run at once,"
    start = f"At {_in_flight(concurrency)}{some} a step of {tenths(step.total * MS_PER_S)} ms is bound by "
    if name == "host" and launches(copy, batch):
        spent = costs_of(copy).host * MS_PER_S
        return f"{start}the host: it launches kernels for {tenths(spent)} ms of every step, whatever the batch."
    words = _PARTS[name].format(share=getattr(step, name) / step.total, degree=copy.degree)
    return f"{start}{name if name in {'memory', 'compute'} else f'the {name}'}: {words}."


def launches(copy: Copy, batch: float) -> bool:
    """Tell whether launching kernels takes the host longer than the server's work on the sequences of a batch."""
    costs = costs_of(copy)
    return costs.host >= max(costs.device(batch * costs.verified), batch * costs.sequence)


def knee_sentence(copy: Copy, limit: str, concurrency: int, admitted: float) -> str:
    """Return what keeps throughput from growing past a concurrency.

    Args:
        copy: The copy.
        limit: Its name.
        concurrency: Where throughput stops to pay for latency.
        admitted: Sequences that the admission of prompts keeps running.
    """
    if limit == "kv":
        return f"The KV room holds {_counted(copy.kv_limited_batch, 'sequence')}; more requests wait."
    if limit == "batch limit":
        return f"The engine batches at most {_counted(copy.max_num_seqs, 'sequence')}; more requests wait."
    if limit == "admission":
        return f"{_admission(copy)}, which keeps {_counted(round(admitted), 'sequence')} running; more requests wait."
    return f"Past {_in_flight(concurrency)}, {_GROWING[limit]}."


def _admission(copy: Copy) -> str:
    if copy.engine.scheduler == "chunked":
        return f"The engine takes {_counted(copy.batched_tokens, 'token')} an iteration"
    prompts, steps = _counted(copy.prompts_per_prefill, "prompt"), copy.engine.steps_between_prefills
    return f"The engine admits {prompts} every {_counted(steps, 'decode step')}"


def _in_flight(concurrency: int) -> str:
    return f"{_counted(concurrency, 'request')} in flight"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun if number == 1 else f'{noun}s'}"
