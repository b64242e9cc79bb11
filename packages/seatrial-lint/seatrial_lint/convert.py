"""Writes one engine's configuration as another's: what both can say is kept, and what can't be kept is listed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial_base.catalog.engine_options import find_spellings
from seatrial_base.catalog.engine_versions import DIALECTS, existing_dialects, version_text
from seatrial_base.errors import RenderError
from seatrial_lint.engines.config import flatten, neutral_text, unflatten
from seatrial_lint.engines.neutral import PROPERTIES_FILE, render_config
from seatrial_lint.engines.parse import parse
from seatrial_lint.engines.portability import (
    DEGREE,
    Lost,
    adapted,
    check_portable,
    chooses_dialect,
    flag_text,
    process_variables,
)
from seatrial_lint.engines.properties import escape_key, escape_property, write_env
from seatrial_lint.lint.known import carries, judge
from seatrial_lint.lint.lint import Given, lint
from seatrial_lint.lint.read import read_bytes
from seatrial_lint.lint.redaction import secret_in
from seatrial_lint.lint.target import guess, newest_build

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial_base.catalog.engine_options import SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName, EngineName
    from seatrial_base.catalog.instances import Instance
    from seatrial_lint.engines.config import ServingConfig
    from seatrial_lint.engines.neutral import Form, Rendered
    from seatrial_lint.engines.parse import Parsed, ParsedEntry
    from seatrial_lint.lint.source import ConfigSource, SourceEntry
    from seatrial_lint.lint.target import TargetContainer

_DROPPABLE = ("SEA304", "SEA308", "SEA309")  # what one field causes; any other problem ends the conversion
# Without these members, what is left would mean another method or kind: the whole goes.
_WHOLE = {"speculative_decoding.method": "speculative_decoding", "rope_scaling.kind": "rope_scaling"}
_SOURCE = frozenset(["model_id", "revision"])
_ROUNDS = 5  # what is left out can make something else wrong; more than two were never seen
_NEVER_COPIED = "secrets are not copied; use Secrets Manager"


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


def convert_config(
    source: ConfigSource,
    to: DialectName,
    to_version: str | None = None,
    *,
    engine: EngineName | None = None,
    version: str | None = None,
    form: Form = "env",
    instance: Instance | None = None,
) -> Converted:
    """Write a configuration for another container.

    Args:
        source: What was read.
        to: How the other container is configured.
        to_version: Its version; the newest that has this dialect by default.
        engine: The container that it was written for; guessed by default.
        version: That container's version.
        form: How the other container shall be told.
        instance: What it runs on; tells how many GPUs `every GPU` is.

    Raises:
        RenderError: SEA307, SEA310 or SEA302 when no configuration of that form can be written at all, SEA387 when
            none can mean the same.
        ValueError: When nothing tells the container that it was written for.
    """
    origin = guess(source, engine, version)
    if origin is None:
        raise ValueError("the source container is unknown")
    number = to_version or ".".join(map(str, newest_build(to)))
    table = find_spellings(to, number)
    check_portable(source, origin, table)
    entries = {entry.key: entry for entry in source.entries}
    gone = [Lost(key, one.line, _NEVER_COPIED) for key, one in entries.items() if secret_in(key, one.value)]
    open_ones = _without_keys(entries, {one.key for one in gone})
    beside: dict[str, str] = {}
    if source.kind != "serving.properties":
        known = {key: one for key, one in open_ones.items() if not _is_option(key, origin)}
        beside, left = process_variables(known, origin, table, form)
        gone += left
        open_ones = _without_keys(open_ones, {*beside, *(one.key for one in left)})
    parsed = _parsed(source, origin, {key: one.value for key, one in open_ones.items()})
    return _converted(_Reading(origin, parsed, entries, beside, gone), table, number, form, instance)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was read: as what, its fields, its keys, the variables that stay as they are, and what is lost already."""

    origin: TargetContainer
    parsed: Parsed
    entries: Mapping[str, SourceEntry]
    beside: Mapping[str, str]
    gone: list[Lost]


def _converted(read: _Reading, table: SpellingTable, number: str, form: Form, instance: Instance | None) -> Converted:
    meant, changed = adapted(read.parsed, read.origin, table, instance)
    config, foreign = _portable(read.parsed, meant, read.origin, table)
    config, dropped, rendered = _rendered(config, table.dialect.name, number, form)
    for _ in range(_ROUNDS):
        wrong = _found_wrong(config, rendered, table, number)
        if not wrong:
            break
        config, more, rendered = _rendered(_without(config, wrong), table.dialect.name, number, form)
        dropped |= wrong | more
    missing = {**dropped, **_unsaid(config, rendered, table)}
    lost = [*read.gone, *foreign, *changed, *_where(missing, read.parsed)]
    lines = {key: entry.line for key, entry in read.entries.items()}
    placed = dict.fromkeys(replace(one, line=lines.get(one.key, 0)) for one in lost)
    not_kept = {*missing, *(_field_of(one.key, read.parsed) for one in changed)}
    said = {*_names(read.parsed.config)}
    kept = (*(name for name in _names(config) if name in said and name not in not_kept), *read.beside)
    rendered = replace(rendered, env={**rendered.env, **read.beside})
    return Converted(
        rendered, read.origin, table.called, kept, tuple(sorted(placed, key=lambda one: (one.line, one.key)))
    )


