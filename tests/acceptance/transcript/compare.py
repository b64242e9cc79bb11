"""Compare what an account answered with what the embedded AWS answers.

    python -m tests.acceptance.transcript.compare TRANSCRIPT

The other side is the profile of the embedded AWS that is kept beside this file, or another transcript (`--with`).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from pydantic import JsonValue, ValidationError

from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.printer import Judgement, tally, text_lines
from seatrial_base.table import aligned_lines, name_column, number_columns, table_of, text_columns
from seatrial_base.terminal import run_command_line
from seatrial_lint.cli.run import FindingsFormat, exit_judged, lines_text, problems_in, run_typer_app, show_judgement
from tests.acceptance.behaviours import QUESTION, behaviours
from tests.acceptance.transcript.lines import read_transcript
from tests.acceptance.transcript.profile import CallProfile, CaseProfile, Profile, profile_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


EMBEDDED: Final = Path(__file__).with_name("embedded.json")
"""What the embedded AWS answers to the acceptance suite; the suite itself keeps it current."""
TIMES_APART: Final = 10.0
"""An order of magnitude: times that differ by less are equal."""
NEVER_DIFFERENT_S: Final = 1.0
"""Below this a time tells of this machine, not of AWS."""


def differences(account: Profile, embedded: Profile, file: str = "") -> Iterator[Finding]:
    """Yield where two profiles differ, in the order of the account's cases; what one side alone ran is a note."""
    for name, case in account.cases.items():
        at, other = Place(file, resource=name), embedded.cases.get(name)
        if other is None:
            yield _one_sided(at, "the embedded AWS was not asked")
        else:
            yield from _of_case(case, other, at)
    for name in embedded.cases:
        if name not in account.cases:
            yield _one_sided(Place(file, resource=name), "the account was not asked")


def _of_case(account: CaseProfile, embedded: CaseProfile, at: Place) -> Iterator[Finding]:
    yield from _answers(account.answers, embedded.answers, at)
    if account.exit_codes != embedded.exit_codes:
        told = f"commands ended with {_list(account.exit_codes)}, on the embedded AWS with {_list(embedded.exit_codes)}"
        yield Finding("SEA621", replace(at, field="exit codes"), told)
    for operation, call in account.calls.items():
        there = replace(at, field=operation)
        if operation in embedded.calls:
            yield from _of_call(call, embedded.calls[operation], there)
        else:
            yield _one_sided(there, "the embedded AWS was not asked")
    yield from _events(account.events, embedded.events, at)
    yield from _reasons(account.reasons, embedded.reasons, at)
    yield from _times(account.seconds, embedded.seconds, at)


def _answers(account: Mapping[str, JsonValue], embedded: Mapping[str, JsonValue], at: Place) -> Iterator[Finding]:
    for question, answer in account.items():
        there = replace(at, field=question)
        if question not in embedded:
            yield _one_sided(there, "the embedded AWS was not asked")
        elif answer != embedded[question]:
            told = f"the answer is {answer!r}, of the embedded AWS {embedded[question]!r}"
            yield Finding("SEA626", there, "; ".join([told, *_rows(question)]))


def _rows(question: str) -> Iterator[str]:
    """Yield the rows of the table of behaviours that the answer to a question would change."""
    for row in behaviours():
        if f"{QUESTION}{question}" in row.covers:
            yield f"behaviours.json, {row.kind}: {row.behaviour}"


def _of_call(account: CallProfile, embedded: CallProfile, at: Place) -> Iterator[Finding]:
    if set(account.errors) != set(embedded.errors):
        yield Finding("SEA621", at, f"{_codes(account.errors)}; the embedded AWS: {_codes(embedded.errors)}")
    for code in sorted(account.errors.keys() & embedded.errors.keys()):
        if account.errors[code] != embedded.errors[code]:
            told = f"{code} says {_list(account.errors[code])}; the embedded AWS: {_list(embedded.errors[code])}"
            yield Finding("SEA622", at, told, severity="warning")
    yield from _statuses(account.statuses, embedded.statuses, at)
    yield from _fields(account, embedded, at)


def _fields(account: CallProfile, embedded: CallProfile, at: Place) -> Iterator[Finding]:
    if not (account.fields and embedded.fields):  # one side refused every call: told already
        return
    for one, other, whose in ((account, embedded, "the account"), (embedded, account, "the embedded AWS")):
        if alone := sorted(set(one.fields) - set(other.fields)):
            yield Finding("SEA624", at, f"{whose} alone tells {', '.join(alone)}", severity="warning")


def _statuses(
    account: Mapping[str, Sequence[str]], embedded: Mapping[str, Sequence[str]], at: Place
) -> Iterator[Finding]:
    """Yield other sequences of a status; of a status that one side alone tells, its fields tell.

    An account is looked at less often, which misses what does not last: that is a note.
    """
    for path in sorted(account.keys() & embedded.keys()):
        one, other = account[path], embedded[path]
        if one != other:
            told = f"{path} was {_arrows(one)}; on the embedded AWS {_arrows(other)}"
            missed = one[-1:] == other[-1:] and _is_part(one, other)
            yield Finding("SEA623", at, told, severity="note" if missed else "warning")


