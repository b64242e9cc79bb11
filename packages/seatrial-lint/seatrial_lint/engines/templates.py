"""Renders the Jinja templates of `serving_templates/`: an undefined name is an error, never nothing.

A project's folder overrides them file by file: `lmi/serving.properties.j2` there is read in place of ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from seatrial_base.errors import RenderError
from seatrial_base.findings import Finding, Place
from seatrial_lint.engines.properties import escape_key, escape_property, read_env_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import Environment

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class WrittenOption:
    """One option as a template writes it.

    Attributes:
        name: Key or environment variable, in the container's spelling.
        value: The value, unescaped.
        option: Neutral option that it says; empty for one of `serving.overrides.extra`.
    """

    name: str
    value: str
    option: str = ""


@dataclass(frozen=True, slots=True)
class TemplateVariables:
    """What a template may name.

    Attributes:
        header: First line of a file, for people.
        options: The options by topic, `extra` last; a topic without any is empty.
    """

    header: str
    options: Mapping[str, Sequence[WrittenOption]]


def render_template(template: str, variables: TemplateVariables, *, own: Path | None = None) -> str:
    """Render one template, named by its path below `serving_templates/`.

    Args:
        template: Its path below the folder.
        variables: What it may name.
        own: Folder of templates that override ours; default: none.

    Raises:
        RenderError: SEA301 when the template is missing, broken, or names what there is not; when the folder is
            missing, or has a file that overrides nothing.
    """
    from jinja2 import TemplateError  # noqa: PLC0415 (planning and validating need no Jinja)

    try:
        environment = _environment(own)
        return environment.get_template(template).render(header=variables.header, options=variables.options)
    except (TemplateError, TypeError, ValueError, ArithmeticError, UnicodeDecodeError) as error:
        where = _place(error, template, own)
        message = f"{type(error).__name__}: {error}"
        raise RenderError.of("SEA301", message, where=where, hint="fix the template") from error


def render_variables(template: str, variables: TemplateVariables, *, own: Path | None = None) -> dict[str, str]:
    """Render a template of an environment: its lines `NAME=value`; blank lines and lines after `#` are left out.

    Raises:
        RenderError: As `render_template`; SEA301 with every line that is none.
    """
    lines = read_env_lines(render_template(template, variables, own=own))
    where = _path_of(template, own).as_posix()
    wrong = [line for line in lines if not _VARIABLE.fullmatch(line.key)]
    if wrong:
        names = (f"line {line.number} of the result, {line.key!r}, is not NAME=value" for line in wrong)
        raise RenderError(Finding("SEA301", Place.at(where), name, "fix the template") for name in names)
    return {line.key: line.value for line in lines}


def _path_of(template: str, own: Path | None) -> Path:
    """Return where a template lies: in the project's folder, else in ours."""
    if own is not None and (own / template).exists():
        return own / template
    return Path("serving_templates") / template


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
    folders = (folder / template for folder in (own, templates_folder()) if folder is not None)
    file = next((path for path in folders if path.exists()), None)
    lines = [line.lineno for line in extract_tb(error.__traceback__) if file and Path(line.filename) == file]
    line = getattr(error, "lineno", None) or (lines[-1] if lines else None)
    shown = _path_of(template, own).as_posix()
    return shown if line is None else f"{shown}:{line}"


@cache
def _environment(own: Path | None) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (as above)

    if own is not None and (problems := [*_unused(own)]):
        raise RenderError(problems)
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
