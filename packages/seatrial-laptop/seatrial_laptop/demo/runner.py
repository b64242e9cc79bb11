"""Runs the scenario from start to end and stops everything that it started, however it ends."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final, NoReturn

from seatrial.account.reader import aws_failures
from seatrial_laptop.demo.cdk_cli import CdkCli
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from seatrial_laptop.demo.progress import Steps
from seatrial_laptop.demo.scenario import Scenario, failed
from seatrial_laptop.demo.workspace import check_machine, clear_scratch, disk_failures, only_demo, renew, workspace_of
from seatrial_laptop.lifecycle import child_variables, start_embedded_aws, stop_embedded_aws

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

    from rich.console import Console


ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STANDARD_OUTPUTS: Final = (1, 2)

NO_TEMPLATE_VALIDATION = {"CDK_VALIDATION": "false"}
"""For the CDK: its own check of a template takes half of a synthesis, and the tests check the demo's templates."""


def end_on_signals() -> None:
    """Let Ctrl-C, a termination and a closed terminal end the demo as an exception, so that it stops what it started.

    A shell starts a job in the background with Ctrl-C ignored: that is undone. `nohup` ignores SIGHUP on purpose.
    """
    for number in ENDING:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end_by_signal)


def ignore_signals() -> None:
    """Let nothing interrupt what follows, such as the end of everything that was started."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _end_by_signal(number: int, _frame: FrameType | None) -> NoReturn:
    """End by the first signal; a second one may not hinder what is undone then."""
    ignore_signals()
    if number == signal.SIGHUP:
        # Write to no terminal any more: it is closed, and each write would fail.
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123 (a device, not a path)
            for output in STANDARD_OUTPUTS:
                if os.isatty(output):
                    os.dup2(nothing.fileno(), output)
    sys.exit(128 + number)


def run_demo(root: Path, console: Console, *, verbose: bool) -> None:
    """Run the whole scenario in a checkout of the repository.

    Raises:
        LocalError: SEA601 to SEA606 when a step did not happen; SEA611 when another demo runs in the checkout;
            SEA612 when a folder can't be written.
        BenchError: SEA504 when the embedded AWS doesn't answer.
        SystemExit: After Ctrl-C, a termination or a closed terminal, when everything is stopped: 128 + the signal.
    """
    began_s = time.monotonic()
    end_on_signals()
    steps = Steps(console, verbose=verbose)
    workspace = workspace_of(root)
    with only_demo(workspace):
        check_machine(workspace)
        renew(workspace)
        try:
            with (
                disk_failures(workspace.folder),
                aws_failures("the embedded AWS", lambda error: failed(f"the embedded AWS refused a call: {error}")),
            ):
                with steps.step("start the embedded AWS") as step:
                    local = start_embedded_aws(state_dir=workspace.aws)
                    step.did(f"{local.endpoint_url}, account {local.account}, this machine only")
                env = {**child_variables(local), "TMPDIR": str(workspace.scratch), **NO_TEMPLATE_VALIDATION}
                tools = CdkCli(workspace.root, env, workspace.folder / "tools.log", steps.verbose)
                scenario = Scenario(workspace, steps, tools, EmbeddedAws(local))
                first = scenario.first_deployment(scenario.plan())
                second = scenario.smaller_batch(first)
                scenario.impossible_slo(second)
                scenario.destroy()
        finally:
            # Everything is stopped before it is shown: neither a second Ctrl-C nor a closed terminal may hinder it.
            ignore_signals()
            ending_s = time.monotonic()
            stopped = stop_embedded_aws(workspace.aws)
            clear_scratch(workspace)
            if stopped:
                steps.done("stop the embedded AWS and its engines", ending_s)
    console.print(f"\n[bold green]Finished in {time.monotonic() - began_s:.0f} s.[/]")
