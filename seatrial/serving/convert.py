"""Writes one engine's configuration as another's: what both can say is kept, and what can't be kept is listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.catalog import dialects, spellings
from seatrial.catalog.engine_versions import version_text
from seatrial.errors import RenderError
from seatrial.secrets import redacted
from seatrial.serving.fields import flatten, neutral_text, unflatten
from seatrial.serving.lint.known import carries, judge
from seatrial.serving.lint.redaction import secret_in
from seatrial.serving.lint.target import guess, newest_build
from seatrial.serving.neutral import render_config
from seatrial.serving.parse import parse
from seatrial.serving.properties import escape_key, escape_property

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial.catalog.dialects import DialectName
    from seatrial.catalog.engine_versions import EngineName
    from seatrial.catalog.spellings import SpellingTable
    from seatrial.serving.config import ServingConfig
    from seatrial.serving.lint.source import ConfigSource
    from seatrial.serving.lint.target import TargetContainer
    from seatrial.serving.neutral import Form, Rendered
    from seatrial.serving.parse import Parsed

_DROPPABLE = ("SEA304", "SEA308", "SEA309")  # what one field causes; any other problem ends the conversion
# Without these members, what is left would mean another method or kind: the whole goes.
_WHOLE = {"speculative_decoding.method": "speculative_decoding", "rope_scaling.kind": "rope_scaling"}
_NEVER_COPIED = "secrets are not copied; use Secrets Manager"


@dataclass(frozen=True, slots=True)
class Lost:
    """What could not be kept.

    Attributes:
        key: The key as it was written; the neutral field where several keys say it.
        line: Its line; 0 when it has none.
        because: Why.
    """

    key: str
    line: int
    because: str

    def __str__(self) -> str:
        line = f" (line {self.line})" if self.line else ""
        return redacted(f"{self.key}{line}: {self.because}")


@dataclass(frozen=True, slots=True)
class Converted:
    """A configuration in another engine's spelling.

    Attributes:
        rendered: Its files, environment and notes.
        origin: What it was read as.
        called: What it is written for.
        kept: Neutral fields and options that are said again.
        lost: What could not be kept, in the order of the lines.
    """

    rendered: Rendered
    origin: TargetContainer
    called: str
    kept: tuple[str, ...]
    lost: tuple[Lost, ...]


def convert(
    source: ConfigSource,
    to: DialectName,
    to_version: str | None = None,
    *,
    engine: EngineName | None = None,
    version: str | None = None,
    form: Form = "env",
) -> Converted:
    """Write a configuration for another container.

    Args:
        source: What was read.
        to: How the other container is configured.
        to_version: Its version; the newest that has this dialect by default.
        engine: The container that it was written for; guessed by default.
        version: That container's version.
        form: How the other container shall be told.

    Raises:
        RenderError: SEA307, SEA310 or SEA302 when no configuration of that form can be written at all.
        ValueError: When nothing tells the container that it was written for.
    """
    origin = guess(source, engine, version)
    if origin is None:
        raise ValueError("the source container is unknown")
    entries = {entry.key: entry for entry in source.entries}
    gone = [Lost(key, one.line, _NEVER_COPIED) for key, one in entries.items() if secret_in(key, one.value)]
    secret = {one.key for one in gone}
    parsed = _parsed(source, origin, {key: one.value for key, one in entries.items() if key not in secret})
    number = to_version or ".".join(map(str, newest_build(to)))
    table = spellings.find(to, number)
    config, foreign = _portable(parsed, origin, table)
    config, dropped, rendered = _rendered(config, to, number, form)
    missing = {**dropped, **_unsaid(config, rendered, table)}
    lost = [*gone, *foreign, *_every_gpu(parsed, origin, table), *_where(missing, parsed)]
    placed = (replace(one, line=entries[one.key].line if one.key in entries else 0) for one in lost)
    kept = tuple(name for name in _names(config) if name not in missing)
    return Converted(rendered, origin, table.called, kept, tuple(sorted(placed, key=lambda one: (one.line, one.key))))


def default_dialect(to: str, version: str | None) -> DialectName:
    """Return the dialect that a container's name means: for LMI the newest way to run vLLM that a version has.

    Raises:
        ValueError: When the name is neither a dialect nor a container.
    """
    known: dict[str, DialectName] = {name: name for name in dialects.DIALECTS}
    if to in known:
        return known[to]
    order: tuple[DialectName, ...] = ("lmi-async", "lmi-dist", "lmi-vllm")
    if to != "lmi":
        raise ValueError(f"{to} is not a container; valid: lmi, tgi, vllm, sglang, or {', '.join(dialects.DIALECTS)}")
    existing = dialects.existing("lmi", version) if version else order
    return next((name for name in order if name in existing), "lmi-vllm")


def _parsed(source: ConfigSource, origin: TargetContainer, values: Mapping[str, str]) -> Parsed:
    version = ".".join(map(str, origin.version))
    if source.kind != "serving.properties":
        return parse(origin.dialect, version, env=values)
    text = "".join(f"{escape_key(key)}={escape_property(value)}\n" for key, value in values.items())
    return parse(origin.dialect, version, properties=text)


def _portable(parsed: Parsed, origin: TargetContainer, table: SpellingTable) -> tuple[ServingConfig, list[Lost]]:
    """Take out what only the origin knows: keys without a meaning, and options that the other container lacks."""
    gone = [Lost(entry.key, entry.line, entry.because) for entry in parsed.unknown]
    extra: dict[str, str] = {}
    for entry in parsed.entries:
        name = (entry.field or "").removeprefix("extra.")
        if entry.because or name == entry.field or name not in parsed.config.extra:
            continue
        if because := _not_portable(name, origin, table):
            gone.append(Lost(entry.key, entry.line, because))
        else:
            extra[name] = parsed.config.extra[name]
    return parsed.config.model_copy(update={"extra": extra}), gone


def _every_gpu(parsed: Parsed, origin: TargetContainer, table: SpellingTable) -> Iterator[Lost]:
    """Yield LMI's `max`, which means every GPU: the other containers take one where nothing is written."""
    for entry in parsed.entries if origin.engine == "lmi" != table.dialect.engine else ():
        if entry.field == "tensor_parallel_degree" and entry.value == "max":
            yield Lost(entry.key, entry.line, f"{table.called} uses one GPU unless the number is set")


