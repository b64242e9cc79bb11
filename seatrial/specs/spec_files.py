"""Files that a spec names or has next to it: those of its repository, weights, calibration, lock, and its guests."""

from __future__ import annotations

import json
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Final, Literal

from seatrial.specs.yaml_source import merge_environment, read_source
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import follow_links, kind_of, read_text
from seatrial_base.secrets import redacted
from seatrial_base.text import json_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Never


RELATIVE = "the path is relative to the spec"
_ROOT_MARKS = (".git", "cdk.json")
CONFIG: Final = "config.json"
_INDEX: Final = "model.safetensors.index.json"
_SPECS: Final = ("*.yaml", "*.yml")
_EMBEDS: Final = "modules.json"  # of sentence-transformers, whose models give embeddings
SCHEMA_VERSION = "1"
_HINT = "run `seatrial calibrate` again, or delete the file"
_FIELD = "more_models"


def repository_root(spec: Path) -> Path:
    """Return the folder of the repository that a spec is in; without Git and CDK, the one above the spec's folder."""
    home = follow_links(spec).parent
    marked = (folder for folder in (home, *home.parents) if any((folder / mark).exists() for mark in _ROOT_MARKS))
    return next(marked, home.parent)


def stays_in(path: Path, folder: Path) -> bool:
    """Return whether a path, its links followed, is in a folder."""
    try:
        return follow_links(path).is_relative_to(follow_links(folder))
    except OSError:  # a link to itself
        return False


def kind_in_repository(path: Path) -> Literal["file", "folder", "other"] | None:
    """Return what a path that a spec names leads to; None too where it can't be looked at, as a name too long."""
    try:
        return kind_of(path)
    except OSError:
        return None


def why_away(spec: Path, name: str) -> str:
    """Return why a file or folder that a spec names is none of its repository; empty where it is one."""
    if Path(name).is_absolute() or PureWindowsPath(name).drive or name.startswith("~"):
        return f"{redacted(name)} is an absolute path"
    root = repository_root(spec)
    away = not stays_in(spec.parent / name, root)
    return f"{redacted(name)} is outside of the repository {root.as_posix()}" if away else ""


def is_weights_folder(path: Path) -> bool:
    """Return whether a path is a folder with a `config.json` and without specs."""
    return (path / CONFIG).is_file() and not any(any(path.glob(each)) for each in _SPECS)


def gives_embeddings(folder: Path) -> bool:
    """Return whether a folder holds a model of sentence-transformers, which generates no text."""
    return (folder / _EMBEDS).is_file()


def indexed_bytes(folder: Path) -> int | None:
    """Return the size of the weights by the index of their shards, in bytes; `None` without a readable index."""
    try:
        index = json.loads(read_text(folder / _INDEX))
    except (OSError, ValueError):
        return None
    metadata = index.get("metadata") if isinstance(index, dict) else None
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return size if isinstance(size, int) and size > 0 else None


def calibration_path(spec_path: Path) -> Path:
    """Return the calibration of a spec: `chat.yaml` has `chat.calibration.json`."""
    return spec_path.with_name(f"{spec_path.stem}.calibration.json")


def calibration_document(spec_path: Path, environment: str) -> dict[str, object] | None:
    """Return the calibration of an endpoint in one environment, or `None` when nothing was calibrated there.

    Raises:
        SpecError: SEA405 when the file can't be read, is not JSON, or has another schema.
    """
    entry = every_calibration(spec_path).get(environment)
    if entry is not None and not isinstance(entry, dict):
        _refuse(calibration_path(spec_path), f"the entry {environment} is not a mapping")
    return entry


def every_calibration(spec_path: Path) -> dict[str, object]:
    """Return the entries of all environments; none when nothing was calibrated.

    Raises:
        SpecError: SEA405 when the file can't be read, is not JSON, or has another schema.
    """
    path = calibration_path(spec_path)
    document = _read(path)
    if document is None:
        return {}
    environments = document.get("environments")
    if document.get("schema_version") != SCHEMA_VERSION:
        _refuse(path, f"schema_version is {document.get('schema_version')!r}, not {SCHEMA_VERSION!r}")
    if not isinstance(environments, dict):
        _refuse(path, "environments is not a mapping")
    return environments


def _read(path: Path) -> dict[str, object] | None:
    try:
        document = json_document(read_text(path), parse_constant=_no_number)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        _refuse(path, str(error) or type(error).__name__)
    if not isinstance(document, dict):
        _refuse(path, "not a JSON object")
    return document


def _no_number(constant: str) -> Never:
    raise ValueError(f"{constant} is not a JSON number")


def _refuse(path: Path, reason: str) -> Never:
    message = f"the calibration can't be read: {reason}"
    raise SpecError.of("SEA405", message, hint=_HINT, where=path.as_posix())


def hosts(folder: Path, environment: str) -> Mapping[str, tuple[Path, ...]]:
    """Return the specs that name each guest in `hosting.more_models`, by the guest's file name without its suffix.

    A file that can't be read, or that is wrong, names none here: whoever loads it gets the error.
    """
    hosted: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.yaml")):
        for guest in dict.fromkeys(_guests(file, environment)):
            hosted.setdefault(guest, []).append(file)
    return {guest: tuple(files) for guest, files in hosted.items()}


def _guests(file: Path, environment: str) -> Iterator[str]:
    try:
        # A search in the text is quicker than reading YAML, and a folder may have many specs.
        if _FIELD not in read_text(file):
            return
        named = merge_environment(read_source(file), environment).value("hosting", _FIELD)
    except (OSError, UnicodeError, SeatrialError):
        return
    if isinstance(named, list):
        yield from (each for each in named if isinstance(each, str))


def lock_path(spec_path: Path) -> Path:
    """Return the lock of a spec: `chat.yaml` has `chat.lock.json`."""
    return spec_path.with_name(f"{spec_path.stem}.lock.json")


def endpoint_name_of(file: Path) -> str:
    """Return the endpoint's name in a spec, be it wrong in all else; the file's where it has none."""
    name = read_source(file).data.get("name")
    return name if isinstance(name, str) else file.stem
