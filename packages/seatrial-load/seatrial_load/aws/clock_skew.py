"""A wrong clock: measure by the service's how wrong it is, and sign with the right time.

A signature holds for some minutes around its date. A machine whose clock is off by more is refused with an error that
speaks of the time; the `Date` header of that response has the time of the service's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from seatrial_load.decode.response import exchange_failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from seatrial_load.decode.exchange import Exchange
    from seatrial_load.decode.failure import Failure


_TIME_WORDS = (
    "requesttimetooskewed",
    "requestexpired",
    "requestinthefuture",
    "signature expired",
    "signature not yet current",
)


@dataclass(frozen=True, slots=True)
class Probed:
    """The outcome of the first request.

    Attributes:
        exchange: The request that counts: the first one, or the one that was sent again by the service's clock.
        offset_s: What must be added to this machine's clock to sign with; None when its time was not refused.
    """

    exchange: Exchange
    offset_s: float | None


def probe_clock(send: Callable[[float], Exchange], now: Callable[[], datetime]) -> Probed:
    """Send one request; where it is refused for its time, learn the offset and send it once more.

    Args:
        send: Sends one request, signed by this machine's clock plus a number of seconds, and returns its exchange.
    """
    first = send(0.0)
    head = first.inbox.head
    date = None if head is None else head.headers.get("date")
    if date is None or not is_skewed(exchange_failure(first)):
        return Probed(first, None)
    offset_s = offset_of(date, now())
    return Probed(first, None) if offset_s is None else Probed(send(offset_s), offset_s)


def is_skewed(failure: Failure | None) -> bool:
    """Return whether a signature was refused for its time, by the words of AWS's errors.

    An `InvalidSignatureException` that doesn't speak of the time is a wrong key, not a wrong clock.
    """
    if failure is None or failure.error != "auth":
        return False
    detail = failure.detail.lower()
    return any(words in detail for words in _TIME_WORDS)


def offset_of(date_header: str, now: datetime) -> float | None:
    """Return the service's clock minus this one, in seconds (the header has whole seconds); None when it isn't a date.

    Args:
        now: This machine's time of day in UTC when the header arrived.
    """
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (costs 30 ms; only needed where a clock is wrong)

    try:
        theirs = parsedate_to_datetime(date_header)
    except ValueError:
        return None
    aware = theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)
    return (aware - now).total_seconds()


def shifted(now: Callable[[], datetime], offset_s: float) -> Callable[[], datetime]:
    """Return a clock that is `offset_s` ahead of another one."""
    ahead = timedelta(seconds=offset_s)
    return lambda: now() + ahead
