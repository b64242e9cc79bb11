"""Reads what people have, in an engine's own syntax, back as a neutral configuration."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial_base.catalog.engine_options import PREFIXES, find_spellings
from seatrial_lint.engines.config import PRESENT, unflatten
from seatrial_lint.engines.engine_options import Adapter
from seatrial_lint.engines.properties import PropertyLine, read_env_lines, read_properties

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_base.catalog.engine_options import Spelling, SpellingTable
    from seatrial_base.catalog.engine_versions import DialectName
    from seatrial_lint.engines.config import Neutral, ServingConfig


PROPERTIES = "serving.properties"
ENVIRONMENT = "environment"
_OPTION_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_CAPITALS = re.compile(r"[A-Z0-9_]+")
# Variables of an environment that no launcher takes for one of its options.
_NOT_THE_ENGINE_S = ("AWS_", "HF_", "HUGGING_FACE_", "SAGEMAKER_", "SM_", "OPTION_", "SERVING_")


@dataclass(frozen=True, slots=True)
class ParsedEntry:
    """One key that was read.

    Attributes:
        source: `serving.properties` or `environment`.
        line: Line of the text, from 1; 0 when it was no text.
        field: The neutral field that it says, `extra.name` for a passed option; `None` when it says none.
        because: Why it says none; empty when it does.
    """

    source: str
    key: str
    value: str
    line: int
    field: str | None
    because: str = ""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A neutral configuration and where each part of it came from.

    Attributes:
        config: What was understood.
        entries: Every key, in the order in which it was read.
    """

    config: ServingConfig
    entries: tuple[ParsedEntry, ...]

    @property
    def unknown(self) -> tuple[ParsedEntry, ...]:
        """Return the keys that say nothing to this engine and version, or say what it can't mean."""
        return tuple(entry for entry in self.entries if entry.because)


@dataclass(slots=True)
class _ParseState:
    values: dict[str, Neutral] = field(default_factory=dict)
    extra: dict[str, str] = field(default_factory=dict)
    entries: list[ParsedEntry] = field(default_factory=list)


def parse(
    dialect: DialectName, version: str, *, properties: str = "", env: Mapping[str, str] | str | None = None
) -> Parsed:
    """Read a configuration.

    Args:
        properties: Text of `serving.properties`; it wins over the environment.
        env: Environment variables, as a mapping or as `NAME=value` lines.

    Raises:
        RenderError: SEA307 for a version or dialect that doesn't exist. Nothing else: what can't be read is listed.
    """
    table = find_spellings(dialect, version)
    reading = _ParseState()
    for source, line in (*_file_lines(table, properties), *_env_lines(env)):
        name, because = _understand(source, line, table, reading)
        reading.entries.append(ParsedEntry(source, line.key, line.value, line.number, name, because))
    waiting = reading.values.get("max_queued_requests")
    counts_running = any(row.kind == "with_running" for row in table.of_field("max_queued_requests"))
    if counts_running and isinstance(waiting, str):
        _without_running(waiting, reading)
    config, wrong = unflatten(reading.values, reading.extra)
    entries: list[ParsedEntry] = []
    for entry in reading.entries:
        names = (name for name in wrong if entry.field and f"{name}.".startswith(f"{entry.field}."))
        first = None if entry.because else next(names, None)
        entries.append(replace(entry, because=f"{entry.value!r}: {wrong[first]}") if first else entry)
    return Parsed(config, tuple(entries))


def _file_lines(table: SpellingTable, properties: str) -> Iterator[tuple[str, PropertyLine]]:
    if table.dialect.engine != "lmi":
        return
    # Java keeps the last of a key.
    last = {line.key: line for line in read_properties(properties)}
    yield from ((PROPERTIES, line) for line in last.values())


def _env_lines(env: Mapping[str, str] | str | None) -> Iterator[tuple[str, PropertyLine]]:
    if isinstance(env, str):
        last = {line.key: line for line in read_env_lines(env)}
        yield from ((ENVIRONMENT, line) for line in last.values())
        return
    yield from ((ENVIRONMENT, PropertyLine(name, value, 0)) for name, value in (env or {}).items())


def property_of_env(name: str) -> str | None:
    """Return the key of `serving.properties` that LMI makes of an `OPTION_` variable; `None` for another variable."""
    if not name.startswith("OPTION_"):
        return None
    option = name.removeprefix("OPTION_")
    option = option.lower() if _CAPITALS.fullmatch(option) else option
    option = {"entrypoint": "entryPoint"}.get(option, option)
    return option if option == "engine" else f"option.{option}"


def _understand(source: str, line: PropertyLine, table: SpellingTable, reading: _ParseState) -> tuple[str | None, str]:
    rows = _rows(source, line.key, table)
    # A word before any number.
    for row in sorted(rows, key=lambda row: line.value not in row.translation.values()):
        fields = read_value(row, line.value)
        for name, value in (fields or {}).items():
            known = reading.values.setdefault(name, value)
            if known not in (value, PRESENT) and value != PRESENT:
                return row.field or row.when, f"{line.key} sets {name} again to another value"
            reading.values[name] = known or value
        if fields is not None:
            return row.field or row.when, ""
    says_more = any(row.kind == "json" for row in rows) and is_object(line.value)
    if rows and not says_more:
        return rows[0].field, _why_not(rows[0], line, table)
    extra = _extra_name(source, line.key, table)
    if extra is None:
        return None, f"{table.called} does not know {line.key}"
    reading.extra.setdefault(extra, line.value)
    return f"extra.{extra}", ""


