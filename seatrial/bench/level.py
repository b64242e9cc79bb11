"""From the records of one wave to the result of one level."""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

from seatrial.bench import metrics
from seatrial.bench.distribution import Distribution, distribution
from seatrial.bench.result import LevelResult
from seatrial.bench.slo import judged

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seatrial.bench.record import RequestRecord
    from seatrial.bench.request import Objective


def measure_level(concurrency: int, records: Sequence[RequestRecord], objectives: Sequence[Objective]) -> LevelResult:
    """Compute every metric of a level and judge it.

    Args:
        concurrency: Requests in flight per copy.
        records: Every request of the level, at least one.
        objectives: The SLO.
    """
    succeeded = [record for record in records if record.succeeded]
    level = LevelResult(
        concurrency=concurrency,
        requests=len(records),
        succeeded=len(succeeded),
        errors=_errors(records),
        first_errors=_first_errors(records),
        window_s=metrics.window_s(records) or 0.0,
        output_tok_s=metrics.output_tok_s(records),
        requests_per_s=metrics.requests_per_s(records),
        goodput_requests_per_s=metrics.goodput_requests_per_s(records, objectives),
        ttft_ms=_distribution(metrics.ttft_ms, succeeded),
        tpot_ms=_distribution(metrics.tpot_ms, succeeded),
        itl_ms=distribution(list(chain.from_iterable(map(metrics.itl_ms, succeeded)))),
        ms_per_token=_distribution(metrics.ms_per_token, succeeded),
        e2e_latency_ms=_distribution(metrics.e2e_latency_ms, succeeded),
        input_tokens_mean=_mean([record.input_tokens for record in succeeded]),
        output_tokens_mean=_mean([record.output_tokens for record in succeeded]),
        meets_slo=False,
        misses=(),
    )
    return judged(level, objectives)


def _distribution(
    metric: Callable[[RequestRecord], float | None], records: Sequence[RequestRecord]
) -> Distribution | None:
    return distribution([value for value in map(metric, records) if value is not None])


def _errors(records: Sequence[RequestRecord]) -> dict[str, int]:
    counts = Counter(record.error for record in records if record.error is not None)
    return {str(name): count for name, count in counts.most_common()}


def _first_errors(records: Sequence[RequestRecord]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for record in records:
        if record.error is not None:
            first.setdefault(record.error, f"{record.error}: {record.detail}")
    return tuple(first.values())


def _mean(counts: Sequence[int | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return math.fsum(known) / len(known) if known else None
