"""What a transcript shows, without what differs from run to run: errors, fields, statuses, answers, times."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from pydantic import Field, JsonValue

from seatrial_base.frozen_model import FrozenModel
from tests.acceptance.transcript.lines import AnswerLine, CallLine, RunLine, StackEventLine, Target, ToolLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tests.acceptance.transcript.lines import Line

_VARYING: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\w.:+-]*"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "UUID"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b"), "HEX"),
    (
        re.compile(r"(?<![A-Za-z0-9])(?=[A-Z]*[0-9])[A-Z0-9]{8,}(?![A-Za-z0-9])|(?<=-)[A-Za-z0-9]{12}(?![A-Za-z0-9])"),
        "ID",
    ),
    (re.compile(r"\d+(?:\.\d+)?"), "N"),
)
"""What the words of an answer have that another run has not: the first that matches counts."""
_HASH: Final = re.compile(r"(?:[0-9A-F]{8})+$")
"""What the CDK puts after the path of a construct: another configuration may have another one."""
_PREPARATION: Final = (("cdk", "bootstrap"), ("cdk", "synth"))
"""Commands of one side alone: an account was bootstrapped before; for the embedded AWS the suite itself synthesizes."""
_EVENTS: Final = "cloudformation:DescribeStackEvents"
"""Its statuses are those of events, which are told by resource."""
_FREE: Final = frozenset({"Environment", "Parameters", "Tags", "Metadata"})
"""Mappings whose keys are the caller's own."""
_FREE_ENTRIES: Final = tuple(f"{name}[]" for name in sorted(_FREE))
"""Entries of lists that are the caller's own: another environment may have none."""


class CallProfile(FrozenModel):
    """What one operation answered in one case.

    Attributes:
        errors: Its errors, by code, with their words; what varies is left out of these.
        fields: Dotted paths of what its answers held.
        statuses: By the path of a status, the values that it went through, in their order.
    """

    errors: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    fields: tuple[str, ...] = ()
    statuses: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class CaseProfile(FrozenModel):
    """What one case showed.

    Attributes:
        seconds: How long it lasted; None where one line tells nothing of it.
        calls: By service and operation.
        events: By stack and resource of its template, the statuses that CloudFormation told.
        reasons: By the same, the words of failures.
        exit_codes: Of the commands, in their order.
        answers: By question, the answer.
    """

    seconds: float | None = None
    calls: dict[str, CallProfile] = Field(default_factory=dict)
    events: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    reasons: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    exit_codes: tuple[int, ...] = ()
    answers: dict[str, JsonValue] = Field(default_factory=dict)


class Profile(FrozenModel):
    """What a transcript shows.

    Attributes:
        target: What was asked.
        cases: By the test.
    """

    target: Target
    cases: dict[str, CaseProfile]


def profile_of(lines: Sequence[Line]) -> Profile:
    """Return what a transcript shows; its first line is that of a run."""
    runs = [line for line in lines if isinstance(line, RunLine)]
    words = _Words(runs[0].environment, runs[0].region)
    by_case: dict[str, list[Line]] = {}
    for line in lines:
        if not isinstance(line, RunLine):
            by_case.setdefault(line.case, []).append(line)
    return Profile(target=runs[0].target, cases={case: _case(of, words) for case, of in by_case.items()})


class _Words:
    """Takes out of words what another run, environment or region has otherwise."""

    def __init__(self, environment: str, region: str) -> None:
        names = {environment: "ENV", region: "REGION"}
        self._names = [
            (re.compile(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"), to) for name, to in names.items()
        ]

    def __call__(self, text: str) -> str:
        for pattern, instead in (*self._names, *_VARYING):
            text = pattern.sub(instead, text)
        return text


def _case(lines: Sequence[Line], words: Callable[[str], str]) -> CaseProfile:
    calls: dict[str, list[CallLine]] = {}
    events: dict[str, list[StackEventLine]] = {}
    for line in lines:
        if isinstance(line, CallLine):
            calls.setdefault(f"{line.service}:{line.operation}", []).append(line)
        elif isinstance(line, StackEventLine):
            events.setdefault(words(f"{line.stack}/{_HASH.sub('', line.logical_id)}"), []).append(line)
    failed = {place: [each for each in of if each.status.endswith("FAILED")] for place, of in events.items()}
    return CaseProfile(
        seconds=_seconds(lines),
        calls={name: _call(of, words) for name, of in sorted(calls.items())},
        events={place: tuple(_collapsed(each.status for each in of)) for place, of in sorted(events.items())},
        reasons={place: tuple(words(each.reason) for each in of) for place, of in sorted(failed.items()) if of},
        exit_codes=tuple(
            line.exit_code for line in lines if isinstance(line, ToolLine) and line.command[:2] not in _PREPARATION
        ),
        answers={line.question: _answer(line.answer, words) for line in lines if isinstance(line, AnswerLine)},
    )


def _seconds(lines: Sequence[Line]) -> float | None:
    spans = [(line.at_s, line.at_s + line.took_s) for line in lines if isinstance(line, CallLine | ToolLine)]
    return round(max(end for _, end in spans) - min(begin for begin, _ in spans), 1) if spans else None


def _call(lines: Sequence[CallLine], words: Callable[[str], str]) -> CallProfile:
    errors: dict[str, set[str]] = {}
    fields: set[str] = set()
    statuses: dict[str, list[str]] = {}
    for line in lines:
        if line.error:
            errors.setdefault(line.error.code, set()).add(words(line.error.message))
        for path, value in _leaves(line.reply):
            fields.add(path)
            if path.endswith("Status") and isinstance(value, str) and f"{line.service}:{line.operation}" != _EVENTS:
                statuses.setdefault(path, []).append(value)
    return CallProfile(
        errors={code: tuple(sorted(told)) for code, told in sorted(errors.items())},
        fields=tuple(sorted(fields)),
        statuses={path: tuple(_collapsed(of)) for path, of in sorted(statuses.items())},
    )


def _leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield the dotted paths of a document with their values; entries of a list are one."""
    if isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, f"{path}[]")
    elif isinstance(value, dict) and path.rpartition(".")[2].removesuffix("[]") not in _FREE:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}".lstrip("."))
    elif path and not path.endswith(_FREE_ENTRIES):
        yield path, value


def _collapsed(values: Iterable[str]) -> Iterator[str]:
    return (value for value, _ in groupby(values))


def _answer(value: JsonValue, words: Callable[[str], str]) -> JsonValue:
    """Return an answer without what varies: numbers stay where they are values of their own."""
    if isinstance(value, str):
        return words(value)
    if isinstance(value, dict):
        return {words(name): _answer(inner, words) for name, inner in value.items()}
    return [_answer(inner, words) for inner in value] if isinstance(value, list) else value
