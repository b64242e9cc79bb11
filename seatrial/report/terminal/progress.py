"""A running trial on the terminal: the levels so far, the one that runs, time left and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.tables import UNKNOWN, add_row, short, table
from seatrial_base.units import S_PER_HOUR, S_PER_MINUTE
from seatrial_load.trial.budget import budget_s
from seatrial_load.trial.events import LevelAdvanced, LevelEnded, LevelStarted, Told

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial_load.measure.distribution import Distribution
    from seatrial_load.model.request import TrialRequest
    from seatrial_load.model.result import LevelResult
    from seatrial_load.trial.events import TrialEvent

_NUMBERS = ("C", "tok/s", "TTFT p95\nms", "TPOT p95\nms", "E2E p95\nms", "answered")


@dataclass(slots=True)
class TrialScreen:
    """What is shown of a running trial; `watch` takes the trial's events.

    Attributes:
        request: What is measured.
        levels: The levels that ended.
        started: The level that runs; None between two levels.
        ended: Requests of it that ended, as far as it was told.
        said: What else happened last.
        elapsed_s: Time of the trial so far.
    """

    request: TrialRequest
    levels: list[LevelResult] = field(default_factory=list)
    started: LevelStarted | None = None
    ended: int = 0
    said: str = ""
    elapsed_s: float = 0.0

    def watch(self, event: TrialEvent) -> None:
        """Take an event."""
        self.elapsed_s = event.elapsed_s
        match event:
            case LevelStarted():
                self.started, self.ended, self.said = event, 0, ""
            case LevelAdvanced(ended=ended):
                self.ended = ended
            case LevelEnded(level=level):
                self.levels.append(level)
                self.started = None
            case Told(text=text):
                self.said = text

    def __rich__(self) -> RenderableType:
        rows = table(numbers=_NUMBERS, words=())
        rows.add_column("", justify="left", overflow="fold")
        for level in self.levels:
            add_row(rows, *level_cells(level, has_slo=bool(self.request.objectives)))
        return Group(rows, Text(self._running(), style="bold"), Text(self._spent(), style="dim"))

    def _running(self) -> str:
        if self.started is None:
            return self.said
        load = f"concurrency {self.started.concurrency} per copy"
        if self.started.rate_per_s is not None:
            load = f"{self.started.rate_per_s:g} requests/s"
        told = f", {self.ended} of at most {self.started.requests} requests" if self.ended else ""
        return f"{load}{told}: {self.started.because}"

    def _spent(self) -> str:
        left_s = max(0.0, budget_s(self.request) - self.elapsed_s)
        return f"elapsed {minutes(self.elapsed_s)}, at most {minutes(left_s)} left{self._cost()}"

    def _cost(self) -> str:
        price = self.request.usd_per_hour_per_copy
        if price is None:
            return ""
        usd = price * self.request.copy_count * self.elapsed_s / S_PER_HOUR
        return f", cost so far {usd:.2f} USD"


def level_cells(level: LevelResult, *, has_slo: bool = True) -> tuple[str, ...]:
    """Return a level as a row: concurrency, throughput, three latencies, answers, and what is to be said of it."""
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
    load = f"concurrency {load}" if level.offered_requests_per_s is None else f"{load.removesuffix('/s')} requests/s"
    told = f"{answered} succeeded" + (f": {remark}" if remark else "")
    if not level.succeeded:
        return f"{load}: {told}"
    return f"{load}: {speed} tok/s, TTFT p95 {ttft} ms, TPOT p95 {tpot} ms, E2E p95 {e2e} ms, {told}"


def minutes(seconds: float) -> str:
    """Write a time as minutes and seconds, below a minute as seconds: `2 s`, `1:05 min`."""
    whole = round(seconds)
    if whole < S_PER_MINUTE:
        return f"{whole} s"
    return f"{whole // int(S_PER_MINUTE)}:{whole % int(S_PER_MINUTE):02d} min"


def _p95(measured: Distribution | None) -> str:
    return UNKNOWN if measured is None else short(measured.p95)


def _remark(level: LevelResult, *, has_slo: bool) -> str:
    if level.void is not None:
        return f"void: {level.void.because}"
    repeated = sum(level.retried.values())
    if level.meets_slo:
        judged = "meets the SLO" if has_slo else ""
    else:
        judged = "; ".join(level.misses) or "no request succeeded"
    return "; ".join(part for part in (judged, f"{repeated} retries" if repeated else "") if part)
