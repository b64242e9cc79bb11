"""Mends what is safe: keys and values get their newer spelling, exact repetitions go; the rest of a file stays.

A file is mended only as far as nothing else becomes wrong, until nothing more can be mended.
"""

from __future__ import annotations

import difflib
import errno
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.files import changing, write_whole
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.redaction import covered, uncovered
from seatrial_lint.lint.source import ConfigSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial_base.findings import Edit, Finding

# One mended key can make another one mendable; more was never seen.
ROUNDS = 5


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


def mended_text(source: ConfigSource, findings: Iterable[Finding], given: Given | None = None) -> str:
    """Return a file's text with its findings mended; linting it again finds nothing more to mend, and nothing new."""
    given = given or Given()
    open_ones = [finding for finding in findings if finding.edit and finding.place.file == source.file]
    for _ in range(ROUNDS):
        text = _as_far_as_good(source, open_ones, given)
        if text == source.text:
            break
        source = replace(source, text=text)
        open_ones = [one for one in _findings_of(source, given) if one.edit]
    return source.text


def _as_far_as_good(source: ConfigSource, findings: list[Finding], given: Given) -> str:
    """Make all edits; where that makes something else wrong, each one that doesn't."""
    text = fixed_text(source, findings)
    before = _wrong(source, given)
    if text == source.text or _wrong(replace(source, text=text), given) <= before:
        return text
    good: list[Finding] = []
    for finding in findings:
        tried = replace(source, text=fixed_text(source, [*good, finding]))
        if _wrong(tried, given) <= before:
            good.append(finding)
    return fixed_text(source, good)


def _wrong(source: ConfigSource, given: Given) -> set[str]:
    return {f"{one.rule} {one.message}" for one in _findings_of(source, given) if one.severity != "note"}


def _findings_of(source: ConfigSource, given: Given) -> tuple[Finding, ...]:
    read = read_content(source.text.encode(source.encoding), source.file)
    beside = {name: fact for name, fact in source.facts.items() if name == "model_py"}
    every = [replace(one, facts={**one.facts, **beside}) for one in read if isinstance(one, ConfigSource)]
    return lint_sources(every, given).findings
