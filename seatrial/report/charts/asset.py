"""The chart library that the page carries: built of npm's packages by `make install`, never loaded at view time."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "plot.min.js"
SCRIPT = FOLDER / "draw.js"
ABSENT = (
    "No charts: this installation lacks plot.min.js. In a checkout, run “make install” and write the report again. "
    "The tables have every number."
)


@cache
def scripts(library: Path = LIBRARY) -> tuple[str, ...]:
    """Return the scripts of the page, the library first; none where the library wasn't built."""
    if not library.is_file():
        return ()
    return tuple(path.read_text(encoding="utf-8") for path in (library, SCRIPT))


def source_hash(script: str) -> str:
    """Return what a content security policy allows a script by: the hash of its text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