def _not_portable(name: str, origin: TargetContainer, table: SpellingTable) -> str:
    """Return why an option that has no neutral field can't be taken along; empty when it can."""
    written = name.upper() if origin.engine == "tgi" else name
    read_by_origin = judge(origin, written)
    if read_by_origin:
        return f"{written} {read_by_origin.because}"
    engines = {origin.engine, table.dialect.engine}
    shares_names = len(engines) == 1 or engines <= {"lmi", "vllm"}  # both pass on vLLM's own arguments
    other = replace(origin, engine=table.dialect.engine, version=table.version, dialect=table.dialect.name)
    carried = shares_names and carries(other, written)
    return "" if carried else f"{table.called} has no equivalent option"


def _rendered(
    config: ServingConfig, to: DialectName, version: str, form: Form
) -> tuple[ServingConfig, dict[str, str], Rendered]:
    """Render, leaving out one after the other what the other container refuses."""
    dropped: dict[str, str] = {}
    while True:
        try:
            return config, dropped, render_config(config, to, version, form)
        except RenderError as error:
            refused = [problem for problem in error.problems if problem.rule in _DROPPABLE and problem.field]
            if len(refused) < len(error.problems):
                raise
            fields = ((problem.field.split(" and ")[0], problem.message) for problem in refused)
            because = {_WHOLE.get(name, name): message for name, message in fields}
            smaller = _without(config, because)
            if smaller == config:
                raise
            dropped |= because
            config = smaller


def _without(config: ServingConfig, names: Iterable[str]) -> ServingConfig:
    gone = tuple(names)
    extra = {name: text for name, text in config.extra.items() if f"extra.{name}" not in gone}
    values = {
        name: value if isinstance(value, tuple) else neutral_text(value)
        for name, value in flatten(config).items()
        if not any(name == one or name.startswith(f"{one}.") for one in gone)
    }
    return unflatten(values, extra)[0]


def _unsaid(config: ServingConfig, rendered: Rendered, table: SpellingTable) -> dict[str, str]:
    """Return the fields that don't come back when the result is read, but for those that are said by silence."""
    version = ".".join(map(str, table.version))
    back = parse(table.dialect.name, version, properties="".join(rendered.files.values()), env=rendered.env).config
    read, notes = flatten(back), {note.field: note.message for note in rendered.notes}
    return {
        name: notes.get(name, f"{table.called} has no option for it")
        for name, value in flatten(config).items()
        if name not in read and not _is_default(name, neutral_text(value), table)
    }


def _is_default(name: str, text: str, table: SpellingTable) -> bool:
    if any(text in row.leave for row in table.of_field(name)):
        return True
    absent = [one for one in table.absences if one.field == name and one.how == "same"]
    return any(not one.values or text in one.values for one in absent)


def _where(missing: Mapping[str, str], parsed: Parsed) -> Iterator[Lost]:
    for name, because in missing.items():
        entries = [one for one in parsed.entries if one.field and _concerns(one.field, name)]
        if entries:
            yield Lost(entries[0].key, entries[0].line, because)
        else:
            yield Lost(name, 0, because)


def _concerns(field: str, name: str) -> bool:
    return field == name or name.startswith(f"{field}.") or field.startswith(f"{name}.")


def _names(config: ServingConfig) -> Iterator[str]:
    yield from flatten(config)
    yield from (f"extra.{name}" for name in config.extra)


def origin_text(converted: Converted) -> str:
    """Return what a configuration was read as, for people."""
    return f"{version_text(converted.origin.engine, converted.origin.version)}, {converted.origin.dialect}"
