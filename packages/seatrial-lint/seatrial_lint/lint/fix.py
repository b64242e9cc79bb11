"""Mends what is safe: keys and values get their newer spelling, exact repetitions go; the rest of a file stays."""

from __future__ import annotations

import difflib
import errno
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.file_lock import changing
from seatrial_base.files import write_whole
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.redaction import covered, uncovered
from seatrial_lint.lint.source import ConfigSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial_base.findings import Edit, Finding


def fixed_text(source: ConfigSource, findings: Iterable[Finding]) -> str:
    """Return a file's text with every edit of its findings made; of two that overlap, the first."""
    edits = sorted(
        {finding.edit for finding in findings if finding.edit and finding.place.file == source.file}, key=_place
    )
    parts: list[str] = []
    at = 0
    for edit in edits:
        if edit.start < at:
            continue
        parts += [source.text[at : edit.start], edit.text]
        at = edit.end
    return "".join((*parts, source.text[at:]))


def _place(edit: Edit) -> tuple[int, int, str]:
    return edit.start, edit.end, edit.text


def mended_diff(source: ConfigSource, text: str) -> str:
    """Return the difference between a file and its mended text, as patches are written; secrets are hidden."""
    mended = [one for one in read_content(text.encode(source.encoding), source.file) if isinstance(one, ConfigSource)]
    every = tuple(entry for one in mended for entry in one.entries)
    before = covered(source).splitlines(keepends=True)
    after = covered(replace(source, text=text, entries=every)).splitlines(keepends=True)
    lines = difflib.unified_diff(before, after, source.file, source.file)
    return uncovered(
        "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    )


def write_fixed(source: ConfigSource, text: str) -> None:
    """Write a mended file whole or not at all; its mode stays.

    Raises:
        OSError: When the file can't be written, or holds another text by now; it is then as it was.
    """
    path = Path(source.file)
    with changing(path):
        if path.read_bytes() != source.text.encode(source.encoding):
            raise OSError(errno.EAGAIN, "it has changed since it was read")
        write_whole(path, text.encode(source.encoding))
