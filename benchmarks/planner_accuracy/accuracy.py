"""Tables of the errors of left-out rows and of the peers, as Markdown between marks.

    python -m benchmarks.planner_accuracy.accuracy [--write]    # --write puts them into README.md

Reads `left_out.csv` and `predictions/measured/*.csv` as they lie there; asks no tool anything. A file that is not there
is a row of dashes.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy import chances, decisions
from benchmarks.planner_accuracy.band_cells import by_place, covered
from benchmarks.planner_accuracy.compare import MISSING, mape, markdown
from benchmarks.planner_accuracy.judged import KINDS, LEFT_OUT, JudgedRow, grouped, ratios, read_judged
from benchmarks.planner_accuracy.questions import ANSWERS, FOLDER, Figures, Question, read_answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

COMMAND = "python -m benchmarks.planner_accuracy.accuracy --write"
PAGE = FOLDER / "README.md"
PEERS = {
    "aiconfigurator, silicon": "aiconfigurator",
    "GenZ, as shipped": "genz",
    "llm-analysis, as shipped": "llm-analysis",
    "roofline": "roofline",
}
_COLUMNS = ("e2e_mean_ms", "ttft_ms", "tpot_ms", "output_tok_s")
_HEAD = ("mean latency", "TTFT", "TPOT", "throughput", "median of mean latency")
_END_TO_END = ("e2e_mean_ms", "e2e_p50_ms", "e2e_p90_ms")


def main() -> None:
    """Print the tables, or with `--write` put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into README.md")
    options = parser.parse_args()
    rows = read_judged() if LEFT_OUT.exists() else ()
    if options.write:
        PAGE.write_text(current(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    else:
        print("\n\n".join(f"{name}\n\n{table(rows)}" for name, table in TABLES.items()))


def current(page: str, rows: Sequence[JudgedRow]) -> str:
    """Return a page with each table that it has marks for written anew.

    Raises:
        ValueError: A table's end is missing.
    """
    for name, table in TABLES.items():
        before, found, rest = page.partition(_begin(name))
        if found:
            _, ended, after = rest.partition(_end(name))
            if not ended:
                raise ValueError(f"the page lacks the mark {_end(name)}")
            page = f"{before}{_begin(name)}\n{table(rows)}\n{_end(name)}{after}"
    return page


def by_kind(rows: Sequence[JudgedRow]) -> str:
    """Return errors by what was left out and by family."""
    return _table(("left out", "models"), rows, lambda row: (row.left_out, row.family))


def by_cell(rows: Sequence[JudgedRow]) -> str:
    """Return errors by accelerator, precision, family and engine, while the row's model was left out."""
    kept = [row for row in rows if row.left_out == "model"]
    head = ("accelerator", "weights", "models", "engine")
    return _table(head, kept, lambda row: (row.accelerator, f"{row.bits} bit", row.family, row.question.engine))


def endpoints(rows: Sequence[JudgedRow]) -> str:
    """Return the errors of the latencies that were measured on SageMaker endpoints."""
    head = ("left out", "model", "instance type", "rows", "mean", "p50", "p90", "median of the mean")
    groups = grouped(
        [row for row in rows if row.measured.e2e_p50_ms is not None],
        lambda row: (row.left_out, row.question.model, row.question.instance_type),
    )
    lines = [
        [*map(str, key), str(len(own)), *(_mape(own, name) for name in _END_TO_END), _signed(own, "e2e_mean_ms")]
        for key, own in groups.items()
    ]
    return markdown(head, 3, lines)


def peers(rows: Sequence[JudgedRow]) -> str:
    """Return the errors of every tool, on its own rows and on those that aiconfigurator and Seatrial both answered."""
    own = {row.question: row for row in rows if row.left_out == "model"}
    answers = {f"Seatrial, {kind} left out": _of_kind(rows, kind) for kind in KINDS}
    answers |= {title: _answers(ANSWERS / f"{file}.csv") for title, file in PEERS.items()}
    shared = _shared(own, answers["Seatrial, model left out"], answers["aiconfigurator, silicon"])
    head = ("tool", "rows", *_HEAD, "shared rows: mean latency, dense", "MoE", "MLA")
    return markdown(head, 1, [_peer(title, own, found, shared) for title, found in answers.items()])


TABLES: Mapping[str, Callable[[Sequence[JudgedRow]], str]] = {
    "left out": by_kind,
    "cells": by_cell,
    "endpoints": endpoints,
    "coverage": covered,
    "band cells": by_place,
    "chances": chances.table,
    "peers": peers,
    "decisions": decisions.table,
}


def _begin(name: str) -> str:
    return f"<!-- begin {name}: {COMMAND} -->"


def _end(name: str) -> str:
    return f"<!-- end {name} -->"


def _peer(
    title: str, own: Mapping[Question, JudgedRow], found: Mapping[Question, Figures], shared: set[Question]
) -> list[str]:
    judged = [replace(row, predicted=found[question]) for question, row in own.items() if question in found]
    answered = [row for row in judged if ratios([row], *_COLUMNS)]
    on_shared = [row for row in answered if row.question in shared]
    families = ([row for row in on_shared if row.family == family] for family in ("dense", "MoE", "MLA"))
    return [title, str(len(answered)), *_errors(answered), *(_mape(part, "e2e_mean_ms") for part in families)]


def _shared(
    own: Mapping[Question, JudgedRow], ours: Mapping[Question, Figures], theirs: Mapping[Question, Figures]
) -> set[Question]:
    both = (question for question in own if ours.get(question, Figures()).e2e_mean_ms)
    return {question for question in both if theirs.get(question, Figures()).e2e_mean_ms}


def _of_kind(rows: Sequence[JudgedRow], kind: str) -> dict[Question, Figures]:
    return {row.question: row.predicted for row in rows if row.left_out == kind}


def _answers(path: Path) -> dict[Question, Figures]:
    return read_answers(path) if path.exists() else {}


def _table(names: tuple[str, ...], rows: Sequence[JudgedRow], key: Callable[[JudgedRow], tuple[str, ...]]) -> str:
    groups = grouped(rows, key)
    lines = [[*map(str, name), str(len(own)), *_errors(own)] for name, own in sorted(groups.items(), key=_order)]
    return markdown((*names, "rows", *_HEAD), len(names), lines)


def _order(group: tuple[tuple[object, ...], list[JudgedRow]]) -> tuple[object, ...]:
    key = group[0]
    return (KINDS.index(str(key[0])) if key[0] in KINDS else len(KINDS), *map(str, key))


def _errors(rows: Sequence[JudgedRow]) -> list[str]:
    return [*(_mape(rows, name) for name in _COLUMNS), _signed(rows, "e2e_mean_ms")]


def _mape(rows: Sequence[JudgedRow], figure: str) -> str:
    found = ratios(rows, figure)
    return f"{mape(found):.1f} %" if found else MISSING


def _signed(rows: Sequence[JudgedRow], figure: str) -> str:
    found = ratios(rows, figure)
    return f"{100 * (median(found) - 1):+.1f} %" if found else MISSING


if __name__ == "__main__":
    main()
