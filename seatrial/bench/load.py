"""How hard a trial loads, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Literal, TypeAlias

from seatrial.bounds import MOST_IN_FLIGHT, MOST_REQUESTS, MOST_SECONDS, MOST_WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Arrival: TypeAlias = Literal["closed", "poisson", "constant", "ramp", "replay"]
Search: TypeAlias = Literal["sweep", "adaptive"]
Goal: TypeAlias = Literal["knee", "max_concurrency", "max_goodput"]
PreparedBy: TypeAlias = Literal["seatrial", "jumpstart-2024"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How hard to load, and for how long.

    A level first sends `ramp_per_concurrency` x C requests, which are not measured, then at least
    `requests_per_concurrency` x C; it goes on until the interval of its end-to-end latency is narrower than `precision`
    or `max_requests_per_concurrency` x C are sent.

    Attributes:
        concurrency_levels: Requests in flight per copy, ascending; of an adaptive search, the bounds are the first and
            the last of them.
        requests_per_concurrency: A level measures at least this many requests for each request in flight.
        warmup_requests: Requests sent before the first level, not measured.
        budget_s: No measurement goes on past this time, warm-up included; a level cut by it isn't reported.
        request_timeout_s: A request not answered in full by then has failed.
        ramp_per_concurrency: A level's first requests, for each in flight: they fill the batch and aren't measured.
        max_requests_per_concurrency: The cap of a level's measured requests, for each in flight; None is no going on.
        requests: A level measures exactly this many requests, whatever its concurrency; None leaves it to those above.
        precision: Half the 95 % interval of the median end-to-end latency, over it, at which a level is measured well
            enough.
        arrival: `closed` keeps C requests in flight; the others send at times of their own, whatever is answered.
        rates_per_s: The levels of an open loop (`poisson`, `constant`): requests per second, all copies together,
            ascending; the start and the end of a `ramp`.
        level_s: How long a level of an open loop sends.
        max_connections: Most requests in flight of an open loop.
        max_retries: How often a request is repeated that was throttled, or whose model wasn't ready; every repetition
            is counted, and its time is part of the request's.
        stall_timeout_s: A stream that is silent for so long has failed; None waits for `request_timeout_s`.
        search: `sweep` measures every level; `adaptive` chooses the next level from what was measured.
        goal: What the search looks for: the knee, the highest concurrency within the SLO, or the most goodput.
        budget_usd: The trial ends before it costs more, at the copies' price; None is no such bound.
        workers: Processes that load; None chooses by the number of streams and of cores.
        protocol: Whose way of measuring this is, for the reader of the result.
    """

    concurrency_levels: tuple[int, ...]
    requests_per_concurrency: int
    warmup_requests: int
    budget_s: float
    request_timeout_s: float
    ramp_per_concurrency: int = 0
    max_requests_per_concurrency: int | None = None
    requests: int | None = None
    precision: float = 0.05
    arrival: Arrival = "closed"
    rates_per_s: tuple[float, ...] = ()
    level_s: float = 30.0
    max_connections: int = 512
    max_retries: int = 0
    stall_timeout_s: float | None = None
    search: Search = "sweep"
    goal: Goal = "knee"
    budget_usd: float | None = None
    workers: int | None = None
    protocol: PreparedBy = "seatrial"


def wrong_load(load: Load) -> Iterator[tuple[str, str]]:
    """Yield every impossible value as its field and what is wrong with it."""
    yield from ((field, f"{number:g} is not above 0") for field, number in _positive(load) if number <= 0)
    yield from ((field, f"{number} is below 0") for field, number in _from_zero(load) if number < 0)
    beyond = (each for each in _bounded(load) if each[2] < each[1] < inf)
    yield from ((field, f"{number:,.12g} is more than {most:,.12g}") for field, number, most in beyond)
    levels = load.concurrency_levels
    if not levels or levels[0] < 1 or not _ascends(levels):
        yield "concurrency_levels", f"{list(levels)} is not an ascending list of whole numbers from 1"
    least, most = load.requests_per_concurrency, load.max_requests_per_concurrency
    if most is not None and most < least:
        yield "max_requests_per_concurrency", f"{most} is below requests_per_concurrency {least}"
    yield from _wrong_rates(load)


def _positive(load: Load) -> Iterator[tuple[str, float]]:
    yield "requests_per_concurrency", load.requests_per_concurrency
    yield "budget_s", load.budget_s
    yield "request_timeout_s", load.request_timeout_s
    yield "precision", load.precision
    yield "level_s", load.level_s
    yield "max_connections", load.max_connections
    optional = {"requests": load.requests, "stall_timeout_s": load.stall_timeout_s, "budget_usd": load.budget_usd}
    yield from ((name, value) for name, value in {**optional, "workers": load.workers}.items() if value is not None)


def _from_zero(load: Load) -> Iterator[tuple[str, int]]:
    yield "warmup_requests", load.warmup_requests
    yield "ramp_per_concurrency", load.ramp_per_concurrency
    yield "max_retries", load.max_retries


def _bounded(load: Load) -> Iterator[tuple[str, float, float]]:
    yield "concurrency_levels", max(load.concurrency_levels, default=0), MOST_IN_FLIGHT
    yield "requests", load.requests or 0, MOST_REQUESTS
    yield "warmup_requests", load.warmup_requests, MOST_REQUESTS
    yield "rates_per_s", max(load.rates_per_s, default=0.0), MOST_REQUESTS
    yield "level_s", load.level_s, MOST_SECONDS
    yield "max_connections", load.max_connections, MOST_IN_FLIGHT
    yield "workers", load.workers or 0, MOST_WORKERS
    yield "budget_s", load.budget_s, MOST_SECONDS
    yield "request_timeout_s", load.request_timeout_s, MOST_SECONDS
    yield "stall_timeout_s", load.stall_timeout_s or 0, MOST_SECONDS


def _wrong_rates(load: Load) -> Iterator[tuple[str, str]]:
    rates = load.rates_per_s
    if load.arrival in ("closed", "replay"):
        if rates:
            yield "rates_per_s", f"a {load.arrival} loop has no rates of its own, here are {list(rates)}"
    elif load.arrival == "ramp":
        if len(rates) != len(("start", "end")) or min(rates) <= 0:
            yield "rates_per_s", f"{list(rates)} is not the start and the end of a ramp, both above 0"
    elif not rates or rates[0] <= 0 or not _ascends(rates):
        yield "rates_per_s", f"{list(rates)} is not an ascending list of rates above 0"


def _ascends(values: Sequence[float]) -> bool:
    return all(low < high for low, high in pairwise(values))
