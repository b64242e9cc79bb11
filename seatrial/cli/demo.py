"""`seatrial demo`: the whole story on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo_command(
    *, verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of all tools.")] = False
) -> None:
    """Plan, deploy, try, update, roll back and destroy an endpoint on this machine, with no AWS account."""
    from seatrial_base.terminal import console
    from seatrial_laptop.demo.runner import run_demo

    run_demo(Path.cwd(), console(markup=True), verbose=verbose)
