"""The load that the command line asks for, over what the spec says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from seatrial.units import S_PER_MINUTE

if TYPE_CHECKING:
    from seatrial.bench.load import Load
    from seatrial.bench.request import TrialRequest
    from seatrial.cli.bench_mistakes import Mistakes

Number = TypeVar("Number", int, float)
ArrivalChoice = Literal["poisson", "constant", "ramp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Options of the command line; what is None stays as the spec, or the default of the load, has it.

    Attributes:
        levels: Concurrency per copy, as in `1,2,4`.
        rates: Requests per second of an open loop, as in `1,2,4`; of a ramp, its start and its end.
        arrival: How an open loop times its requests.
    """

    levels: str | None = None
    search: Literal["sweep", "adaptive"] | None = None
    goal: Literal["knee", "max_concurrency", "max_goodput"] | None = None
    requests: int | None = None
    budget_minutes: float | None = None
    budget_usd: float | None = None
    request_timeout_s: float | None = None
    stall_timeout_s: float | None = None
    max_retries: int | None = None
    workers: int | None = None
    rates: str | None = None
    arrival: ArrivalChoice = "poisson"
    level_s: float | None = None
    max_connections: int | None = None
    protocol: Literal["jumpstart-2024"] | None = None


def loaded_so(request: TrialRequest, options: LoadOptions, mistakes: Mistakes) -> TrialRequest:
    """Return the trial with the load that the options ask for; a list that isn't one of numbers is a mistake."""
    levels = _levels(options.levels, mistakes)
    rates = _rates(options.rates, mistakes)
    changed = replace(request, load=_changed(request.load, options, levels, rates))
    if options.protocol is None:
        return changed
    from seatrial.bench.protocols import jumpstart_2024

    article = jumpstart_2024(changed)
    return article if levels is None else replace(article, load=replace(article.load, concurrency_levels=levels))


def _changed(load: Load, options: LoadOptions, levels: tuple[int, ...] | None, rates: tuple[float, ...] | None) -> Load:
    closed = replace(
        load,
        concurrency_levels=load.concurrency_levels if levels is None else levels,
        search=options.search or load.search,
        goal=options.goal or load.goal,
        requests=_given(options.requests, load.requests),
        budget_s=load.budget_s if options.budget_minutes is None else options.budget_minutes * S_PER_MINUTE,
        budget_usd=_given(options.budget_usd, load.budget_usd),
        request_timeout_s=load.request_timeout_s if options.request_timeout_s is None else options.request_timeout_s,
        stall_timeout_s=_given(options.stall_timeout_s, load.stall_timeout_s),
        max_retries=load.max_retries if options.max_retries is None else options.max_retries,
        workers=_given(options.workers, load.workers),
        level_s=load.level_s if options.level_s is None else options.level_s,
        max_connections=load.max_connections if options.max_connections is None else options.max_connections,
    )
    if rates is None or options.protocol is not None:
        return closed
    return replace(closed, arrival=options.arrival, rates_per_s=rates, search="sweep")


def _given(option: Number | None, otherwise: Number | None) -> Number | None:
    return otherwise if option is None else option


def _levels(text: str | None, mistakes: Mistakes) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(sorted({int(level) for level in text.split(",")}))
    except ValueError:
        mistakes.say("--levels", f"{text!r} is not a list of whole numbers as in 1,2,4")
        return None


def _rates(text: str | None, mistakes: Mistakes) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(rate) for rate in text.split(","))
    except ValueError:
        mistakes.say("--rate", f"{text!r} is not a list of numbers as in 1,2.5")
        return None
