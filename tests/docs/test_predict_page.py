"""The worked example of docs/how-to/predict.md, computed again; UPDATE_GOLDEN=1 writes its table anew."""

from __future__ import annotations

import os
import re
from pathlib import Path

from seatrial.planner.tables.predictions import ERROR, STEADY, answered
from seatrial.planner.tables.rows import read_rows

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "predict.md"
MARKED = re.compile(r"(<!-- steady: [^>]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)
SHOWN = ("model", "instance_type", "concurrency", "predicted_throughput_tok_s", *STEADY, ERROR)


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def example() -> str:
    """Return the table of the example: the first three digits of each number."""
    (rows,) = re.findall(
        r"^\$ cat rows\.csv\n(model,engine,.*?)^\$ ", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    columns, read = read_rows(rows.encode(), "rows.csv", load="steady")
    table = answered(columns, read, "simulation", "steady")
    assert (len(table.rows), table.unanswered) == (4, 1)
    lines = [[_cell(row[name]) for name in SHOWN] for row in table.rows]
    return line([f"`{name}`" for name in SHOWN]) + line(["---"] * len(SHOWN)) + "".join(map(line, lines))


def _cell(value: str | float | None) -> str:
    return f"{float(f'{value:.3g}'):,g}" if isinstance(value, float) else str(value or "")


def test_the_example_of_a_steady_load_is_what_the_command_writes() -> None:
    text, expected = PAGE.read_text(encoding="utf-8"), example()
    if os.environ.get("UPDATE_GOLDEN"):
        PAGE.write_text(MARKED.sub(lambda found: found[1] + expected + found[3], text), encoding="utf-8")
        return
    found = MARKED.search(text)

    assert found is not None
    assert found[2] == expected
