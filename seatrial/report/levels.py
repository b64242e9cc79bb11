"""The measured levels: what each gave, how it was measured, and why it was measured at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.cell import Cell, count, measured, missing, number, seconds, share, with_interval
from seatrial.report.level_values import (
    NO_DURATION,
    NO_INPUT_COUNT,
    NO_SECOND_TOKEN,
    NO_TOKEN_COUNT,
    NOT_STREAMED,
    level_name,
    statistic_of,
    why_missing,
)
from seatrial.report.section import Section
from seatrial.report.table import CONCURRENCY, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.request import Statistic
    from seatrial.bench.result import LevelResult, TrialResult

SUMMARISED: tuple[Statistic, ...] = ("p50", "p95")
GOODPUT = "Goodput counts the successful requests that kept every latency bound."
WINDOWS = (
    "In a steady window throughput is over the time in which all streams were busy, where a request counts by the "
    "share of its time inside, one of the ramp too; a whole window is the level from its first sending to its last "
    "answer. The latencies of the ramp's requests aren't measured. Queueing is the share of the median TTFT that the "
    "lowest level's doesn't have."
)
SEARCHES = {
    "sweep": "Every level was asked for.",
    "adaptive": "The search chose each level from what it had measured",
}
GOALS = {
    "knee": "looking for the knee.",
    "max_concurrency": "looking for the highest concurrency within the SLO.",
    "max_goodput": "looking for the most goodput.",
}


def levels_section(result: TrialResult) -> Section:
    """Return every level in full, and why no further one was measured."""
    if not result.levels:
        empty = f"No level was measured in full: {result.stopped_because}."
        return Section(anchor="levels", heading="Measured levels", paragraphs=(empty,))
    stop = f"After these levels the trial stopped: {result.stopped_because}."
    return Section(
        anchor="levels",
        heading="Measured levels",
        paragraphs=(_reading(result), WINDOWS, _chosen(result)),
        tables=(throughput_table(result), protocol_table(result), *_search_tables(result)),
        remarks=(*_voids(result), *_misses(result), stop),
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
    copies = result.request.copy_count
    together = "" if copies == 1 else f", {copies} copies together"
    rows = tuple(_throughput_row(level, result) for level in result.levels)
    return Table(f"Requests and throughput by level{together}", columns, rows)


def protocol_table(result: TrialResult) -> Table:
    """Return how each level was measured, and for how long."""
    opened = any(level.arrival != "closed" for level in result.levels)
    columns = (
        CONCURRENCY,
        *((Column("arrival", kind="text"), Column("offered", "1/s")) if opened else ()),
        Column("ramp", "requests"),
        Column("window", kind="text"),
        Column("window", "s"),
        Column("input", "tokens"),
        Column("output", "tokens"),
        Column("parts", "per token"),
        Column("queueing"),
        Column("it was enough because", kind="prose"),
    )
    return Table(
        "How each level was measured", columns, tuple(tuple(_protocol_row(level, opened)) for level in result.levels)
    )


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
        Column("SLO", kind="text"),
    )
    return Table("Levels", columns, tuple(_summary_row(level, result) for level in result.levels))


def slo_cell(level: LevelResult, result: TrialResult) -> Cell:
    """Say whether a level meets the SLO; a void one says nothing of the endpoint."""
    if not level.valid:
        return Cell("○ void", tone="unknown")
    if not level.succeeded:
        return Cell("✗ none succeeded", tone="bad")
    if not result.request.objectives:
        return missing("the spec sets no objective")
    return Cell("✓ met", tone="good") if level.meets_slo else Cell("✗ missed", tone="bad")


def _reading(result: TrialResult) -> str:
    copies = result.request.copy_count
    streams = "" if copies == 1 else f", times {copies} copies"
    if result.request.load.arrival != "closed":
        return f"Concurrency is the mean in flight per copy, rounded up: requests came at times of their own. {GOODPUT}"
    return f"Concurrency counts the requests in flight per copy{streams}. {GOODPUT}"


def _chosen(result: TrialResult) -> str:
    load = result.request.load
    return f"{SEARCHES[load.search]}{'' if load.search == 'sweep' else f', {GOALS[load.goal]}'}"


def _throughput_row(level: LevelResult, result: TrialResult) -> tuple[Cell, ...]:
    no_count = why_missing(level, NO_TOKEN_COUNT)
    return (
        level_name(level),
        count(level.requests),
        with_interval(share(level.error_rate), level.error_rate_interval, share),
        measured(level.output_tok_s, no_count, level.output_tok_s_interval),
        number(level.total_tok_s, why_missing(level, "the endpoint did not tell both counts of tokens")),
        number(level.requests_per_s, NO_DURATION),
        number(level.goodput_requests_per_s, NO_DURATION),
        slo_cell(level, result),
    )


def _protocol_row(level: LevelResult, opened: bool) -> Iterator[Cell]:  # noqa: FBT001 (a column more or less)
    yield level_name(level)
    if opened:
        yield Cell(level.arrival)
        yield number(level.offered_requests_per_s, "a closed loop offers no rate")
    yield count(level.ramp_requests)
    yield Cell(level.window)
    yield number(level.window_s, NO_DURATION)
    yield number(level.input_tokens_mean, why_missing(level, NO_INPUT_COUNT))
    yield number(level.output_tokens_mean, why_missing(level, NO_TOKEN_COUNT))
    yield number(level.parts_per_token, why_missing(level, NOT_STREAMED))
    queueing = level.queue_share
    yield (
        missing("there is no lower level to compare with, or nothing streamed") if queueing is None else share(queueing)
    )
    yield Cell(level.enough_because) if level.enough_because else missing("nothing was noted")


def _summary_row(level: LevelResult, result: TrialResult) -> tuple[Cell, ...]:
    return (
        level_name(level),
        count(level.requests),
        share(level.error_rate),
        number(level.output_tok_s, why_missing(level, NO_TOKEN_COUNT)),
        *(number(statistic_of(level.ttft_ms, name), why_missing(level, NOT_STREAMED)) for name in SUMMARISED),
        *(number(statistic_of(level.tpot_ms, name), why_missing(level, NO_SECOND_TOKEN)) for name in SUMMARISED),
        slo_cell(level, result),
    )


def _search_tables(result: TrialResult) -> tuple[Table, ...]:
    if not result.search:
        return ()
    durations = {level.concurrency: level.duration_s for level in result.levels}
    columns = (Column("step"), CONCURRENCY, Column("took"), Column("because", kind="prose"))
    rows = tuple(
        (count(step), count(one.concurrency), _duration(durations.get(one.concurrency)), Cell(one.because))
        for step, one in enumerate(result.search, start=1)
    )
    return (Table("Why each level was measured, in order", columns, rows),)


def _duration(duration_s: float | None) -> Cell:
    return missing("it was not noted") if duration_s is None else Cell(seconds(duration_s))


def _voids(result: TrialResult) -> Iterator[str]:
    return (f"Void at {level.concurrency}: {level.void_because}." for level in result.levels if not level.valid)


def _misses(result: TrialResult) -> Iterator[str]:
    return (f"At {level.concurrency}: {'; '.join(level.misses)}." for level in result.levels if level.misses)
