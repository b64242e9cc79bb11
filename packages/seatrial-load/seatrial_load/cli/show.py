"""A trial's output without colours: a line for each level, then the levels and the verdict."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial_base.table import aligned_lines, number_columns, table_of, text_columns
from seatrial_base.terminal import show_text
from seatrial_base.units import UNKNOWN, short, usd, whole_or_tenths
from seatrial_load.documents.progress import LevelEnded, LevelStarted, TrialMessage
from seatrial_load.documents.result import loads_words
from seatrial_load.metrics.counts import unmeasured_lines
from seatrial_load.metrics.sent import (
    cache_lines,
    convoy_lines,
    overload_lines,
    random_arrivals_lines,
    sent_lines,
    session_lines,
)
from seatrial_load.slo.verdict import doubt_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial_load.documents.distribution import Distribution
    from seatrial_load.documents.progress import TrialEvent, Watch
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import LevelResult, TrialResult

LEVEL_NUMBERS = ("C", "tok/s", "TTFT p95\nms", "TPOT p95\nms", "E2E p95\nms", "answered")


def knee_line(result: TrialResult) -> str:
    """Return the knee that sets the scaling target with its detector, else the first one."""
    if result.request.manner != "load":
        return "knee: none was sought"
    named = (each for each in result.knees if each.detector != "slo" or result.request.objectives)
    knee = result.knee or next((each for each in named if each.concurrency is not None), None)
    if knee is None or knee.concurrency is None:
        return "knee: none found"
    return f"knee: {whole_or_tenths(knee.concurrency)} concurrent requests per copy ({knee.detector})"


def fact_lines(result: TrialResult) -> Iterator[str]:
    """Return what was sent, the users' load, the knee, the scaling target and the cost."""
    yield from sent_lines(result)
    yield from cache_lines(result)
    yield from convoy_lines(result.levels)
    yield from random_arrivals_lines(result)
    yield from session_lines(result)
    if result.users is not None:
        yield f"users: {result.users.because}"
    yield knee_line(result)
    yield from overload_lines(result)
    yield f"scaling target: {result.target_because}"
    if result.usd_per_million_output_tokens is not None:
        yield f"cost: {usd(result.usd_per_million_output_tokens)} per million output tokens"


def level_cells(level: LevelResult, *, has_slo: bool = True) -> tuple[str, ...]:
    """Return a level as a row: concurrency, throughput, three latencies, answers, and a remark."""
    rate = level.offered_requests_per_s
    return (
        str(level.concurrency) if rate is None else f"{short(rate)}/s",
        short(level.output_tok_s),
        _p95(level.ttft_ms),
        _p95(level.tpot_ms),
        _p95(level.e2e_latency_ms),
        f"{level.succeeded}/{level.requests}",
        _remark(level, has_slo=has_slo),
    )


def level_line(level: LevelResult, *, has_slo: bool = True) -> str:
    """Return a level as one line of words, where there is no table."""
    load, speed, ttft, tpot, e2e, answered, remark = level_cells(level, has_slo=has_slo)
    load = f"{load.removesuffix('/s')} requests/s" if level.is_open else f"concurrency {load}"
    outcome = f"{answered} succeeded" + (f": {remark}" if remark else "")
    if not level.succeeded:
        return f"{load}: {outcome}"
    return f"{load}: {speed} tok/s, TTFT p95 {ttft} ms, TPOT p95 {tpot} ms, E2E p95 {e2e} ms, {outcome}"


def _p95(measured: Distribution | None) -> str:
    return UNKNOWN if measured is None else short(measured.p95)


def _remark(level: LevelResult, *, has_slo: bool) -> str:
    if level.mark:
        return f"{level.mark}: {level.invalid_because}"
    repeated = sum(level.retried.values())
    if level.meets_slo:
        judged = "meets the SLO" if has_slo else ""
    else:
        judged = "; ".join(level.misses) or "no request succeeded"
    return "; ".join(part for part in (judged, f"{repeated} retries" if repeated else "") if part)


@contextmanager
def levels_noted(watch: Watch) -> Iterator[Watch]:
    """Yield a watch that calls `watch`; a user who interrupts the trial reads which levels are over."""
    levels: list[LevelResult] = []

    def note_and_watch(event: TrialEvent) -> None:
        if isinstance(event, LevelEnded):
            levels.append(event.level)
        watch(event)

    try:
        yield note_and_watch
    except KeyboardInterrupt:
        over = f"interrupted; measured levels: {loads_words(levels)}"
        over = over if levels else "interrupted before a level was measured"
        show_text(f"the trial is incomplete and has no verdict; {over}\n")
        raise


def line_watch(request: TrialRequest) -> Watch:
    """Return a watch that writes a line for each level and each message."""

    def watch(event: TrialEvent) -> None:
        match event:
            case LevelStarted() if request.load.search == "adaptive":
                show_text(f"next: concurrency {event.concurrency}: {event.because}\n")
            case LevelEnded(level=level):
                show_text(f"{level_line(level, has_slo=bool(request.objectives))}\n")
            case TrialMessage(text=text):
                show_text(f"{text}\n")
            case _:
                pass

    return watch


def watched_lines(request: TrialRequest, run: Callable[[Watch], TrialResult]) -> TrialResult:
    """Run a trial and show a line for each level."""
    with levels_noted(line_watch(request)) as watch:
        return run(watch)


def result_lines(result: TrialResult) -> Iterator[str]:
    """Return a trial's levels as a table, its verdict with every check, its knee and its costs."""
    cells = (level_cells(level, has_slo=bool(result.request.objectives)) for level in result.levels)
    columns = (*number_columns(*(name.replace("\n", ", ") for name in LEVEL_NUMBERS)), *text_columns(""))
    yield from aligned_lines(table_of(columns, cells))
    yield f"verdict: {result.verdict.status}: {result.verdict.because}"
    yield from doubt_lines(result)
    yield from (f"  {check.sentence}" for check in result.verdict.checks)
    yield from fact_lines(result)
    if result.comparison is not None:
        yield f"last release: {result.comparison.status}: {result.comparison.because}"
    yield from unmeasured_lines(result.unmeasured)
    yield f"stopped: {result.stopped.because}"


def doubt_lines(result: TrialResult) -> Iterator[str]:
    """Return the doubts of the answers."""
    return (f"doubt: {doubt}" for doubt in doubt_texts(result))
