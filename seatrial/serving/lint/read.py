"""Reads the files that a user names: each one's form by name and content, and nothing outside those paths."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.serving.lint.env_text import read_env
from seatrial.serving.lint.json_text import read_json
from seatrial.serving.lint.sagemaker_json import read_definition
from seatrial.serving.lint.source import ConfigSource, SourceEntry, Unreadable
from seatrial.serving.properties import read_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

HANDLER = "model.py"
MAX_BYTES = 4 * 1024 * 1024  # a serving configuration is text of a few KiB; weights lie in the same folders
_NAMES = re.compile(r"(^|\.)(env|properties|json)$|^\.env(\.|$)|\.env\.")
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", "cdk.out"})
_PROPERTY = re.compile(r"^[ \t]*(option\.|engine[ \t]*[=:])", re.MULTILINE)
_VARIABLE = re.compile(r"^[ \t]*(?:export[ \t]+)?[A-Za-z_][A-Za-z0-9_]*=", re.MULTILINE)


def read_path(path: Path) -> Iterator[ConfigSource | Unreadable]:
    """Yield what a file, or every file of a folder, holds.

    In a folder, files of other content are passed over, and symbolic links that leave it are not followed. A file that
    is named and holds no serving configuration is unreadable.
    """
    if not path.is_dir():
        yield from _named(path)
        return
    found = False
    for file in _walk(path):
        for source in map(_with_handler, read_file(file)):
            found = found or isinstance(source, ConfigSource)
            if isinstance(source, ConfigSource) or file.name == "serving.properties":
                yield source
    if not found:
        yield Unreadable(path.as_posix(), "no serving configuration in this folder")


def _with_handler(source: ConfigSource | Unreadable) -> ConfigSource | Unreadable:
    """Note a `model.py` beside a packaged file: LMI takes it for the handler, which reads options of its own."""
    if isinstance(source, Unreadable) or source.kind != "serving.properties":
        return source
    handler = Path(source.file).parent / HANDLER
    if handler.is_symlink() or not handler.is_file():
        return source
    return replace(source, facts={**source.facts, "model_py": SourceEntry("", HANDLER, 1, "env")})


def read_file(path: Path) -> tuple[ConfigSource | Unreadable, ...]:
    """Read one file; whatever its bytes are, it is read or said to be unreadable."""
    try:
        if not path.is_file():  # a pipe or device would block
            return (Unreadable(path.as_posix(), "no such file" if not path.exists() else "not a regular file"),)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        return (Unreadable(path.as_posix(), getattr(error, "strerror", None) or str(error)),)
    return read_bytes(content, path.as_posix())


def read_bytes(content: bytes, file: str) -> tuple[ConfigSource | Unreadable, ...]:
    """Read a file's content."""
    if len(content) > MAX_BYTES:
        return (Unreadable(file, f"larger than {MAX_BYTES:,} bytes"),)
    if b"\0" in content:
        return (Unreadable(file, "not a text file"),)
    encoding = _encoding(content)
    text = content.decode(encoding)
    name = file.rpartition("/")[2].lower()
    plain = text.removeprefix("\ufeff").lstrip()
    if name.endswith(".json") or (plain.startswith("{") and not name.endswith((".properties", ".env"))):
        return _from_json(text, file, encoding)
    if name.endswith(".properties") or (_PROPERTY.search(text) and not name.endswith(".env")):
        entries = tuple(
            SourceEntry(
                line.key, line.value, line.number, "properties", line.key_span, line.value_span, line.whole_span
            )
            for line in read_properties(text)
        )
        return (ConfigSource(file, "serving.properties", entries, text=text, encoding=encoding),)
    if name.endswith(".env") or name.startswith(".env") or _VARIABLE.search(text):
        return (ConfigSource(file, "environment file", read_env(text), text=text, encoding=encoding),)
    return (Unreadable(file, "not a serving configuration"),)


def _encoding(content: bytes) -> str:
    """Return UTF-8, or Latin-1 in which every text can be read, as Java reads properties."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _from_json(text: str, file: str, encoding: str) -> tuple[ConfigSource | Unreadable, ...]:
    bom = 1 if text.startswith("\ufeff") else 0
    try:
        root = read_json(" " * bom + text[bom:])
    except ValueError as error:
        return (Unreadable(file, f"not JSON: {error}"),)
    except RecursionError:
        return (Unreadable(file, "not JSON: nested too deep"),)
    found = read_definition(root, file)
    if not found:
        return (Unreadable(file, "not an environment, model, inference component or endpoint config"),)
    return tuple(
        ConfigSource(one.file, one.kind, one.entries, one.facts, one.is_json, text, encoding, one.line) for one in found
    )


def _named(path: Path) -> Iterator[ConfigSource | Unreadable]:
    yield from read_file(path)


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the folder's files that may hold a configuration, sorted; no link out of it is followed."""
    home = folder.resolve()
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            file = Path(root) / name
            if _NAMES.search(name.lower()) and _stays(file, home):
                yield file


def _stays(file: Path, home: Path) -> bool:
    if not file.is_symlink():
        return True
    try:
        return file.resolve(strict=True).is_relative_to(home)
    except (OSError, RuntimeError):
        return False
