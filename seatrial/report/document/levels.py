"""The measured levels: curves over the load and over time, throughput, latencies and failed requests of each.

A latency has a chart and a table, with the 95 % interval of what has one; a class of failures, those that were repeated
too, a sample in the service's own words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.report.charts import Axis, Chart, ChartPoint, Mark, Series, copies_words, is_open, load_charts
from seatrial.report.document.section import Section
from seatrial.report.values import (
    NO_DURATION,
    NO_INPUT_COUNT,
    NO_SECOND_TOKEN,
    NO_TOKEN_COUNT,
    NOT_STREAMED,
    count_cell,
    drawn,
    drawn_of,
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
from seatrial_base.units import digits
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.request import replays_sessions
from seatrial_load.documents.result import loads_words
from seatrial_load.measure.interval import percentile
from seatrial_load.measure.lengths import lengths_of, planned_cached_share
from seatrial_load.metrics.histogram import Histogram
from seatrial_load.metrics.sent import convoy_lines, session_lines, start_words
from seatrial_load.slo.evaluate import statistic_of
from seatrial_load.trial.budget import adds_load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.request import Load, Statistic
    from seatrial_load.documents.result import LevelResult, SearchStep, Timeline, TrialResult, Unmeasured

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
STATISTICS = ("mean", "p50", "p90", "p95", "p99", "max")
READING = (
    "TTFT: from sending to the first token, queueing included. TPOT: time per output token after the first, per "
    "request. ITL: gaps between token events, pooled. ms per token: end-to-end latency by output tokens."
)
INTERVALS = "Small numbers are 95 % intervals. With few requests, a high percentile is close to the maximum."
US_PER_MS = 1000
PERCENTS = (0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 92.5, 95, 97.5, 99, 99.5, 99.9, 100)
DRAWN = (
    ("ttft_ms", "Distribution of TTFT"),
    ("tpot_ms", "Distribution of TPOT"),
    ("e2e_latency_ms", "Distribution of end-to-end latency"),
)
IN_THE_RAMP = "The error rate does not include failures in the ramp."
OUTSIDE = (
    "Requests outside of measured levels: the first one, warm-up, and levels cut short. Unanswered requests were in "
    "flight when a level was cut."
)
REPEATED = "A retried request fails only if every attempt fails. Its latency includes every attempt."
TIME_READING = (
    "Time starts with the first request of each level, ramp included. Tokens are spread evenly from first to last "
    "token. TTFT is shown at the time of sending."
)


def levels_section(result: TrialResult) -> Section:
    """Return the results of each level; of none, why."""
    if not result.levels:
        wanted = "No level was measured in full" if adds_load(result.request, result.users) else "No load was requested"
        empty = f"{wanted}: {result.stopped.because}."
        return Section(anchor="levels", heading="Levels", paragraphs=(empty,))
    return Section(
        anchor="levels",
        heading="Levels",
        paragraphs=(_reading(result),),
        tables=(summary_table(result),),
        remarks=(
            *(
                f"{loads_words([level]).capitalize()} is {level.mark}: {level.invalid_because}."
                for level in result.levels
                if not level.valid
            ),
            *(
                f"{loads_words([level]).capitalize()} misses the SLO: "
                f"{plain('; '.join(level.misses).replace(f' at {level.place}', ''))}."
                for level in result.levels
                if level.misses and level.valid
            ),
            f"Stop reason of the trial: {result.stopped.because}.",
        ),
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
    no_total = "the endpoint did not report both token counts"
    rows = tuple(
        (
            level_name(level),
            count_cell(level.requests),
            with_interval(share_cell(level.error_rate), level.error_rate_interval, share_cell),
            measured_cell(level.output_tok_s, why_missing(level, NO_TOKEN_COUNT), level.output_tok_s_interval),
            number_cell(level.total_tok_s, why_missing(level, no_total)),
            number_cell(level.requests_per_s, NO_DURATION),
            number_cell(level.goodput_requests_per_s, NO_DURATION),
            slo_cell(level, result),
        )
        for level in result.levels
    )
    return Table(f"Requests and throughput by level{copies_words(result)}", columns, rows)


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
        Column("start", kind="text"),
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
    rows = tuple(
        tuple(_protocol_row(level, result.request.load, opened=opened, varied=varied, cached=cached))
        for level in result.levels
    )
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
        f"Throughput and latency by level{copies_words(result)}",
        columns,
        tuple(
            (
                level_name(level),
                count_cell(level.requests),
                share_cell(level.error_rate),
                measured_cell(level.output_tok_s, why_missing(level, NO_TOKEN_COUNT), level.output_tok_s_interval),
                *_statistics(level, level.ttft_ms, SUMMARISED, NOT_STREAMED),
                *_statistics(level, level.tpot_ms, SUMMARISED, NO_SECOND_TOKEN),
                *_statistics(level, level.e2e_latency_ms, ("p95",), "no answer was complete"),
                slo_cell(level, result),
            )
            for level in result.levels
        ),
    )


def slo_cell(level: LevelResult, result: TrialResult) -> Cell:
    """Return whether a level meets the SLO; a void one proves nothing of the endpoint."""
    if not level.valid:
        return Cell(f"○ {level.mark}", tone="unknown")
    if not level.succeeded:
        return Cell("✗ none succeeded", tone="bad")
    if not result.request.objectives:
        return missing_cell("the spec sets no objective")
    return Cell("✓ met", tone="good") if level.meets_slo else Cell("✗ missed", tone="bad")


def _reading(result: TrialResult) -> str:
    ends = " Small numbers are 95 % intervals." if any(level.output_tok_s_interval for level in result.levels) else ""
    is_open = ARRIVALS[result.request.load.arrival].is_open
    lines = [*(() if is_open else convoy_lines(result.levels)), *session_lines(result)]
    sentences = "".join(f" {line[:1].upper()}{line[1:]}." for line in lines)
    if is_open:
        return f"Concurrency is the mean number of requests in flight per copy, rounded up.{ends}{sentences}"
    copies = result.request.copy_count
    of_all = "" if copies == 1 else f" ({copies} copies)"
    what = "sessions that go on at once" if replays_sessions(result.request.workload) else "requests in flight"
    return f"Concurrency is the number of {what} per copy{of_all}.{ends}{sentences}"


def _chosen(result: TrialResult) -> str:
    load = result.request.load
    if result.request.manner != "load":
        return "The levels are those that users leave of the gate: half of it, then all."
    return f"{SEARCHES[load.search]}{f' {GOALS[load.goal]}' if load.search == 'adaptive' else ''}"


def _protocol_row(level: LevelResult, load: Load, *, opened: bool, varied: bool, cached: bool) -> Iterator[Cell]:
    yield level_name(level)
    if opened:
        yield Cell(level.arrival)
        yield number_cell(level.offered_requests_per_s, "a closed loop offers no rate")
    yield Cell(start_words(level, load))
    yield count_cell(level.ramp_requests)
    yield Cell(level.window)
    yield number_cell(level.window_s, NO_DURATION)
    prompts = (level.input_tokens_mean, level.input_tokens_p50, level.input_tokens_p95)
    outputs = (level.output_tokens_mean, level.output_tokens_p50, level.output_tokens_p95)
    for number in prompts if varied else prompts[:1]:
        yield number_cell(number, why_missing(level, NO_INPUT_COUNT))
    if cached:
        share = level.cached_share
        yield missing_cell("the endpoint reported no count of it") if share is None else share_cell(share)
    for number in outputs if varied else outputs[:1]:
        yield number_cell(number, why_missing(level, NO_TOKEN_COUNT))
    yield number_cell(level.parts_per_token, why_missing(level, NOT_STREAMED))
    queueing = level.queue_share
    yield (missing_cell("no lower level, or no stream") if queueing is None else share_cell(queueing))
    yield Cell(level.enough_because) if level.enough_because else missing_cell("not recorded")


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
    yield missing_cell("not recorded") if duration_s is None else Cell(seconds(duration_s))
    yield Cell(plain(step.because))


def curves_section(result: TrialResult, plan: Plan | None) -> Section:
    """Return the charts over the load; without a level, a sentence."""
    charts = load_charts(result, plan)
    nothing = "No values to draw." if result.levels else f"No level was measured: {result.stopped.because}."
    reading = " ".join(_curves_reading(result)) if charts else nothing
    return Section(
        anchor="curve",
        heading="Latency and throughput under load",
        short="Charts",
        paragraphs=(reading,),
        charts=charts,
    )


def _curves_reading(result: TrialResult) -> Iterator[str]:
    load = "its rate in requests/s" if is_open(result) else "its concurrency per copy"
    yield f"Each point is one level, named by {load}."
    if any(level.output_tok_s_interval is not None for level in result.levels):
        yield "Error bars are 95 % intervals."
    if result.target_detector is not None:
        yield f"Knee: detector {result.target_detector}, which sets the scaling target."
    marks = {level.mark for level in result.levels}
    if "void" in marks:
        yield "Hollow points are void: the client was the limit."
    if "cut" in marks:
        yield "Hollow points are cut: the level ended early."


@dataclass(frozen=True, slots=True)
class Latency:
    """One latency of a level.

    Attributes:
        field: Its field in a level's result.
        otherwise: Why it may be missing though requests succeeded.
    """

    field: str
    title: str
    otherwise: str

    def of(self, level: LevelResult) -> Distribution | None:
        """Return its distribution; None when it wasn't measured."""
        values: Distribution | None = getattr(level, self.field)
        return values


