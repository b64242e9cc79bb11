"""What `seatrial bench` shows while a trial runs, and what it says of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial.bench.events import TrialEvent, Watch
    from seatrial.bench.request import TrialRequest
    from seatrial.bench.result import TrialResult
    from seatrial.plan.document import Plan

FAILED = 1


def watched(request: TrialRequest, run: Callable[[Watch], TrialResult]) -> TrialResult:
    """Run a trial and show it: a live table on a terminal, a line for each level elsewhere."""
    from rich.console import Console
    from rich.live import Live

    from seatrial.report.terminal.progress import TrialScreen

    console, screen = Console(highlight=False), TrialScreen(request)
    if not console.is_terminal:
        return run(_teller(request))
    with Live(screen, console=console, auto_refresh=False, transient=False) as live:  # a thread would delay the client

        def watch(event: TrialEvent) -> None:
            screen.watch(event)
            live.refresh()

        return run(watch)


def _teller(request: TrialRequest) -> Watch:
    from seatrial.bench.events import LevelEnded, Told
    from seatrial.report.terminal.progress import level_line

    def tell(event: TrialEvent) -> None:
        match event:
            case LevelEnded(level=level):
                typer.echo(level_line(level, has_slo=bool(request.objectives)))
            case Told(text=text):
                typer.echo(text)
            case _:
                pass

    return tell


def conclude(result: TrialResult, plan: Plan | None, output: Path | None) -> None:
    """Say what the trial found, write the report where one is asked for, and exit 1 unless the trial was passed."""
    from seatrial.report import write_report
    from seatrial.report.document.jumpstart import is_jumpstart

    if is_jumpstart(result):
        from rich.console import Console

        from seatrial.report.terminal.jumpstart import jumpstart_view

        Console(highlight=False).print(jumpstart_view(result, plan))
    for knee in result.knees:
        typer.echo(f"knee ({knee.detector}): {knee.because}")
    typer.echo(f"scaling target: {result.target_because}")
    if result.comparison is not None:
        typer.echo(f"last release: {result.comparison.status}: {result.comparison.because}")
    typer.echo(f"stopped: {result.stopped_because}")
    typer.echo(f"verdict: {result.verdict.status}: {result.verdict.because}")
    if result.engine_note:
        typer.echo(f"measured on: {result.engine_note}")
    if output is not None:
        typer.echo(write_report(result, plan, output).html.as_posix())
    if result.verdict.status != "pass":
        raise typer.Exit(FAILED)
