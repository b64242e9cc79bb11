"""What `seatrial bench` shows while a trial runs, and what it says of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from seatrial_base.terminal import console, show, show_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial.cli.support.bench_files import Unwritten
    from seatrial.documents.plan import Plan
    from seatrial_load.model.request import TrialRequest
    from seatrial_load.model.result import TrialResult
    from seatrial_load.trial.events import TrialEvent, Watch


FAILED = 1


def watched(request: TrialRequest, run: Callable[[Watch], TrialResult]) -> TrialResult:
    """Run a trial and show it: a live table on a terminal, a line for each level elsewhere."""
    from rich.live import Live

    from seatrial.report.terminal.trial import TrialScreen

    measured = _Measured()
    shown_on, screen = console(), TrialScreen(request)
    try:
        if not shown_on.is_terminal:
            return run(_both(measured.watch, _teller(request)))
        with Live(screen, console=shown_on, auto_refresh=False, transient=False) as live:  # a thread would delay us

            def watch(event: TrialEvent) -> None:
                screen.watch(event)
                live.refresh()

            return run(_both(measured.watch, watch))
    except KeyboardInterrupt:
        typer.echo(f"the trial is incomplete and has no verdict; {measured.told()}")
        raise


class _Measured:
    """The levels that are over, for the user who ends a trial before it is."""

    def __init__(self) -> None:
        self._levels: list[str] = []

    def watch(self, event: TrialEvent) -> None:
        """Take note of a level that ended."""
        from seatrial_load.trial.events import LevelEnded

        if isinstance(event, LevelEnded):
            self._levels.append(f"{event.level.concurrency}")

    def told(self) -> str:
        """Say which levels are over."""
        return (
            f"interrupted; measured levels: concurrency {', '.join(self._levels)}"
            if self._levels
            else ("interrupted before a level was measured")
        )


def _both(first: Watch, second: Watch) -> Watch:
    def watch(event: TrialEvent) -> None:
        first(event)
        second(event)

    return watch


def _teller(request: TrialRequest) -> Watch:
    from seatrial.report.terminal.trial import level_line
    from seatrial_load.trial.events import LevelEnded, LevelStarted, Told

    def tell(event: TrialEvent) -> None:
        match event:
            case LevelStarted() if request.load.search != "sweep":
                typer.echo(f"next: concurrency {event.concurrency}: {event.because}")
            case LevelEnded(level=level):
                typer.echo(level_line(level, has_slo=bool(request.objectives)))
            case Told(text=text):
                typer.echo(text)
            case _:
                pass

    return tell


def show_conclusion(result: TrialResult, plan: Plan | None, output: Path | None, unwritten: Unwritten) -> None:
    """Say what the trial found, write the report where one is asked for, and exit 1 unless the trial was passed.

    Raises:
        BenchError: SEA506, the report or the records could not be written; the verdict was told before.
    """
    from seatrial.report.document.jumpstart import is_jumpstart
    from seatrial.report.terminal.trial import conclusion_view
    from seatrial.report.write import write_trial_report
    from seatrial_base.errors import BenchError

    if is_jumpstart(result):
        from seatrial.report.terminal.trial import jumpstart_view

        show(jumpstart_view(result, plan))
    show_lines(conclusion_view(result))
    if output is not None:
        try:
            typer.echo(write_trial_report(result, plan, output).html.as_posix())
        except BenchError as error:
            unwritten.problems.extend(error.problems)
    unwritten.raise_if_any()
    if result.verdict.status != "pass":
        raise typer.Exit(FAILED)
