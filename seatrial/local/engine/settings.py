"""What a rendered configuration asks of the engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from seatrial.errors import LocalError

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

    @property
    def slots(self) -> int:
        """Slots of llama.cpp: `max_num_seqs`, or llama.cpp's own most."""
        return min(self.max_num_seqs, MOST_SLOTS)


def refusal(message: str, *, field: str = "") -> LocalError:
    """Return the error of a configuration that the real container refuses at its start (SEA605)."""
    return LocalError.of("SEA605", message, field=field)
