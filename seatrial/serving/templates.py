"""Fills the Jinja templates of `serving_templates/`: an undefined hole is an error, never nothing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.errors import RenderError
from seatrial.serving.properties import escape_key, escape_property

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

    from seatrial.spec.endpoint import OptionValue

Hole = str | int | float | bool | None | tuple[tuple[str, str], ...]


def fill(template: str, holes: Mapping[str, Hole]) -> str:
    """Fill one template, named by its path below `serving_templates/`.

    Raises:
        RenderError: SEA301 when the template is missing, broken, or has a hole that nothing fills.
    """
    from jinja2 import TemplateError  # noqa: PLC0415 (planning and validating need no Jinja)

    try:
        return _environment().get_template(template).render(holes)
    except TemplateError as error:
        message = f"{type(error).__name__}: {error}"
        raise RenderError.of(
            "SEA301", message, where=f"serving_templates/{template}", hint="fix the template"
        ) from error


def option_text(value: OptionValue) -> str:
    """Write a value of a spec as engines read it: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (as above)

    environment = Environment(  # noqa: S701 (properties and environment files, not HTML)
        loader=FileSystemLoader(templates_folder()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["properties"] = escape_property
    environment.filters["property_key"] = escape_key
    return environment


def templates_folder() -> Path:
    """Return the folder of the templates: inside an installed wheel, else at the root of the repository."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "serving_templates"
    return installed if installed.is_dir() else package.parent / "serving_templates"
