"""Renders a neutral configuration as the files and environment of one engine, dialect and version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.dialects import within
from seatrial_base.catalog.engine_options import PREFIXES, find_spellings, option_env
from seatrial_base.catalog.engine_versions import version_text
from seatrial_base.errors import RenderError
from seatrial_base.findings import Finding, Place
from seatrial_lint.engines.conflicts import conflicts
from seatrial_lint.engines.fields import flatten, neutral_text
from seatrial_lint.engines.limits import MAX_CHARS, env_problems
from seatrial_lint.engines.spelling import SpelledConfig, doubled, spell
from seatrial_lint.engines.templates import fill

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seatrial_base.catalog.dialects import DialectName
    from seatrial_base.catalog.engine_options import SpellingTable
    from seatrial_lint.engines.config import ServingConfig
    from seatrial_lint.engines.templates import Hole

Form = Literal["properties", "env", "both"]
PROPERTIES_FILE = "serving.properties"
HEADER = "Rendered by Seatrial."


@dataclass(frozen=True, slots=True)
class Note:
    """What an engine can't do or does differently.

    Attributes:
        field: The neutral field; empty when it concerns the whole.
        message: What to know.
    """

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(frozen=True, slots=True)
class Rendered:
    """A configuration in an engine's spelling.

    Attributes:
        files: Text of each file by name.
        env: Environment variables.
        notes: What the engine can't do or does differently.
    """

    files: dict[str, str]
    env: dict[str, str]
    notes: tuple[Note, ...]


def render_config(
    config: ServingConfig,
    dialect: DialectName,
    version: str,
    form: Form,
    *,
    header: str = HEADER,
    templates: Path | None = None,
) -> Rendered:
    """Render a configuration.

    Args:
        config: What the engine shall do.
        dialect: How the container is configured.
        version: The container's version, as `catalog.engine_versions.read_version` reads it.
        form: `properties`: a packaged `serving.properties`; `env`: environment variables; `both`: the file, and the
            same options in the environment except the model, which would be loaded a second time.
        header: First line of a file, for people.
        templates: Folder of templates that override ours file by file; default: none.

    Raises:
        RenderError: SEA307 for a version or dialect that doesn't exist, SEA308 for fields that the engine has no
            option for, SEA309 for contradictions, SEA310 for a form that can't carry it, SEA302 and SEA304 as for
            any environment and extra options; every problem at once.
    """
    table = find_spellings(dialect, version)
    said = spell(config, table)
    problems = [*_form_problems(table, form), *_missing(table, said), *_conflicts(config, table, said)]
    problems += _extra_problems(config, table, said)
    if problems:
        raise RenderError(problems)
    pairs = _extended(said, config, table)
    files = _files(table, pairs, header, templates) if form != "env" else {}
    env = _env(pairs, form) if form != "properties" else {}
    problems = [*_broken_lines(env, table), *env_problems(env, f"container environment for {table.called}")]
    if problems:
        raise RenderError(problems)
    return Rendered(files, env, (*_image_note(table), *(Note(*note) for note in said.notes)))


Pair = tuple[str | None, str | None, str]  # key, environment variable, text


def _extended(said: SpelledConfig, config: ServingConfig, table: SpellingTable) -> list[Pair]:
    """Return what is written, extra options last and sorted."""
    pairs: list[Pair] = [(row.key, row.env, text) for row, text in said.pairs]
    for name in sorted(config.extra):
        key, env = extra_names(name, table)
        pairs.append((key, env, config.extra[name]))
    return pairs


def extra_names(name: str, table: SpellingTable) -> tuple[str | None, str]:
    """Return the key and the environment variable of an extra option."""
    if table.dialect.engine == "lmi":
        return f"option.{name}", option_env(f"option.{name}")
    return None, PREFIXES.get(table.dialect.engine, "") + name.upper()


def _files(table: SpellingTable, pairs: list[Pair], header: str, templates: Path | None) -> dict[str, str]:
    written = tuple((key, text) for key, _, text in pairs if key)
    holes: dict[str, Hole] = {"header": header, "pairs": written}
    return {PROPERTIES_FILE: fill(f"{table.dialect.engine}/{PROPERTIES_FILE}.j2", holes, own=templates)}


def _env(pairs: list[Pair], form: Form) -> dict[str, str]:
    return {env: text for _, env, text in pairs if env and _belongs(env, text, form)}


def _broken_lines(env: dict[str, str], table: SpellingTable) -> Iterator[Finding]:
    for name, text in env.items():
        if "\n" in text or "\r" in text:
            where = f"container environment for {table.called}"
            yield Finding("SEA302", Place.at(where, name), f"an environment variable holds one line, not {text!r}")


def _belongs(env: str, text: str, form: Form) -> bool:
    """Say whether a variable stands in the environment: beside a file, neither the model nor what only a file holds."""
    return form == "env" or (env != "HF_MODEL_ID" and len(text) <= MAX_CHARS and "\n" not in text)


def _image_note(table: SpellingTable) -> Iterator[Note]:
    last = table.dialect.last_image
    if last is not None and not within(table.version, None, last):
        engine = table.dialect.engine
        newest = version_text(engine, tuple(int(part) for part in last.split(".")))
        yield Note("", f"No image of {table.dialect.batcher} was published after {newest}.")


def _form_problems(table: SpellingTable, form: Form) -> Iterator[Finding]:
    if form != "env" and table.dialect.engine != "lmi":
        message = f"{table.called} reads no serving.properties"
        yield Finding("SEA310", Place(field="form"), message, "render the environment (form env)")
    if form != "properties" and not within(table.version, table.dialect.env_since, None):
        first = version_text(table.dialect.engine, (int(table.dialect.env_since or "0"),))
        message = f"{table.called} can't set its engine through the environment"
        hint = f"render serving.properties (form properties), or use {first} or newer"
        yield Finding("SEA310", Place(field="form"), message, hint)


def _missing(table: SpellingTable, said: SpelledConfig) -> Iterator[Finding]:
    for one in said.missing:
        because = f": {one.absence.because.removesuffix('.')}" if one.absence else ""
        known = f"it has {', '.join(one.known)}" if one.known else "leave it out, or choose another engine or version"
        hint = one.absence.hint if one.absence and one.absence.hint else known
        message = f"{table.called} has no option for {one.text or 'it'}{because}"
        yield Finding("SEA308", Place(field=one.field), message, hint)


def _conflicts(config: ServingConfig, table: SpellingTable, said: SpelledConfig) -> Iterator[Finding]:
    for conflict in conflicts(config, table):
        yield Finding("SEA309", Place(field=" and ".join(conflict.fields)), conflict.message, conflict.hint)
    for first, second, key in doubled(said):
        message = f"{table.called} writes both as {key}"
        yield Finding("SEA309", Place(field=f"{first} and {second}"), message, "leave one of them out")


def _extra_problems(config: ServingConfig, table: SpellingTable, said: SpelledConfig) -> Iterator[Finding]:
    flat = flatten(config)
    written = {row.key or row.env for row, _ in said.pairs}
    for name in config.extra:
        key, env = extra_names(name, table)
        for row in table.rows:
            same = (key is not None and row.key == key) or row.env == env
            if same and (row.field in flat or (row.key or row.env) in written):
                value = f" ({neutral_text(flat[row.field])})" if row.field in flat else ""
                message = f"{name} is how {table.called} spells {row.field or 'the dialect itself'}{value}"
                yield Finding("SEA304", Place(field=f"extra.{name}"), message, "leave it out of extra")
                break
