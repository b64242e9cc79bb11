"""Instance types and recipes side by side, predicted, on a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.documents.comparison import PredictedRecipe
from seatrial.report.terminal.tables import heading, narrow_usd, table_view, whole_percent
from seatrial_base.table import csv_table, name_column, number_columns, record_table, table_of, text_columns
from seatrial_base.units import UNKNOWN, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from seatrial.documents.comparison import Basis, InstanceComparison, RecipeRow, TypeAtLoad
    from seatrial.documents.prediction import Band
    from seatrial_base.table import Scalar

_NUMBERS = (
    "GPUs",
    "degree\nx\ncopies",
    "ms per\ntoken\nalone",
    "most\ntok/s",
    "in\nflight",
    "$/h",
    "$/1M\noutput",
    "$/1M\nblended",
)
_FIRST_NUMBERS = ("$/h", "tok/s\nload", "tok/s\nfull", "$/1M out\nfull", "ms/token\nalone")
READING = (
    "One instance of each type, lowest price per token first. Alone: a single request. Most: highest power of 2 of "
    "concurrent requests that all end in time. Blended: 3 input tokens to 1 output token. ?: price unknown."
)
MOST_ROWS = 10
FIRST_READING = (
    "load: what the cheapest deployment on the type makes of the planned load, where it keeps {kept}. "
    "full: one instance with as many requests as end in time. budget, copies: more than allowed. ?: price unknown."
)
MANY_REASONS = "The source differs by type: see --format json."
_GIB = 2**30
_RECIPE_NUMBERS = ("tok/s", "TPOT\nms", "$/h", "$/1M\nout", "ratio", "weights\nGiB", "cache\nGiB")
_FIRST_RECIPE_NUMBERS = ("$/h", "tok/s", "ratio", "ms")
RECIPES_READING = (
    "The best deployment of each recipe at the planned load; its type is below. $/1M out: per million output tokens. "
    "ratio: throughput to no recipe. weights, cache: on one accelerator, the KV cache's part. *: the spec lacks "
    "something, see Needs. ?: unknown."
)
PREDICTED = "Predicted, not measured. `seatrial compare` measures two recipes, quality among the results."


def first_instances_view(
    compared: Sequence[InstanceComparison],
    at_load: Sequence[TypeAtLoad],
    basis: Basis,
    title: str,
    *,
    has_slo: bool = True,
) -> RenderableType:
    """Return the ten types that matter: those that keep the SLO at the planned load, cheapest first, then the others.

    Args:
        has_slo: Whether the spec bounds speed; without, a type carries the load where its requests end in time.
    """
    loads = {load.instance_type: load for load in at_load}

    def order(row: InstanceComparison) -> tuple[bool, float]:
        load = loads[row.instance_type]
        return not load.instance_count, math.inf if load.usd_per_hour is None else load.usd_per_hour

    fitting = sorted((row for row in compared if row.fits), key=order)
    shown, more = fitting[:MOST_ROWS], len(fitting[MOST_ROWS:])
    parts: list[RenderableType] = [Text(title, style="bold"), Text(statement(basis)), Text()]
    if not fitting:
        return Group(*parts, Text("The model fits on no instance type."))
    columns = (
        name_column("instance type"),
        *text_columns("SLO" if has_slo else "in time"),
        *number_columns(*_FIRST_NUMBERS),
    )
    cells = (_first_cells(row, loads[row.instance_type], has_slo=has_slo) for row in shown)
    reading = FIRST_READING.format(kept="SLO, budget and copies" if has_slo else "budget and copies")
    parts += [table_view(table_of(columns, cells)), Text(f"\n{reading}")]
    left_out = len(compared) - len(fitting)
    rows = [f"{more} more"] if more else []
    rows += [f"{left_out} that can't run the model"] if left_out else []
    parts.append(Text(f"--wide shows {', '.join((*rows, 'bands and all columns'))}."))
    return Group(*parts)


def _first_cells(row: InstanceComparison, load: TypeAtLoad, *, has_slo: bool) -> tuple[str, ...]:
    kept, missed = ("met", "missed") if has_slo else ("yes", "no")
    exceeds = {"price": UNKNOWN, "budget": "budget", "copies": "copies"}.get(load.exceeds or "", missed)
    return (
        f"{load.instance_count} x {row.instance_type}" if load.instance_count > 1 else row.instance_type,
        kept if load.instance_count else exceeds,
        narrow_usd(load.usd_per_hour if load.instance_count else row.usd_per_hour),
        short(load.output_tok_s) if load.instance_count else "",
        short(row.highest_tok_s),
        narrow_usd(row.usd_per_million_output_tokens),
        short(row.ms_per_token_alone),
    )


def instances_view(compared: Sequence[InstanceComparison], basis: Basis, title: str) -> RenderableType:
    """Return the table of those that hold the model, what its numbers are, and why the others are left out."""
    fitting = [row for row in compared if row.fits]
    others = [row for row in compared if not row.fits]
    parts: list[RenderableType] = [Text(title, style="bold"), Text(statement(basis)), Text()]
    if fitting:
        letters = band_letters(fitting, basis)
        columns = (name_column("instance type"), *number_columns(*_NUMBERS), *text_columns("band"))
        cells = (
            (
                row.instance_type,
                str(row.accelerators),
                f"{row.tensor_parallel_degree} x {row.copies_per_instance}",
                short(row.ms_per_token_alone),
                short(row.highest_tok_s),
                f"{row.highest_concurrency:,}",
                narrow_usd(row.usd_per_hour),
                narrow_usd(row.usd_per_million_output_tokens),
                narrow_usd(row.blended_usd_per_million_tokens),
                letters[_shares(basis.bands[row.instance_type])],
            )
            for row in fitting
        )
        parts += [
            table_view(table_of(columns, cells), gap=1),
            Text(f"\n{READING}"),
            *map(Text, band_lines(fitting, basis)),
        ]
    else:
        parts.append(Text("The model fits on no instance type."))
    return Group(*parts, *_left_out(others))


def statement(basis: Basis) -> str:
    """Return that the numbers are predicted, by which engine's constants, and at which prices."""
    off = f"list prices less {whole_percent(basis.discount)}" if basis.discount else "list prices"
    return (
        f"Predicted, not measured: {basis.workload}, {basis.engine} {basis.engine_version}, constants of "
        f"{basis.constants}, {off}.{f' {basis.unknown_there}' if basis.unknown_there else ''}"
    )


