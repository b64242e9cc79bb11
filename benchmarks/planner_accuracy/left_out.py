"""Predicts every measured row with constants that were fitted without it, and writes `left_out.csv` and `results.json`.

    uv run --isolated --with scipy==1.17.1 python -m benchmarks.planner_accuracy.left_out [--jobs 2]

What is left out: all rows of the row's model, accelerator, accelerator with its tables (kernels and links of the one
most alike stand in, as they do for an accelerator that nobody measured), engine, release of it, precision, tensor
parallel degree, lengths (prompts and answers, each up to 1,024 tokens or longer), or source. Rows that are left out for
two reasons together (the one model of an accelerator) are fitted once. The many small sources of `measured.PUBLIC` are
judged as sources alone, but no fit sees them where their model, accelerator or the like is left out.
"""

from __future__ import annotations

import argparse
import math
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.judged import KINDS, LEFT_OUT, JudgedRow, write_judged
from benchmarks.planner_accuracy.measured import PUBLIC, read_rows
from benchmarks.planner_accuracy.questions import Figures, Question, derived
from benchmarks.planner_accuracy.results import write_origin
from seatrial_base.catalog.bands import bits_of, family_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.planner_accuracy.measured import MeasuredRow

    Predict = Callable[[MeasuredRow, str], Figures]
    """Predicts a row, by the tables of another accelerator where one is named."""
    Judge = Callable[[Sequence[MeasuredRow]], Predict]
    """Fits on the rows that it sees."""


SHORT_TOKENS = 1_024
"""Prompts and answers up to this length are left out together, and so are longer ones."""


ALIKE = {
    "NVIDIA A10G": "NVIDIA L40S",
    "NVIDIA L40S": "NVIDIA RTX PRO 6000 Blackwell Server",
    "NVIDIA RTX PRO 6000 Blackwell Server": "NVIDIA L40S",
    "NVIDIA A100 40GB SXM4": "NVIDIA H100 SXM5 80GB",
    "NVIDIA A100 80GB SXM4": "NVIDIA H100 SXM5 80GB",
    "NVIDIA H100 SXM5 80GB": "NVIDIA H200 SXM 141GB",
    "NVIDIA H200 SXM 141GB": "NVIDIA H100 SXM5 80GB",
    "NVIDIA B200 SXM": "NVIDIA H200 SXM 141GB",
    "NVIDIA B300 SXM": "NVIDIA H200 SXM 141GB",
}
"""Accelerators, and the one whose tables stand in where theirs are left out."""


@dataclass(frozen=True)
class Fold:
    """Rows that are left out of one fit.

    Attributes:
        indices: Their places among all rows, ascending.
        kinds: Why they are left out: some of `KINDS`.
    """

    indices: tuple[int, ...]
    kinds: tuple[str, ...]


def lengths_of(input_tokens: int, output_tokens: int) -> tuple[bool, bool]:
    """Tell of a prompt and of an answer whether they are longer than `SHORT_TOKENS`."""
    return input_tokens > SHORT_TOKENS, output_tokens > SHORT_TOKENS


def release_of(engine: str, version: str) -> str:
    """Return what is counted as one release: `0.19` of vLLM's 0.19.1, each patch of SGLang; empty without a number."""
    numbers = re.match(r"\d+\.\d+\.\d+" if engine == "sglang" else r"\d+\.\d+", version)
    return numbers[0] if numbers else ""


def folds(rows: Sequence[MeasuredRow]) -> tuple[Fold, ...]:
    """Return what to leave out, each set of rows once."""
    kinds: dict[tuple[int, ...], list[str]] = {}
    for kind in KINDS:
        groups: dict[object, list[int]] = {}
        for index, row in enumerate(rows):
            groups.setdefault(_left_out_value(row, kind), []).append(index)
        for indices in groups.values():
            if not any(is_judged(rows[index], kind) for index in indices):
                continue
            kinds.setdefault(tuple(indices), []).append(kind)
    return tuple(Fold(indices, tuple(names)) for indices, names in kinds.items())


