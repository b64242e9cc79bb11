"""Parsers of tool calls and reasoning that the engine does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.parsers import PLUGINS, parser_names
from seatrial_lint.lint.nearest import nearest_of
from seatrial_lint.lint.rules import finding, revalue, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_base.findings import Finding
    from seatrial_lint.lint.subject import Subject


DIALECTS: Final = ("lmi-async", "lmi-vllm", "vllm", "sglang")
OPTIONS: Final = {"tool_call_parser": "tool call parser", "reasoning_parser": "reasoning parser"}


@rule("SEA378")
def unknown_parser(subject: Subject) -> Iterator[Finding]:
    """A parser whose name the engine does not have; it does not start, or refuses each request with tools."""
    target = subject.target
    if target is None or target.dialect not in DIALECTS:
        return
    for name, what in OPTIONS.items():
        option, known = subject.option(name), parser_names(target.engine, name)
        written = "" if option is None else option.value.strip()
        if option is None or known is None or not written or written in known.names or subject.option(PLUGINS[name]):
            continue
        near = nearest_of(written, known.names)
        edit = revalue(subject.source, option.entry, near) if near else None
        listed = f"known on {known.date}: {', '.join(known.names)}"
        message = f"{written} is no {what} of {target.called}"
        yield finding(subject, "SEA378", option.entry, message, f"write {near}; {listed}" if near else listed, edit)
