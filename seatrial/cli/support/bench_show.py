"""The view of a trial while `seatrial bench` runs it, and its conclusion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from seatrial_base.terminal import console, show, show_lines
from seatrial_load.cli.show import levels_told, watched_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial_load.cli.files import Unwritten
    from seatrial_load.documents.progress import TrialEvent, Watch
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.documents.result import TrialResult


FAILED = 1


def watched(request: TrialRequest, run: Callable[[Watch], TrialResult]) -> TrialResult:
    """Run a trial and show it: a live table on a terminal, a line for each level elsewhere."""
    from rich.live import Live

    from seatrial.report.terminal.trial import TrialScreen

    shown_on, screen = console(), TrialScreen(request)
    if not shown_on.is_terminal:
        return watched_lines(request, run)
    with Live(screen, console=shown_on, auto_refresh=False, transient=False) as live:  # a thread would delay us

        def refresh(event: TrialEvent) -> None:
            screen.watch(event)
            live.refresh()

        with levels_told(refresh) as watch:
            return run(watch)


def show_conclusion(result: TrialResult, plan: Plan | None, output: Path | None, unwritten: Unwritten) -> None:
    """Show the result, write the report into a given folder, and exit 1 unless the trial passed.

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
