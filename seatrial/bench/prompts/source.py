"""What every source of prompts tells of the request with a number; the same number, the same prompt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.payload.json_text import Json
    from seatrial.payload.request import Prompt


@dataclass(frozen=True, slots=True)
class RawBody:
    """A whole body: only whether it streams, and the target's model, are written into it."""

    document: Mapping[str, Json]


Content: TypeAlias = "Prompt | RawBody"


class Prompts(Protocol):
    """A source of prompts; holds nothing that a fork would have to share."""

    def content(self, index: int) -> Content:
        """Return the text, the messages or the whole body of this request."""

    def output_tokens(self, index: int) -> int:
        """Return how many tokens are asked for."""

    def input_tokens(self, index: int) -> int | None:
        """Return how long the prompt is meant to be; None when nobody says."""
