"""What each tool is asked about a measured row, and the CSV of its answers.

Standard library only: a peer's own environment runs this module too.
"""

from __future__ import annotations

import csv
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FOLDER = Path(__file__).parent
MEASURED = FOLDER / "measured"
ANSWERS = FOLDER / "predictions" / "measured"
PLAIN = ("", "vanilla")  # optimisations that are none
_DIGITS = 6  # significant ones
MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class Question:
    """One deployment under one load.

    Attributes:
        engine: As the source writes it: `vLLM`, `SGLang`, `TensorRT-LLM`.
        engine_version: The engine's version; empty where the source does not say.
        model: As the source writes it, mostly a hub id.
        precision: Of the weights: `bf16`, `fp16`, `fp8`, `fp4`, `mxfp4`, `int4`.
        instance_type: SageMaker's type with that accelerator, or the accelerator's name.
        tp_degree: Accelerators that the one copy is sharded over.
        input_tokens: Mean prompt length of a request.
        output_tokens: Mean generated length of a request.
        concurrency: Requests in flight; infinite where all were queued at once.
        load: `closed` or `offline`.
        optimisation: `eagle3`, `prefix-cache`, or one of `PLAIN`.
    """

    engine: str
    engine_version: str
    model: str
    precision: str
    instance_type: str
    tp_degree: int
    input_tokens: float
    output_tokens: float
    concurrency: float
    load: str
    optimisation: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured or predicted of a question; `None` where nothing was said.

    Attributes:
        ttft_ms: Time to the first token.
        tpot_ms: Time per output token after the first.
        e2e_mean_ms: Mean end-to-end latency.
        e2e_p50_ms: Median end-to-end latency.
        e2e_p90_ms: 90th percentile of the end-to-end latency.
        output_tok_s: Output tokens per second of the deployment.
    """

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_mean_ms: float | None = None
    e2e_p50_ms: float | None = None
    e2e_p90_ms: float | None = None
    output_tok_s: float | None = None


KEYS = tuple(field.name for field in fields(Question))
FIGURES = tuple(field.name for field in fields(Figures))


def question_of(row: Mapping[str, str]) -> Question:
    """Read the columns that name a question.

    Raises:
        KeyError: A column is missing.
        ValueError: A number is none.
    """
    texts = {name: row[name] for name in KEYS}
    return Question(
        engine=texts["engine"],
        engine_version=texts["engine_version"],
        model=texts["model"],
        precision=texts["precision"],
        instance_type=texts["instance_type"],
        tp_degree=int(texts["tp_degree"]),
        input_tokens=float(texts["input_tokens"]),
        output_tokens=float(texts["output_tokens"]),
        concurrency=float(texts["concurrency"]),
        load=texts["load"],
        optimisation=texts["optimisation"],
    )


def figures_of(row: Mapping[str, str], prefix: str = "") -> Figures:
    """Read the columns of figures, each named with this prefix; an empty cell is `None`."""
    return Figures(**{name: _read(row[f"{prefix}{name}"]) for name in FIGURES})


def figure_columns(figures: Figures, prefix: str = "") -> dict[str, str]:
    """Return figures as cells, each column named with this prefix."""
    return {f"{prefix}{name}": _written(value) for name, value in asdict(figures).items()}


def key_columns(question: Question) -> dict[str, str]:
    """Return a question as cells."""
    return {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in asdict(question).items()}


def derived(question: Question, figures: Figures) -> Figures:
    """Add what follows from TTFT and TPOT: the mean end-to-end latency, and by Little's law the throughput."""
    mean, rate = figures.e2e_mean_ms, figures.output_tok_s
    if mean is None and figures.ttft_ms is not None and figures.tpot_ms is not None:
        mean = figures.ttft_ms + figures.tpot_ms * (question.output_tokens - 1)
    if rate is None and mean is not None and math.isfinite(question.concurrency):
        rate = question.concurrency * question.output_tokens / mean * MS_PER_S
    return Figures(figures.ttft_ms, figures.tpot_ms, mean, figures.e2e_p50_ms, figures.e2e_p90_ms, rate)


def read_questions(folder: Path = MEASURED) -> tuple[Question, ...]:
    """Return each question of the measured tables once, in the tables' order."""
    rows = (row for path in sorted(folder.glob("*.csv")) for row in read_csv(path))
    return tuple(dict.fromkeys(question_of(row) for row in rows))


def read_answers(path: Path) -> dict[Question, Figures]:
    """Return a tool's answers."""
    return {question_of(row): figures_of(row, "predicted_") for row in read_csv(path)}


def write_answers(path: Path, answers: Mapping[Question, tuple[Figures, str]]) -> None:
    """Write a tool's answers, each with a note: why there is none, or what was special."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(
        path,
        (
            {**key_columns(question), **figure_columns(figures, "predicted_"), "note": note}
            for question, (figures, note) in answers.items()
        ),
    )


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file with a head."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_csv(path: Path, rows: Iterable[dict[str, str]]) -> None:
    """Write rows of equal keys as CSV, with a head.

    Raises:
        ValueError: There are no rows.
    """
    table = list(rows)
    if not table:
        raise ValueError(f"{path.name}: no rows to write")
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, table[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def _read(text: str) -> float | None:
    return float(text) if text else None


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.{_DIGITS}g}"