def _rows(source: str, key: str, table: SpellingTable) -> tuple[Spelling, ...]:
    if source == PROPERTIES:
        return table.of_key(key)
    option = property_of_env(key) if table.dialect.engine == "lmi" else None
    return table.of_env(key) or (table.of_key(option) if option else ())


def _why_not(row: Spelling, line: PropertyLine, table: SpellingTable) -> str:
    if row.fixed is not None:
        return f"{table.called} has {line.key}={row.fixed}"
    return f"{line.value!r} is not valid for {line.key} in {table.called}"


def _extra_name(source: str, key: str, table: SpellingTable) -> str | None:
    if table.dialect.engine == "lmi":
        option = key if source == PROPERTIES else property_of_env(key) or ""
        name = option.removeprefix("option.") if option.startswith("option.") else ""
    else:
        prefix = PREFIXES.get(table.dialect.engine, "")
        foreign = not prefix and key.startswith(_NOT_THE_ENGINE_S)
        name = key.removeprefix(prefix).lower() if key.startswith(prefix) and not foreign else ""
    return name if _OPTION_NAME.fullmatch(name) else None


def _without_running(waiting: str, reading: _ParseState) -> None:
    """Take the sequences that run off the requests that an engine bounds, running and waiting together."""
    running = reading.values.get("max_num_seqs")
    if isinstance(running, str) and int(waiting) > int(running):
        reading.values["max_queued_requests"] = str(int(waiting) - int(running))
        return
    del reading.values["max_queued_requests"]
    because = "it limits running and waiting requests together; the limit of running requests is missing"
    reading.entries = [
        replace(entry, because=because) if entry.field == "max_queued_requests" else entry for entry in reading.entries
    ]


_WHOLE = ("int", "milliseconds", "seconds", "with_running")


def read_value(row: Spelling, text: str) -> dict[str, Neutral] | None:
    """Return the neutral fields that a written value says by one spelling; `None` when it can't be read so."""
    if row.fixed is not None:
        # A bare flag is meant by `true` too, where the image would pass the word on.
        same = {row.fixed.lower() or "true", row.fixed.lower(), *(name.lower() for name in row.reads)}
        if text.lower() not in same:
            return None
        return {row.when: PRESENT} if row.when and "." not in row.when else {}
    if row.field is None or text in row.unset:
        return {}
    if row.kind == "json":
        return _json(row, row.field, text)
    value = _pairs(row, text) if row.kind.startswith("pair") else _scalar(row, text)
    return None if value is None else {row.field: value, **row.implies}


def _scalar(row: Spelling, text: str) -> str | None:
    shown = text.lower() if row.kind in ("flag", "inverted_flag") else text
    meanings = {written.lower() if shown != text else written: neutral for neutral, written in row.translation.items()}
    meanings |= row.reads
    if meanings or row.leave:
        return meanings.get(text, meanings.get(shown))
    if row.kind == "flag":
        return shown if shown in ("true", "false") else None
    if row.kind in _WHOLE:
        try:
            return str(int(text) - row.offset)
        except ValueError:
            return None
    return text


def _pairs(row: Spelling, text: str) -> tuple[Adapter, ...] | None:
    parts = text.split(",")
    if row.kind == "pairs_json":
        try:
            parts = json.loads(text)
        except (ValueError, RecursionError):
            return None
    if not isinstance(parts, list):
        return None
    try:
        named = (str(part).strip().partition("=") for part in parts)
        return tuple(Adapter(name=name, path=path) for name, _, path in named)
    except ValueError:
        return None


def _json(row: Spelling, parent: str, text: str) -> dict[str, Neutral] | None:
    members = _json_object(text)
    if members is not None and row.wrap is not None:
        # The members of the one that wraps them, and with `^` those alongside it.
        inside = members.get(row.wrap, {})
        others = {f"^{key}": value for key, value in members.items() if key != row.wrap}
        members = others | inside if isinstance(inside, dict) else None
    names = {written: member for member, written in row.members.items()}
    names |= {alias: names[written] for alias, written in row.reads.items()}
    if members is None or not set(members) <= set(names):
        return None
    if any(isinstance(value, dict | list) or value is None for value in members.values()):
        # It says more than the neutral field can.
        return None
    fields: dict[str, Neutral] = {
        f"{parent}.{names[key]}": (str(value).lower() if isinstance(value, bool) else str(value))
        for key, value in members.items()
    }
    return {parent: PRESENT, **fields}


def _json_object(text: str) -> dict[str, object] | None:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def is_object(text: str) -> bool:
    """Return whether a text is a JSON object."""
    return _json_object(text) is not None
