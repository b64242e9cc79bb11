"""The user's own code for the container: `model.py`, `requirements.txt`, packaged with the configuration."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import groupby
from typing import TYPE_CHECKING

from seatrial.specs.repository_files import RELATIVE, kind_in_repository, stays_in, why_away
from seatrial_base.errors import RenderError
from seatrial_base.secrets import credentials, holds_credential, redacted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding

FIELD = ("serving", "code")
RENDERED = "serving.properties"
MOST_BYTES = 10 * 2**20  # of all files together: it is code; weights are staged
_LEFT_OUT = "__pycache__"
# Files that hold nothing but keys. Those that begin with a dot (`.env`, `.netrc`, `.aws`) are left out anyway.
_KEY_FILES = re.compile(
    r".*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)|id_(?:rsa|dsa|ecdsa|ed25519)|credentials|_?netrc|kubeconfig|htpasswd",
    re.IGNORECASE,
)
_Wrong = tuple[str, str, str]  # rule, what is wrong, remedy
_MEND = "revoke it and remove it; read it from Secrets Manager at container start"


def code_files(loaded: LoadedSpec) -> dict[str, str]:
    """Return the texts of the spec's code folder by name, sorted; none when the spec names no folder.

    Names that begin with a dot and `__pycache__` are left out. Nothing outside the folder is read, and the folder lies
    in the spec's repository.

    Raises:
        RenderError: SEA368 with every file that can't be packaged, or when the weights claim the model's folder; SEA369
            with every file that holds a credential.
    """
    name = loaded.endpoint.serving.code
    if name is None:
        return {}
    if away := list(_away_problems(loaded, name)):
        raise RenderError(away)
    folder = loaded.path.parent / name
    paths = sorted(_paths(folder), key=lambda path: path.relative_to(folder).as_posix())
    problems = [*_place_problems(loaded, folder, paths), *_file_problems(loaded, folder, paths)]
    if problems:
        raise RenderError(problems)
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _paths(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*") if kind_in_repository(folder) == "folder" else ():
        parts = path.relative_to(folder).parts
        left_out = any(part.startswith(".") or part == _LEFT_OUT for part in parts)
        if not left_out and (path.is_symlink() or not path.is_dir()):
            yield path


def _away_problems(loaded: LoadedSpec, name: str) -> Iterator[Finding]:
    """Yield why a folder is none of the repository: then nothing of it is looked at."""
    if because := why_away(loaded.path, name):
        yield loaded.problem(FIELD, "SEA368", because, f"copy the folder into it; {RELATIVE}")


def _place_problems(loaded: LoadedSpec, folder: Path, paths: list[Path]) -> Iterator[Finding]:
    model = loaded.endpoint.model
    if model.hub_id is None:
        message = "the code and the mounted weights both use /opt/ml/model"
        yield loaded.problem(FIELD, "SEA368", message, "put the code beside the weights, and stage both")
    if not paths:
        message = (
            f"{folder.name} is not a folder"
            if kind_in_repository(folder) != "folder"
            else f"the folder {folder.name} is empty"
        )
        yield loaded.problem(FIELD, "SEA368", message, RELATIVE)
    total = sum(path.stat().st_size for path in paths if path.is_file())
    if total > MOST_BYTES:
        message = f"the folder's {total:,} bytes exceed {MOST_BYTES:,}"
        yield loaded.problem(FIELD, "SEA368", message, "stage weights instead (seatrial stage)")


def _file_problems(loaded: LoadedSpec, folder: Path, paths: list[Path]) -> Iterator[Finding]:
    for path in paths:
        if wrong := _place_problem(path, folder) or _content_problem(path):
            rule, what, hint = wrong
            name = redacted(path.relative_to(folder).as_posix())
            yield loaded.problem(FIELD, rule, f"{name} {what}", hint)


def _place_problem(path: Path, folder: Path) -> _Wrong | None:
    """Return what is wrong with a file's name or place."""
    name = path.relative_to(folder).as_posix()
    if holds_credential(name) or _KEY_FILES.fullmatch(path.name):
        return "SEA369", "has the name of a credentials file", _MEND
    if name == RENDERED:
        return "SEA368", "is written from the plan", "remove it; options go to serving.overrides"
    if not stays_in(path, folder):
        return "SEA368", "points outside of the folder", "copy it into the folder"
    return None


def _content_problem(path: Path) -> _Wrong | None:
    """Return what is wrong with what a path holds; a file that is too large is counted, not read."""
    if path.is_dir():
        return "SEA368", "is a link to a folder", "copy the folder to its place"
    if not path.is_file():
        return "SEA368", "is not a file", "remove it"
    if path.stat().st_size > MOST_BYTES:
        return None
    if not _is_text(path):
        return "SEA368", "is not UTF-8 text", "package text files only"
    held = _held(path.read_text(encoding="utf-8"))
    return ("SEA369", f"contains {held}", _MEND) if held else None


def _held(text: str) -> str:
    """Return which credentials a text seems to hold, and on which lines; empty for none."""
    ends = [found.start() for found in re.finditer("\n", text)]
    found = sorted((one.kind, bisect_left(ends, one.start) + 1) for one in credentials(text))
    kinds = groupby(found, key=lambda one: one[0])
    return "; ".join(f"{kind} (line {', '.join(str(line) for _, line in lines)})" for kind, lines in kinds)


def _is_text(path: Path) -> bool:
    """Return whether a file is UTF-8; a zero is in other encodings, whose words no search finds."""
    try:
        return "\0" not in path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False
