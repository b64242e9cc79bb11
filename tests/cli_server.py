"""A process that has imported the command line, and forks once per command: `python tests/cli_server.py`.

To import takes a second of CPU, to fork a hundredth. Each command still runs in a process of its own; where it ends as
it wants to, the process ends with it: after its threads, its handlers of `atexit` and its output, but without the
0.06 s of CPU that Python takes to clear away what was imported. One JSON line on standard input orders a command, one
on standard output is its exit code.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import sys
from contextlib import suppress
from pathlib import Path

import typer.main

ROOT = Path(__file__).parents[1]
PACKAGES = ("seatrial", "seatrial_base", "seatrial_laptop", "seatrial_lint", "seatrial_load")
NOT_FOR_COMMANDS = ("seatrial_laptop.aws", "seatrial_laptop.engine")
"""What runs in processes of its own."""


def imported() -> None:
    """Import all that a command may import, and read once the facts that every plan reads."""
    for found in (
        found
        for package in PACKAGES
        for found in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}.")
    ):
        if not found.name.endswith("__main__") and not found.name.startswith(NOT_FOR_COMMANDS):
            importlib.import_module(found.name)
    for module in ("boto3", "typer.rich_utils"):
        importlib.import_module(module)
    build = functools.cache(typer.main.get_command)  # to build the commands takes 0.05 s of CPU
    build(importlib.import_module("seatrial.cli.app").app)
    typer.main.get_command = build
    load = importlib.import_module("seatrial.specs.load").load_spec
    spec = load(ROOT / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=ROOT / "environments")
    importlib.import_module("seatrial.planner.planner").make_plan(spec)


def become(order: dict[str, str | list[str] | dict[str, str]]) -> None:
    """Be the process that the order describes: its folder, arguments, environment, outputs and time limit."""
    folder, arguments, environment = order["folder"], order["arguments"], order["environment"]
    assert isinstance(folder, str)
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    signal.alarm(int(str(order["timeout_s"])))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        os.dup2(os.open(str(order[name]), os.O_WRONLY if descriptor else os.O_RDONLY), descriptor)
    sys.argv[1:] = arguments


def serve() -> None:
    """Obey orders, one after the other; return in each process that is to run a command, and exit at the end."""
    for line in sys.stdin:
        child = os.fork()
        if not child:
            become(json.loads(line))
            return
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 (it is the answer)
    sys.exit()


def run() -> None:
    """Run the command of the arguments; what else than an exit code ends it goes on as Python has it."""
    try:
        runpy.run_module("seatrial.cli", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if isinstance(ended.code, int):
            exit_codes.append(ended.code)
        raise


exit_codes: list[int] = []


def end_at_once() -> None:
    """End with the exit code of the command; without one, or where output can't be written, end as Python does."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        if exit_codes:
            os._exit(exit_codes[0])


if __name__ == "__main__":
    atexit.register(end_at_once)  # the first one to be registered is the last one to be called
    imported()
    gc.freeze()  # else each fork walks, and so copies, all that was imported when it ends: 0.3 s of CPU
    serve()
    run()
