"""Reads the files that a user names: each one's form by name and content, and nothing outside those paths."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.files import follow_links, kind_of
from seatrial_base.units import counted
from seatrial_lint.engines.properties import property_lines
from seatrial_lint.lint.definitions import (
    is_manifest,
    is_plan,
    is_template,
    read_definition,
    read_manifest,
    read_plan,
    template_sources,
)
from seatrial_lint.lint.python_code import MARKS, CodeCell, notebook_cells, read_python, without_magics, written_file
from seatrial_lint.lint.source import ConfigSource, SourceEntry, Unreadable
from seatrial_lint.lint.target import guess
from seatrial_lint.text_nodes import read_json, read_yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from seatrial_lint.lint.source import Kind
    from seatrial_lint.text_nodes import Node


HANDLER = "model.py"
STDIN = "-"
# Of one file; more are not read, so that no file takes minutes.
MAX_KEYS = 2_000
# Of one file, likewise.
MAX_CONFIGURATIONS = 1_000
# A serving configuration is text of a few KiB; weights are in the same folders.
MAX_BYTES = 4 * 1024 * 1024
_NAMES = re.compile(r"(^|\.)(env|properties|json|ya?ml|template|py|ipynb)$|^\.env(\.|$)|\.env\.")
_YAML = (".yaml", ".yml", ".template")
_YAML_MARKS = (b"AWS::SageMaker", b"image:", b"PrimaryContainer", b"ProductionVariants", b"Environment")
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", "cdk.out"})
_NO_CALLS = "no call that makes a model has a literal environment or image"
_DEFINITIONS = "an environment, model, inference component or endpoint config"
_PROPERTY = re.compile(r"^[ \t]*(option\.|engine[ \t]*[=:])", re.MULTILINE)
# An assignment, or a name alone (`docker run --env-file`).
_VARIABLE = re.compile(r"(?:export[ \t]+)?[A-Za-z_]\w*(?:=|$)", re.ASCII)


def read_path(path: Path) -> Iterator[ConfigSource | Unreadable]:
    """Yield what a file, or every file of a folder, holds.

    In a folder, files of other content are passed over, and symbolic links that leave it are not followed. A file that
    is named and holds no serving configuration is unreadable.
    """
    try:
        is_folder = kind_of(path) == "folder"
    except (OSError, ValueError) as error:
        # A part of the path may not be searched, or is no name.
        yield Unreadable(path.as_posix(), _why(error))
        return
    if not is_folder:
        yield from read_file(path)
        return
    closed: list[OSError] = []
    sources = [(file, with_handler(source)) for file in _walk(path, closed.append) for source in read_file(file)]
    # Of a folder: a configuration, a file that should be one, or one that can't be read.
    for file, source in sources:
        if isinstance(source, ConfigSource) or source.is_failure or file.name == "serving.properties":
            yield source
    yield from (Unreadable(str(error.filename or path), _why(error), is_failure=True) for error in closed)
    if not closed and not any(isinstance(source, ConfigSource) for _, source in sources):
        yield Unreadable(path.as_posix(), "no serving configuration in this folder")


def _why(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)


def with_handler(source: ConfigSource | Unreadable) -> ConfigSource | Unreadable:
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
        # A pipe or device would block.
        if (kind := kind_of(path)) != "file":
            because = "no such file" if kind is None else "not a regular file"
            return (Unreadable(path.as_posix(), because, is_failure=True),)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        return (Unreadable(path.as_posix(), _why(error), is_failure=True),)
    return read_content(content, path.as_posix())


def read_stdin(stream: BinaryIO, name: str) -> tuple[ConfigSource | Unreadable, ...]:
    """Read the standard input."""
    try:
        content = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        return (Unreadable(name, _why(error), is_failure=True),)
    return read_content(content, name)


def read_content(content: bytes, file: str) -> tuple[ConfigSource | Unreadable, ...]:
    """Read a file's content."""
    if len(content) > MAX_BYTES:
        return (Unreadable(file, f"larger than {MAX_BYTES:,} bytes"),)
    if b"\0" in content:
        return (Unreadable(file, "not a text file"),)
    sources = _from_text(content, file)
    if sum(isinstance(source, ConfigSource) for source in sources) <= MAX_CONFIGURATIONS:
        return sources
    message = f"only its first {MAX_CONFIGURATIONS:,} configurations are read"
    return *sources[:MAX_CONFIGURATIONS], Unreadable(file, message, is_failure=True)


