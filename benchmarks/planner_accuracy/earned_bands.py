"""Turns the errors of left-out rows into the bands of predictions: `seatrial_base/catalog/data/bands.json`.

    python -m benchmarks.planner_accuracy.earned_bands [--write]

A band is a share s: 80 % of the rows were measured between predicted / (1 + s) and predicted × (1 + s). Errors are
distributed as those of a cell, drawn towards those of the wider cell around it: m models count m / (m + 2), the wider
cell the rest. So a cell of many models has a band of its own, and one of few models nearly that of the wider cell.
Coverage is checked on what neither the fit nor the band has seen: the band of a model, a degree or lengths comes from
the errors of other models, degrees or lengths.
"""

from __future__ import annotations

import argparse
import json
from bisect import bisect_left, bisect_right
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from benchmarks.planner_accuracy.judged import LATENCIES, JudgedRow, grouped, ratios, read_judged
from benchmarks.planner_accuracy.left_out import lengths_of
from benchmarks.planner_accuracy.questions import FOLDER
from seatrial_base.catalog.bands import BandCell, BandPlace, Facet, ModelFamily, shape_of
from seatrial_base.catalog.models import resolve_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

BANDS = FOLDER.parents[1] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "bands.json"
INSIDE = 0.8  # share of the rows that a band holds
FEWEST = 10  # errors of a cell
FEWEST_MODELS = 2  # of all rows: those of one model do not tell how much models differ
WIDER_MODELS = 2  # models of a cell that count as much as the wider cell around it
SOURCE = "benchmarks/planner_accuracy/left_out.csv, by benchmarks/planner_accuracy/earned_bands.py"
_DIGITS = 3

LEVELS = ("family", "engine", "accelerator", "bits", "degree", "shape")
"""What cells are split by, the widest first; each level splits those of the level before."""
_OWN_MODEL = ("degree", "lengths")  # left out of these, the rest of a model tells of that very model
_LEVEL_OF = {"precision": "bits", "model": "shape"}
Figure = Literal["throughput", "latency"]
FIGURES_OF: dict[Figure, tuple[str, ...]] = {"throughput": ("output_tok_s",), "latency": LATENCIES}
SEEN_APART: dict[Facet, Callable[[JudgedRow], object]] = {
    "model": lambda row: row.question.model,
    "degree": lambda row: row.question.tp_degree,
    "lengths": lambda row: lengths_of(row.question.input_tokens, row.question.output_tokens),
}
"""What the rows of one part have in common, whose band comes from the other parts."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of the rows of one cell.

    Attributes:
        ascending: max(ratio, 1 / ratio) - 1 of each predicted over measured value.
        models: Different models of these rows.
        rows: The rows.
    """

    ascending: tuple[float, ...]
    models: int
    rows: int


Key = tuple[object, ...]
Table = dict[Key, Errors]
"""Errors by the parts of a cell: one key for each level, of as many parts as the level splits by."""


def share_of(nested: Sequence[Errors]) -> float | None:
    """Return the share that 80 % of the errors are within.

    Args:
        nested: Of a cell and of those around it, the widest first; each holds all errors of the next.
    """
    weighed, rest = [], 1.0
    for cell in reversed(nested[1:]):
        own = rest * cell.models / (cell.models + WIDER_MODELS)
        weighed.append((cell.ascending, own))
        rest -= own
    widest = nested[0].ascending if nested else ()
    weighed.append((widest, rest))

    def below(error: float) -> float:
        return sum(weight * bisect_right(errors, error) / len(errors) for errors, weight in weighed)

    return widest[bisect_left(widest, INSIDE - 1e-9, key=below)] if len(widest) >= FEWEST else None


def table(rows: Iterable[JudgedRow], kind: Facet, figure: Figure) -> Table:
    """Return the errors of rows that one kind of thing was left out for, by cell; cells with too few are left out."""
    levels = levels_of(kind)
    found: dict[Key, list[JudgedRow]] = {}
    for row in rows:
        parts = _parts(row, levels)
        for depth in range(len(parts) + 1):
            found.setdefault(parts[:depth], []).append(row)
    made = ((key, _errors(own, figure)) for key, own in found.items())
    return {key: errors for key, errors in made if len(errors.ascending) >= FEWEST}


def levels_of(kind: Facet) -> tuple[str, ...]:
    """Return what the cells of a kind are split by, but not by what was left out: an unmeasured one has no cell."""
    own = _LEVEL_OF.get(kind, kind)
    return tuple(level for level in LEVELS if level != own and (level != "shape" or kind in _OWN_MODEL))


def share_for(found: Table, row: JudgedRow, kind: Facet) -> float | None:
    """Return the share of the finest cell that holds a row."""
    return share_of(_around(found, _parts(row, levels_of(kind))))


def cells(rows: Sequence[JudgedRow]) -> tuple[BandCell, ...]:
    """Return the bands of every kind of left-out rows, the finest cells first."""
    kinds: tuple[Facet, ...] = get_args(Facet)
    return tuple(cell for kind in kinds for cell in _cells_of(kind, [row for row in rows if row.left_out == kind]))


def nested(rows: Sequence[JudgedRow], figure: Figure, kind: Facet = "model") -> list[tuple[JudgedRow, float]]:
    """Return the rows that one kind of thing was left out for, each with the band that other such things earn."""
    return list(_nested(tuple(row for row in rows if row.left_out == kind), figure, kind))


