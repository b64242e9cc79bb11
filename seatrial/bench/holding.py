"""How much of a server's answers a wave keeps in memory, whatever the server sends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial.units import MIB

if TYPE_CHECKING:
    from seatrial.bench.request import Workload

LEAST_ANSWER_BYTES: Final = 8 * MIB
ANSWER_BYTES_PER_TOKEN: Final = 2_048
"""An engine spends 60 to 500 bytes on a token, with log-probabilities some 1,000."""
LEAST_WAVE_BYTES: Final = 128 * MIB
WAVE_BYTES_PER_TOKEN: Final = 192
"""A token of an honest answer is kept in 30 to 130 bytes, folded (`exchange.Inbox`)."""
LEAST_TOKENS_PER_REQUEST: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a server may make the client keep; more is cut, and the request has failed with `answer_too_large`.

    Attributes:
        answer_bytes: Bytes of one answer, its head and framing included.
        wave_bytes: Memory of all answers of a wave together.
    """

    answer_bytes: int = LEAST_ANSWER_BYTES
    wave_bytes: int = LEAST_WAVE_BYTES

    def share(self, workers: int) -> Limits:
        """Return the limits of one of several processes."""
        return Limits(answer_bytes=self.answer_bytes, wave_bytes=self.wave_bytes // workers)


LEAST: Final = Limits()
"""Those of a wave of which nothing is known."""


def limits_of(workload: Workload, requests: int) -> Limits:
    """Return the limits for so many requests: they grow with the tokens that are asked for, not with what comes.

    An answer may have 2 KiB for each output token, and at least 8 MiB. All answers together may take 192 bytes of
    memory for each output token (at least 512 tokens a request), and 128 MiB besides.
    """
    tokens = requests * max(workload.output_tokens, LEAST_TOKENS_PER_REQUEST)
    return Limits(
        answer_bytes=max(LEAST_ANSWER_BYTES, workload.output_tokens * ANSWER_BYTES_PER_TOKEN),
        wave_bytes=LEAST_WAVE_BYTES + tokens * WAVE_BYTES_PER_TOKEN,
    )


class Holding:
    """What the answers of a wave hold now, against its limits.

    Attributes:
        limits: The limits.
        held_bytes: Memory of all answers, as each inbox counts it.
    """

    __slots__ = ("held_bytes", "limits")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held_bytes = 0

    @property
    def is_tight(self) -> bool:
        """Whether a quarter of the room is taken, so that it pays to fold an answer as soon as it is over."""
        return self.held_bytes > self.limits.wave_bytes // 4


def mib(size_bytes: int) -> str:
    """Write a limit in MiB (2^20 bytes): `8 MiB`."""
    return f"{size_bytes / MIB:,.4g} MiB"
