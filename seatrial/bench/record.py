"""What is known about one request after it is over: the only thing that metrics are computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from seatrial.bench.failure import ErrorClass

TokenSource: TypeAlias = Literal["events", "reported"]


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of the trial; times are seconds of the trial's monotonic clock, `None` is "not known".

    Attributes:
        sent_s: Just before the first byte of the request was handed to the socket.
        first_token_s: Arrival of the bytes that completed the first token event; None when no token streamed.
        token_times_s: Arrival of every token event; bytes that arrived together share their time.
        last_token_s: Arrival of the last token event, or of the whole answer when nothing streamed; None on failure.
        ended_s: When the answer was complete, or the request was given up.
        input_tokens: Length of the prompt, where the endpoint told it.
        output_tokens: Number of generated tokens.
        output_tokens_from: `events` when token events were counted, `reported` when the endpoint's own count is used.
        error: The class of the failure; None on success.
        status: The HTTP status; None when no answer came.
        detail: The failure in the service's own words; empty on success.
        engine: The header by which a simulated or local engine announces itself; empty on AWS.
        index: The request's number in the trial; the prompts and a trace's lengths follow from it.
        due_s: When an open loop had to send it; None in a closed loop. Its latencies count from `sent_s`, and how late
            it was sent is the client's lag.
        parts: Pieces that carried the answer: frames of an event stream, SSE events or chunks; None when not streamed.
        retried: The failures that were repeated before this answer, in order; its times start with the first attempt.
    """

    sent_s: float
    first_token_s: float | None
    token_times_s: tuple[float, ...]
    last_token_s: float | None
    ended_s: float
    input_tokens: int | None
    output_tokens: int | None
    output_tokens_from: TokenSource | None
    error: ErrorClass | None
    status: int | None
    detail: str
    engine: str = ""
    index: int = 0
    due_s: float | None = None
    parts: int | None = None
    retried: tuple[ErrorClass, ...] = ()

    @property
    def succeeded(self) -> bool:
        """Whether the request was answered in full."""
        return self.error is None