LATENCIES = (
    Latency("ttft_ms", "Time to first token (TTFT), ms", NOT_STREAMED),
    Latency("tpot_ms", "Time per output token (TPOT), ms", NO_SECOND_TOKEN),
    Latency("itl_ms", "Gaps between token events (ITL), ms", "no request streamed two token events or more"),
    Latency("e2e_latency_ms", "End-to-end latency, ms", "no answer was complete"),
    Latency("ms_per_token", "End-to-end latency per output token, ms", NO_TOKEN_COUNT),
)


def latencies_section(result: TrialResult) -> Section:
    """Return every latency's distribution and percentiles by level; empty without levels."""
    heading = "Latency distributions and percentiles"
    if not result.levels:
        return Section(anchor="latencies", heading=heading, detail=True)
    return Section(
        anchor="latencies",
        heading=heading,
        paragraphs=(READING, INTERVALS)
        if any(
            values.intervals
            for level in result.levels
            for latency in LATENCIES
            if (values := latency.of(level)) is not None
        )
        else (READING,),
        charts=distribution_charts(result),
        tables=tuple(latency_table(result, latency) for latency in LATENCIES),
        detail=True,
    )


def latency_table(result: TrialResult, latency: Latency) -> Table:
    """Return one latency by level: how many measurements, mean, percentiles, maximum."""
    columns = (CONCURRENCY, Column("measured"), *(Column(name) for name in STATISTICS))
    return Table(latency.title, columns, tuple(tuple(_cells(level, latency)) for level in result.levels))


