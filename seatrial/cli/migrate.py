"""`seatrial migrate`: files that an older release wrote, in the schema of this one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.findings import Finding

if TYPE_CHECKING:
    from seatrial.locks.migrate import MigratedLock

OUTDATED = 1
_FOLDERS = (Path("endpoints"), Path("environments"), Path("products"))
_LOCK = ".lock.json"


def migrate_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH…",
            help="Specs, environments and locks, or folders of them. Default: endpoints, environments, products.",
            show_default=False,
        ),
    ] = None,
    *,
    write: Annotated[bool, typer.Option("--write", help="Write the files.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit 1 when a file is of an older schema.")] = False,
) -> None:
    """Bring specs, environments and locks to the schema of this release; without --write only show what would change.

    No value of a plan changes. Files that a newer release wrote are refused.
    """
    from seatrial.locks.migrate import write_migrated
    from seatrial_base.files import kind_of

    locks = _migrated(paths or [folder for folder in _FOLDERS if kind_of(folder) == "folder"])
    outdated = [lock for lock in locks if lock.changes]
    for lock in outdated:
        if write:
            write_migrated(lock.path)
        for change in lock.changes:
            typer.echo(f"{lock.path.as_posix()}: {change}")
    verb = "written" if write else "to be written with --write"
    typer.echo(f"{len(outdated)} of {len(locks)} locks {verb}" if outdated else "every file is current")
    if check and outdated and not write:
        raise typer.Exit(OUTDATED)


def _migrated(paths: list[Path]) -> list[MigratedLock]:
    """Return every lock in the present schema; specs and environments are only checked: theirs has not changed yet."""
    from seatrial.locks.migrate import migrate_lock
    from seatrial.specs.yaml_source import newer_schema, read_source

    locks: list[MigratedLock] = []
    problems: list[Finding] = []
    # The files of a folder; locks also of the folders in it, as those of products' sizes.
    files = [
        file
        for path in paths
        for file in (
            sorted([*path.glob("*.yaml"), *path.glob(f"*{_LOCK}"), *path.glob(f"*/*{_LOCK}")])
            if path.is_dir()
            else [path]
        )
    ]
    if not files:
        where = ", ".join(path.as_posix() for path in paths)
        raise SpecError.of("SEA404", "no spec, environment or lock", where=where, hint="name files or folders")
    for path in dict.fromkeys(files):
        if path.name.endswith(_LOCK):
            try:
                locks.append(migrate_lock(path))
            except SeatrialError as error:
                problems += error.problems
        else:
            source = read_source(path)
            newer = newer_schema(source)
            problems += source.problems if newer is None else [newer]
    if problems:
        raise SpecError(problems)
    return locks
