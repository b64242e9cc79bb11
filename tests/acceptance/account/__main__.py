"""`python -m tests.acceptance.account run ENV` and `remove ENV`: what `make test-aws` and `make clean-aws` run."""

from __future__ import annotations

import argparse
from pathlib import Path

from seatrial_base.terminal import run_command_line
from tests.acceptance.account.run import ROOT, Options, clean, run
from tests.acceptance.account.smoke import smoke


def main() -> int:
    """Read the command line and run its command."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.account", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the acceptance suite on an account")
    removing = commands.add_parser("remove", help="remove what runs left, found by their tag")
    for command in (running, removing):
        command.add_argument("environment", help="name of the environment")
        command.add_argument("--environments", type=Path, default=ROOT / "environments", help="folder of environments")
    running.add_argument("--budget-usd", type=float, default=15.0, help="most that may be spent (default 15)")
    running.add_argument("--yes", action="store_true", help="ask nothing")
    running.add_argument("--folder", type=Path, default=ROOT / ".seatrial" / "acceptance", help="where transcripts go")
    running.add_argument("--smoke", action="store_true", help="only the questions that need no endpoint")
    running.add_argument("--only", default="", help="only the cases that this expression of pytest -k chooses")
    removing.add_argument("--run", default=None, help="ID of the run; without it, those of all runs")
    given = parser.parse_args()
    if given.command == "remove":
        return clean(given.environment, given.run or None, environments=given.environments)
    options = Options(
        environment=given.environment,
        environments=given.environments,
        budget_usd=given.budget_usd,
        yes=given.yes,
        folder=given.folder,
        pytest=("-k", given.only) if given.only else (),
    )
    return smoke(options) if given.smoke else run(options)


if __name__ == "__main__":
    run_command_line(main)
