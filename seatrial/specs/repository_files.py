"""Which files a spec may name: those of the repository that it lies in."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath
from typing import Literal

from seatrial_base.files import follow_links, kind_of
from seatrial_base.secrets import redacted

RELATIVE = "the path is relative to the spec"
_ROOT_MARKS = (".git", "cdk.json")


def repository_root(spec: Path) -> Path:
    """Return the folder of the repository that a spec lies in; without Git and CDK, the one above the spec's folder."""
    home = follow_links(spec).parent
    marked = (folder for folder in (home, *home.parents) if any((folder / mark).exists() for mark in _ROOT_MARKS))
    return next(marked, home.parent)


def stays_in(path: Path, folder: Path) -> bool:
    """Tell whether a path, its links followed, lies in a folder."""
    try:
        return follow_links(path).is_relative_to(follow_links(folder))
    except OSError:  # a link to itself
        return False


def kind_in_repository(path: Path) -> Literal["file", "folder", "other"] | None:
    """Tell what a path that a spec names leads to; None too where it can't be looked at, as a name too long."""
    try:
        return kind_of(path)
    except OSError:
        return None


def why_away(spec: Path, name: str) -> str:
    """Return why a file or folder that a spec names is none of its repository; empty where it is one.

    Args:
        spec: The file that names it.
        name: The name as it is written.
    """
    if Path(name).is_absolute() or PureWindowsPath(name).drive or name.startswith("~"):
        return f"{redacted(name)} is an absolute path"
    root = repository_root(spec)
    away = not stays_in(spec.parent / name, root)
    return f"{redacted(name)} is outside of the repository {root.as_posix()}" if away else ""
