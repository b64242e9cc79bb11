"""The user's own code for the container: `model.py`, `requirements.txt`, packaged with the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.errors import RenderError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.errors import Problem
    from seatrial.spec.load import LoadedSpec

FIELD = ("serving", "code")
RENDERED = "serving.properties"
MOST_BYTES = 10 * 2**20  # of all files together: it is code; weights are staged
_LEFT_OUT = "__pycache__"


def code_files(loaded: LoadedSpec) -> dict[str, str]:
    """Return the texts of the spec's code folder by name, sorted; none when the spec names no folder.

    Names that begin with a dot and `__pycache__` are left out. Nothing outside the folder is read.

    Raises:
        RenderError: SEA368 with every file that can't be packaged, or when the weights claim the model's folder.
    """
    name = loaded.endpoint.serving.code
    if name is None:
        return {}
    folder = loaded.path.parent / name
    paths = sorted(_paths(folder), key=lambda path: path.relative_to(folder).as_posix())
    problems = [*_place_problems(loaded, folder, paths), *_file_problems(loaded, folder, paths)]
    if problems:
        raise RenderError(problems)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _paths(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if not any(part.startswith(".") or part == _LEFT_OUT for part in parts) and not path.is_dir():
            yield path


def _place_problems(loaded: LoadedSpec, folder: Path, paths: list[Path]) -> Iterator[Problem]:
    model = loaded.endpoint.model
    if model.hub_id is None:
        message = "the code and the mounted weights both claim /opt/ml/model"
        yield loaded.problem(FIELD, "SEA368", message, "put the code beside the weights, and stage both")
    if not paths:
        message = f"{folder.name} is no folder" if not folder.is_dir() else f"the folder {folder.name} holds no file"
        yield loaded.problem(FIELD, "SEA368", message, "the path is relative to the spec")
    total = sum(path.stat().st_size for path in paths if path.is_file())
    if total > MOST_BYTES:
        message = f"the folder's {total:,} bytes exceed {MOST_BYTES:,}"
        yield loaded.problem(FIELD, "SEA368", message, "weights don't belong there: stage them (seatrial stage)")


def _file_problems(loaded: LoadedSpec, folder: Path, paths: list[Path]) -> Iterator[Problem]:
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if name == RENDERED:
            hint = "remove it; options go to serving.overrides"
            yield loaded.problem(FIELD, "SEA368", f"{name} is written from the plan", hint)
        elif not path.resolve().is_relative_to(folder.resolve()):
            yield loaded.problem(FIELD, "SEA368", f"{name} leads out of the folder", "copy the file into it")
        elif path.is_file() and path.stat().st_size <= MOST_BYTES and not _is_text(path):
            yield loaded.problem(FIELD, "SEA368", f"{name} is no UTF-8 text", "package texts only")
        elif not path.is_file():
            yield loaded.problem(FIELD, "SEA368", f"{name} is no file", "remove it")


def _is_text(path: Path) -> bool:
    try:
        path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
    return True
