"""How the memory of one accelerator is divided, and what the published rule of thumb would say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.tables import add_row, heading, table
from seatrial.units import gib

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.predict.memory import MemoryFit

_KIB = 1024


def memory_view(fit: MemoryFit, tokens: int) -> RenderableType:
    """Return the memory table for requests of this many tokens, prompt and output."""
    names = ("accelerator", "weights", "activations", "reserve", "KV room", "KV per token", "sequences")
    made = table(numbers=names)
    sizes = (
        fit.accelerator_memory_bytes,
        fit.weights_bytes,
        fit.activation_bytes,
        fit.reserve_bytes,
        fit.kv_room_bytes,
    )
    per_token = f"{fit.kv_bytes_per_token / _KIB:,.0f} KiB"
    add_row(made, *map(gib, sizes), per_token, f"{fit.kv_limited_batch:,}")
    return Group(heading("Memory of one accelerator"), made, Text(memory_sentence(fit, tokens)))


def memory_sentence(fit: MemoryFit, tokens: int) -> str:
    """Say how many sequences fit, and how many the published rule of thumb promises where it differs."""
    ours = f"The KV cache holds {_sequences(fit.kv_limited_batch)} of {tokens:,} tokens."
    theirs = rule_of_thumb(fit, tokens)
    if theirs == fit.kv_limited_batch:
        return f"{ours} The rule of thumb, (memory - weights) / (KV per token x tokens), gives the same."
    return (
        f"{ours} The rule of thumb, (memory - weights) / (KV per token x tokens), gives {theirs:,}: "
        f"{_why(fit, theirs)}."
    )


def rule_of_thumb(fit: MemoryFit, tokens: int) -> int:
    """Return floor((memory - weights) / (KV per token * tokens)), the batch as the published articles compute it."""
    return max(0, (fit.accelerator_memory_bytes - fit.weights_bytes) // (fit.kv_bytes_per_token * tokens))


def _why(fit: MemoryFit, theirs: int) -> str:
    if theirs > fit.kv_limited_batch:
        return "it ignores activations and the engine's reserve"
    return "it ignores the sliding window, which keeps fewer tokens in the cache"


def _sequences(count: int) -> str:
    return f"{count:,} {'sequence' if count == 1 else 'sequences'}"
