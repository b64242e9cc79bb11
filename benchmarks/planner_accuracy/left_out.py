"""Predicts every measured row with constants that were fitted without it, and writes `left_out.csv` and `results.json`.

    uv run --isolated --with scipy==1.17.1 python -m benchmarks.planner_accuracy.left_out [--jobs 2]

Six kinds of what is left out: all rows of the row's model, accelerator, engine, precision, tensor parallel degree, or
lengths (prompts and answers, each up to 1,024 tokens or longer). Rows that are left out for two reasons together (the
one model of an accelerator) are fitted once.
"""

from __future__ import annotations

import argparse
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.judged import KINDS, LEFT_OUT, JudgedRow, write_judged
from benchmarks.planner_accuracy.measured import read_rows
from benchmarks.planner_accuracy.questions import Figures, Question, derived
from benchmarks.planner_accuracy.results import write_origin
from seatrial_base.catalog.bands import bits_of, family_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.planner_accuracy.measured import MeasuredRow

    Judge = Callable[[Sequence[MeasuredRow], Sequence[MeasuredRow]], tuple[Figures, ...]]
    """Fits on the rows that it sees and predicts the others, in their order."""


SHORT_TOKENS = 1_024
"""Prompts and answers up to this length are left out together, and so are longer ones."""


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


def folds(rows: Sequence[MeasuredRow]) -> tuple[Fold, ...]:
    """Return what to leave out, each set of rows once."""
    kinds: dict[tuple[int, ...], list[str]] = {}
    for kind in KINDS:
        groups: dict[object, list[int]] = {}
        for index, row in enumerate(rows):
            groups.setdefault(_left_out_value(row, kind), []).append(index)
        for indices in groups.values():
            kinds.setdefault(tuple(indices), []).append(kind)
    return tuple(Fold(indices, tuple(names)) for indices, names in kinds.items())


def leave_out(rows: Sequence[MeasuredRow], judge: Judge, jobs: int = 1) -> list[JudgedRow]:
    """Predict every row once per kind of what is left out.

    Args:
        rows: The measured rows.
        judge: Fits and predicts; a function of a module, since worker processes run it.
        jobs: Worker processes.
    """
    asked = folds(rows)
    answer = partial(_answered, judge, tuple(rows))
    if jobs == 1:
        found = [answer(fold) for fold in asked]
    else:
        with ProcessPoolExecutor(jobs) as executor:
            found = list(executor.map(answer, asked))
    judged = [
        _judged(rows[index], kind, figures)
        for fold, predicted in zip(asked, found, strict=True)
        for kind in fold.kinds
        for index, figures in zip(fold.indices, predicted, strict=True)
    ]
    return sorted(judged, key=lambda row: KINDS.index(row.left_out))


def planner(seen: Sequence[MeasuredRow], unseen: Sequence[MeasuredRow]) -> tuple[Figures, ...]:
    """Fit the planner's constants on some rows and predict others.

    The fit starts at its prior, never at the catalog's constants: those were fitted on what is left out, too.
    """
    from benchmarks.planner_accuracy import fit_engines  # noqa: PLC0415  (SciPy is there only when this runs)

    constants = fit_engines.fit(seen)
    answers = (fit_engines.predict(row, constants) for row in unseen)
    return tuple(Figures() if answer is None else Figures(**asdict(answer)) for answer in answers)


def main() -> None:
    """Fit once per fold and write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    judged = leave_out(read_rows(), planner, parser.parse_args().jobs)
    write_judged(judged)
    write_origin(datetime.now(tz=UTC).date().isoformat())
    print(f"{LEFT_OUT.name}: {len(judged)} rows")


def _answered(judge: Judge, rows: Sequence[MeasuredRow], fold: Fold) -> tuple[Figures, ...]:
    left_out = set(fold.indices)
    seen = [row for index, row in enumerate(rows) if index not in left_out]
    return judge(seen, [rows[index] for index in fold.indices])


def _left_out_value(row: MeasuredRow, kind: str) -> object:
    shape = row.architecture
    values: dict[str, object] = {
        # Releases of one shape (Llama 3 and 3.1 70B) are one model to a performance model.
        "model": (shape.layers, shape.hidden_size, shape.params_total),
        "accelerator": row.accelerator,
        "engine": row.engine,
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
