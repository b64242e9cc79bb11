"""Settings of the engine from a rendered configuration, and typed reading of options that are written as text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from seatrial_base.errors import LocalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


DEFAULT_MODEL_LEN: Final = 32_768
"""Tokens per sequence when the configuration names none (a real container reads the model's own limit)."""
KV_POOL_TOKENS: Final = 262_144
"""The most tokens that the local engine's KV cache holds, over all sequences (96 MiB)."""
MOST_SLOTS: Final = 256
"""The most sequences that llama.cpp batches (its LLAMA_MAX_SEQ)."""


class WireFormat(StrEnum):
    """How a container spells requests and answers."""

    LMI_ASYNC = "lmi-async"
    LMI_ROLLING_BATCH = "lmi-rolling-batch"
    TGI = "tgi"
    VLLM = "vllm"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of one engine process.

    Attributes:
        wire_format: How requests and answers are spelled.
        model_id: The model that the configuration names; it's announced, never downloaded.
        max_num_seqs: Sequences batched at once.
        max_in_flight: Requests admitted, running and waiting; one more is refused.
        max_input_tokens: The longest prompt, tokens.
        max_total_tokens: The most tokens of a prompt and its output.
        batch_total_tokens: The most tokens (prompts and outputs) of all running sequences.
        prefill_tokens: The most tokens of one engine step; None leaves it to the engine.
        default_output_tokens: The output when the request names no limit; None means up to `max_total_tokens`.
        quantization: How the weights are quantized, in the configuration's or the checkpoint's word; empty for not.
        served_names: The names of the model that a request may give; every name without any.
        max_queued_tokens: Prompt tokens of waiting requests, from which on one more is refused; None for no limit.
        calls_tools: Whether the engine reads tool calls out of what the model writes by itself.
    """

    wire_format: WireFormat
    model_id: str
    max_num_seqs: int
    max_in_flight: int
    max_input_tokens: int
    max_total_tokens: int
    batch_total_tokens: int
    prefill_tokens: int | None
    default_output_tokens: int | None
    quantization: str = ""
    served_names: tuple[str, ...] = ()
    calls_tools: bool = True
    max_queued_tokens: int | None = None

    @property
    def slots(self) -> int:
        """Slots of llama.cpp: `max_num_seqs`, llama.cpp's own most, or as many of the longest as the KV cache holds.

        Each slot has its own part of the cache. With one part for all, each sequence attends over the tokens of all
        others too: 64 at once decoded a quarter of the tokens per CPU second that 4 did.
        """
        return min(self.max_num_seqs, MOST_SLOTS, max(1, KV_POOL_TOKENS // self.max_total_tokens))


def start_error(message: str, *, field: str = "") -> LocalError:
    """Return the error of a configuration that the real container refuses at its start (SEA605)."""
    return LocalError.of("SEA605", message, field=field)


Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Options by name, read with their type; a value of the wrong type is refused with its name."""

    values: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return an option as it's written, without the space around it."""
        return self.values.get(name, default).strip()

    def flag(self, name: str) -> bool:
        """Return whether an option is `true` in any case; an absent one is not."""
        return self.text(name).lower() == "true"

    def whole(self, name: str, *, least: int = 1) -> int | None:
        """Return an option that must be a whole number of at least `least`; None when it's absent.

        Raises:
            LocalError: SEA605, the value isn't such a number.
        """
        value = self._read(name, int, "a whole number")
        if value is not None and value < least:
            raise start_error(f"{value} must be at least {least}", field=name)
        return value

    def share(self, name: str) -> float | None:
        """Return an option that must be a number above 0 and at most 1; None when it's absent."""
        value = self._read(name, float, "a number")
        if value is not None and not 0 < value <= 1:
            raise start_error(f"{value} must be above 0 and at most 1", field=name)
        return value

    def _read(self, name: str, kind: Callable[[str], Number], what: str) -> Number | None:
        written = self.text(name)
        if not written:
            return None
        try:
            return kind(written)
        except ValueError:
            raise start_error(f"{written!r} is not {what}", field=name) from None
