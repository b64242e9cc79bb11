"""Turns the errors of left-out rows into the bands of predictions: `seatrial_base/catalog/data/bands.json`.

    python -m benchmarks.planner_accuracy.earned_bands [--write]

A band is a share s: 80 % of the rows were measured between predicted / (1 + s) and predicted × (1 + s). The band of a
cell is a quantile of the errors of all rows: a row counts the less, the more of its parts (kind of model, engine,
accelerator, precision, degree, model) differ from the cell's. It is the quantile that holds `AIM` of the rows, each of
them held against the errors of other models, degrees or lengths. Coverage is checked on what neither the fit, nor the
band, nor its quantile has seen.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Literal, cast, get_args

from benchmarks.planner_accuracy.judged import LATENCIES, JudgedRow, grouped, ratios, read_judged
from benchmarks.planner_accuracy.left_out import lengths_of, release_of
from benchmarks.planner_accuracy.questions import FOLDER
from benchmarks.planner_accuracy.weighed_errors import Evidence, Group, Key
from seatrial_base.catalog import engines
from seatrial_base.catalog.bands import BandCell, BandPlace, Facet, MeasuredReleases, ModelFamily, shape_of
from seatrial_base.catalog.models import resolve_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

BANDS = FOLDER.parents[1] / "packages" / "seatrial-base" / "seatrial_base" / "catalog" / "data" / "bands.json"
INSIDE = 0.8  # share of the rows that a band holds
AIM = 0.825  # of all rows: the middle of 70 to 95 %, between which each cell is to be
NARROWEST = 0.06  # runs that were published twice differ by 3 to 8 %: no row tells of less
FEWEST = 10  # rows that bands come from
FEWEST_MODELS = 2  # of all rows: those of one model do not tell how much models differ
SOURCE = "benchmarks/planner_accuracy/left_out.csv, by benchmarks/planner_accuracy/earned_bands.py"
_DIGITS = 3

# What a row counts that differs from a cell in one part. Rows of other lengths tell of the very same deployment, so
# what differs counts little. Other models and degrees err by other amounts wherever they run: more rows tell more.
# Chosen on these rows, in the middle of ranges (0.15 to 0.25, 0.3 to 0.5) within which about as many cells hold.
SAME_DEPLOYMENT, OTHER_DEPLOYMENT = 0.2, 0.4

LEVELS = ("family", "engine", "accelerator", "bits", "degree", "shape")
"""What cells are split by, the widest first; each level splits those of the level before."""
_OWN_MODEL = ("degree", "lengths")  # left out of these, the rest of a model tells of that very model
_LEVEL_OF = {"precision": "bits", "model": "shape", "tables": "accelerator"}
Figure = Literal["throughput", "latency"]
FIGURES_OF: dict[Figure, tuple[str, ...]] = {"throughput": ("output_tok_s",), "latency": LATENCIES}
JUDGED_FACETS: tuple[Facet, ...] = ("model", "tables", "release", "degree", "lengths")
"""What is left out where coverage and chances are judged: each row is told by it which band it takes."""
LEFT_OUT_OF: dict[Facet, Callable[[JudgedRow], object]] = {
    # Releases of one shape are left out together (`left_out.folds`).
    "model": lambda row: _parts(row, ("shape",)),
    "accelerator": lambda row: row.accelerator,
    "tables": lambda row: row.accelerator,
    "engine": lambda row: row.question.engine,
    "release": lambda row: (row.question.engine, release_of(row.question.engine, row.question.engine_version)),
    "precision": lambda row: row.bits,
    "degree": lambda row: row.question.tp_degree,
    "lengths": lambda row: lengths_of(row.question.input_tokens, row.question.output_tokens),
}
"""What the fit did not see of a row; its band comes from rows that have another one."""


def evidence(rows: Iterable[JudgedRow], kind: Facet, figure: Figure) -> Evidence:
    """Return the errors of rows that one kind of thing was left out for."""
    levels, left_out = levels_of(kind), LEFT_OUT_OF[kind]
    told = [row for row in rows if row.comparable and ratios([row], *FIGURES_OF[figure])]
    groups = grouped(told, lambda row: (_parts(row, levels), left_out(row)))
    return Evidence(
        groups=tuple(
            Group(cast("Key", parts), value, tuple(sorted(error_of(row, figure) for row in own)))
            for (parts, value), own in groups.items()
        ),
        per_difference=SAME_DEPLOYMENT if kind == "lengths" else OTHER_DEPLOYMENT,
        aim=AIM,
    )


def error_of(row: JudgedRow, figure: Figure) -> float:
    """Return what a row is off by, as a share: by the worst of its latencies."""
    return max(max(ratio, 1 / ratio) - 1 for ratio in ratios([row], *FIGURES_OF[figure]))


def levels_of(kind: Facet) -> tuple[str, ...]:
    """Return what the cells of a kind are split by, but not by what was left out: an unmeasured one has no cell."""
    own = _LEVEL_OF.get(kind, kind)
    return tuple(level for level in LEVELS if level != own and (level != "shape" or kind in _OWN_MODEL))


def cells(rows: Sequence[JudgedRow]) -> tuple[BandCell, ...]:
    """Return the bands of every kind of left-out rows, the finest cells first."""
    kinds: tuple[Facet, ...] = get_args(Facet)
    return tuple(cell for kind in kinds for cell in _cells_of(kind, [row for row in rows if row.left_out == kind]))


def nested(rows: Sequence[JudgedRow], figure: Figure, kind: Facet = "model") -> list[tuple[JudgedRow, float]]:
    """Return the rows that one kind of thing was left out for, each with the band that other such things earn."""
    return list(_nested(tuple(row for row in rows if row.left_out == kind), figure, kind))


@cache
def _nested(rows: tuple[JudgedRow, ...], figure: Figure, kind: Facet) -> list[tuple[JudgedRow, float]]:
    told, levels, left_out = evidence(rows, kind, figure), levels_of(kind), LEFT_OUT_OF[kind]
    judged = [row for row in rows if row.comparable and ratios([row], *FIGURES_OF[figure])]
    alike = grouped(judged, lambda row: (left_out(row), _parts(row, levels)))
    others = {value: len(judged) - len(own) for (value,), own in grouped(judged, lambda row: (left_out(row),)).items()}
    return [
        (row, share)
        for (value, parts), own in alike.items()
        if others[value] >= FEWEST
        for share in (max(told.share(cast("Key", parts), value), NARROWEST),)
        for row in own
    ]


def is_inside(row: JudgedRow, share: float, figure: Figure) -> bool:
    """Tell whether all values of a row lie within a band."""
    return all(1 / (1 + share) <= ratio <= 1 + share for ratio in ratios([row], *FIGURES_OF[figure]))


def coverage(told: Sequence[tuple[JudgedRow, float]], figure: Figure) -> float | None:
    """Return the share of rows inside their bands; `None` without rows."""
    return sum(is_inside(row, share, figure) for row, share in told) / len(told) if told else None


def document(rows: Sequence[JudgedRow]) -> str:
    """Return the data file, one row a line."""
    judged = [row for row in rows if row.comparable and ratios([row], "output_tok_s", *LATENCIES)]
    # The many small sources of `measured.PUBLIC` are judged as sources alone: they make no place a measured one.
    own = [row for row in judged if row.left_out == "model"]
    places = dict.fromkeys(map(_place, own))
    releases = grouped(own, lambda row: (row.question.engine,))
    parts = {
        "measured": [asdict(one) for one in places],
        "releases": [asdict(_releases(str(engine), of)) for (engine,), of in releases.items()],
        "rows": [asdict(cell) for cell in cells(rows)],
    }
    lines = [f'"{name}": [\n  {_lines(part)}\n]' for name, part in parts.items()]
    return f'{{\n"source": {json.dumps(SOURCE)},\n{", ".join(lines)}\n}}\n'


def _place(row: JudgedRow) -> BandPlace:
    family, engine, accelerator, bits, degree, shape = _parts(row, LEVELS)
    return BandPlace(
        str(accelerator), cast("int", bits), cast("ModelFamily", family), str(engine), cast("int", degree), str(shape)
    )


def _releases(engine: str, rows: Iterable[JudgedRow]) -> MeasuredReleases:
    numbers = {engines.release_of(row.question.engine, row.question.engine_version) for row in rows}
    known = sorted(number for number in numbers if number is not None)
    return MeasuredReleases(engine, known[0], known[-1])


def main() -> None:
    """Print the coverage, or with `--write` write the data file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help=f"write {BANDS.name}")
    rows = read_judged()
    if parser.parse_args().write:
        BANDS.write_text(document(rows), encoding="utf-8")
    for kind in JUDGED_FACETS:
        for figure in get_args(Figure):
            told = nested(rows, figure, kind)
            print(f"{kind}, {figure}: {coverage(told, figure) or 0:.0%} of {len(told)} rows inside the band of others")


