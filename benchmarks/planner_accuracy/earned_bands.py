"""Turns the errors of left-out rows into the bands of predictions: `seatrial_base/catalog/data/bands.json`.

    python -m benchmarks.planner_accuracy.earned_bands [--write]

A band is a share s: 80 % of the rows were measured between predicted / (1 + s) and predicted × (1 + s). Coverage is
checked on what neither the fit nor the band has seen: the band of each model comes from the errors of other models.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, cast, get_args

from benchmarks.planner_accuracy.judged import KINDS, LATENCIES, JudgedRow, grouped, ratios, read_judged
from benchmarks.planner_accuracy.questions import FOLDER
from seatrial_base.catalog.bands import BandCell, BandPlace, Facet, ModelFamily, shape_of
from seatrial_base.catalog.models import resolve_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BANDS = FOLDER.parents[1] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "bands.json"
INSIDE = 0.8  # share of the rows that a band holds
FEWEST = 15  # rows of a cell, of one kind of figure
FEWEST_MODELS = 2  # of a cell: rows of one model do not tell how much models differ
SOURCE = "benchmarks/planner_accuracy/left_out.csv, by benchmarks/planner_accuracy/earned_bands.py"
_DIGITS = 3

FACETS = ("accelerator", "precision", "family", "engine")  # the order of a level's parts
Level = tuple[bool, bool, bool, bool]
LEVELS: tuple[Level, ...] = (
    (True, True, True, True),  # accelerator, bits, family, engine
    (False, False, True, True),
    (False, False, False, True),
    (False, False, True, False),
    (False, False, False, False),
)
Figure = Literal["throughput", "latency"]
FIGURES_OF: dict[Figure, tuple[str, ...]] = {"throughput": ("output_tok_s",), "latency": LATENCIES}


def share_of(found: Iterable[float]) -> float | None:
    """Return the share that 80 % of predicted over measured are within; `None` for fewer than 15."""
    errors = sorted(max(ratio, 1 / ratio) - 1 for ratio in found)
    return errors[math.ceil(INSIDE * len(errors)) - 1] if len(errors) >= FEWEST else None


def cells(rows: Sequence[JudgedRow]) -> tuple[BandCell, ...]:
    """Return the bands of every kind of left-out rows, the finest cells first."""
    usable = [row for row in rows if row.family in get_args(ModelFamily)]
    by_kind = {kind: [row for row in usable if row.left_out == kind] for kind in KINDS}
    kinds: tuple[Facet, ...] = get_args(Facet)
    return tuple(cell for kind in kinds for level in _levels(kind) for cell in _level(kind, level, by_kind[kind]))


def share_for(found: Sequence[BandCell], row: JudgedRow, figure: Figure) -> float | None:
    """Return the share of the finest cell that holds for a row and has this figure."""
    shares = (getattr(cell, figure) for cell in found if cell.left_out == row.left_out and _holds(cell, row))
    return next((share for share in shares if share is not None), None)


def nested(rows: Sequence[JudgedRow], figure: Figure) -> list[tuple[JudgedRow, bool]]:
    """Tell of each row with its model left out whether the band of the other models' errors holds it."""
    judged = [row for row in rows if row.left_out == "model" and ratios([row], *FIGURES_OF[figure])]
    told: list[tuple[JudgedRow, bool]] = []
    for model, own in grouped(judged, lambda row: (row.question.model,)).items():
        others = cells([row for row in judged if (row.question.model,) != model])
        for row in own:
            share = share_for(others, row, figure)
            if share is not None:
                told.append((row, all(1 / (1 + share) <= ratio <= 1 + share for ratio in _all(row, figure))))
    return told


def coverage(told: Sequence[tuple[JudgedRow, bool]]) -> float | None:
    """Return the share of rows inside their bands; `None` without rows."""
    return sum(inside for _, inside in told) / len(told) if told else None


def document(rows: Sequence[JudgedRow]) -> str:
    """Return the data file, one row a line."""
    places = dict.fromkeys(_place(row) for row in rows if ratios([row], "output_tok_s", *LATENCIES))
    parts = {"measured": [asdict(one) for one in places], "rows": [asdict(cell) for cell in cells(rows)]}
    lines = [f'"{name}": [\n  {_lines(part)}\n]' for name, part in parts.items()]
    return f'{{\n"source": {json.dumps(SOURCE)},\n{", ".join(lines)}\n}}\n'


def _place(row: JudgedRow) -> BandPlace:
    resolved = resolve_model(row.question.model)
    if resolved is None:
        raise LookupError(row.question.model)
    family, shape = cast("ModelFamily", row.family), shape_of(resolved[0])
    return BandPlace(row.accelerator, row.bits, family, row.question.engine, row.question.tp_degree, shape)


def main() -> None:
    """Print the coverage, or with `--write` write the data file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {BANDS.name}")
    rows = read_judged()
    if parser.parse_args().write:
        BANDS.write_text(document(rows), encoding="utf-8")
    for figure in get_args(Figure):
        told = nested(rows, figure)
        print(f"{figure}: {coverage(told) or 0:.0%} of {len(told)} rows inside the band of other models' errors")


def _levels(kind: Facet) -> tuple[Level, ...]:
    """Return what to group by, but not by what was left out: an unmeasured accelerator has no cell of its own."""
    own = FACETS.index(kind) if kind in FACETS else None
    masked = (tuple(kept and place != own for place, kept in enumerate(level)) for level in LEVELS)
    return tuple(dict.fromkeys(cast("Level", level) for level in masked))


def _level(kind: Facet, level: Level, rows: Sequence[JudgedRow]) -> list[BandCell]:
    groups = grouped(rows, lambda row: _kept(row, level))
    fewest = 1 if kind == "degree" else FEWEST_MODELS  # another degree of a model tells of that very model
    found = [_cell(kind, key, own) for key, own in groups.items() if _models(own) >= fewest]
    return [cell for cell in found if cell.throughput is not None or cell.latency is not None]


def _models(rows: Iterable[JudgedRow]) -> int:
    return len({row.question.model for row in rows})


def _kept(row: JudgedRow, level: Level) -> tuple[object, ...]:
    return tuple(part if kept else None for part, kept in zip(_parts(row), level, strict=True))


def _cell(kind: Facet, key: tuple[object, ...], rows: Sequence[JudgedRow]) -> BandCell:
    judged = [row for row in rows if ratios([row], "output_tok_s", *LATENCIES)]
    accelerator, bits, family, engine = key
    return BandCell(
        left_out=kind,
        accelerator=cast("str | None", accelerator),
        bits=cast("int | None", bits),
        family=cast("ModelFamily | None", family),
        engine=cast("str | None", engine),
        rows=len(judged),
        models=len({row.question.model for row in judged}),
        throughput=_rounded(share_of(ratios(rows, *FIGURES_OF["throughput"]))),
        latency=_rounded(share_of(ratios(rows, *FIGURES_OF["latency"]))),
    )


def _parts(row: JudgedRow) -> tuple[str, int, str, str]:
    return row.accelerator, row.bits, row.family, row.question.engine


def _holds(cell: BandCell, row: JudgedRow) -> bool:
    pairs = zip((cell.accelerator, cell.bits, cell.family, cell.engine), _parts(row), strict=True)
    return all(own is None or own == asked for own, asked in pairs)


def _all(row: JudgedRow, figure: Figure) -> list[float]:
    return ratios([row], *FIGURES_OF[figure])


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, _DIGITS)


def _lines(part: Sequence[dict[str, object]]) -> str:
    return ",\n  ".join(json.dumps(row) for row in part)


if __name__ == "__main__":
    main()