@cache
def _nested(rows: tuple[JudgedRow, ...], figure: Figure, kind: Facet) -> list[tuple[JudgedRow, float]]:
    told: list[tuple[JudgedRow, float]] = []
    judged = [row for row in rows if row.comparable and ratios([row], *FIGURES_OF[figure])]
    apart = SEEN_APART[kind]
    for part, own in grouped(judged, lambda row: (apart(row),)).items():
        others = table([row for row in judged if (apart(row),) != part], kind, figure)
        shares = ((row, share_for(others, row, kind)) for row in own)
        told += [(row, share) for row, share in shares if share is not None]
    return told


def is_inside(row: JudgedRow, share: float, figure: Figure) -> bool:
    """Tell whether all values of a row lie within a band."""
    return all(1 / (1 + share) <= ratio <= 1 + share for ratio in ratios([row], *FIGURES_OF[figure]))


def coverage(told: Sequence[tuple[JudgedRow, float]], figure: Figure) -> float | None:
    """Return the share of rows inside their bands; `None` without rows."""
    return sum(is_inside(row, share, figure) for row, share in told) / len(told) if told else None


def document(rows: Sequence[JudgedRow]) -> str:
    """Return the data file, one row a line."""
    judged = (row for row in rows if row.comparable and ratios([row], "output_tok_s", *LATENCIES))
    places = dict.fromkeys(map(_place, judged))
    parts = {"measured": [asdict(one) for one in places], "rows": [asdict(cell) for cell in cells(rows)]}
    lines = [f'"{name}": [\n  {_lines(part)}\n]' for name, part in parts.items()]
    return f'{{\n"source": {json.dumps(SOURCE)},\n{", ".join(lines)}\n}}\n'


def _place(row: JudgedRow) -> BandPlace:
    family, engine, accelerator, bits, degree, shape = _parts(row, LEVELS)
    return BandPlace(
        str(accelerator), cast("int", bits), cast("ModelFamily", family), str(engine), cast("int", degree), str(shape)
    )


def main() -> None:
    """Print the coverage, or with `--write` write the data file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {BANDS.name}")
    rows = read_judged()
    if parser.parse_args().write:
        BANDS.write_text(document(rows), encoding="utf-8")
    for kind in SEEN_APART:
        for figure in get_args(Figure):
            told = nested(rows, figure, kind)
            print(f"{kind}, {figure}: {coverage(told, figure) or 0:.0%} of {len(told)} rows inside the band of others")


def _cells_of(kind: Facet, rows: Sequence[JudgedRow]) -> list[BandCell]:
    judged = [row for row in rows if row.comparable and row.family in get_args(ModelFamily)]
    if len({row.question.model for row in judged}) < FEWEST_MODELS and kind not in _OWN_MODEL:
        return []
    tables = {figure: table(judged, kind, figure) for figure in get_args(Figure)}
    keys = dict.fromkeys(key for found in tables.values() for key in found if not _is_whole(found, key))
    return [_cell(kind, key, tables) for key in sorted(keys, key=len, reverse=True)]


def _cell(kind: Facet, key: Key, tables: dict[Figure, Table]) -> BandCell:
    shares = {figure: share_of(_around(found, key)) if key in found else None for figure, found in tables.items()}
    largest = max((found[key] for found in tables.values() if key in found), key=lambda errors: errors.rows)
    parts = dict.fromkeys(LEVELS) | dict(zip(levels_of(kind), key, strict=False))
    return BandCell(
        left_out=kind,
        **parts,
        rows=largest.rows,
        models=largest.models,
        throughput=_rounded(shares["throughput"]),
        latency=_rounded(shares["latency"]),
    )


def _is_whole(found: Table, key: Key) -> bool:
    """Tell whether a cell holds all rows of the one around it, which then stands for both."""
    return bool(key) and found[key].rows == found[key[:-1]].rows


def _around(found: Table, key: Key) -> list[Errors]:
    """Return the errors of a cell and of those around it, the widest first."""
    there = [found[key[:depth]] for depth in range(len(key) + 1) if key[:depth] in found]
    return [cell for at, cell in enumerate(there) if at == 0 or cell.rows < there[at - 1].rows]


def _errors(rows: Sequence[JudgedRow], figure: Figure) -> Errors:
    found = ratios(rows, *FIGURES_OF[figure])
    models = {row.question.model for row in rows if ratios([row], *FIGURES_OF[figure])}
    return Errors(tuple(sorted(max(ratio, 1 / ratio) - 1 for ratio in found)), len(models), len(rows))


def _parts(row: JudgedRow, levels: Sequence[str]) -> Key:
    return tuple(_PART[level](row) for level in levels)


@cache
def _shape(model: str) -> str:
    resolved = resolve_model(model)
    if resolved is None:
        raise LookupError(model)
    return shape_of(resolved[0])


_PART: dict[str, Callable[[JudgedRow], object]] = {
    "family": lambda row: row.family,
    "engine": lambda row: row.question.engine,
    "accelerator": lambda row: row.accelerator,
    "bits": lambda row: row.bits,
    "degree": lambda row: row.question.tp_degree,
    "shape": lambda row: _shape(row.question.model),
}


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, _DIGITS)


def _lines(part: Sequence[dict[str, object]]) -> str:
    return ",\n  ".join(json.dumps(row) for row in part)


if __name__ == "__main__":
    main()
