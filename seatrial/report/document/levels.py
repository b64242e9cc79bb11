"""The measured levels: curves over the load, what each level gave, and how it was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.charts.load import is_open, load_charts
from seatrial.report.document.section import Section
from seatrial.report.values import (
    NO_DURATION,
    NO_INPUT_COUNT,
    NO_SECOND_TOKEN,
    NO_TOKEN_COUNT,
    NOT_STREAMED,
    count_cell,
    level_name,
    measured_cell,
    missing_cell,
    number_cell,
    percent,
    plain,
    seconds,
    share_cell,
    why_missing,
    with_interval,
)
from seatrial_base.table import CONCURRENCY, Cell, Column, Table
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.result import loads_words
from seatrial_load.measure.conversations import planned_cached_share
from seatrial_load.measure.lengths import lengths_of
from seatrial_load.slo.evaluate import statistic_of
from seatrial_load.trial.budget import adds_load

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.request import Statistic
    from seatrial_load.documents.result import LevelResult, SearchStep, TrialResult


SUMMARISED: tuple[Statistic, ...] = ("p50", "p95")
GOODPUT = "Goodput: successful requests that met every latency bound."
WINDOWS = (
    "Steady window: all streams busy. Whole window: from the first request to the last answer. Requests count by the "
    "share of their time in the window; ramp latencies do not count. Queueing: median TTFT above that of the lowest "
    "level, as a share."
)
SEARCHES = {
    "sweep": "The trial measured the levels of its list until more load could not change verdict or target.",
    "every_level": "The trial measured every level of its list.",
    "adaptive": "The search chose each level from earlier results",
}
GOALS = {
    "knee": "to find the knee.",
    "max_concurrency": "to find the highest concurrency within the SLO.",
    "max_goodput": "to find the most goodput.",
}


def levels_section(result: TrialResult) -> Section:
    """Return what each level gave; of none, why."""
    if not result.levels:
        wanted = "No level was measured in full" if adds_load(result.request, result.users) else "No load was asked for"
        empty = f"{wanted}: {result.stopped.because}."
        return Section(anchor="levels", heading="Levels", paragraphs=(empty,))
    return Section(
        anchor="levels",
        heading="Levels",
        paragraphs=(_reading(result),),
        tables=(summary_table(result),),
        remarks=(*_voids(result), *_misses(result), f"Stop reason of the trial: {result.stopped.because}."),
    )


def measurement_section(result: TrialResult) -> Section:
    """Return how each level was measured and what else it gave; empty without levels."""
    if not result.levels:
        return Section(anchor="measurement", heading="How each level was measured", detail=True)
    return Section(
        anchor="measurement",
        heading="How each level was measured",
        paragraphs=(f"{_chosen(result)} {GOODPUT}", WINDOWS),
        tables=(throughput_table(result), protocol_table(result), *_search_tables(result)),
        detail=True,
    )


def throughput_table(result: TrialResult) -> Table:
    """Return requests, throughput and the SLO by level."""
    columns = (
        CONCURRENCY,
        Column("requests"),
        Column("failed"),
        Column("output", "tok/s"),
        Column("input and output", "tok/s"),
        Column("succeeded", "1/s"),
        Column("goodput", "1/s"),
        Column("SLO", kind="text"),
    )
    rows = tuple(_throughput_row(level, result) for level in result.levels)
    return Table(f"Requests and throughput by level{_together(result)}", columns, rows)


def protocol_table(result: TrialResult) -> Table:
    """Return how each level was measured, and for how long."""
    opened = any(ARRIVALS[level.arrival].is_open for level in result.levels)
    cached = any(level.cached_share is not None for level in result.levels)
    share = planned_cached_share(result.request.workload)
    planned = "" if share is None else f"planned {percent(share)}"
    varied = result.request.workload.source != "synthetic" or not lengths_of(result.request.workload).are_fixed
    columns = (
        CONCURRENCY,
        *((Column("arrival", kind="text"), Column("offered", "1/s")) if opened else ()),
        Column("ramp", "requests"),
        Column("window", kind="text"),
        Column("window", "s"),
        Column("input", "tokens"),
        *((Column("input p50", "tokens"), Column("input p95", "tokens")) if varied else ()),
        *((Column("from a cache", planned),) if cached else ()),
        Column("output", "tokens"),
        *((Column("output p50", "tokens"), Column("output p95", "tokens")) if varied else ()),
        Column("parts", "per token"),
        Column("queueing"),
        Column("stop reason", kind="prose"),
    )
    rows = tuple(tuple(_protocol_row(level, opened=opened, varied=varied, cached=cached)) for level in result.levels)
    return Table("How each level was measured", columns, rows)


def summary_table(result: TrialResult) -> Table:
    """Return the few columns that fit into a pull request."""
    columns = (
        CONCURRENCY,
        Column("requests"),
        Column("failed"),
        Column("output", "tok/s"),
        Column("TTFT p50", "ms"),
        Column("TTFT p95", "ms"),
        Column("TPOT p50", "ms"),
        Column("TPOT p95", "ms"),
        Column("end to end p95", "ms"),
        Column("SLO", kind="text"),
    )
    return Table(
        f"Throughput and latency by level{_together(result)}",
        columns,
        tuple(_summary_row(level, result) for level in result.levels),
    )


def slo_cell(level: LevelResult, result: TrialResult) -> Cell:
    """Say whether a level meets the SLO; a void one says nothing of the endpoint."""
    if not level.valid:
        return Cell("○ void", tone="unknown")
    if not level.succeeded:
        return Cell("✗ none succeeded", tone="bad")
    if not result.request.objectives:
        return missing_cell("the spec sets no objective")
    return Cell("✓ met", tone="good") if level.meets_slo else Cell("✗ missed", tone="bad")


def _together(result: TrialResult) -> str:
    copies = result.request.copy_count
    return "" if copies == 1 else f", {copies} copies together"


def _reading(result: TrialResult) -> str:
    ends = " Small numbers are 95 % intervals." if any(level.output_tok_s_interval for level in result.levels) else ""
    if ARRIVALS[result.request.load.arrival].is_open:
        return f"Concurrency is the mean number of requests in flight per copy, rounded up.{ends}"
    copies = result.request.copy_count
    return (
        f"Concurrency is the number of requests in flight per copy{'' if copies == 1 else f' ({copies} copies)'}.{ends}"
    )


def _chosen(result: TrialResult) -> str:
    load = result.request.load
    if result.request.manner != "load":
        return "The levels are those that users leave of the gate: half of it, then all."
    return f"{SEARCHES[load.search]}{f' {GOALS[load.goal]}' if load.search == 'adaptive' else ''}"


def _throughput_row(level: LevelResult, result: TrialResult) -> tuple[Cell, ...]:
    no_count = why_missing(level, NO_TOKEN_COUNT)
    return (
        level_name(level),
        count_cell(level.requests),
        with_interval(share_cell(level.error_rate), level.error_rate_interval, share_cell),
        measured_cell(level.output_tok_s, no_count, level.output_tok_s_interval),
        number_cell(level.total_tok_s, why_missing(level, "the endpoint did not report both token counts")),
        number_cell(level.requests_per_s, NO_DURATION),
        number_cell(level.goodput_requests_per_s, NO_DURATION),
        slo_cell(level, result),
    )


def _protocol_row(level: LevelResult, *, opened: bool, varied: bool, cached: bool) -> Iterator[Cell]:
    yield level_name(level)
    if opened:
        yield Cell(level.arrival)
        yield number_cell(level.offered_requests_per_s, "a closed loop offers no rate")
    yield count_cell(level.ramp_requests)
    yield Cell(level.window)
    yield number_cell(level.window_s, NO_DURATION)
    prompts = (level.input_tokens_mean, level.input_tokens_p50, level.input_tokens_p95)
    answers = (level.output_tokens_mean, level.output_tokens_p50, level.output_tokens_p95)
    for number in prompts if varied else prompts[:1]:
        yield number_cell(number, why_missing(level, NO_INPUT_COUNT))
    if cached:
        share = level.cached_share
        yield missing_cell("the endpoint told no count of it") if share is None else share_cell(share)
    for number in answers if varied else answers[:1]:
        yield number_cell(number, why_missing(level, NO_TOKEN_COUNT))
    yield number_cell(level.parts_per_token, why_missing(level, NOT_STREAMED))
    queueing = level.queue_share
    yield (missing_cell("no lower level, or no stream") if queueing is None else share_cell(queueing))
    yield Cell(level.enough_because) if level.enough_because else missing_cell("not recorded")


def _summary_row(level: LevelResult, result: TrialResult) -> tuple[Cell, ...]:
    return (
        level_name(level),
        count_cell(level.requests),
        share_cell(level.error_rate),
        measured_cell(level.output_tok_s, why_missing(level, NO_TOKEN_COUNT), level.output_tok_s_interval),
        *_statistics(level, level.ttft_ms, SUMMARISED, NOT_STREAMED),
        *_statistics(level, level.tpot_ms, SUMMARISED, NO_SECOND_TOKEN),
        *_statistics(level, level.e2e_latency_ms, ("p95",), "no answer was complete"),
        slo_cell(level, result),
    )


def _statistics(
    level: LevelResult, values: Distribution | None, names: Sequence[Statistic], otherwise: str
) -> Iterator[Cell]:
    intervals = {} if values is None else values.intervals
    for name in names:
        yield measured_cell(statistic_of(values, name), why_missing(level, otherwise), intervals.get(name))


def _search_tables(result: TrialResult) -> tuple[Table, ...]:
    if not result.search:
        return ()
    durations = {level.concurrency: level.duration_s for level in result.levels}
    columns = (Column("step"), CONCURRENCY, Column("took"), Column("reason", kind="prose"))
    rows = tuple(
        tuple(_search_row(number, step, durations.get(step.concurrency)))
        for number, step in enumerate(result.search, start=1)
    )
    return (Table("Search steps in order", columns, rows),)


def _search_row(number: int, step: SearchStep, duration_s: float | None) -> Iterator[Cell]:
    yield count_cell(number)
    yield count_cell(step.concurrency)
    yield _duration(duration_s)
    yield Cell(plain(step.because))


def _duration(duration_s: float | None) -> Cell:
    return missing_cell("not recorded") if duration_s is None else Cell(seconds(duration_s))


def _voids(result: TrialResult) -> Iterator[str]:
    return (
        f"{loads_words([level]).capitalize()} is void: {level.void_because}."
        for level in result.levels
        if not level.valid
    )


def _misses(result: TrialResult) -> Iterator[str]:
    for level in result.levels:
        if level.misses and level.valid:
            missed = "; ".join(level.misses).replace(f" at {level.place}", "")
            yield f"{loads_words([level]).capitalize()} misses the SLO: {plain(missed)}."


def curves_section(result: TrialResult, plan: Plan | None) -> Section:
    """Return the charts over the load; without a level, a sentence.

    Args:
        result: The trial.
        plan: Its own plan; None when it wasn't given.
    """
    charts = load_charts(result, plan)
    nothing = "No values to draw." if result.levels else f"No level was measured: {result.stopped.because}."
    said = " ".join(_curves_reading(result)) if charts else nothing
    return Section(
        anchor="curve", heading="Latency and throughput under load", short="Charts", paragraphs=(said,), charts=charts
    )


def _curves_reading(result: TrialResult) -> Iterator[str]:
    load = "its rate in requests/s" if is_open(result) else "its concurrency per copy"
    yield f"Each point is one level, named by {load}."
    if any(level.output_tok_s_interval is not None for level in result.levels):
        yield "Error bars are 95 % intervals."
    if result.target_detector is not None:
        yield f"Knee: detector {result.target_detector}, which sets the scaling target."
    if not all(level.valid for level in result.levels):
        yield "Hollow points are void: the client was the limit."