def is_judged(row: MeasuredRow, kind: str) -> bool:
    """Tell whether a row is predicted while this is left out of the fit."""
    return kind == "source" or row.file != PUBLIC


def leave_out(rows: Sequence[MeasuredRow], judge: Judge, jobs: int = 1) -> list[JudgedRow]:
    """Predict every row once per kind of what is left out.

    Args:
        rows: The measured rows.
        judge: Fits and predicts; a function of a module, since worker processes run it.
        jobs: Worker processes.
    """
    every = folds(rows)
    answer = partial(_answered, judge, tuple(rows))
    if jobs == 1:
        judged = [answer(fold) for fold in every]
    else:
        with ProcessPoolExecutor(jobs) as executor:
            judged = list(executor.map(answer, every))
    return sorted((row for rows in judged for row in rows), key=lambda row: KINDS.index(row.left_out))


def planner(seen: Sequence[MeasuredRow]) -> Predict:
    """Fit the planner's constants on some rows.

    The fit starts at its prior, never at the catalog's constants: those were fitted on what is left out, too.
    """
    from benchmarks.planner_accuracy import fit_engines  # noqa: PLC0415  (SciPy is there only when this runs)

    constants = fit_engines.fit(seen)

    def predict(row: MeasuredRow, tables_of: str) -> Figures:
        answer = fit_engines.predict(row, constants, tables_of)
        return Figures() if answer is None else Figures(**asdict(answer))

    return predict


def main() -> None:
    """Fit once per fold and write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    judged = leave_out(read_rows(), planner, parser.parse_args().jobs)
    write_judged(judged)
    write_origin(datetime.now(tz=UTC).date().isoformat())
    print(f"{LEFT_OUT.name}: {len(judged)} rows")


def _answered(judge: Judge, rows: Sequence[MeasuredRow], fold: Fold) -> list[JudgedRow]:
    left_out = set(fold.indices)
    predict = judge([row for index, row in enumerate(rows) if index not in left_out])
    return [
        _judged(row, kind, predict(row, ALIKE[row.accelerator] if kind == "tables" else ""))
        for kind in fold.kinds
        for row in (rows[index] for index in fold.indices)
        if is_judged(row, kind)
    ]


def _left_out_value(row: MeasuredRow, kind: str) -> object:
    shape = row.architecture
    values: dict[str, object] = {
        # Releases of one shape (Llama 3 and 3.1 70B) are one model to a performance model.
        "model": (shape.layers, shape.hidden_size, shape.params_total),
        "accelerator": row.accelerator,
        "tables": row.accelerator,
        "engine": row.engine,
        "release": (row.engine, release_of(row.engine, row.engine_version)),
        "source": row.source,
        "precision": bits_of(row.quantization),
        "degree": row.degree,
        "lengths": lengths_of(row.input_tokens, row.output_tokens),
    }
    return values[kind]


def _judged(row: MeasuredRow, kind: str, predicted: Figures) -> JudgedRow:
    question = _question(row)
    measured = Figures(
        ttft_ms=row.ttft_ms,
        tpot_ms=row.tpot_ms,
        e2e_mean_ms=row.e2e_mean_ms,
        e2e_p50_ms=row.e2e_p50_ms,
        e2e_p90_ms=row.e2e_p90_ms,
        output_tok_s=row.output_tok_s,
    )
    return JudgedRow(
        question=question,
        accelerator=row.accelerator,
        family=family_of(row.architecture),
        left_out=kind,
        measured=derived(question, measured),
        predicted=predicted,
        comparable=row.is_comparable,
    )


def _question(row: MeasuredRow) -> Question:
    return Question(
        engine=row.engine,
        engine_version=row.engine_version,
        model=row.model,
        precision=row.precision,
        instance_type=row.instance.instance_type,
        tp_degree=row.degree,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        concurrency=math.inf if row.concurrency is None else row.concurrency,
    )


if __name__ == "__main__":
    main()
