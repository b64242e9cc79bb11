"""How a command that judges prints its findings and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from seatrial_base.findings import Format, is_wrong
from seatrial_base.terminal import show_json_text, show_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial_base.findings import Finding
    from seatrial_base.printer import Judgement

WRONG = 1
FindingsFormat = Annotated[Format, typer.Option("--format", help="Output format.")]


def show_judgement(judgement: Judgement, output_format: Format) -> None:
    """Print a judgement."""
    from seatrial_base.printer import formatted

    show_formatted(formatted(judgement, output_format), output_format)


def show_formatted(text: str, output_format: Format) -> None:
    """Print a text of a format; what can't be shown in JSON is escaped as JSON escapes it."""
    show = show_json_text if output_format in {"json", "sarif"} else show_text
    show(text)


def exit_judged(findings: Iterable[Finding]) -> NoReturn:
    """End with 1 where there is an error or a warning, else with 0."""
    raise typer.Exit(WRONG if any(map(is_wrong, findings)) else 0)