def band_letters(rows: Sequence[InstanceComparison], basis: Basis) -> Mapping[str, str]:
    """Return every different band of some rows, as words, with its letter, in the rows' order."""
    bands = dict.fromkeys(_shares(basis.bands[row.instance_type]) for row in rows)
    return {shares: chr(ord("a") + index) for index, shares in enumerate(bands)}


def band_lines(rows: Sequence[InstanceComparison], basis: Basis) -> Iterator[str]:
    """Yield the band of each letter, and its source; in short where it differs from row to row."""
    for shares, letter in band_letters(rows, basis).items():
        bands = (basis.bands[row.instance_type] for row in rows)
        reasons = {band.because for band in bands if _shares(band) == shares}
        because = reasons.pop() if len(reasons) == 1 else MANY_REASONS
        yield f"{letter}: {shares}. {because}"


def comparison_csv(compared: Sequence[InstanceComparison], basis: Basis) -> str:
    """Write one line for each instance type, headings first; what is unknown is empty."""
    records = comparison_rows(compared, basis)
    return csv_table(record_table(list(records[0]) if records else (), records))


def comparison_rows(compared: Sequence[InstanceComparison], basis: Basis) -> list[dict[str, Scalar]]:
    """Return every row with its basis, as values."""
    return [
        {
            **row.model_dump(mode="json"),
            "engine": basis.engine,
            "engine_version": basis.engine_version,
            "constants": basis.constants,
            "throughput_band": basis.bands[row.instance_type].throughput,
            "latency_band": basis.bands[row.instance_type].latency,
            "band": _kind(basis.bands[row.instance_type]),
            "band_because": basis.bands[row.instance_type].because,
        }
        for row in compared
    ]