def _cells(level: LevelResult, latency: Latency) -> Iterator[Cell]:
    values, because = latency.of(level), why_missing(level, latency.otherwise)
    yield level_name(level)
    yield missing_cell(because) if values is None else count_cell(values.count)
    for name in STATISTICS:
        value: float | None = None if values is None else getattr(values, name)
        yield measured_cell(value, because, None if values is None else values.intervals.get(name))


def distribution_charts(result: TrialResult) -> tuple[Chart, ...]:
    """Return one chart for each latency of which a level kept its histogram."""
    return tuple(chart for field, title in DRAWN if (chart := _chart(result, field, title)).series)


def _chart(result: TrialResult, field: str, title: str) -> Chart:
    kept = tuple(_kept(result, field))
    series = tuple(_series(drawn(kept)))
    highest = series[-1].name if series else ""
    return Chart(
        anchor=f"cdf-{field.replace('_', '-')}",
        title=title,
        description=f"Share of requests up to a latency, one curve per level up to {highest}. The table below has the "
        f"percentiles. {drawn_of(len(kept))}".rstrip(),
        x=Axis(label="ms (log)", scale="log10"),
        y=Axis(label="share of requests", percent=True),
        series=series,
    )


def _kept(result: TrialResult, field: str) -> Iterator[tuple[str, float, Distribution]]:
    """Yield name and shade of each level that kept its histogram."""
    last = max(len(result.levels) - 1, 1)
    for index, level in enumerate(result.levels):
        values: Distribution | None = getattr(level, field)
        if values is not None and values.histogram:
            void = f" ({level.mark})" if level.mark else ""
            yield (
                (f"{level.offered_load:g}/s{void}" if level.is_open else f"concurrency {level.concurrency}{void}"),
                index / last,
                values,
            )


