"""Running of a command, its findings as output, and its exit code."""

from __future__ import annotations

import difflib
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.findings import Format, is_wrong
from seatrial_base.terminal import show_json_text, show_text
from seatrial_base.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding
    from seatrial_base.printer import Judgement

WRONG = 1
FindingsFormat = Annotated[Format, typer.Option("--format", help="Output format.")]
ABORTED = 1


def show_judgement(
    judgement: Judgement, output_format: Format, views: Mapping[Format, Callable[[], str]] | None = None
) -> None:
    """Print a judgement; in the formats of `views` as a command writes it itself."""
    from seatrial_base.printer import formatted
    from seatrial_base.secrets import redacted

    view = (views or {}).get(output_format)
    text = formatted(judgement, output_format) if view is None else redacted(view())
    show = show_json_text if output_format in {"json", "sarif"} else show_text
    show(text)


def lines_text(lines: Iterable[str]) -> str:
    """Return lines as a text."""
    return "".join(f"{line}\n" for line in lines)


@contextmanager
def problems_in(output_format: Format, command: str) -> Iterator[list[Finding]]:
    """Print the problems of what is done within in a format, with the exit code of their error.

    As text they stay an error, which the command line writes to standard error. What is added to the list that is
    yielded stops nothing: it is printed at the end, and an error or a warning in it exits with 1.
    """
    from seatrial_base.printer import Judgement

    errors: list[Finding] = []
    problems: Sequence[Finding] = errors
    try:
        yield errors
    except SeatrialError as error:
        if output_format == "text":
            raise
        problems, code = (*errors, *error.problems), error.exit_code
    else:
        code = WRONG if any(map(is_wrong, errors)) else 0
    if output_format != "text" or problems:
        show_judgement(Judgement(command=command, findings=problems), output_format)
        raise typer.Exit(code)


def instance_in_catalog(name: str | None) -> Instance | None:
    """Return the instance type that an option names; `None` without one.

    Raises:
        SpecError: SEA110 when the catalog lacks it.
    """
    from seatrial_base.catalog.instances import INSTANCES, find_instance

    instance = None if name is None else find_instance(name)
    if name is not None and instance is None:
        known = difflib.get_close_matches(name, [row.instance_type for row in INSTANCES.rows], n=3)
        hint = f"did you mean {', '.join(known)}?" if known else ""
        raise SpecError.of("SEA110", f"{name} is not in the catalog", field="--instance-type", hint=hint)
    return instance


def exit_judged(findings: Iterable[Finding]) -> NoReturn:
    """End with 1 where there is an error or a warning, else with 0."""
    raise typer.Exit(WRONG if any(map(is_wrong, findings)) else 0)


def run_typer_app(app: typer.Typer) -> int:
    """Run what the command line requests and return its exit code; a wrong command line is reported with its usage."""
    try:
        code: object = app(standalone_mode=False)
    except typer.Abort:
        sys.stderr.write("aborted\n")
        return ABORTED
    except typer.TyperException as error:
        return _tell_usage(cast("typer.BadParameter", error))
    except SystemExit as ended:
        code = ended.code
    return code if isinstance(code, int) else 0


@dataclass(frozen=True)
class _Usage:
    """What typer shows of an error, with a message that a terminal shows and does not obey."""

    ctx: typer.Context | None
    format_message: Callable[[], str]


def _tell_usage(error: typer.BadParameter) -> int:
    from typer.rich_utils import rich_format_error

    # That one has shown the help already.
    if type(error).__name__ != "NoArgsIsHelpError":
        message = printable(error.format_message()).replace(": Value error, ", ": ")  # Pydantic's own words
        rich_format_error(cast("typer.BadParameter", _Usage(cast("typer.Context", error.ctx), lambda: message)))
    return error.exit_code
