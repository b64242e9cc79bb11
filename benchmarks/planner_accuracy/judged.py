"""A measured row beside what was predicted of it while something was left out of the fit: rows of `left_out.csv`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.questions import (
    FIGURES,
    FOLDER,
    Figures,
    Question,
    figure_columns,
    figures_of,
    key_columns,
    question_of,
    read_csv,
    write_csv,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

LEFT_OUT = FOLDER / "left_out.csv"
KINDS = ("model", "accelerator", "tables", "engine", "release", "precision", "degree", "lengths", "source")
LATENCIES = ("e2e_mean_ms",)
_PLACE = ("accelerator", "family", "left_out")
_COMPARABLE = {True: "yes", False: "no"}


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One measured row and its prediction.

    Attributes:
        question: The deployment and its load.
        accelerator: Name of the accelerator, as in the catalog.
        family: `dense`, `MoE` or `MLA`.
        left_out: What the fit did not see of this row: one of `KINDS`.
        measured: What was measured.
        predicted: What was predicted by constants that were fitted on the other rows.
        comparable: It ran as an endpoint would (`measured.MeasuredRow.is_comparable`).
    """

    question: Question
    accelerator: str
    family: str
    left_out: str
    measured: Figures
    predicted: Figures
    comparable: bool = True

    @property
    def bits(self) -> int:
        """Bits of a weight: 16, 8 or 4."""
        return bits_written(self.question.precision)

    def ratio(self, figure: str) -> float | None:
        """Return predicted over measured of one of `FIGURES`; `None` unless both are there."""
        if figure not in FIGURES:
            raise KeyError(figure)
        predicted: float | None = getattr(self.predicted, figure)
        measured: float | None = getattr(self.measured, figure)
        return predicted / measured if predicted and measured else None


def bits_written(precision: str) -> int:
    """Return the bits of a weight of a question's precision: 16, 8 or 4."""
    return {"16-bit": 16, "fp8": 8, "int8": 8, "w8a16": 8}.get(precision, 4)


def ratios(rows: Iterable[JudgedRow], *figures: str) -> list[float]:
    """Return predicted over measured of every row and figure that has both."""
    found = (row.ratio(figure) for row in rows for figure in figures)
    return [ratio for ratio in found if ratio is not None]


def read_judged(path: Path = LEFT_OUT) -> tuple[JudgedRow, ...]:
    """Return the rows of `left_out.csv`."""
    return tuple(
        JudgedRow(
            question=question_of(row),
            accelerator=row["accelerator"],
            family=row["family"],
            left_out=row["left_out"],
            measured=figures_of(row, "measured_"),
            predicted=figures_of(row, "predicted_"),
            comparable=row["comparable"] == _COMPARABLE[True],
        )
        for row in read_csv(path)
    )


def write_judged(rows: Iterable[JudgedRow], path: Path = LEFT_OUT) -> None:
    """Write rows as `left_out.csv`."""
    write_csv(
        path,
        (
            {
                **{name: str(getattr(row, name)) for name in _PLACE},
                "comparable": _COMPARABLE[row.comparable],
                **key_columns(row.question),
                **figure_columns(row.measured, "measured_"),
                **figure_columns(row.predicted, "predicted_"),
            }
            for row in rows
        ),
    )


def grouped(
    rows: Iterable[JudgedRow], key: Callable[[JudgedRow], tuple[object, ...]]
) -> dict[tuple[object, ...], list[JudgedRow]]:
    """Return rows by key, in the order in which the keys appear."""
    groups: dict[tuple[object, ...], list[JudgedRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