def _shares(band: Band) -> str:
    return f"throughput ±{whole_percent(band.throughput)}, latency ±{whole_percent(band.latency)} ({_kind(band)})"


def _kind(band: Band) -> str:
    return "measured" if band.measured else "assumed"


def _left_out(rows: Sequence[InstanceComparison]) -> tuple[RenderableType, ...]:
    if not rows:
        return ()
    columns = text_columns("instance type", "because")
    return heading("Left out"), table_view(table_of(columns, ((row.instance_type, row.because) for row in rows)))


def first_recipes_view(
    rows: Sequence[RecipeRow], title: str, *, has_slo: bool = True, has_rate: bool = False
) -> RenderableType:
    """Return the ten recipes that matter: those that keep the SLO, in the spec's order, and no recipe at all.

    What adds an optimization that is predicted to change nothing is left to the wide table.

    Args:
        has_slo: Whether the spec bounds speed; without, a recipe is shown where its requests end in time.
        has_rate: Whether the workload is a rate, whose tokens per second are the same whatever serves them.
    """
    running = [row for row in rows if row.predicted is not None]
    parts: list[RenderableType] = [Text(title, style="bold"), Text(PREDICTED), Text()]
    if not running:
        return Group(*parts, Text("No recipe has a deployment that meets the requirements."), *_refused(rows))
    listed = [
        row
        for row in running
        if not any(each.predicted == row.predicted and set(each.names) < set(row.names) for each in running)
    ]
    plain = [row for row in listed if not row.names]
    shown = [row for row in listed if row in plain or listed.index(row) < MOST_ROWS - len(plain)]
    columns = (name_column("recipe"), *text_columns("deployment"), *number_columns(*_FIRST_RECIPE_NUMBERS))
    cells = (_first_recipe_cells(row, row.predicted) for row in shown if row.predicted is not None)
    parts += [
        table_view(table_of(columns, cells)),
        Text(f"\n{_first_reading(shown, has_slo=has_slo, has_rate=has_rate)}"),
    ]
    if more := len(rows) - len(shown):
        parts.append(Text(f"--wide shows {more:,} more, bands and all columns."))
    return Group(*parts, *_listed("Needs", shown), *_listed("Gives up", shown))


def _first_reading(rows: Sequence[RecipeRow], *, has_slo: bool, has_rate: bool) -> str:
    bands = sorted(row.predicted.throughput_band for row in rows if row.predicted is not None)
    low, high = whole_percent(bands[0]), whole_percent(bands[-1])
    band = "as the rate offers them" if has_rate else f"±{low}" if low == high else f"±{low} to {high}"
    kept = "All keep the SLO at the planned load." if has_slo else "Without an SLO: all end in time."
    return f"{kept} tok/s {band}; ratio: to no recipe; ms: per token. *: the spec lacks something, see Needs."


def _first_recipe_cells(row: RecipeRow, predicted: PredictedRecipe) -> tuple[str, ...]:
    times, count, degree = predicted.times_throughput, predicted.instance_count, predicted.tensor_parallel_degree
    instances = f"{count} x {predicted.instance_type}" if count > 1 else predicted.instance_type
    return (
        f"{_called(row)} *" if row.needs else _called(row),
        f"{instances}, TP {degree}" if degree > 1 else instances,
        narrow_usd(predicted.usd_per_hour),
        short(predicted.output_tok_s),
        UNKNOWN if times is None else f"{times:.2f}",
        short(predicted.tpot_ms),
    )


