"""Mends a file only as far as nothing else becomes wrong, until nothing more can be mended."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial_lint.lint.fix import fixed_text
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.source import ConfigSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial_base.findings import Finding

ROUNDS = 5  # one mended key can make another one mendable; more was never seen


def mended_text(source: ConfigSource, findings: Iterable[Finding], given: Given | None = None) -> str:
    """Return a file's text with its findings mended; linting it again finds nothing more to mend, and nothing new.

    Args:
        source: The file, or one container of it.
        findings: What was found in all files.
        given: What the user said beside the files.
    """
    given = given or Given()
    open_ones = [one for one in findings if one.edit and one.place.file == source.file]
    for _ in range(ROUNDS):
        text = _as_far_as_good(source, open_ones, given)
        if text == source.text:
            break
        source = replace(source, text=text)
        open_ones = [one for one in _found(source, given) if one.edit]
    return source.text


def _as_far_as_good(source: ConfigSource, findings: list[Finding], given: Given) -> str:
    """Make all edits; where that makes something else wrong, each one that doesn't."""
    text = fixed_text(source, findings)
    before = _wrong(source, given)
    if text == source.text or _wrong(replace(source, text=text), given) <= before:
        return text
    good: list[Finding] = []
    for one in findings:
        tried = replace(source, text=fixed_text(source, [*good, one]))
        if _wrong(tried, given) <= before:
            good.append(one)
    return fixed_text(source, good)


def _wrong(source: ConfigSource, given: Given) -> set[str]:
    return {f"{one.rule} {one.message}" for one in _found(source, given) if one.severity != "note"}


def _found(source: ConfigSource, given: Given) -> tuple[Finding, ...]:
    read = read_content(source.text.encode(source.encoding), source.file)
    beside = {name: fact for name, fact in source.facts.items() if name == "model_py"}
    every = [replace(one, facts={**one.facts, **beside}) for one in read if isinstance(one, ConfigSource)]
    return lint_sources(every, given).findings
