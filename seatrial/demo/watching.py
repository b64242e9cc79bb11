"""The trial of a deployment, shown beside the spinner while the CDK CLI waits for it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from seatrial.deployment.live_trial import LOOK_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.demo.steps import Step
    from seatrial.deployment.live_trial import LiveTrial

    Look = Callable[[float], LiveTrial | None]


@contextmanager
def shown_beside(look: Look, step: Step, *, every_s: float = LOOK_S) -> Iterator[None]:
    """Show a trial while the block runs; what can't be read is not shown, and stops nothing.

    Args:
        look: Returns the trial as it stands at a time, in seconds since the epoch; None where it can't be read.
        step: Where it is shown.
        every_s: Pause between two looks.
    """
    ended = Event()
    before = look(time.time())

    def show() -> None:
        while not ended.wait(every_s):
            seen = look(time.time())
            if seen is not None and (before is None or seen.request_id != before.request_id):
                step.does(words_of(seen))

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


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
