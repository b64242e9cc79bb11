"""Whether a wave was what was asked for: lag, delivered concurrency and cost of the client, out of what it kept."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.bench.evidence import ClientEvidence
from seatrial.bench.usage import LEAST_SPAN_S
from seatrial.measure.distribution import percentile
from seatrial.units import MS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seatrial.bench.client import WaveResult
    from seatrial.bench.exchange import Exchange
    from seatrial.bench.wave import Wave

P99 = 0.99
LEAST_READS = 100
LEAST_WINDOW_SHARE = 0.5


def evidence_of(wave: Wave, result: WaveResult) -> ClientEvidence:
    """Work out one process's evidence.

    Its window ends when the last request is taken up, since after that there is nothing left to keep the streams busy
    with. A wave whose window is shorter than half of it (one round of requests) tells nothing of concurrency, and its
    CPU share is that of the whole wave. Of fewer than 100 reads a p99 is no more than the one unlucky read.
    """
    start_s, until_s = result.started_s, _last_taken_s(result)
    is_long = until_s - start_s >= LEAST_WINDOW_SHARE * (result.ended_s - start_s) > 0
    cpu_share, run_delay_share = result.usage.shares(start_s, until_s if is_long else result.ended_s)
    busy_s = math.fsum(_busy_s(exchange, start_s, until_s) for exchange in result.exchanges) if is_long else None
    window_s, seconds = until_s - start_s, result.ended_s - start_s
    idle_s = None if busy_s is None or wave.due_s is not None else max(0.0, wave.streams * window_s - busy_s)
    return ClientEvidence(
        workers=1,
        streams=wave.streams,
        receive_lag_p99_ms=result.lag.percentile_ms(P99) if result.lag.reads >= LEAST_READS else None,
        delivered_concurrency=None if busy_s is None else busy_s / window_s,
        cpu_share=cpu_share,
        run_delay_share=run_delay_share,
        send_lag_p99_ms=_send_lag_p99_ms(result.exchanges, wave.streams),
        idle_ms=None if idle_s is None else idle_s / len(result.exchanges) * MS_PER_S,
        full_share=_full_share(result.exchanges, wave.streams),
        reads_per_s=result.lag.reads / seconds if seconds >= LEAST_SPAN_S else None,
    )


def together(shares: Sequence[ClientEvidence]) -> ClientEvidence:
    """Join the evidence of processes that loaded at the same time: concurrency adds up, the worst of the rest counts.

    What one of them doesn't know of the sum, nobody knows.
    """
    delivered = [share.delivered_concurrency for share in shares]
    known = [number for number in delivered if number is not None]
    first, *_ = shares
    return replace(
        first,
        workers=sum(share.workers for share in shares),
        streams=sum(share.streams for share in shares),
        delivered_concurrency=math.fsum(known) if len(known) == len(delivered) else None,
        receive_lag_p99_ms=_worst(shares, lambda share: share.receive_lag_p99_ms),
        cpu_share=_worst(shares, lambda share: share.cpu_share),
        run_delay_share=_worst(shares, lambda share: share.run_delay_share),
        send_lag_p99_ms=_worst(shares, lambda share: share.send_lag_p99_ms),
        idle_ms=_worst(shares, lambda share: share.idle_ms),
        full_share=_worst(shares, lambda share: share.full_share),
        reads_per_s=_worst(shares, lambda share: share.reads_per_s),
    )


def _worst(shares: Iterable[ClientEvidence], number_of: Callable[[ClientEvidence], float | None]) -> float | None:
    return max((number for share in shares if (number := number_of(share)) is not None), default=None)


def _last_taken_s(result: WaveResult) -> float:
    return max((exchange.taken_s for exchange in result.exchanges if exchange.taken_s), default=result.started_s)


def _busy_s(exchange: Exchange, start_s: float, until_s: float) -> float:
    """Return how long the request kept its stream busy within the window; connecting anew and pauses count.

    A server that closes its connections costs the trial time, but that is the endpoint's doing, not the client's.
    """
    taken_s = exchange.sent_s if exchange.taken_s is None else exchange.taken_s
    return max(0.0, min(exchange.ended_s, until_s) - max(taken_s, start_s))


def _send_lag_p99_ms(exchanges: Sequence[Exchange], streams: int) -> float | None:
    lags_s = sorted(lag_s for lag_s, was_full in _open_loop(exchanges, streams) if not was_full)
    return percentile(lags_s, 100 * P99) * MS_PER_S if lags_s else None


def _full_share(exchanges: Sequence[Exchange], streams: int) -> float | None:
    full = [was_full for _, was_full in _open_loop(exchanges, streams)]
    return sum(full) / len(full) if full else None


def _open_loop(exchanges: Sequence[Exchange], streams: int) -> list[tuple[float, bool]]:
    """Return how late each request was sent, and whether it found every stream busy when it was due."""
    taken_s = sorted(exchange.taken_s for exchange in exchanges if exchange.taken_s is not None)
    ended_s = sorted(exchange.ended_s for exchange in exchanges)
    return [
        (
            exchange.sent_s - exchange.due_s,
            bisect_left(taken_s, exchange.due_s) - bisect_right(ended_s, exchange.due_s) >= streams,
        )
        for exchange in exchanges
        if exchange.due_s is not None
    ]
