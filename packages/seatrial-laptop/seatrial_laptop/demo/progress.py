"""Shows progress: one line a step, with what it did and how long it took; and the trial that the CDK CLI waits for."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.markup import escape

from seatrial.account.trials import LOOK_S
from seatrial_base.repeat import repeat_meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console, RenderableType
    from rich.status import Status

    from seatrial.account.trials import LiveTrial

    Look = Callable[[float], LiveTrial | None]


class Step:
    """A running step, with what it does and what it did."""

    def __init__(self, title: str = "", status: Status | None = None) -> None:
        self.detail = ""
        self._title = title
        self._status = status

    def does(self, what: str) -> None:
        """Show in a few words what the step does at the moment, next to the spinner."""
        if self._status is not None:
            self._status.update(f"{escape(self._title)} [dim]{escape(what)}[/]")

    def did(self, detail: str) -> None:
        """Keep in a few words what the step did; shown when it ends."""
        self.detail = detail


class Steps:
    """Writes the steps to a terminal; a spinner runs while one is at work."""

    def __init__(self, console: Console, *, verbose: bool) -> None:
        self.console = console
        self.verbose = verbose
        self.began_s = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show one step; it is marked as failed when its body raises."""
        step, began_s = Step(title), time.monotonic()
        try:
            if self.verbose or not self.console.is_terminal:
                self.console.print(f"[dim]…[/] {escape(title)}")
                yield step
            else:
                with self.console.status(escape(title)) as status:
                    step = Step(title, status)
                    yield step
        except BaseException:
            self.console.print(f"[red]✗[/] {escape(title)} [dim]{time.monotonic() - began_s:.1f} s[/]")
            raise
        self.done(title, began_s, step.detail)

    def done(self, title: str, began_s: float, detail: str = "") -> None:
        """Show that a step was done."""
        did = f": {escape(detail)}" if detail else ""
        self.console.print(f"[green]✓[/] {escape(title)}{did} [dim]{time.monotonic() - began_s:.1f} s[/]")

    def chapter(self, title: str) -> None:
        """Begin a chapter of the scenario."""
        self.console.print(f"\n[bold]{escape(title)}[/]")

    def show(self, what: RenderableType) -> None:
        """Show a result between steps; a text as it is, so that a path in it can be copied."""
        self.console.print(what, markup=False, soft_wrap=isinstance(what, str))


@contextmanager
def shown_beside(look: Look, step: Step, *, every_s: float = LOOK_S) -> Iterator[None]:
    """Show a trial while the block runs; what can't be read is not shown, and stops nothing.

    Args:
        look: Returns the state of the trial at a time, in seconds since the epoch; None where it can't be read.
    """
    before = look(time.time())

    def show() -> None:
        seen = look(time.time())
        if seen is not None and (before is None or seen.request_id != before.request_id):
            step.does(words_of(seen))

    with repeat_meanwhile(every_s, show):
        yield


def words_of(seen: LiveTrial) -> str:
    """Say in a few words how far a trial is."""
    if not seen.is_due:
        return ""
    measured = ", ".join(
        f"{level.concurrency}: {'–' if level.output_tok_s is None else f'{level.output_tok_s:.0f} tok/s'}"
        for level in seen.levels
    )
    loading = "" if seen.loading is None or seen.has_ended else f"loading {seen.loading} per copy"
    return "the trial: " + ("; ".join(filter(None, [measured, loading])) or "warming up")
