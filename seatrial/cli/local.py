"""`seatrial local` and `seatrial demo`: the embedded AWS on this machine, and a walk through Seatrial on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial_base.errors import LocalError

if TYPE_CHECKING:
    from seatrial_laptop.lifecycle import LocalStatus

local = typer.Typer(
    name="local",
    help=(
        "Embedded AWS with a local engine, on this machine only. Stacks, buckets and endpoints are in memory until it "
        "stops."
    ),
    no_args_is_help=True,
)

StateFolder = Annotated[
    Path, typer.Option("--state", metavar="DIR", file_okay=False, help="State folder: access key, lock and logs.")
]
STATE = Path(".seatrial/local")
STOPPED = "stopped; stacks, buckets, endpoints and bootstrap were deleted: run `cdk bootstrap` after the next `up`"


@local.command("up")
def start_local(
    state: StateFolder = STATE,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port on 127.0.0.1. Default: a free one.")] = None,
    account: Annotated[
        str | None, typer.Option(metavar="ACCOUNT", help="AWS account that it is, 12 digits. Default: 000000000000.")
    ] = None,
) -> None:
    """Start it in the background and print the lines that lead the AWS tools of a shell to it, and nowhere else."""
    from seatrial.specs.shapes import ACCOUNT
    from seatrial_laptop.lifecycle import exports, was_killed
    from seatrial_laptop.lifecycle import start_embedded_aws as start

    if account is not None and not re.fullmatch(ACCOUNT, account):
        raise typer.BadParameter("write it with 12 digits, as in 111111111111", param_hint="'--account'")
    killed = was_killed(state)
    running = start(state_dir=state, port=port, account=account)
    if killed:
        typer.echo("the previous embedded AWS ended unexpectedly; its stacks were lost", err=True)
    typer.echo(f"the embedded AWS is running at {running.endpoint_url} (pid {running.pid})", err=True)
    for line in exports(running):
        typer.echo(line)


@local.command("env")
def env(state: StateFolder = STATE) -> None:
    """Print the same lines as `up`, for another shell: eval "$(seatrial local env)"."""
    from seatrial_laptop.lifecycle import exports
    from seatrial_laptop.lifecycle import running as find

    for line in exports(find(state)):
        typer.echo(line)


@local.command("status")
def local_status(state: StateFolder = STATE) -> None:
    """Show whether it runs, and what is deployed on it."""
    from seatrial_laptop.lifecycle import read_local_status as read_status

    now = read_status(state)
    if now.local is None or not now.running:
        typer.echo(_silent_state(now, state))
        raise typer.Exit(1)
    typer.echo(f"running at {now.local.endpoint_url} (pid {now.local.pid})")
    for endpoint in now.endpoints:
        typer.echo(f"endpoint {endpoint.name}: {endpoint.status}")
    for component in now.components:
        ports = ", ".join(str(port) for port in component.ports) or "none"
        typer.echo(f"inference component {component.name}: {component.status}, engines on ports {ports}")


@local.command("control")
def control(
    settings: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to change; a value is JSON or text.")
    ] = None,
    state: StateFolder = STATE,
    *,
    reset: Annotated[bool, typer.Option("--reset", help="First return every setting to its default.")] = False,
) -> None:
    """Change its clock and switch faults on; print the settings in force as JSON. Without arguments, only print."""
    import json

    from seatrial_laptop.control import change_control, read_control, reset_control, settings_of

    changes = settings_of(settings or [])
    if reset:
        reset_control(state)
    status = change_control(state, changes) if changes else read_control(state)
    typer.echo(json.dumps(status, indent=2))


@local.command("logs")
def logs(
    state: StateFolder = STATE,
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="Number of last lines of each log.")] = 40,
) -> None:
    """Print the last lines of its logs and its engines'."""
    from seatrial_laptop.lifecycle import log_files

    files = log_files(state)
    if not files:
        hint = "start it: seatrial local up"
        raise LocalError.of("SEA602", "there are no logs", where=state.as_posix(), hint=hint)
    for file in files:
        typer.echo(f"==> {file.as_posix()} <==")
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]:
            typer.echo(line)


@local.command("down")
def stop_local(
    state: StateFolder = STATE, *, quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing.")] = False
) -> None:
    """Stop it and every engine; its bootstrap, stacks, buckets and endpoints are gone then."""
    from seatrial_laptop.lifecycle import stop_embedded_aws as stop
    from seatrial_laptop.lifecycle import was_killed

    stopped = stop(state)
    if not quiet:
        typer.echo(STOPPED if stopped else f"not running: {_place(state, killed=was_killed(state))}")


def _silent_state(now: LocalStatus, state: Path) -> str:
    """Return what is known of an embedded AWS that does not respond, and what to do next."""
    from seatrial_laptop.running import silence_hint

    if now.local is not None:
        return f"not responding: {now.local.endpoint_url} (pid {now.local.pid}); {silence_hint(now.local.pid)}"
    if now.state == "starting":
        return "starting: try again in some seconds; if it stays so, stop it: seatrial local down"
    return f"not running: {_place(state, killed=now.state == 'killed')}"


def _place(state: Path, *, killed: bool) -> str:
    if killed:
        return (
            f"what ran with {state.absolute()} was killed, and its stacks are lost; start it again: seatrial local up"
        )
    return f"no state in {state.absolute()}; start it (seatrial local up), or give another folder with --state"


def demo_command(
    *, verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the output of all tools.")] = False
) -> None:
    """Plan, deploy, try, update, roll back and destroy an endpoint on this machine, with no AWS account."""
    from seatrial_base.terminal import console
    from seatrial_laptop.demo.runner import run_demo

    run_demo(Path.cwd(), console(markup=True), verbose=verbose)
