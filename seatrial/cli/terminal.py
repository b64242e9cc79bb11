"""Writes to standard output, whatever characters its encoding lacks."""

from __future__ import annotations

import codecs
import io
import json
import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

_IN_ASCII = {"±": "+/-", "×": "x", "≤": "<=", "≥": ">=", "–": "-", "—": "-", "−": "-", "…": "...", "“": '"', "”": '"'}  # noqa: RUF001 (what is replaced)


def show(view: RenderableType) -> None:
    """Print a view for people, in ASCII where the terminal has no more."""
    from rich.console import Console

    _replace_unknown()
    Console(highlight=False).print(view)


def show_json(document: object) -> None:
    """Print a document for machines; without Unicode its other characters are escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    unicode = encoding.lower().startswith("utf")
    typer.echo(json.dumps(document, indent=2, ensure_ascii=not unicode))


def show_text(text: str) -> None:
    """Print lines as they are, in ASCII where the terminal has no more."""
    _replace_unknown()
    typer.echo(text, nl=False)


def _replace_unknown() -> None:
    codecs.register_error("seatrial.ascii", _replaced)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="seatrial.ascii")


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    return "".join(_IN_ASCII.get(character, "?") for character in unknown), error.end
