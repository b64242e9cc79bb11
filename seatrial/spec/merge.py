"""An endpoint's document in one environment: the base with that environment's overrides laid over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.errors import Problem
from seatrial.spec.source import FieldPath, Source, Yaml, dotted

if TYPE_CHECKING:
    from collections.abc import Mapping

OVERRIDES = "environments"


@dataclass(frozen=True, slots=True)
class Document:
    """A merged mapping that still knows where each of its values was written.

    Attributes:
        path: The file.
        data: The merged fields, without the overrides of other environments.
        origins: For each field path, the path under which the user wrote it.
        lines: The 1-based line of each path as written.
    """

    path: str
    data: dict[str, Yaml]
    origins: Mapping[FieldPath, FieldPath]
    lines: Mapping[FieldPath, int]

    def value(self, *path: str) -> Yaml:
        """Return what stands at a path, or `None` where nothing does."""
        node: Yaml = self.data
        for part in path:
            node = node.get(part) if isinstance(node, dict) else None
        return node

    def problem(self, path: FieldPath, rule: str, message: str, hint: str = "") -> Problem:
        """Return a problem placed where the user wrote the field."""
        return Problem(self.where(path), self.field(path), rule, message, hint)

    def where(self, path: FieldPath) -> str:
        """Return `file:line` of a field, or of its nearest parent that was written."""
        written = self.origin(path)
        while written and written not in self.lines:
            written = written[:-1]
        return f"{self.path}:{self.lines[written]}" if written in self.lines else self.path

    def field(self, path: FieldPath) -> str:
        """Return the dotted path of a field as the user wrote it."""
        return dotted(self.origin(path))

    def origin(self, path: FieldPath) -> FieldPath:
        """Return the path under which a field, or its nearest written parent, stands in the file."""
        for cut in range(len(path), 0, -1):
            if path[:cut] in self.origins:
                return self.origins[path[:cut]] + path[cut:]
        return path


def merge_environment(source: Source, environment: str | None) -> Document:
    """Lay the overrides of one environment over the base; `null` in an override removes the base's value."""
    base = {key: value for key, value in source.data.items() if key != OVERRIDES}
    origins: dict[FieldPath, FieldPath] = {path: path for path in source.lines if path[0] != OVERRIDES}
    every = source.data.get(OVERRIDES)
    override = every.get(environment) if isinstance(every, dict) and environment else None
    if isinstance(override, dict):
        base = _overlay(base, override, (), (OVERRIDES, environment or ""), origins)
    return Document(source.path, base, origins, source.lines)


def _overlay(
    base: dict[str, Yaml],
    override: dict[str, Yaml],
    path: FieldPath,
    written: FieldPath,
    origins: dict[FieldPath, FieldPath],
) -> dict[str, Yaml]:
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        origins[(*path, key)] = (*written, key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(old, dict) and isinstance(value, dict):
            merged[key] = _overlay(old, value, (*path, key), (*written, key), origins)
        else:
            merged[key] = value
            _forget(origins, (*path, key))
    return merged


def _forget(origins: dict[FieldPath, FieldPath], path: FieldPath) -> None:
    for inner in [known for known in origins if known[: len(path)] == path and known != path]:
        del origins[inner]
