"""How long to wait before a refused request is repeated."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from seatrial_load.decode.response import exchange_failure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.client.event_loop import Exchange
    from seatrial_load.decode.failure import ErrorClass


BASE_S = 0.25
CAP_S = 8.0
REPEATED: tuple[ErrorClass, ...] = ("throttled", "not_ready")
_CRC_VALUES = 2**32


class Repetition(NamedTuple):
    """Why a request is to be repeated, and after which pause."""

    error: ErrorClass
    pause_s: float


def repetition_of(exchange: Exchange, most: int) -> Repetition | None:
    """Tell whether a request that is over is to be repeated: refused for load or for readiness, and not too often."""
    repetitions = sum(error in REPEATED for error in exchange.retried)
    failure = exchange_failure(exchange) if repetitions < most else None
    if failure is None or failure.error not in REPEATED:
        return None
    head = exchange.inbox.head
    asked_s = retry_after_s(head.headers) if head else 0.0
    return Repetition(failure.error, max(backoff_s(exchange.index, repetitions), asked_s))


def backoff_s(index: int, repetitions: int) -> float:
    """Return the wait before the next attempt: 0.25 s, doubled by each repetition, at most 8 s, times 0.5 to 1.

    The factor scatters requests that were refused together ("equal jitter": AWS Architecture Blog, "Exponential
    Backoff And Jitter"); it follows from the request's number, so that the same trial waits alike.

    Args:
        index: The request's number.
        repetitions: How often it was repeated already.
    """
    scatter = zlib.crc32(f"{index}:{repetitions}".encode()) / _CRC_VALUES
    return min(CAP_S, BASE_S * 2.0 ** min(repetitions, 16)) * (0.5 + scatter / 2)


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float:
    """Return what a `Retry-After` asks for, in seconds or as a date (RFC 9110, section 10.2.3); 0 without one.

    A date is taken relative to the answer's own `Date`, so that neither clock need be right.
    """
    text = headers.get("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text[:9])
    if not text:
        return 0.0
    until = _date(text)
    since = _date(headers.get("date", "")) or now or datetime.now(UTC)
    return max(0.0, (until - since).total_seconds()) if until else 0.0


def _date(text: str) -> datetime | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (a tenth of the client's start, and rarely needed)

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
