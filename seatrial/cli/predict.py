"""`seatrial predict`: throughput and latency of the deployments in a table, one row each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from seatrial.cli.support.terminal import show_json_text, show_text
from seatrial.errors import SpecError


def predict(
    rows: Annotated[str, typer.Argument(metavar="ROWS.csv", help="CSV table; `-` reads standard input.")],
    engine: Annotated[
        str, typer.Option("--engine", metavar="FAMILY-VERSION", help="Engine and version, as `lmi-15`.")
    ] = "tgi-1.1",
    output_format: Annotated[Literal["csv", "json"], typer.Option("--format", help="Output format.")] = "csv",
    form: Annotated[
        Literal["simulation", "closed"],
        typer.Option("--form", help="Simulate each row, or compute means in closed form (faster, less accurate)."),
    ] = "simulation",
) -> None:
    """Predict every row of a table: output tokens per second, p90 latency per token, what bounds, how sure.

    The load is that of the published articles: a closed loop, three requests for each in flight, no warm-up.
    """
    from seatrial.predict.csv_predictions import answered, as_csv, as_json, read_engine
    from seatrial.predict.csv_rows import read_rows

    facts, version = read_engine(engine)
    content, where = _read(rows)
    columns, asked = read_rows(content, where)
    table = answered(columns, asked, facts, version, form)
    if output_format == "csv":
        show_text(as_csv(table))
    else:
        show_json_text(as_json(table))


def _read(rows: str) -> tuple[bytes, str]:
    from seatrial.files import MOST_BYTES, read_bytes
    from seatrial.units import MIB

    if rows == "-":
        content = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise SpecError.of("SEA220", f"larger than {MOST_BYTES // MIB} MiB", where="standard input")
        return content, "standard input"
    try:
        return read_bytes(Path(rows)), Path(rows).as_posix()
    except OSError as error:
        raise SpecError.of("SEA220", f"the table can't be read: {error.strerror}", where=rows) from error
