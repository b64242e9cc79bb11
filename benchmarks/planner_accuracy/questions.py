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
MEASURED = FOLDER / "measured_rows"
ANSWERS = FOLDER / "predictions" / "measured"
ENGINES = {"vLLM": "vllm", "SGLang": "sglang", "TensorRT-LLM": "trtllm"}
_PRECISIONS = {"bf16": "16-bit", "fp16": "16-bit", "fp4": "nvfp4"}
_NATIVE_FOUR_BITS = ("gpt-oss", "mxfp4")  # the family whose four bits are its own, not NVIDIA's
_ACCELERATORS = {"A100 SXM4 80GB": "ml.p4de.24xlarge", "L40S": "ml.g6e.48xlarge"}
_PLAIN = ("", "vanilla")  # optimisations that are none
_DIGITS = 6  # significant ones
MS_PER_S = 1_000


@dataclass(frozen=True, slots=True)
class Question:
    """One deployment under one load.

    Attributes:
        engine: `vllm`, `sglang` or `trtllm`.
        engine_version: The engine's version; empty where the source does not say.
        model: As the source writes it, mostly a hub id.
        precision: Of the weights: `16-bit`, `fp8`, `nvfp4`, `mxfp4`, `int4`.
        instance_type: SageMaker's type with that accelerator.
        tp_degree: Accelerators that the one copy is sharded over.
        input_tokens: Mean prompt length of a request.
        output_tokens: Mean generated length of a request.
        concurrency: Requests in flight; infinite where all were queued at once.
    """

    engine: str
    engine_version: str
    model: str
    precision: str
    instance_type: str
    tp_degree: int
    input_tokens: int
    output_tokens: int
    concurrency: float


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


FIGURES = tuple(field.name for field in fields(Figures))


def question_of(row: Mapping[str, str]) -> Question:
    """Read the columns that name a question, as a source or as Seatrial writes them.

    Raises:
        KeyError: A column is missing.
        ValueError: A number is none.
    """
    engine, instance_type = row["engine"], row["instance_type"]
    return Question(
        engine=ENGINES.get(engine, engine),
        engine_version=row["engine_version"],
        model=row["model"],
        precision=_precision(row["precision"], row["model"]),
        instance_type=_ACCELERATORS.get(instance_type, instance_type),
        tp_degree=int(row["tp_degree"]),
        input_tokens=round(float(row["input_tokens"])),
        output_tokens=round(float(row["output_tokens"])),
        concurrency=float(row["concurrency"]),
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
    """Return each question of the measured tables once, but none with speculative decoding or prefix caching."""
    rows = (row for path in sorted(folder.glob("*.csv")) for row in read_csv(path))
    return tuple(dict.fromkeys(question_of(row) for row in rows if row["optimisation"] in _PLAIN))


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


def _precision(written: str, model: str) -> str:
    family, native = _NATIVE_FOUR_BITS
    return native if written == "fp4" and family in model else _PRECISIONS.get(written, written)


def _read(text: str) -> float | None:
    return float(text) if text else None


def _written(value: float | None) -> str:
    return "" if value is None else f"{value:.{_DIGITS}g}"
