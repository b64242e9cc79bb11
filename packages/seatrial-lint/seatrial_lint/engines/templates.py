"""Renders the Jinja templates of `serving_templates/` in a sandbox: an undefined name is an error, never nothing.

A project's folder overrides them file by file: `lmi/serving.properties.j2` there is read in place of ours.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING

from seatrial_base.errors import RenderError
from seatrial_base.files import follow_links, read_text
from seatrial_base.findings import Finding, Place
from seatrial_lint.engines.properties import read_env_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seatrial_lint.engines.sandbox import CheckedTemplate

_LONGEST_MESSAGE, _MOST_SHOWN = 300, 100
_FAILURES = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError)
"""What a template can raise besides Jinja's own errors."""
_MAY = "see what templates may do: docs/how-to/serving-templates.md"
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

    `options`: the options by topic, `extra` last; a topic without any is empty.
    """

    header: str
    options: Mapping[str, Sequence[WrittenOption]]


def render_template(template: str, variables: TemplateVariables, *, own: Path | None = None) -> str:
    """Render one template, named by its path below `serving_templates/`.

    `own`: folder of templates that override ours; default: none.

    Raises:
        RenderError: SEA301 when the template is missing, broken, or names what there is not; when the folder is
            missing, or has a file that overrides nothing. SEA311 for all that it, and what it includes, may not say,
            and when it does more than templates may.
    """
    from jinja2 import TemplateError  # noqa: PLC0415 (planning and validating need no Jinja)
    from jinja2.exceptions import SecurityError  # noqa: PLC0415 (as above)

    from seatrial_lint.engines.sandbox import TemplateSandbox  # noqa: PLC0415 (as above)

    files: dict[str, CheckedTemplate] = {}
    problems = [] if own is None else [*_unused(own)]
    if problems := problems or [*_read(template, Place(_shown(_path(template, own), own)), own, files)]:
        raise RenderError(problems)
    sandbox = TemplateSandbox({name: file.code for name, file in files.items()})
    try:
        return sandbox.get_template(template).render(header=variables.header, options=variables.options)
    except (TemplateError, *_FAILURES) as error:
        cause: Exception = error
    names = {file.shown for file in files.values()}
    lines = [(frame.f_code.co_filename, line) for frame, line in walk_tb(cause.__traceback__)]
    places = [Place(name, line) for name, line in lines if name in names]
    place = places[-1] if places else Place(files[template].shown)
    if isinstance(cause, SecurityError):
        raise RenderError([Finding("SEA311", place, f"{cause}"[:_LONGEST_MESSAGE], _MAY)]) from cause
    message = f"{type(cause).__name__}: {cause}"[:_LONGEST_MESSAGE]
    raise RenderError([Finding("SEA301", place, message, "fix the template")]) from cause


def _read(
    name: str, at: Place, own: Path | None, files: dict[str, CheckedTemplate], above: Sequence[str] = ()
) -> Iterator[Finding]:
    """Read a template and what it includes, and yield every problem of them."""
    from seatrial_lint.engines.sandbox import MOST_FILES, MOST_SOURCE, check_template  # noqa: PLC0415 (as above)

    path = _path(name, own)
    shown = _shown(path, own)
    if name in above:
        yield Finding("SEA311", at, f"{name} includes itself", "take the line out")
    if name in files:
        return
    home = own if own is not None and path.is_relative_to(own) else templates_folder()
    too_large = f"a template has at most {MOST_SOURCE:,} characters and {MOST_FILES} files, with what it includes"
    try:
        if not follow_links(path).is_relative_to(follow_links(home)):
            yield Finding("SEA311", at, f"{name} leads out of the folder of templates", "copy the file into the folder")
            return
        text = read_text(path, most_bytes=4 * MOST_SOURCE)
    except FileNotFoundError:
        yield Finding("SEA301", at, f"TemplateNotFound: {name}", "check the name")
        return
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.EFBIG:
            yield Finding("SEA311", Place(shown), too_large, "shorten it")
        else:
            yield Finding("SEA301", Place(shown), f"it can't be read: {error}", "templates are files of UTF-8 text")
        return
    if len(files) == MOST_FILES or sum(one.size for one in files.values()) + len(text) > MOST_SOURCE:
        yield Finding("SEA311", Place(shown), too_large, "shorten it")
        return
    files[name] = file = check_template(text, name, shown)
    yield from file.problems
    for use in file.uses:
        if not use.is_optional or os.path.lexists(_path(use.name, own)):
            yield from _read(use.name, Place(shown, use.line), own, files, (*above, name))


def render_variables(template: str, variables: TemplateVariables, *, own: Path | None = None) -> dict[str, str]:
    """Render a template of an environment: its lines `NAME=value`; blank lines and lines after `#` are left out.

    Raises:
        RenderError: As `render_template`; SEA301 with every line that is none.
    """
    lines = read_env_lines(render_template(template, variables, own=own))
    where = _shown(_path(template, own), own)
    wrong = [line for line in lines if not _VARIABLE.fullmatch(line.key)]
    if wrong:
        shown = wrong[:_MOST_SHOWN]
        names = [f"line {line.number} of the result, {line.key[:40]!r}, is not NAME=value" for line in shown]
        names += (
            [f"{len(wrong) - len(shown):,} more lines of the result are not NAME=value"] if wrong[_MOST_SHOWN:] else []
        )
        raise RenderError(Finding("SEA301", Place.at(where), name, "fix the template") for name in names)
    return {line.key: line.value for line in lines}


def _path(template: str, own: Path | None) -> Path:
    """Return where a template is: in the project's folder, else in ours."""
    path = templates_folder() / template if own is None else own / template
    return path if own is None or os.path.lexists(path) else templates_folder() / template


def _shown(path: Path, own: Path | None) -> str:
    is_own = own is not None and path.is_relative_to(own)
    return path.as_posix() if is_own else f"serving_templates/{os.path.relpath(path, templates_folder())}"


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


@cache
def templates_folder() -> Path:
    """Return the folder of the templates: inside an installed wheel, else at the root of the repository."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "serving_templates"
    return installed if installed.is_dir() else package.parents[2] / "serving_templates"