def _from_text(content: bytes, file: str) -> tuple[ConfigSource | Unreadable, ...]:
    try:
        text, encoding = content.decode(), "utf-8"
    except UnicodeDecodeError:
        # In which every text can be read, as Java reads properties.
        text, encoding = content.decode("latin-1"), "latin-1"
    name = file.rpartition("/")[2].lower()
    plain = text.removeprefix("\ufeff").lstrip()
    if name.endswith((".py", ".ipynb")):
        return _from_code(text, file, encoding, content)
    if name.endswith(".tf"):
        return (Unreadable(file, "Terraform's own files are not read; give the plan: terraform show -json PLAN"),)
    if name.endswith(_YAML) and not plain.startswith("{"):
        return _from_yaml(text, file, encoding, content)
    if name.endswith((".json", *_YAML)) or (plain.startswith("{") and not name.endswith((".properties", ".env"))):
        return _from_json(text, file, encoding)
    return _from_lines(text, file, encoding)


def _from_lines(text: str, file: str, encoding: str) -> tuple[ConfigSource | Unreadable, ...]:
    name = file.rpartition("/")[2].lower()
    if name.endswith(".properties") or (_PROPERTY.search(text) and not name.endswith(".env")):
        entries = (
            SourceEntry(
                line.key, line.value, line.number, "properties", line.key_span, line.value_span, line.whole_span
            )
            for line in property_lines(text)
        )
        return _bounded(ConfigSource(file, "serving.properties", (), text=text, encoding=encoding), entries)
    if name.endswith(".env") or name.startswith(".env") or _is_environment(text):
        return _bounded(ConfigSource(file, "environment file", (), text=text, encoding=encoding), read_env(text))
    return (Unreadable(file, "not a serving configuration"),)


def _is_environment(text: str) -> bool:
    """Return whether every line is a variable: shell scripts and Dockerfiles have assignments too, among statements."""
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    written = [line for line in lines if line and not line.startswith("#")]
    return not text.startswith("#!") and all(map(_VARIABLE.match, written)) and any("=" in line for line in written)


def _bounded(source: ConfigSource, entries: Iterable[SourceEntry]) -> tuple[ConfigSource | Unreadable, ...]:
    """Return a file with its first keys, and that there are more."""
    read = tuple(islice(entries, MAX_KEYS + 1))
    bounded = replace(source, entries=read[:MAX_KEYS])
    if len(read) <= MAX_KEYS:
        return (bounded,)
    return bounded, Unreadable(source.file, f"only its first {MAX_KEYS:,} keys are read", is_failure=True)


def _from_json(text: str, file: str, encoding: str) -> tuple[ConfigSource | Unreadable, ...]:
    bom = 1 if text.startswith("\ufeff") else 0
    try:
        root = read_json(" " * bom + text[bom:])
    except ValueError as error:
        return (Unreadable(file, f"not JSON: {error}"),)
    except RecursionError:
        return (Unreadable(file, "not JSON: nested too deep"),)
    sources = _definitions(root, file)
    if not sources:
        return (Unreadable(file, f"not {_DEFINITIONS}"),)
    return _of_text(sources, text, encoding)


def _definitions(root: Node, file: str) -> tuple[ConfigSource, ...]:
    if is_template(root):
        return tuple(_as_kind(template_sources(root, file), "CloudFormation template"))
    if is_plan(root):
        return tuple(_as_kind(read_plan(root, file), "Terraform plan"))
    if is_manifest(root):
        return tuple(one for one in read_manifest(root, file) if guess(one) is not None)
    return read_definition(root, file)


def _as_kind(sources: Iterable[ConfigSource], kind: Kind) -> Iterator[ConfigSource]:
    return (source if source.kind == "endpoint config" else replace(source, kind=kind) for source in sources)


def _of_text(sources: Iterable[ConfigSource], text: str, encoding: str) -> tuple[ConfigSource | Unreadable, ...]:
    placed = (replace(source, text=text, encoding=encoding) for source in sources)
    return tuple(part for one in placed for part in _bounded(one, one.entries))


