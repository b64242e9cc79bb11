"""Tells which locks are missing, stale or edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import typer

from seatrial_base.terminal import show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.locks.lock_file import Freshness
    from seatrial.specs.load import LoadedSpec

NOT_FRESH = 1


def check_freshness(loaded: Sequence[LoadedSpec], output_format: Literal["text", "json"]) -> None:
    """List the state of each lock, and exit 1 unless all are fresh or await a promotion.

    Args:
        loaded: The specs.
        output_format: `json` lists every problem.
    """
    from seatrial.locks.lock_file import freshness_of

    found = [freshness_of(one) for one in loaded]
    if output_format == "json":
        show_json([_state_row(one) for one in found])
    else:
        for one in found:
            typer.echo(_state_line(one))
    if any(one.state not in {"fresh", "awaiting promotion"} for one in found):
        raise typer.Exit(NOT_FRESH)


def _state_line(found: Freshness) -> str:
    place = f"{found.loaded.path.as_posix()}: {found.loaded.environment.name}: {found.state}"
    if found.state == "edited":
        fields = [problem.field.rpartition(".")[2] for problem in found.problems if problem.rule == "SEA411"]
        return f"{place} ({', '.join(fields)})"
    return place if not found.problems else f"{place} ({found.problems[0].rule}: {found.problems[0].message})"


def _state_row(found: Freshness) -> dict[str, object]:
    return {
        "spec": found.loaded.path.as_posix(),
        "environment": found.loaded.environment.name,
        "state": found.state,
        "problems": [
            {"where": one.where, "field": one.field, "rule": one.rule, "message": one.message, "hint": one.hint}
            for one in found.problems
        ],
    }
