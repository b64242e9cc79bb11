"""The measured levels as tables: throughput, percentiles, failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.cell import Cell, count, missing, number, share
from seatrial.report.level_values import (
    NO_DURATION,
    NO_INPUT_COUNT,
    NO_SECOND_TOKEN,
    NO_TOKEN_COUNT,
    NOT_STREAMED,
    statistic_of,
    why_missing,
)
from seatrial.report.section import Section
from seatrial.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.bench.distribution import Distribution
    from seatrial.bench.request import Statistic
    from seatrial.bench.result import LevelResult, TrialResult

CONCURRENCY = Column("concurrency", "per copy")
PERCENTILES: tuple[Statistic, ...] = ("p50", "p90", "p95", "p99")
SUMMARISED: tuple[Statistic, ...] = ("p50", "p95")
LATENCY_GROUPS = ("TTFT", "TPOT", "ITL", "End to end")


def levels_section(result: TrialResult) -> Section:
    """Return every level in full, and why no further one was measured."""
    stop = f"After these levels the trial stopped: {result.stopped_because}."
    if not result.levels:
        empty = f"No level was measured in full: {result.stopped_because}."
        return Section(anchor="levels", heading="Measured levels", paragraphs=(empty,))
    return Section(
        anchor="levels",
        heading="Measured levels",
        paragraphs=(_reading(result),),
        tables=(throughput_table(result), percentile_table(result)),
        remarks=(*_misses(result), stop),
    )


def failures_section(result: TrialResult) -> Section:
    """Return the failed requests by class, each with a sample in the service's own words."""
    heading = "Failed requests"
    if not any(level.errors for level in result.levels):
        total = sum(level.requests for level in result.levels)
        calm = f"None of the {total:,} requests failed." if total else "No request was measured."
        return Section(anchor="failures", heading=heading, paragraphs=(calm,))
    return Section(anchor="failures", heading=heading, tables=(failure_table(result),))


def throughput_table(result: TrialResult) -> Table:
    """Return requests, throughput and the SLO by level."""
    copies = result.request.copy_count
    columns = (
        CONCURRENCY,
        Column("requests"),
        Column("failed"),
        Column("output", "tok/s"),
        Column("succeeded", "1/s"),
        Column("goodput", "1/s"),
        Column("input", "tokens"),
        Column("output", "tokens"),
        Column("SLO", kind="text"),
    )
    together = "" if copies == 1 else f", {copies} copies together"
    rows = tuple(_throughput_row(level, result) for level in result.levels)
    return Table(f"Requests and throughput by level{together}", columns, rows)


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


def percentile_table(result: TrialResult) -> Table:
    """Return the latency percentiles by level, ms."""
    columns = (Column(name, "ms", group) for group in LATENCY_GROUPS for name in PERCENTILES)
    rows = tuple((count(level.concurrency), *_percentile_cells(level)) for level in result.levels)
    return Table("Latency percentiles by level", (CONCURRENCY, *columns), rows)


def failure_table(result: TrialResult) -> Table:
    """Return failures by level and class."""
    columns = (
        CONCURRENCY,
        Column("class", kind="text"),
        Column("requests"),
        Column("of all"),
        Column("the first, in the service's own words", kind="prose"),
    )
    return Table("Failures by level and class", columns, tuple(_failure_rows(result)))


def slo_cell(level: LevelResult, result: TrialResult) -> Cell:
    """Say whether a level meets the SLO."""
    if not level.succeeded:
        return Cell("✗ none succeeded", tone="bad")
    if not result.request.objectives:
        return missing("the spec sets no objective")
    return Cell("✓ met", tone="good") if level.meets_slo else Cell("✗ missed", tone="bad")


def _reading(result: TrialResult) -> str:
    streams = "" if result.request.copy_count == 1 else f", times {result.request.copy_count} copies"
    return (
        f"Concurrency counts the requests in flight per copy{streams}. TTFT is the time to the first token, queueing "
        "included; TPOT the time per output token after the first, per request; ITL the gaps between token events, "
        "pooled. Goodput counts the successful requests that kept every latency bound."
    )


def _throughput_row(level: LevelResult, result: TrialResult) -> tuple[Cell, ...]:
    return (
        count(level.concurrency),
        count(level.requests),
        share(level.error_rate),
        number(level.output_tok_s, why_missing(level, NO_TOKEN_COUNT)),
        number(level.requests_per_s, NO_DURATION),
        number(level.goodput_requests_per_s, NO_DURATION),
        number(level.input_tokens_mean, why_missing(level, NO_INPUT_COUNT)),
        number(level.output_tokens_mean, why_missing(level, NO_TOKEN_COUNT)),
        slo_cell(level, result),
    )


def _summary_row(level: LevelResult, result: TrialResult) -> tuple[Cell, ...]:
    return (
        count(level.concurrency),
        count(level.requests),
        share(level.error_rate),
        number(level.output_tok_s, why_missing(level, NO_TOKEN_COUNT)),
        *(number(statistic_of(level.ttft_ms, name), why_missing(level, NOT_STREAMED)) for name in SUMMARISED),
        *(number(statistic_of(level.tpot_ms, name), why_missing(level, NO_SECOND_TOKEN)) for name in SUMMARISED),
        slo_cell(level, result),
    )


def _percentile_cells(level: LevelResult) -> Iterator[Cell]:
    measured: tuple[tuple[Distribution | None, str], ...] = (
        (level.ttft_ms, NOT_STREAMED),
        (level.tpot_ms, NO_SECOND_TOKEN),
        (level.itl_ms, "no request streamed two token events or more"),
        (level.e2e_latency_ms, "no answer was complete"),
    )
    for values, because in measured:
        for name in PERCENTILES:
            yield number(statistic_of(values, name), why_missing(level, because))


def _failure_rows(result: TrialResult) -> Iterator[tuple[Cell, ...]]:
    for level in result.levels:
        for error, failed in level.errors.items():
            yield (
                count(level.concurrency),
                Cell(error),
                count(failed),
                share(failed / level.requests),
                _sample(level, error),
            )


def _sample(level: LevelResult, error: str) -> Cell:
    first = next((text for text in level.first_errors if text.startswith(f"{error}: ")), None)
    if first is None:
        return missing("no sample was kept")
    return Cell(first.removeprefix(f"{error}: "), tone="code")


def _misses(result: TrialResult) -> Iterator[str]:
    return (f"At {level.concurrency}: {'; '.join(level.misses)}." for level in result.levels if level.misses)
