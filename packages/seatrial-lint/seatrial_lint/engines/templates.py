"""Fills the Jinja templates of `serving_templates/`: an undefined hole is an error, never nothing.

A folder of one's own overrides them file by file: `lmi/serving.properties.j2` there is read in place of ours.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from seatrial_base.errors import RenderError
from seatrial_base.findings import Finding, Place
from seatrial_lint.engines.properties import escape_key, escape_property

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jinja2 import Environment

    from seatrial_lint.engines.engine_options import OptionValue

Hole = str | int | float | bool | None | tuple[tuple[str, str], ...]


def fill(template: str, holes: Mapping[str, Hole], *, own: Path | None = None) -> str:
    """Fill one template, named by its path below `serving_templates/`.

    Args:
        template: Its path below the folder.
        holes: What its holes are filled with.
        own: Folder of templates that override ours; default: none.

    Raises:
        RenderError: SEA301 when the template is missing, broken, or has a hole that nothing fills; when the folder is
            missing, or has a file that overrides nothing.
    """
    from jinja2 import TemplateError  # noqa: PLC0415 (planning and validating need no Jinja)

    if own is not None and (problems := [*_unused(own)]):
        raise RenderError(problems)
    try:
        return _environment(own).get_template(template).render(holes)
    except (TemplateError, TypeError, ValueError, ArithmeticError, UnicodeDecodeError) as error:
        where = _place(error, template, own)
        message = f"{type(error).__name__}: {error}"
        raise RenderError.of("SEA301", message, where=where, hint="fix the template") from error


def _unused(own: Path) -> Iterator[Finding]:
    """Yield what is wrong with a folder of templates: each file in it that overrides none of ours."""
    if not own.is_dir():
        yield Finding(
            "SEA301", Place.at(own.as_posix()), "there is no such folder of templates", "give the folder's path"
        )
        return
    known = sorted(path.relative_to(templates_folder()).as_posix() for path in templates_folder().rglob("*.j2"))
    for path in sorted(path for path in own.rglob("*") if path.is_file()):
        if path.relative_to(own).as_posix() in known or path.name.startswith(("_", ".")) or path.suffix == ".md":
            continue
        hint = f"templates that can be overridden: {', '.join(known)}; a file that they include begins with _"
        yield Finding("SEA301", Place.at(path.as_posix()), "it overrides no template", hint)


def _place(error: Exception, template: str, own: Path | None) -> str:
    """Return the file and line of a template that an error comes from."""
    folders = [folder for folder in (own, templates_folder()) if folder is not None]
    file = next((folder / template for folder in folders if (folder / template).exists()), None)
    shown = f"serving_templates/{template}" if file is None or own is None else file.as_posix()
    lines = [line.lineno for line in extract_tb(error.__traceback__) if file and Path(line.filename) == file]
    line = getattr(error, "lineno", None) or (lines[-1] if lines else None)
    return shown if line is None else f"{shown}:{line}"


def option_text(value: OptionValue) -> str:
    """Write a value of a spec as engines read it: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@cache
def _environment(own: Path | None) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (as above)

    environment = Environment(  # noqa: S701 (properties and environment files, not HTML)
        loader=FileSystemLoader([folder for folder in (own, templates_folder()) if folder is not None]),
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
    package = Path(__file__).resolve().parents[1]
    installed = package / "serving_templates"
    return installed if installed.is_dir() else package.parents[2] / "serving_templates"
