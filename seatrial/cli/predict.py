"""`seatrial predict`: throughput and latency of the deployments in a table, one row each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from seatrial_base.errors import SpecError
from seatrial_base.terminal import console, show_json_text, show_text


def predict_command(
    rows: Annotated[str, typer.Argument(metavar="ROWS.csv", help="CSV table; `-` reads standard input.")],
    *,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="FAMILY-VERSION",
            help="Engine of rows that name none, as `lmi-15`; by default the planner's LMI.",
        ),
    ] = "lmi",
    load: Annotated[
        Literal["published", "steady", "saturated"],
        typer.Option(
            "--load",
            help="Three requests for each in flight, a closed loop in its steady state, or all requests queued.",
        ),
    ] = "published",
    output_format: Annotated[Literal["csv", "json"], typer.Option("--format", help="Output format.")] = "csv",
    form: Annotated[
        Literal["simulation", "closed"],
        typer.Option("--form", help="Simulate each row, or compute means in closed form (faster, less accurate)."),
    ] = "simulation",
    strict: Annotated[
        bool, typer.Option("--strict", help="Write nothing if a row can't be predicted, and list every problem.")
    ] = False,
) -> None:
    """Predict every row of a table: output tokens per second, p90 latency per token, what bounds, how sure.

    By default the load is that of the published articles: a closed loop, three requests for each in flight, no warm-up.
    A row that can't be predicted has the reason in `predicted_error`; where no row can, nothing is written.
    """
    from seatrial.planner.tables.predictions import answered, as_json, predictions_csv
    from seatrial.planner.tables.rows import read_engine, read_rows, refuse_problems

    default = read_engine(engine)
    content, where = _read(rows)
    columns, load_rows = read_rows(content, where, engine=default, load=load)
    if strict or not any(row.spec for row in load_rows):
        refuse_problems(load_rows)
    table = answered(columns, load_rows, form, load)
    note = f"{table.unanswered:,} of {len(table.rows):,} rows can't be predicted"
    if strict and table.unanswered:
        hint = "without `--strict` their `predicted_limit` says why, as `does not fit`"
        raise SpecError.of("SEA224", note, hint=hint, where=where)
    if output_format == "csv":
        show_text(predictions_csv(table))
    else:
        show_json_text(as_json(table))
    if table.unanswered:
        console(stderr=True).print(f"{note}: see predicted_error and predicted_limit")


def _read(rows: str) -> tuple[bytes, str]:
    from seatrial_base.files import MOST_BYTES, read_file_bytes
    from seatrial_base.units import MIB

    if rows == "-":
        if sys.stdin is None:
            raise SpecError.of("SEA220", "it is closed", where="standard input")
        content = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise SpecError.of("SEA220", f"larger than {MOST_BYTES // MIB} MiB", where="standard input")
        return content, "standard input"
    try:
        return read_file_bytes(Path(rows)), Path(rows).as_posix()
    except OSError as error:
        raise SpecError.of("SEA220", f"the table can't be read: {error.strerror}", where=rows) from error
