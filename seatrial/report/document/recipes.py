"""The comparison of two recipes as sections, and as Markdown and one HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import hardware_words
from seatrial.report.document.markdown import section_blocks
from seatrial.report.document.page import SIGNS, Page, page_html
from seatrial.report.document.section import Section
from seatrial.report.document.slo import METRICS
from seatrial.report.values import measured_cell, number_cell, percent
from seatrial_base.table import Cell, Column, Table, Tone
from seatrial_base.text import escaped
from seatrial_base.units import GIB, counted, digits, usd
from seatrial_load.measure.interval import CONFIDENCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.quality.comparison import Likeness, MetricDifference, QualityComparison
    from seatrial.quality.recipe_comparison import RecipeComparison, RecipeFigure
    from seatrial.quality.recipe_result import RecipeResult


NOT_MEASURED = "not measured, or not known"
NAMES = {
    **METRICS,
    "rouge_l": "ROUGE-L",
    "identical_answers": "identical answers",
    "same_text": "answers alike but for case and white space",
    "common_tokens": "tokens until the first difference",
    "logprob_distance": "log-probability distance per token",
}
_SHARES = ("exact_match", "identical_answers", "same_text")
_TONES: dict[str, Tone] = {"better": "good", "worse": "bad"}


def comparison_title(compared: RecipeComparison) -> str:
    """Return the title of a comparison."""
    a, b = compared.a, compared.b
    return f"{a.recipe} and {b.recipe} of {a.endpoint} in {a.trial.request.environment}"


def recipe_sections(compared: RecipeComparison) -> tuple[Section, ...]:
    """Return deployments, speed and cost, and quality."""
    columns = tuple(
        Column(name, kind="text")
        for name in ("recipe", "deployment", "engine", "price per copy", "trial", "prompts answered")
    )
    rows = tuple(tuple(_deployment(result)) for result in (compared.a, compared.b))
    return (
        Section(anchor="recipes", heading="Recipes", tables=(Table("Recipes", columns, rows),)),
        _figures(compared),
        *_quality(compared),
    )


def _deployment(result: RecipeResult) -> Iterator[Cell]:
    made = result.deployment
    price = "unknown" if made.usd_per_hour_per_copy is None else f"{usd(made.usd_per_hour_per_copy)} per hour"
    off = f" ({made.discount:.0%} off the list price)" if made.discount else ""
    yield Cell(result.recipe)
    yield Cell(hardware_words(made.instance_type, made.tensor_parallel_degree))
    yield Cell(f"{made.engine} {made.engine_version}")
    yield Cell(f"{price}{off}")
    yield Cell(f"{result.trial.verdict.status}: {result.trial.verdict.because}")
    yield Cell(f"{len(result.answers) - result.failed} of {len(result.answers)}" if result.answers else "none")


def _figures(compared: RecipeComparison) -> Section:
    columns = (
        Column("", kind="text"),
        Column("unit", kind="text"),
        Column(compared.a.recipe),
        Column(compared.b.recipe),
        Column("ratio"),
        Column("difference", kind="text"),
    )
    rows = tuple(tuple(_figure(figure)) for figure in compared.figures)
    gate = compared.a.trial.request.gate_concurrency
    return Section(
        anchor="figures",
        heading="Speed, memory and cost",
        paragraphs=(
            f"The gate is at {counted(gate, 'request')} in flight per copy.",
            "A difference is real where the 95 % intervals of both do not overlap.",
        ),
        tables=(Table("Speed, memory and cost", columns, rows),),
    )


def _figure(figure: RecipeFigure) -> Iterator[Cell]:
    yield Cell(figure.name)
    yield Cell("GiB" if figure.unit == "bytes" else figure.unit)
    for value, interval in ((figure.a, figure.a_interval), (figure.b, figure.b_interval)):
        yield (
            number_cell(None if value is None else value / GIB, NOT_MEASURED)
            if figure.unit == "bytes"
            else measured_cell(value, NOT_MEASURED, interval)
        )
    yield number_cell(figure.ratio, NOT_MEASURED)
    yield _verdict(figure.verdict)


def _verdict(verdict: str) -> Cell:
    return Cell(verdict, tone=_TONES.get(verdict, "plain"))


def _quality(compared: RecipeComparison) -> Iterator[Section]:
    quality = compared.quality
    if quality is None:
        return
    a, b = compared.a.recipe, compared.b.recipe
    alike = (Column("metric", kind="text"), Column("mean"), Column("prompts"))
    likeness = tuple(tuple(_alike(metric)) for metric in quality.likeness)
    tables = [differences_table(quality, a, b)] if quality.differences else []
    tables += [Table("How alike the answers are", alike, likeness)] if likeness else []
    yield Section(
        anchor="quality",
        heading="Quality",
        paragraphs=(
            f"{counted(quality.paired, 'prompt')} of {quality.prompts} were answered by both, greedily.",
            f"An answer has at most {counted(compared.a.most_tokens, 'token')}.",
            f"Differences are paired by prompt; their intervals are bootstraps with {CONFIDENCE * 100:g} % confidence.",
        ),
        tables=tuple(tables),
        remarks=quality.notes,
    )


def differences_table(quality: QualityComparison, a: str, b: str) -> Table:
    """Return the metrics of two results side by side, with what is proven of the second."""
    columns = (Column("metric", kind="text"), Column(a), Column(b), Column("difference"),
               Column(f"verdict on {b}", kind="text"), Column("prompts"))  # fmt: skip
    return Table("Quality", columns, tuple(tuple(_difference(each)) for each in quality.differences))


def _difference(each: MetricDifference) -> Iterator[Cell]:
    low, high = each.interval.low, each.interval.high
    ends = "" if low is None or high is None else f" ({_signed(low)} to {_signed(high)})"
    yield Cell(NAMES.get(each.metric, each.metric))
    yield _value(each.metric, each.a)
    yield _value(each.metric, each.b)
    yield Cell(f"{_signed(each.difference)}{ends}")
    yield _verdict(each.verdict)
    yield Cell(f"{each.count:,}")


def _alike(each: Likeness) -> Iterator[Cell]:
    low, high = each.interval.low, each.interval.high
    ends = "" if low is None or high is None else f" ({_plain(each.metric, low)} to {_plain(each.metric, high)})"
    yield Cell(NAMES[each.metric])
    yield Cell(f"{_plain(each.metric, each.value)}{ends}")
    yield Cell(f"{each.count:,}")


def _value(metric: str, value: float) -> Cell:
    return Cell(_plain(metric, value))


def _plain(metric: str, value: float) -> str:
    return percent(value) if metric in _SHARES else digits(value)


def _signed(value: float) -> str:
    return f"+{digits(value)}" if value > 0 else digits(value)


def recipes_markdown(compared: RecipeComparison) -> str:
    """Write a comparison as Markdown."""
    blocks = [f"## Recipes {escaped(comparison_title(compared))}", f"**{escaped(compared.verdict)}**"]
    if compared.engine_note:
        blocks.append(f"> Served by a local engine, not the model: {escaped(compared.engine_note)}")
    for section in recipe_sections(compared):
        blocks += section_blocks(section)
    return "\n\n".join(blocks) + "\n"


def recipes_html(compared: RecipeComparison) -> str:
    """Write a comparison as one HTML page that needs nothing else; equal input gives equal bytes."""
    status = compared.b.trial.verdict.status
    note = f"Served by a local engine, not the model: {compared.engine_note}"
    page = Page(
        eyebrow="Comparison of recipes",
        title=comparison_title(compared),
        status=status,
        sign=SIGNS[status],
        because=compared.verdict,
        cautions=(note,) if compared.engine_note else (),
        sections=recipe_sections(compared),
    )
    return page_html(page)
