"""The comparison of two recipes on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.document.recipes import recipe_sections, title_of
from seatrial.report.terminal.tables import add_row, heading, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.quality.recipe_comparison import RecipeComparison
    from seatrial.report.table import Table


def recipes_view(compared: RecipeComparison) -> RenderableType:
    """Return the whole comparison, the verdict first."""
    parts: list[RenderableType] = [Text(f"Recipes {title_of(compared)}", style="bold"), Text(compared.verdict)]
    if compared.engine_note:
        parts.append(Text(f"simulated, measured on: {compared.engine_note}", style="yellow"))
    for section in recipe_sections(compared):
        parts.append(heading(section.heading))
        parts += [Text(paragraph) for paragraph in section.paragraphs]
        parts += [_table(each) for each in section.tables]
        parts += [Text(f"- {remark}") for remark in section.remarks]
    return Group(*parts)


def _table(shown: Table) -> RenderableType:
    words = [column.heading for column in shown.columns if column.kind != "number"]
    made = table(words=words[:1])
    for column in shown.columns[1:]:
        side = "right" if column.kind == "number" else "left"
        made.add_column(Text(column.heading), justify="right" if side == "right" else "left", overflow="fold",
                        header_style="dim")  # fmt: skip
    for row in shown.cells:
        add_row(made, *(cell.text for cell in row))
    return made