def _series(kept: Sequence[tuple[str, float, Distribution]]) -> Iterator[Series]:
    for name, shade, values in kept:
        points: list[ChartPoint] = []
        ranked = Histogram.decode(values.histogram).ranked()
        for rank in PERCENTS:
            latency_ms = percentile(ranked, rank) / US_PER_MS
            if latency_ms > 0:  # a logarithmic axis has no zero
                hover = f"{name}\n{rank:g} % of requests ≤ {digits(latency_ms)} ms"
                points.append(ChartPoint(x=latency_ms, y=rank / 100, hover=hover))
        yield Series(name=name, points=tuple(points), shade=shade, marked=False)


def failures_section(result: TrialResult) -> Section:
    """Return the failures and repetitions, those outside of the levels too; empty when there are none."""
    outside = (unmeasured_table(result),) if has_unmeasured_failures(result) else ()
    where = (OUTSIDE,) if outside else ()
    if not has_failures(result):
        return Section(anchor="failures", heading="Failed requests", paragraphs=where, tables=outside, detail=True)
    repeated = (REPEATED,) if any(level.retried for level in result.levels) else ()
    ramp = (IN_THE_RAMP,) if _has_ramp_errors(result) else ()
    return Section(
        anchor="failures",
        heading="Failed requests",
        paragraphs=(*repeated, *ramp, *where),
        tables=(failure_table(result), *outside),
        detail=True,
    )


def has_failures(result: TrialResult) -> bool:
    """Return whether a request failed or was repeated."""
    return any(level.errors or level.retried or level.ramp_errors for level in result.levels)


def has_unmeasured_failures(result: TrialResult) -> bool:
    """Return whether the first request, one of the warm-up or one of a level that was cut failed."""
    return any(seen.errors for seen in result.unmeasured)


def unmeasured_table(result: TrialResult) -> Table:
    """Return the failures of requests that no level measured, by class."""
    columns = (
        Column("where", kind="text"),
        Column("class", kind="text"),
        Column("failed"),
        Column("of all"),
        Column("the longest wait", "s"),
        Column("first message of the service", kind="prose"),
    )
    unmeasured_rows: list[tuple[Cell, ...]] = []
    for seen in result.unmeasured:
        for error, failed in seen.errors.items():
            unmeasured_rows.append(
                (
                    Cell(seen.place),
                    Cell(error),
                    count_cell(failed),
                    count_cell(seen.sent),
                    number_cell(seen.longest_wait_s, "not recorded"),
                    _sample(seen, error),
                )
            )
    return Table("Failures outside of measured levels", columns, tuple(unmeasured_rows))


def _has_ramp_errors(result: TrialResult) -> bool:
    return any(level.ramp_errors for level in result.levels)


def failure_table(result: TrialResult) -> Table:
    """Return failures by level and class."""
    columns = (
        CONCURRENCY,
        Column("class", kind="text"),
        Column("failed"),
        Column("of all"),
        Column("repeated"),
        *((Column("in the ramp"),) if _has_ramp_errors(result) else ()),
        Column("first message of the service", kind="prose"),
    )
    rows: list[tuple[Cell, ...]] = []
    ramp = _has_ramp_errors(result)
    for level in result.levels:
        for error in dict.fromkeys((*level.errors, *level.retried, *level.ramp_errors)):
            failed = level.errors.get(error, 0)
            rows.append(
                (
                    level_name(level),
                    Cell(error),
                    count_cell(failed),
                    share_cell(failed / level.requests),
                    count_cell(level.retried.get(error, 0)),
                    *((count_cell(level.ramp_errors.get(error, 0)),) if ramp else ()),
                    _sample(level, error),
                )
            )
    return Table("Failures by level and class", columns, tuple(rows))


def _sample(seen: LevelResult | Unmeasured, error: str) -> Cell:
    first = next((text for text in seen.first_errors if text.startswith(f"{error}: ")), None)
    if first is None:
        return missing_cell("no sample was kept")
    return Cell(first.removeprefix(f"{error}: "), tone="code")


def time_section(result: TrialResult) -> Section:
    """Return throughput, TTFT and requests in flight over time; empty when no level kept a timeline."""
    timed = timed_levels(result)
    return Section(
        anchor="time",
        heading="Throughput, TTFT and requests in flight over time",
        paragraphs=(TIME_READING,) if timed else (),
        charts=time_charts(result),
        tables=(_time_table(timed),) if timed else (),
        detail=True,
    )