def _cells_of(kind: Facet, rows: Sequence[JudgedRow]) -> list[BandCell]:
    judged = [row for row in rows if row.comparable and row.family in get_args(ModelFamily)]
    if len({row.question.model for row in judged}) < FEWEST_MODELS and kind not in _OWN_MODEL:
        return []
    by_figure = {figure: _with(judged, figure) for figure in get_args(Figure)}
    told = {figure: evidence(own, kind, figure) for figure, own in by_figure.items() if len(own) >= FEWEST}
    cells_of = {figure: _by_key(by_figure[figure], kind) for figure in told}
    keys = dict.fromkeys(key for found in cells_of.values() for key in found)
    return [_cell(kind, key, told, cells_of) for key in sorted(keys, key=len, reverse=True)]


def _cell(
    kind: Facet, key: Key, told: dict[Figure, Evidence], found: dict[Figure, dict[Key, list[JudgedRow]]]
) -> BandCell:
    shares = {
        figure: round(max(told[figure].share(key), NARROWEST), _DIGITS) for figure in told if key in found[figure]
    }
    largest = max((own[key] for own in found.values() if key in own), key=len)
    parts = dict.fromkeys(LEVELS) | dict(zip(levels_of(kind), key, strict=False))
    return BandCell(
        left_out=kind,
        **parts,
        rows=len(largest),
        models=len({row.question.model for row in largest}),
        throughput=shares.get("throughput"),
        latency=shares.get("latency"),
    )


def _with(rows: Iterable[JudgedRow], figure: Figure) -> list[JudgedRow]:
    return [row for row in rows if ratios([row], *FIGURES_OF[figure])]


def _by_key(rows: Iterable[JudgedRow], kind: Facet) -> dict[Key, list[JudgedRow]]:
    """Return the rows of each cell and of those around it."""
    levels = levels_of(kind)
    found: dict[Key, list[JudgedRow]] = {}
    for row in rows:
        parts = _parts(row, levels)
        for depth in range(len(parts) + 1):
            found.setdefault(parts[:depth], []).append(row)
    return found


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


def _lines(part: Sequence[dict[str, object]]) -> str:
    return ",\n  ".join(json.dumps(row) for row in part)


if __name__ == "__main__":
    main()
