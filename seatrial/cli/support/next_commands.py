"""The five commands that matter now, by the files of a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import SeatrialError
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

SUFFIX: Final = "*.yaml"


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command as it is typed, and what it does."""

    line: str
    does: str


@dataclass(frozen=True, slots=True)
class Situation:
    """The specs and environments of a folder.

    Attributes:
        specs: Files of endpoints.
        environments: Names of environments, those of accounts first.
        locked: Specs with a plan for the first of these.
    """

    specs: tuple[Path, ...] = ()
    environments: tuple[str, ...] = ()
    locked: tuple[Path, ...] = ()

    @property
    def words(self) -> str:
        """One line, as `Here: 3 specs, environments dev, prod; 1 locked in dev.`."""
        if not self.specs:
            return "Here is no spec of an endpoint."
        specs = f"Here: {counted(len(self.specs), 'spec')}"
        if not self.environments:
            return f"{specs}, no environment."
        places = f"environment{'s' if len(self.environments) > 1 else ''} {', '.join(self.environments)}"
        return f"{specs}, {places}; {len(self.locked)} locked in {self.environments[0]}."


def situation_of(folder: Path) -> Situation:
    """Return the situation in a folder; a file that can't be read counts as one that is not there."""
    from seatrial.locks.lock_file import locked_environments
    from seatrial.specs.load import ENVIRONMENTS, environment_names

    specs = tuple(sorted((folder / "endpoints").glob(SUFFIX))) or tuple(_specs(folder))
    names = environment_names(folder / ENVIRONMENTS)
    environments = tuple(sorted(names, key=lambda name: (_is_embedded(folder / ENVIRONMENTS, name), name)))
    locked = []
    for spec in specs if environments else ():
        try:
            locked += [spec] if environments[0] in locked_environments(spec) else []
        except SeatrialError:
            continue
    return Situation(
        tuple(spec.relative_to(folder) for spec in specs),
        environments,
        tuple(spec.relative_to(folder) for spec in locked),
    )


def _specs(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.glob(SUFFIX)):
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        if any(line.startswith("model:") for line in lines) and any(line.startswith("workload:") for line in lines):
            yield file


def _is_embedded(environments: Path, name: str) -> bool:
    from seatrial.specs.load import load_environment

    try:
        return load_environment(environments, name).is_embedded
    except SeatrialError:
        return False


def next_commands(seen: Situation) -> tuple[NextCommand, ...]:
    """Return the five commands that matter now."""
    if not seen.specs:
        load = "--input 2000 --output 300 --concurrency 16"
        return (
            NextCommand(
                f"seatrial plan Qwen/Qwen3-32B {load}", "what to buy for a model and its load, and what it costs"
            ),
            NextCommand("seatrial init FOLDER", "write a repository of endpoints, with checks and deployments"),
            NextCommand("seatrial models list", "the models that can be planned by their hub id"),
            NextCommand("seatrial doctor ENDPOINT --region REGION", "why an endpoint of yours is stuck or failed"),
            NextCommand("seatrial lint FOLDER", "what a container does with your serving options"),
        )
    option = f" -e {seen.environments[0]}" if len(seen.environments) > 1 else ""
    if not seen.locked:
        spec = seen.specs[0].as_posix()
        lock = f"seatrial plan {spec}{option} --write" if seen.environments else "seatrial init FOLDER"
        does = "lock the plan, which is deployed" if seen.environments else "write a repository to deploy from"
        return (
            NextCommand(f"seatrial validate {spec}", "every problem of the spec, with its line"),
            NextCommand(f"seatrial plan {spec}{option}", "what to deploy, why, and what it costs"),
            NextCommand(f"seatrial compare-instances {spec}{option}", "the instance types side by side"),
            NextCommand(f"seatrial recipes {spec}{option}", "what optimizations would gain, and what they give up"),
            NextCommand(lock, does),
        )
    unlocked = [spec for spec in seen.specs if spec not in seen.locked]
    locked, live = seen.locked[0], f"{seen.locked[0].as_posix()} -e {seen.environments[0]}"
    # A folder of specs alone: that of the repository may hold other YAML.
    every = locked.parent.as_posix() if locked.parent.name else locked.as_posix()
    plan = f"seatrial plan {unlocked[0].as_posix()}{option} --write" if unlocked else f"seatrial plan {every} --check"
    return (
        NextCommand(plan if unlocked else f"{plan}{option}", "lock a plan" if unlocked else "locks that are stale"),
        NextCommand(f"seatrial preflight {locked.as_posix()}{option}", "what the account lacks: quotas, secrets, keys"),
        NextCommand(f"seatrial diff {locked.as_posix()}{option}", "what an update does, and what users notice"),
        NextCommand(f"seatrial deploy {live}", "deploy it, and follow its trial"),
        NextCommand(f"seatrial doctor {live}", "why an endpoint is stuck or failed"),
    )


def lines_of(seen: Situation) -> Iterator[str]:
    """Yield what `seatrial` alone shows, at most 80 characters a line."""
    yield seen.words
    for command in next_commands(seen):
        yield ""
        yield f"  {command.line}"
        yield f"      {command.does}"
    yield ""
    yield "seatrial --help lists every command, seatrial COMMAND --help its options."