def recipes_view(rows: Sequence[RecipeRow], title: str) -> RenderableType:
    """Return the table of the recipes that run, what they need and give up, and why the others are refused."""
    running = [row for row in rows if row.predicted is not None]
    parts: list[RenderableType] = [Text(title, style="bold"), Text(PREDICTED), Text()]
    if running:
        deployments = dict.fromkeys(_deployment(row.predicted) for row in running if row.predicted is not None)
        places = {place: str(index + 1) for index, place in enumerate(deployments)}
        columns = (name_column("recipe"), *text_columns("type"), *number_columns(*_RECIPE_NUMBERS, "band"))
        cells = (_recipe_cells(row, row.predicted, places) for row in running if row.predicted is not None)
        parts += [table_view(table_of(columns, cells), gap=1), Text(f"\n{RECIPES_READING}")]
        parts += [Text(f"type {number}: {place}") for place, number in places.items()]
        bands = (_band(row.predicted) for row in running if row.predicted is not None)
        parts += [Text(f"band {line}") for line in dict.fromkeys(bands)]
    else:
        parts.append(Text("No recipe has a deployment that meets the requirements."))
    refused = [row for row in rows if row.predicted is None]
    return Group(*parts, *_listed("Needs", running), *_listed("Gives up", running), *_refused(refused))


def recipes_csv(rows: Sequence[RecipeRow]) -> str:
    """Write one line for each recipe, headings first; what is unknown or refused is empty."""
    documents = recipe_documents(rows)
    records = ({key: _scalar(value) for key, value in document.items()} for document in documents)
    return csv_table(record_table(list(documents[0]) if documents else (), records))


def recipe_documents(rows: Sequence[RecipeRow]) -> list[dict[str, object]]:
    """Return every row, flat, as a document; what was not predicted is null."""
    return [
        {
            "recipe": row.recipe,
            "allowed": row.predicted is not None,
            "rule": row.rule,
            "because": row.because,
            "needs": list(row.needs),
            **_prediction(row.predicted),
            "gives_up": list(row.gives_up),
        }
        for row in rows
    ]


def _prediction(predicted: PredictedRecipe | None) -> dict[str, object]:
    if predicted is None:
        return dict.fromkeys(PredictedRecipe.model_fields)
    document: dict[str, object] = predicted.model_dump(mode="json")
    return document


def _scalar(value: object) -> Scalar:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return value if isinstance(value, str | float | int | None) else str(value)


def _recipe_cells(row: RecipeRow, predicted: PredictedRecipe, places: Mapping[str, str]) -> tuple[str, ...]:
    name = f"{_called(row)} *" if row.needs else _called(row)
    times = predicted.times_throughput
    return (
        name,
        places[_deployment(predicted)],
        short(predicted.output_tok_s),
        short(predicted.tpot_ms),
        short(predicted.usd_per_hour),
        short(predicted.usd_per_million_output_tokens),
        UNKNOWN if times is None else f"{times:.2f}",
        f"{predicted.weights_bytes / _GIB:.1f}",
        f"{predicted.kv_room_bytes / _GIB:.1f}",
        f"±{whole_percent(predicted.throughput_band)}",
    )


def _called(row: RecipeRow) -> str:
    return "+".join(row.names) or "none"


def _deployment(predicted: PredictedRecipe) -> str:
    count = "" if predicted.instance_count == 1 else f"{predicted.instance_count} x "
    return f"{count}{predicted.instance_type}, tensor parallel degree {predicted.tensor_parallel_degree}"


def _band(predicted: PredictedRecipe) -> str:
    throughput, latency = whole_percent(predicted.throughput_band), whole_percent(predicted.latency_band)
    return f"±{throughput}: latency ±{latency}. {predicted.band_because}"


def _listed(title: str, rows: Sequence[RecipeRow]) -> tuple[RenderableType, ...]:
    every = dict.fromkeys(each for row in rows for each in (row.needs if title == "Needs" else row.gives_up))
    by_name: dict[str, list[str]] = {}
    for name, _, sentence in (text.partition(": ") for text in sorted(every, key=lambda each: each.partition(":")[0])):
        by_name.setdefault(name, []).append(sentence)
    lines = [f"{name}: {' '.join(sentences)}" for name, sentences in by_name.items()]
    return (heading(title), *map(Text, lines)) if lines else ()


def _refused(rows: Sequence[RecipeRow]) -> tuple[RenderableType, ...]:
    if not rows:
        return ()
    cells = ((_called(row), row.rule, row.because) for row in rows)
    return heading("Refused"), table_view(table_of(text_columns("recipe", "rule", "because"), cells))