def _is_part(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Tell whether a sequence is another one with some of it left out."""
    left = iter(whole)
    return all(each in left for each in part)


def _events(
    account: Mapping[str, Sequence[str]], embedded: Mapping[str, Sequence[str]], at: Place
) -> Iterator[Finding]:
    for place in sorted(account.keys() | embedded.keys()):
        one, other = account.get(place, ()), embedded.get(place, ())
        if one != other:
            told = f"its events were {_arrows(one)}; on the embedded AWS {_arrows(other)}"
            yield Finding("SEA623", replace(at, field=place), told, severity="warning")


def _reasons(
    account: Mapping[str, Sequence[str]], embedded: Mapping[str, Sequence[str]], at: Place
) -> Iterator[Finding]:
    for place in sorted(account.keys() & embedded.keys()):
        if account[place] != embedded[place]:
            told = f"it failed with {_list(account[place])}; on the embedded AWS with {_list(embedded[place])}"
            yield Finding("SEA622", replace(at, field=place), told, severity="warning")


def _times(account_s: float | None, embedded_s: float | None, at: Place) -> Iterator[Finding]:
    if account_s is None or embedded_s is None:
        return
    slow, fast = max(account_s, embedded_s), max(NEVER_DIFFERENT_S, min(account_s, embedded_s))
    if slow >= TIMES_APART * fast:
        told = f"it took {account_s:,.0f} s, on the embedded AWS {embedded_s:,.0f} s"
        yield Finding("SEA625", at, told, severity="note")


def _one_sided(at: Place, message: str) -> Finding:
    return Finding("SEA627", at, message, severity="note")


def _codes(errors: Mapping[str, Sequence[str]]) -> str:
    told = (f"{code} ({'; '.join(messages)})" for code, messages in errors.items())
    return ", ".join(told) or "no error"


def _list(values: Iterable[object]) -> str:
    return "; ".join(f"{value}" for value in values) or "nothing"


def _arrows(statuses: Sequence[str]) -> str:
    return " → ".join(statuses) or "nothing"


def read_profile(file: Path) -> Profile:
    """Read a profile.

    Raises:
        SpecError: SEA628, it can't be read or is none.
    """
    try:
        return Profile.model_validate_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError.of("SEA628", f"{error.strerror}", where=f"{file}") from error
    except (ValidationError, UnicodeDecodeError) as error:
        raise SpecError.of("SEA628", "it is no profile of a transcript", where=f"{file}") from error


def profile_text(profile: Profile) -> str:
    """Return a profile as it is kept: a line for each case, and nothing of what is empty."""
    each = (
        f"{json.dumps(name)}: {case.model_dump_json(exclude_defaults=True)}" for name, case in profile.cases.items()
    )
    cases = ",\n".join(each)
    return f'{{"target": "{profile.target}", "cases": {{\n{cases}\n}}}}\n'


def summary_lines(account: Profile, embedded: Profile, findings: Sequence[Finding]) -> list[str]:
    """Return a table of the cases that both sides ran: differences and times."""
    rows = []
    for name in account.cases.keys() & embedded.cases.keys():
        of = [finding for finding in findings if finding.place.resource == name]
        times = (
            f"{case.seconds:,.0f}" if case.seconds is not None else "–"
            for case in (account.cases[name], embedded.cases[name])
        )
        rows.append((name, tally(of) or "none", *times))
    columns = (name_column("case"), *text_columns("differences"), *number_columns("account (s)", "embedded AWS (s)"))
    return aligned_lines(table_of(columns, sorted(rows)))


def compare(
    transcript: Annotated[Path, typer.Argument(help="Transcript of make test-aws.", metavar="TRANSCRIPT")],
    other: Annotated[
        Path | None, typer.Option("--with", help="Transcript of the embedded AWS; left out, what ships with it.")
    ] = None,
    write: Annotated[
        Path | None, typer.Option("--write", help="Write what the transcript shows here, and compare nothing.")
    ] = None,
    output_format: FindingsFormat = "text",
) -> None:
    """List where an account answered otherwise than the embedded AWS; exit 1 with an error or a warning."""
    with problems_in(output_format, "compare"):
        account = profile_of(read_transcript(transcript))
        if write:
            write.write_text(profile_text(account), encoding="utf-8")
            return
        embedded = profile_of(read_transcript(other)) if other else read_profile(EMBEDDED)
        findings = list(differences(account, embedded, transcript.as_posix()))
        judgement = Judgement(command="compare", findings=findings)
        table = summary_lines(account, embedded, findings)
        show_judgement(judgement, output_format, {"text": lambda: lines_text([*text_lines(findings), *table])})
        exit_judged(findings)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
app.command()(compare)

if __name__ == "__main__":
    run_command_line(lambda: run_typer_app(app))
