"""What is copied: the files of one model, wherever they come from."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from seatrial.errors import StageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

OTHER_WEIGHTS = (".bin", ".pth", ".pt")
"""Suffixes of weights that a model's repository often holds a second time beside its safetensors files."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a model.

    Attributes:
        name: Its path below the model's folder, with forward slashes.
        size_bytes: Its size.
        told: The digest that the source itself tells, as `sha256:HEX` or `git-sha1:HEX` (the blob's id); `None` when
            the source tells none, as a folder.
        fetch: Lends the file on this machine for as long as the context lasts; safe to call from several threads.
    """

    name: str
    size_bytes: int
    told: str | None
    fetch: Callable[[], AbstractContextManager[Path]]


@dataclass(frozen=True, slots=True)
class Source:
    """The files of one model.

    Attributes:
        model: Hub id, or the folder's name.
        revision: The commit that was resolved; `None` for a folder.
        files: Sorted by name.
    """

    model: str
    revision: str | None
    files: tuple[SourceFile, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(file.size_bytes for file in self.files)


def select(source: Source, *, include: Sequence[str], exclude: Sequence[str]) -> Source:
    """Keep the files that match one of `include` (empty: every file) and none of `exclude`.

    A pattern is a shell pattern on the whole name, in which `*` matches slashes too: `original/*`, `*.safetensors`.

    Raises:
        StageError: SEA360 when nothing is left.
    """
    kept = tuple(
        file
        for file in source.files
        if (not include or _matches(file.name, include)) and not _matches(file.name, exclude)
    )
    if not kept:
        message = f"none of the {len(source.files)} files is left to copy"
        raise StageError.of("SEA360", message, where=source.model, hint="widen --include or narrow --exclude")
    return Source(source.model, source.revision, kept)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def held_twice(source: Source) -> tuple[str, ...]:
    """Return the patterns of weights that lie beside safetensors files, which engines prefer: copying them is waste."""
    names = [file.name for file in source.files]
    if not any(name.endswith(".safetensors") for name in names):
        return ()
    return tuple(f"*{suffix}" for suffix in OTHER_WEIGHTS if any(name.endswith(suffix) for name in names))
