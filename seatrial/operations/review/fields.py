"""What differs between two specs with their environments, field by field, and between two sets of files."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.engines.rendered import rendered_files
from seatrial.specs.prices import region_document
from seatrial_base.frozen_model import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.operations.review.side import EndpointState
    from seatrial.specs.load import LoadedSpec

CONTEXT_LINES = 1


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that people write, or a file beside the spec, that differs.

    Attributes:
        field: Its path; `environment.` stands before those of the environment's file.
        old: The value before as JSON; `None` where it was left out.
        new: The value after as JSON; `None` where it is left out.
    """

    field: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that the container reads, or its environment, that differs.

    Attributes:
        name: The file's name.
        lines: The difference in unified form, without the names of the files.
    """

    name: str
    lines: tuple[str, ...]


def field_changes(old: LoadedSpec | None, new: LoadedSpec | None) -> tuple[FieldChange, ...]:
    """Return the fields of the merged documents that differ; none where one side has no right spec."""
    if old is None or new is None:
        return ()
    before, after = (dict(_fields(one)) for one in (old, new))
    names = sorted(before.keys() | after.keys())
    return tuple(
        FieldChange(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    )


def _fields(loaded: LoadedSpec) -> Iterator[tuple[str, str]]:
    yield from flat_fields("", loaded.document.data)
    yield from flat_fields("environment", loaded.place.data)
    if loaded.config_file is not None:
        yield "content of model.config_file", json.dumps(loaded.config_file)
    if pairs := loaded.dataset.pairs:
        others = [part for part in (loaded.dataset.times_s, loaded.dataset.turns, loaded.dataset.delays_s) if part]
        content = json.dumps([pairs, *others] if others else pairs)
        told = f"{loaded.lengths.words}, {len(pairs):,} requests, {digest(content)}"
        yield "content of workload.dataset", json.dumps(told, ensure_ascii=False)
    if loaded.calibration is not None:
        yield from flat_fields("calibration", loaded.calibration)
    if loaded.prices is not None:
        yield from flat_fields("prices", region_document(loaded.prices, loaded.environment.region))


def flat_fields(path: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield every value that is no mapping, with its path."""
    if isinstance(value, dict) and value:
        for name, one in value.items():
            yield from flat_fields(f"{path}.{name}".removeprefix("."), one)
    else:
        yield path, json.dumps(value, ensure_ascii=False, sort_keys=True)


def file_changes(old: EndpointState | None, new: EndpointState | None) -> tuple[FileChange, ...]:
    """Return the rendered files that differ; none where one side can't be rendered.

    A side that does not have the endpoint has no files.
    """
    before, after = _files(old), _files(new)
    if before is None or after is None:
        return ()
    return tuple(
        FileChange(name, tuple(_lines(before.get(name, ""), after.get(name, ""))))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _files(state: EndpointState | None) -> Mapping[str, str] | None:
    if state is None:
        return {}
    return None if state.deployment is None else rendered_files(state.deployment.serving)


def _lines(old: str, new: str) -> Iterator[str]:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=CONTEXT_LINES)
    yield from (line for line in lines if not line.startswith(("--- ", "+++ ", "---\n")))
