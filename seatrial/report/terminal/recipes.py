"""Recipes on a terminal: those of one model side by side, and two that were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.documents.comparison import PredictedRecipe
from seatrial.report.document.recipes import comparison_title, recipe_sections
from seatrial.report.terminal.tables import heading, narrow_usd, table_view, whole_percent
from seatrial_base.table import csv_table, name_column, number_columns, record_table, table_of, text_columns
from seatrial_base.units import UNKNOWN, short

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from seatrial.documents.comparison import RecipeRow
    from seatrial.quality.recipe_comparison import RecipeComparison
    from seatrial_base.table import Scalar


_GIB = 2**30
_NUMBERS = ("tok/s", "TPOT\nms", "$/h", "$/1M\nout", "ratio", "weights\nGiB", "cache\nGiB")
MOST_ROWS = 10
_FIRST_NUMBERS = ("$/h", "tok/s", "ratio", "ms")
READING = (
    "The best deployment of each recipe at the planned load; its type is below. $/1M out: per million output tokens. "
    "ratio: throughput to no recipe. weights, cache: on one accelerator, the KV cache's part. *: the spec lacks "
    "something, see Needs. ?: unknown."
)
PREDICTED = "Predicted, not measured. `seatrial compare` measures two recipes, quality among the results."


def first_recipes_view(rows: Sequence[RecipeRow], title: str, *, has_slo: bool = True) -> RenderableType:
    """Return the ten recipes that matter: those that keep the SLO, in the spec's order, and no recipe at all.

    What adds an optimization that is predicted to change nothing is left to the wide table.

    Args:
        has_slo: Whether the spec bounds speed; without, a recipe is shown where its requests end in time.
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
    columns = (name_column("recipe"), *text_columns("deployment"), *number_columns(*_FIRST_NUMBERS))
    cells = (_first_cells(row, row.predicted) for row in shown if row.predicted is not None)
    parts += [table_view(table_of(columns, cells)), Text(f"\n{_first_reading(shown, has_slo=has_slo)}")]
    if more := len(rows) - len(shown):
        parts.append(Text(f"--wide shows {more:,} more, bands and all columns."))
    return Group(*parts, *_listed("Needs", shown), *_listed("Gives up", shown))


def _first_reading(rows: Sequence[RecipeRow], *, has_slo: bool) -> str:
    bands = sorted(row.predicted.throughput_band for row in rows if row.predicted is not None)
    low, high = whole_percent(bands[0]), whole_percent(bands[-1])
    band = f"±{low}" if low == high else f"±{low} to {high}"
    kept = "All keep the SLO at the planned load." if has_slo else "Without an SLO: all end in time."
    return f"{kept} tok/s {band}; ratio: to no recipe; ms: per token. *: the spec lacks something, see Needs."


def _first_cells(row: RecipeRow, predicted: PredictedRecipe) -> tuple[str, ...]:
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
        columns = (name_column("recipe"), *text_columns("type"), *number_columns(*_NUMBERS, "band"))
        cells = (_recipe_cells(row, row.predicted, places) for row in running if row.predicted is not None)
        parts += [table_view(table_of(columns, cells), gap=1), Text(f"\n{READING}")]
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
    for name, _, sentence in (each.partition(": ") for each in sorted(every, key=lambda each: each.partition(":")[0])):
        by_name.setdefault(name, []).append(sentence)
    lines = [f"{name}: {' '.join(sentences)}" for name, sentences in by_name.items()]
    return (heading(title), *map(Text, lines)) if lines else ()


def _refused(rows: Sequence[RecipeRow]) -> tuple[RenderableType, ...]:
    if not rows:
        return ()
    cells = ((_called(row), row.rule, row.because) for row in rows)
    return heading("Refused"), table_view(table_of(text_columns("recipe", "rule", "because"), cells))


def recipe_comparison_view(compared: RecipeComparison) -> RenderableType:
    """Return the whole comparison, the verdict first."""
    parts: list[RenderableType] = [Text(f"Recipes {comparison_title(compared)}", style="bold"), Text(compared.verdict)]
    if compared.engine_note:
        parts.append(Text(f"simulated, measured on: {compared.engine_note}", style="yellow"))
    for section in recipe_sections(compared):
        parts.append(heading(section.heading))
        parts += [Text(paragraph) for paragraph in section.paragraphs]
        parts += [table_view(each) for each in section.tables]
        parts += [Text(f"- {remark}") for remark in section.remarks]
    return Group(*parts)
