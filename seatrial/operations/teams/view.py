"""The teams' endpoints as a table for people, as Markdown, as CSV, and as a document for programs."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Final

from seatrial_base.text import escaped
from seatrial_base.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seatrial.operations.teams.report import TeamEndpoint

SCHEMA: Final = "1"
COLUMNS: Final = ("endpoint", "environment", "version", "$/h", "$/month", "trial", "drift")
CSV_COLUMNS: Final = (
    "team",
    "endpoint",
    "environment",
    "plan_digest",
    "product",
    "product_version",
    "usd_per_hour",
    "usd_per_month",
    "trial_verdict",
    "trial_date",
    "drift",
)


def by_team(endpoints: Iterable[TeamEndpoint]) -> Iterator[tuple[str, tuple[TeamEndpoint, ...]]]:
    """Yield each team with its endpoints, all by name."""
    ordered = sorted(endpoints, key=lambda each: (each.team, each.endpoint, each.environment))
    for team, group in groupby(ordered, key=lambda each: each.team):
        yield team, tuple(group)


def teams_lines(endpoints: Sequence[TeamEndpoint], not_asked: Iterable[str]) -> Iterator[str]:
    """Yield the endpoints of each team as a table."""
    cells = [COLUMNS, *(_cells(each) for each in endpoints)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(COLUMNS))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()

    for team, group in by_team(endpoints):
        yield f"{team}: {_sum(group)}"
        yield f"  {line(COLUMNS)}"
        yield from (f"  {line(_cells(each))}" for each in group)
        yield ""
    if not endpoints:
        yield "no endpoint has a lock, and no product is deployed"
    yield from (f"could not be asked: {each}" for each in not_asked)


def _cells(endpoint: TeamEndpoint) -> tuple[str, ...]:
    product = f"{endpoint.product} {endpoint.product_version}".strip()
    trial = " ".join(part for part in (endpoint.trial_verdict, endpoint.trial_date) if part)
    return (
        endpoint.endpoint,
        endpoint.environment,
        product or endpoint.plan_digest or "unknown",
        _money(endpoint.usd_per_hour, 2),
        _money(endpoint.usd_per_month, 0),
        trial or "unknown",
        endpoint.drift,
    )


def _money(amount: float | None, digits: int) -> str:
    return "unknown" if amount is None else f"{amount:,.{digits}f}"


def _sum(group: Sequence[TeamEndpoint]) -> str:
    known = [each for each in group if each.usd_per_hour is not None]
    hourly, monthly = (math.fsum(getattr(each, name) for each in known) for name in ("usd_per_hour", "usd_per_month"))
    rest = len(group) - len(known)
    unknown = f", {rest} of unknown cost" if rest else ""
    return f"{counted(len(group), 'endpoint')}, ${hourly:,.2f}/h, ${monthly:,.0f}/month planned{unknown}"


def teams_markdown(endpoints: Sequence[TeamEndpoint], not_asked: Iterable[str]) -> str:
    """Return one table for each team."""
    lines = ["# Endpoints by team", ""]
    for team, group in by_team(endpoints):
        lines += [f"## {escaped(team)}", "", f"{_sum(group)}.", "", f"| {' | '.join(COLUMNS)} |"]
        lines += ["|---" * len(COLUMNS) + "|", *(f"| {' | '.join(map(escaped, _cells(each)))} |" for each in group), ""]
    lines += [f"- Could not be asked: {escaped(each)}" for each in not_asked]
    return "\n".join(lines).rstrip() + "\n"


def teams_csv(endpoints: Sequence[TeamEndpoint]) -> str:
    """Return one row for each endpoint; a cell that a spreadsheet would take for a formula begins with a quote."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for _, group in by_team(endpoints):
        for each in group:
            writer.writerow([_csv_cell(value) for value in _row(each).values()])
    return text.getvalue()


def _csv_cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value


def _row(endpoint: TeamEndpoint) -> dict[str, object]:
    fields = {**asdict(endpoint), "usd_per_month": endpoint.usd_per_month}
    return {name: fields[name] for name in CSV_COLUMNS}


def teams_document(endpoints: Sequence[TeamEndpoint], not_asked: Iterable[str]) -> dict[str, object]:
    """Return the endpoints of each team as a document for programs."""
    return {
        "schema_version": SCHEMA,
        "teams": [{"team": team, "endpoints": [_row(each) for each in group]} for team, group in by_team(endpoints)],
        "not_asked": list(not_asked),
    }
