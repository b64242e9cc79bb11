"""Tells the story from start to end and stops everything that it started, however it ends."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from seatrial.demo.cloud import Cloud
from seatrial.demo.steps import Steps
from seatrial.demo.story import Story
from seatrial.demo.tools import Tools
from seatrial.demo.workspace import make_workspace
from seatrial.local.lifecycle import child_variables, down, up

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from seatrial.demo.workspace import Workspace


def tell(root: Path, console: Console, *, verbose: bool) -> None:
    """Tell the whole story in a checkout of the repository.

    Raises:
        LocalError: SEA601 to SEA606 when a step did not happen as told.
        KeyboardInterrupt: After Ctrl-C, when everything is stopped.
    """
    began_s = time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM):  # a job in the background is started with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    steps = Steps(console, verbose=verbose)
    workspace = make_workspace(root)
    state = workspace.folder / "local"
    try:
        story = _begin(workspace, steps, state)
        _chapters(story)
    finally:
        with steps.step("stop the embedded AWS and its engines"):
            down(state)
    console.print(f"\n[bold green]The whole story in {time.monotonic() - began_s:.0f} s.[/]")


def _begin(workspace: Workspace, steps: Steps, state: Path) -> Story:
    with steps.step("start the embedded AWS") as step:
        local = up(state_dir=state)
        step.did(f"{local.endpoint_url}, account {local.account}, this machine only")
    tools = Tools(workspace.root, child_variables(local), workspace.folder / "tools.log", steps.verbose)
    return Story(workspace, steps, tools, Cloud(local, local.region))


def _chapters(story: Story) -> None:
    first = story.first_deployment(story.plan())
    second = story.smaller_batch(first)
    story.impossible_slo(second)
    story.destroy()