def _from_yaml(text: str, file: str, encoding: str, content: bytes) -> tuple[ConfigSource | Unreadable, ...]:
    if not any(mark in content for mark in _YAML_MARKS):
        return (Unreadable(file, f"not {_DEFINITIONS}"),)
    try:
        sources = [definition for root in read_yaml(text) for definition in _definitions(root, file)]
    except ValueError as error:
        return (Unreadable(file, f"not YAML: {error}"),)
    except RecursionError:
        return (Unreadable(file, "not YAML: nested too deep"),)
    if not sources:
        return (Unreadable(file, f"not {_DEFINITIONS}"),)
    return _of_text((replace(source, is_fixable=False) for source in sources), text, encoding)


def _from_code(text: str, file: str, encoding: str, content: bytes) -> tuple[ConfigSource | Unreadable, ...]:
    if not any(mark in content for mark in MARKS):
        return (Unreadable(file, _NO_CALLS),)
    cells = [CodeCell(text, range(1, text.count("\n") + 2))]
    written: tuple[ConfigSource, ...] = ()
    if file.lower().endswith(".ipynb"):
        try:
            every = list(notebook_cells(read_json(text)))
        except ValueError as error:
            return (Unreadable(file, f"not a notebook: {error}"),)
        except RecursionError:
            return (Unreadable(file, "not a notebook: nested too deep"),)
        written = tuple(source for cell in every for source in _written_by(cell, file))
        cells = [without_magics(cell) for cell in every]
    sources, wrong, images = read_python(cells, file)
    if not sources and not written:
        return (Unreadable(file, wrong[0] if wrong else _NO_CALLS),)
    unread = f"{counted(len(wrong), 'cell')} not read: no Python" if wrong and len(cells) > 1 else ""
    placed = (replace(one, unread=", ".join(filter(None, (one.unread, unread)))) for one in sources)
    return _of_text((*_with_image(written, sources, images), *placed), text, encoding)


def _with_image(
    written: Iterable[ConfigSource], models: Iterable[ConfigSource], bases: Iterable[SourceEntry]
) -> Iterator[ConfigSource]:
    """Yield written files with the image of the one LMI model beside them, which packs them, or that it is built on."""
    of_models = [(one, image) for one in models if (image := one.facts.get("image")) is not None]
    of_lmi = [image for one, image in of_models if (target := guess(one)) is not None and target.engine == "lmi"]
    images = {image.value: image for image in of_lmi or bases if "djl" in image.value}
    facts = {"image": next(iter(images.values()))} if len(images) == 1 else {}
    yield from (replace(one, facts=facts | one.facts) if one.kind == "serving.properties" else one for one in written)


def _written_by(cell: CodeCell, file: str) -> Iterator[ConfigSource]:
    """Yield the configuration that a cell writes to a file, with the lines of the notebook."""
    written = written_file(cell)
    if written is None or written[0].lower().endswith((".py", ".ipynb")):
        return
    name, body = written
    for source in read_content(body.text.encode(), name):
        if isinstance(source, ConfigSource) and body.lines:
            entries = tuple(replace(entry, line=body.lines[entry.line - 1]) for entry in source.entries)
            yield replace(source, file=file, entries=entries, line=body.lines[source.line - 1], is_fixable=False)


def _walk(folder: Path, on_error: Callable[[OSError], None]) -> Iterator[Path]:
    """Yield the folder's files that may hold a configuration, sorted; no link out of it is followed."""
    home = follow_links(folder)
    for root, folders, names in os.walk(folder, onerror=on_error, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            file = Path(root) / name
            stays = not file.is_symlink()
            # A link that leads nowhere is passed over too.
            with suppress(OSError):
                stays = stays or Path(os.path.realpath(file, strict=True)).is_relative_to(home)
            if stays and _NAMES.search(name.lower()):
                yield file


_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|$)")
_SHORTEST_QUOTED = 2


def read_env(text: str) -> Iterator[SourceEntry]:
    """Yield the variables of an environment file in their order; quotes around a value don't belong to it."""
    for number, line in enumerate(_LINE.finditer(text), 1):
        name, equals, value = line[1].partition("=")
        written = name.strip().removeprefix("export ").strip()
        if not equals or not written or written[0] == "#":
            continue
        key_at = line.start() + name.rindex(written)
        value_at = line.start() + len(name) + 1 + len(value) - len(value.lstrip())
        text = value.strip()
        spans = (key_at, key_at + len(written)), (value_at, value_at + len(text))
        if len(text) >= _SHORTEST_QUOTED and text[0] == text[-1] and text[0] in "'\"":
            text = text[1:-1]
        yield SourceEntry(written, text, number, "env", *spans, (line.start(), line.end()))
