"""Mean absolute percentage errors of Seatrial, its peers and a roofline on the published cells, as Markdown.

    python -m benchmarks.planner_accuracy.compare [--write]    # --write puts the tables into README.md

Reads `predictions/*.csv` and `leave_one_out.csv` as they lie there; asks no tool anything. A file that is not there is
a row of dashes, a cell that a tool did not answer is left out of its means and counted.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.cells import PREDICTIONS, Cell, Prediction, read_predictions, read_published

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

FOLDER = Path(__file__).parent
README = FOLDER / "README.md"
BEGIN, END = "<!-- begin accuracy: python -m benchmarks.planner_accuracy.compare --write -->", "<!-- end accuracy -->"
MISSING = "–"


@dataclass(frozen=True, slots=True)
class Tool:
    """One row of the tables: its title, and the file of its answers."""

    title: str
    path: Path


TOOLS = (
    Tool("Seatrial, fitted on these rows", PREDICTIONS / "seatrial.csv"),
    Tool("Seatrial, leave one configuration out", FOLDER / "leave_one_out.csv"),
    Tool("aiconfigurator, vLLM", PREDICTIONS / "aiconfigurator-vllm.csv"),
    Tool("aiconfigurator, TensorRT-LLM", PREDICTIONS / "aiconfigurator-trtllm.csv"),
    Tool("aiconfigurator, SGLang", PREDICTIONS / "aiconfigurator-sglang.csv"),
    Tool("GenZ, as shipped", PREDICTIONS / "genz.csv"),
    Tool("GenZ, efficiency 0.65", PREDICTIONS / "genz-65.csv"),
    Tool("llm-analysis, as shipped", PREDICTIONS / "llm-analysis.csv"),
    Tool("llm-analysis, efficiency 0.65 and 0.5", PREDICTIONS / "llm-analysis-65.csv"),
    Tool("roofline", PREDICTIONS / "roofline.csv"),
)


def main() -> None:
    """Print the tables, or with `--write` put them into the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into README.md")
    if parser.parse_args().write:
        README.write_text(current(README.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(tables())


def current(page: str) -> str:
    """Return a page with the tables between its two marks written anew.

    Raises:
        ValueError: The page lacks a mark.
    """
    before, _, rest = _split(page, BEGIN)
    _, _, after = _split(rest, END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def tables() -> str:
    """Return both tables: throughput, then latency."""
    return "\n\n".join(
        (
            _table("Throughput (tok/s)", lambda answer: answer.throughput_tok_s),
            _table("Latency (ms/token)", lambda answer: answer.latency_ms_per_token),
        )
    )


def markdown(head: Sequence[str], names: int, lines: Sequence[Sequence[str]]) -> str:
    """Return a table; its first columns are names, the others numbers."""
    rule = ["---"] * names + ["---:"] * (len(head) - names)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, rule, *lines))


def mape(ratios: Sequence[float]) -> float:
    """Return the mean absolute percentage error in percent, of predicted over measured.

    Raises:
        ZeroDivisionError: There are none.
    """
    return 100 * sum(abs(ratio - 1) for ratio in ratios) / len(ratios)


def best_factor(ratios: Iterable[float]) -> float:
    """Return the one factor on every prediction that makes the `mape` least.

    The sum of |f x r - 1| is the sum of r x |f - 1/r|: its least is at the median of 1/r, weighted by r.
    """
    ordered = sorted(ratios, reverse=True)
    half = sum(ordered) / 2
    return next(1 / ratio for ratio, total in zip(ordered, accumulate(ordered), strict=True) if total >= half)


def _split(page: str, mark: str) -> tuple[str, str, str]:
    before, found, after = page.partition(mark)
    if not found:
        raise ValueError(f"{README.name} lacks the mark {mark}")
    return before, found, after


def _table(title: str, figure: Callable[[Prediction], float | None]) -> str:
    published = read_published()
    instance_types = list(dict.fromkeys(cell.instance_type for cell in published))
    head = [title, "cells", "all", *instance_types, "all, after its best single factor"]
    rows = [[tool.title, *_figures(_ratios(tool, published, figure), instance_types)] for tool in TOOLS]
    return "\n".join(map(_line, [head, ["---"] + ["---:"] * (len(head) - 1), *rows]))


def _ratios(
    tool: Tool, published: Mapping[Cell, Prediction], figure: Callable[[Prediction], float | None]
) -> dict[Cell, float]:
    """Return predicted over measured, per cell that the tool answered."""
    answers = read_predictions(tool.path) if tool.path.exists() else {}
    pairs = ((cell, figure(answers[cell]), figure(measured)) for cell, measured in published.items() if cell in answers)
    return {cell: predicted / measured for cell, predicted, measured in pairs if predicted and measured}


def _figures(ratios: dict[Cell, float], instance_types: list[str]) -> list[str]:
    per_type = ([ratio for cell, ratio in ratios.items() if cell.instance_type == name] for name in instance_types)
    every = list(ratios.values())
    scaled = [ratio * best_factor(every) for ratio in every]
    return [str(len(every)) if every else MISSING, *map(_percent, [every, *per_type, scaled])]


def _percent(ratios: list[float]) -> str:
    return f"{mape(ratios):.1f} %" if ratios else MISSING


def _line(values: list[str]) -> str:
    return f"| {' | '.join(values)} |"


if __name__ == "__main__":
    main()