def _time_table(timed: Sequence[tuple[LevelResult, Timeline]]) -> Table:
    columns = (
        CONCURRENCY,
        Column("took", "s"),
        Column("one bin", "s"),
        *(Column(name, "tok/s", "Output throughput") for name in ("mean", "lowest", "highest")),
        *(Column(name, group="In flight") for name in ("mean", "highest")),
        *(Column(name, "ms", "TTFT by bin") for name in ("lowest", "highest")),
    )
    return Table(
        "The trial over time, by level in the order of measurement",
        columns,
        tuple(tuple(_time_row(*one)) for one in timed),
    )


def _time_row(level: LevelResult, timeline: Timeline) -> Iterator[Cell]:
    tok_s = _tok_s(timeline)
    ttft_ms = [value for value in timeline.ttft_ms if value is not None]
    bins = len(timeline.in_flight)
    yield level_name(level)
    yield missing_cell("not recorded") if level.duration_s is None else Cell(seconds(level.duration_s))
    yield number_cell(timeline.bin_s, "")
    yield from (number_cell(value, "") for value in (math.fsum(tok_s) / bins, min(tok_s), max(tok_s)))
    yield from (number_cell(value, "") for value in (math.fsum(timeline.in_flight) / bins, max(timeline.in_flight)))
    because = "no request streamed a token"
    yield from (number_cell(value, because) for value in (min(ttft_ms, default=None), max(ttft_ms, default=None)))


@dataclass(frozen=True, slots=True)
class TimelineQuantity:
    """One value of every bin, with anchor and title of its chart."""

    anchor: str
    title: str
    unit: str
    values: Callable[[Timeline], tuple[float | None, ...]]


def _tok_s(timeline: Timeline) -> tuple[float, ...]:
    return tuple(tokens / timeline.bin_s for tokens in timeline.output_tokens)


TIMELINE_QUANTITIES = (
    TimelineQuantity("time-throughput", "Output throughput over time", "tok/s", _tok_s),
    TimelineQuantity("time-ttft", "TTFT over time, mean by time of sending", "ms", lambda timeline: timeline.ttft_ms),
    TimelineQuantity("time-in-flight", "Requests in flight over time", "requests", lambda timeline: timeline.in_flight),
)


def timed_levels(result: TrialResult) -> tuple[tuple[LevelResult, Timeline], ...]:
    """Return the levels that kept a timeline, in the order of their measurement."""
    order = {step.concurrency: index for index, step in enumerate(result.search)}
    levels = sorted(result.levels, key=lambda level: order.get(level.concurrency, len(order)))
    return tuple((level, level.timeline) for level in levels if level.timeline is not None)


def time_charts(result: TrialResult) -> tuple[Chart, ...]:
    """Return the charts over time; none when no level kept a timeline."""
    charts = (_time_chart(result, quantity) for quantity in TIMELINE_QUANTITIES) if timed_levels(result) else ()
    return tuple(chart for chart in charts if any(series.known for series in chart.series))


def _time_chart(result: TrialResult, quantity: TimelineQuantity) -> Chart:
    series: list[Series] = []
    marks: list[Mark] = []
    start_s = 0.0
    timed = timed_levels(result)
    for level, timeline in drawn(timed):
        name = f"{loads_words([level])}{f' ({level.mark})' if level.mark else ''}"
        marks.append(Mark(start_s, str(level.concurrency), "level"))
        points = tuple(_time_points(timeline, quantity, start_s, name))
        series.append(Series(name=name, points=points, marked=False, filled=True))
        # Levels follow each other without the pauses between them, which hold no load.
        start_s += timeline.bin_s * len(timeline.in_flight)
    return Chart(
        anchor=quantity.anchor,
        title=quantity.title,
        description=f"{quantity.title}, {len(series)} levels in sequence. The table below has the totals. "
        f"{drawn_of(len(timed))}".rstrip(),
        x=Axis(label="seconds of load, without pauses between levels"),
        y=Axis(label=quantity.unit),
        series=tuple(series),
        marks=tuple(marks),
        size="low",
    )


def _time_points(timeline: Timeline, quantity: TimelineQuantity, start_s: float, name: str) -> Iterator[ChartPoint]:
    for index, value in enumerate(quantity.values(timeline)):
        at_s = (index + 0.5) * timeline.bin_s
        shown = "no request was sent" if value is None else f"{digits(value)} {quantity.unit}"
        yield ChartPoint(x=round(start_s + at_s, 4), y=value, hover=f"{name}, second {digits(at_s)}\n{shown}")
