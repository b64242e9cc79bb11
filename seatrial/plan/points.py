"""Reads measured points of a deployment: from a trial's result, or from a table."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from typing import TYPE_CHECKING

from seatrial.errors import Problem, SpecError
from seatrial.predict.calibration import MeasuredPoint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from seatrial.spec.load import LoadedSpec

MOST_IN_FLIGHT = 100_000
_COLUMNS = ("concurrency", "output_tok_s")
_LATENCY = "ms_per_token"


def read_points(text: str, where: str) -> tuple[MeasuredPoint, ...]:
    """Read a table with the columns `concurrency`, `output_tok_s` and, if wanted, `ms_per_token` (p90).

    Args:
        text: CSV with a head; other columns are passed over.
        where: The file, for messages.

    Raises:
        SpecError: SEA407 with every cell that is wrong.
    """
    rows, names = _rows(text, where)
    missing = [name for name in _COLUMNS if name not in names]
    if missing:
        hint = f"the head names {', '.join((*_COLUMNS, _LATENCY))}"
        raise SpecError.of("SEA407", f"the column {' and '.join(missing)} is missing", hint=hint, where=where)
    problems: list[Problem] = []
    points = [_point(row, f"{where}:{line}", problems) for line, row in rows]
    if problems:
        raise SpecError(problems)
    return usable([point for point in points if point is not None], where)


def _rows(text: str, where: str) -> tuple[list[tuple[int, dict[str, str]]], tuple[str, ...]]:
    """Return the rows with their line numbers, and the head."""
    table = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=None))
    try:
        return [(table.line_num, row) for row in table], tuple(table.fieldnames or ())
    except csv.Error as error:
        raise SpecError.of("SEA407", f"the table can't be read: {error}", where=where) from error


def _point(row: dict[str, str], where: str, problems: list[Problem]) -> MeasuredPoint | None:
    before = len(problems)
    concurrency = _number(row, "concurrency", where, problems)
    throughput = _number(row, "output_tok_s", where, problems)
    given = (row.get(_LATENCY) or "").strip()
    latency = _number(row, _LATENCY, where, problems) if given else None
    if concurrency is not None and (concurrency != int(concurrency) or concurrency > MOST_IN_FLIGHT):
        message = f"{concurrency:g} is not a whole number up to {MOST_IN_FLIGHT:,}"
        problems.append(Problem(where, "concurrency", "SEA407", message))
    if len(problems) > before or concurrency is None or throughput is None:
        return None
    return MeasuredPoint(concurrency=int(concurrency), output_tok_s=throughput, ms_per_token_p90=latency)


def _number(row: dict[str, str], name: str, where: str, problems: list[Problem]) -> float | None:
    text = (row.get(name) or "").strip()
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if 0 < value < float("inf"):
        return value
    problems.append(Problem(where, name, "SEA407", f"{text[:40]!r} is not a number above 0"))
    return None


def usable(points: Sequence[MeasuredPoint], where: str) -> tuple[MeasuredPoint, ...]:
    """Check that points describe one deployment, and sort them.

    Raises:
        SpecError: SEA408 when there is none, or when two points of one concurrency or of growing load contradict each
            other: a copy that gives less than half of what it gave with less load was not in a steady state.
    """
    ordered = tuple(sorted(points, key=lambda point: (point.concurrency, point.output_tok_s)))
    problems = [Problem(where, "", "SEA408", message, _MEASURE_AGAIN) for message in _contradictions(ordered)]
    if not ordered:
        hint = "measure at concurrency 1 and at the batch limit"
        problems = [Problem(where, "", "SEA408", "there is no point to calibrate with", hint)]
    if problems:
        raise SpecError(problems)
    return ordered


_MEASURE_AGAIN = "measure again with nothing else on the endpoint, or leave the point out"
_HALF = 0.5
_LEAST = 2  # what a step takes, and what each sequence adds: two unknowns


def _contradictions(ordered: Sequence[MeasuredPoint]) -> Iterator[str]:
    for low, high in pairwise(ordered):
        if low.concurrency == high.concurrency and high.output_tok_s > low.output_tok_s / _HALF:
            yield (
                f"at concurrency {low.concurrency} both {low.output_tok_s:,g} and {high.output_tok_s:,g} tok/s were "
                "measured"
            )
        elif high.output_tok_s < low.output_tok_s * _HALF:
            yield (
                f"{high.output_tok_s:,g} tok/s at concurrency {high.concurrency} are less than half of the "
                f"{low.output_tok_s:,g} at {low.concurrency}"
            )


def check_trial(trial: tuple[str, str, int, int], loaded: LoadedSpec, where: str) -> None:
    """Check that a trial measured this endpoint, with requests of these lengths.

    Args:
        trial: Endpoint, environment, prompt length and generated length of the trial.
        loaded: The spec in its environment.
        where: The trial's result, for messages.

    Raises:
        SpecError: SEA408 with everything in which they differ.
    """
    workload = loaded.endpoint.workload
    asked = (loaded.endpoint.name, loaded.environment.name, workload.input_tokens, workload.output_tokens)
    named = ("endpoint", "environment", "input_tokens", "output_tokens")
    hint = "give the result of a trial of this endpoint as it is specified now"
    problems = [
        Problem(where, name, "SEA408", f"the trial measured {was}, and the spec says {now}", hint)
        for name, was, now in zip(named, trial, asked, strict=True)
        if was != now
    ]
    if problems:
        raise SpecError(problems)


def chosen(points: Sequence[MeasuredPoint], probes: Collection[int] | None, where: str) -> tuple[MeasuredPoint, ...]:
    """Return the points to calibrate with: those of the named concurrencies, else all.

    Raises:
        SpecError: SEA408 when a named concurrency was not measured, or fewer than two are left.
    """
    measured = {point.concurrency for point in points}
    absent = ", ".join(str(level) for level in sorted(set(probes or ()) - measured))
    if absent:
        hint = f"measured are {', '.join(map(str, sorted(measured)))}"
        raise SpecError.of("SEA408", f"nothing was measured at concurrency {absent}", hint=hint, where=where)
    used = tuple(point for point in points if probes is None or point.concurrency in probes)
    if len({point.concurrency for point in used}) < _LEAST:
        message = f"points of {_LEAST} concurrencies are needed, and there is one"
        raise SpecError.of("SEA408", message, hint="measure at concurrency 1 and at the batch limit", where=where)
    return used