def _field_of(key: str, parsed: Parsed) -> str:
    return next((one.field for one in parsed.entries if one.key == key and one.field), key)


def _without_keys(entries: Mapping[str, SourceEntry], gone: set[str]) -> dict[str, SourceEntry]:
    return {key: entry for key, entry in entries.items() if key not in gone}


def _is_option(key: str, origin: TargetContainer) -> bool:
    """Say whether a variable spells something in the container that it was written for."""
    return bool(find_spellings(origin.dialect, ".".join(map(str, origin.version))).of_env(key))


def default_dialect(to: str, version: str | None) -> DialectName:
    """Return the dialect that a container's name means: for LMI the newest way to run vLLM that a version has.

    Raises:
        ValueError: When the name is neither a dialect nor a container.
    """
    known: dict[str, DialectName] = {name: name for name in DIALECTS}
    if to in known:
        return known[to]
    order: tuple[DialectName, ...] = ("lmi-async", "lmi-dist", "lmi-vllm")
    if to != "lmi":
        raise ValueError(f"{to} is not a container; valid: lmi, tgi, vllm, sglang, or {', '.join(DIALECTS)}")
    existing = existing_dialects("lmi", version) if version else order
    return next((name for name in order if name in existing), "lmi-vllm")


def _parsed(source: ConfigSource, origin: TargetContainer, values: Mapping[str, str]) -> Parsed:
    version = ".".join(map(str, origin.version))
    if source.kind != "serving.properties":
        return parse(origin.dialect, version, env=values)
    text = "".join(f"{escape_key(key)}={escape_property(value)}\n" for key, value in values.items())
    return parse(origin.dialect, version, properties=text)


def _portable(
    parsed: Parsed, meant: ServingConfig, origin: TargetContainer, table: SpellingTable
) -> tuple[ServingConfig, list[Lost]]:
    """Take out what only the origin knows: keys without a meaning, and options that the other container lacks."""
    unknown = (one for one in parsed.unknown if not _is_every_gpu(one) and not chooses_dialect(one.key))
    gone = [Lost(one.key, one.line, one.because) for one in unknown]
    extra: dict[str, str] = {}
    for entry, name in _extra_entries(parsed):
        text = flag_text(parsed.config.extra[name], origin, table)
        because = _not_portable(name, origin, table)
        if because or text is None:
            gone.append(
                Lost(entry.key, entry.line, because or f"{table.called} leaves false out and takes the default")
            )
        else:
            extra[name] = text
    return meant.model_copy(update={"extra": extra}), gone


def _extra_entries(parsed: Parsed) -> Iterator[tuple[ParsedEntry, str]]:
    """Yield what was passed to the engine as it is, with its name there; not what chooses the dialect."""
    for entry in parsed.entries:
        name = (entry.field or "").removeprefix("extra.")
        is_extra = name != entry.field and name in parsed.config.extra
        if is_extra and not entry.because and not chooses_dialect(entry.key):
            yield entry, name


def _is_every_gpu(entry: ParsedEntry) -> bool:
    """Say whether an entry is LMI's `max`, which is told with the degree."""
    return entry.field == DEGREE and entry.value == "max"


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


def _found_wrong(config: ServingConfig, rendered: Rendered, table: SpellingTable, version: str) -> dict[str, str]:
    """Return the fields that the lint calls wrong in what was written, with its reasons; never the model's source."""
    text, name = "".join(rendered.files.values()), PROPERTIES_FILE
    if not text:
        text, name = write_env(rendered.env), "container.env"
    found = lint(read_bytes(text.encode(), name), Given(table.dialect.engine, version)).findings
    wrong = {one.field: one.message for one in found if one.severity != "note"}
    if not wrong:
        return {}
    written = parse(table.dialect.name, version, properties="".join(rendered.files.values()), env=rendered.env).entries
    fields = {one.field: wrong[one.key] for one in written if one.field and one.key in wrong}
    said = {name for name in _names(config) if name not in _SOURCE}
    return {_WHOLE.get(name, name): because for name, because in fields.items() if name in said}


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
