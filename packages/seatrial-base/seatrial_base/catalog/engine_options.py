"""The one table of engine options: who decides each, how each container spells it by version, what else is known.

Options are the fields of `seatrial_lint.engines.config.ServingConfig`, and a few that make a container what it is. A
new option, spelling or version is a change of `engine_options.json`; what the planner decides, what a spec may fix and
what lint knows is read from it. The parsers of tool calls and reasoning are values of two of them, by model family.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, get_args

from seatrial_base.catalog.engine_versions import (
    DIALECTS,
    Dialect,
    DialectName,
    EngineName,
    dialect_in,
    version_text,
    within,
)
from seatrial_base.catalog.rows import CatalogTable, Sourced, nearest_names, read_row
from seatrial_base.units import as_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_base.catalog.engine_versions import Version


Kind = Literal[
    "text",
    "int",
    "float",
    "flag",
    "inverted_flag",
    "json",
    "milliseconds",
    "seconds",
    "pairs",
    "pairs_json",
    "pair",
    "with_running",
]
Decider = Literal["planner", "spec", "renderer", "engine"]
Predicted = Literal["counted", "named", "neutral"]
Topic = Literal[
    "runtime",
    "model",
    "batcher",
    "sharding",
    "weights",
    "lengths",
    "batch",
    "memory",
    "drafting",
    "adapters",
    "attention",
    "responses",
    "limits",
    "compilation",
]
TOPICS: tuple[Topic, ...] = get_args(Topic)
INVERTED = {"true": "false", "false": "true"}
PREFIXES: dict[EngineName, str] = {"vllm": "SM_VLLM_", "sglang": "SM_SGLANG_"}
NEURON_PREFIX = "SM_ON_"  # vLLM for AWS Neuron: the entrypoint of optimum-neuron


@dataclass(frozen=True, slots=True)
class EngineOptionRow:
    """One option in words of no engine.

    Attributes:
        name: Field of the neutral configuration.
        topic: What it concerns: the group in which a template writes it.
        decided_by: `planner`: the plan, unless the spec fixes it in `serving.overrides`; `spec`: the spec alone, there;
            `renderer`: follows from other fields of spec and plan; `engine`: left to the engine.
        predicted: Whether a prediction counts it, names it as left out, or needs neither, as it changes no speed.
        set_in: Fields of a spec that set it, for users; empty where none does.
        also_named: Further names by engine that a spec can't pass through, in small letters.
    """

    name: str
    topic: Topic
    decided_by: Decider
    predicted: Predicted
    set_in: str
    spellings: tuple[Spelling, ...]
    absent: tuple[Absence, ...]
    also_named: Mapping[EngineName, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one dialect writes one field in a range of versions.

    Attributes:
        dialects: Those that write it so.
        field: Dotted neutral field; `None` for a key that makes the dialect what it is.
        kind: How the value is written. `pairs` are `name=path` joined by commas, `pairs_json` a JSON array of them,
            `pair` a single one; `with_running` adds the sequences that run to those that wait.
        source: Label of where it was read: see `sources`.
        key: Key in `serving.properties`; `None` where there is none.
        env: Name of the environment variable; `None` where there is none.
        values: Neutral text to written text; empty when the value is written as it is.
        reads: Further written texts that mean a neutral one.
        leave: Neutral texts that are said by writing nothing, each with what to tell people, or nothing.
        unset: Written texts that mean the engine's default.
        members: For JSON: member of the neutral sub-model to name in the JSON; `^name` stands beside `wrap`.
        wrap: For JSON: the member that holds the others.
        fixed: For a key of the dialect itself: its value.
        when: For such a key: the field without which it isn't written.
        implies: Fields that are so when this key is there.
        also: Written beside the first spelling of the field.
        offset: Added to the neutral number.
        refuses: HTTP status of a request beyond the limit; `None` where this limit refuses none.
        note: What to tell people when it is written.
        since: First version, `None` for every.
        until: Last version, a prefix: `1` covers 1.4.5.
    """

    option: str
    dialects: tuple[DialectName, ...]
    field: str | None
    kind: Kind
    source: str
    key: str | None = None
    env: str | None = None
    values: dict[str, str] = dataclasses.field(default_factory=dict)
    reads: dict[str, str] = dataclasses.field(default_factory=dict)
    leave: dict[str, str] = dataclasses.field(default_factory=dict)
    unset: tuple[str, ...] = ()
    members: dict[str, str] = dataclasses.field(default_factory=dict)
    wrap: str | None = None
    fixed: str | None = None
    when: str | None = None
    implies: dict[str, str] = dataclasses.field(default_factory=dict)
    alias: bool = False
    also: bool = False
    offset: int = 0
    refuses: int | None = None
    note: str = ""
    since: str | None = None
    until: str | None = None

    @property
    def translation(self) -> dict[str, str]:
        """Neutral text to written text."""
        return INVERTED if self.kind == "inverted_flag" else self.values


@dataclass(frozen=True, slots=True)
class Absence:
    """What a dialect has no option for.

    Attributes:
        field: Dotted neutral field.
        how: `same`: the engine does so anyway; `note`: it can't be said, and users are warned; `error`: it can't be
            said, and would be missed.
        because: Why, for users.
        values: Neutral texts that this concerns; empty for all.
        until: Last version, a prefix.
    """

    dialects: tuple[DialectName, ...]
    field: str
    how: Literal["same", "note", "error"]
    because: str
    values: tuple[str, ...] = ()
    hint: str = ""
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class SpellingSource(Sourced):
    """Where spellings were read."""

    label: str


@dataclass(frozen=True, slots=True)
class KnownKey:
    """One key of one engine, as its sources name it.

    Attributes:
        scope: The batcher that reads it, `common` for all; `server` for the model server, `java` for the library below
            it, `frontend` for arguments of the HTTP server.
        since: First version that names it; empty for every.
        until: Last version; `None` when the newest that was read still does.
    """

    engine: EngineName
    scope: str
    name: str
    since: str
    until: str | None


@dataclass(frozen=True, slots=True)
class KnownOptions(Sourced):
    """The options of one build of LMI, which drops any other without a word.

    Attributes:
        lmi: Number of the LMI build; `None` for the names that LMI reads in every build.
        vllm: The bundled vLLM whose engine arguments they are.
        options: Their names, without `option.`.
    """

    lmi: int | None
    vllm: str | None
    options: tuple[str, ...]


SPELLING_SOURCES: Final = CatalogTable(SpellingSource, "engine_options.json#sources", key="label")


@dataclass(frozen=True, slots=True)
class SpellingTable:
    """Everything that one dialect says in one version.

    Attributes:
        rows: Its spellings, in the order in which a file is written.
        absences: What it has no option for.
    """

    dialect: Dialect
    version: Version
    rows: tuple[Spelling, ...]
    absences: tuple[Absence, ...]

    def of_field(self, name: str) -> tuple[Spelling, ...]:
        """Return the spellings of a neutral field, aliases included."""
        return tuple(row for row in self.rows if row.field == name)

    def of_key(self, key: str) -> tuple[Spelling, ...]:
        """Return what a key of `serving.properties` may mean."""
        return tuple(row for row in self.rows if row.key == key)

    def of_env(self, name: str) -> tuple[Spelling, ...]:
        """Return what an environment variable may mean."""
        return tuple(row for row in self.rows if row.env == name)

    @property
    def called(self) -> str:
        """The dialect and version for users: `lmi-async on LMI 27`."""
        name, version = self.dialect.name, version_text(self.dialect.engine, self.version)
        return version if name == self.dialect.engine else f"{name} on {version}"


def topic_of(option: str) -> Topic:
    """Return what an option concerns."""
    return ENGINE_OPTIONS[option].topic


def options_decided_by(decider: Decider) -> tuple[str, ...]:
    """Return the names of the options that one decides."""
    return tuple(option.name for option in ENGINE_OPTIONS.rows if option.decided_by == decider)


@cache
def reserved_names(engine: EngineName) -> Mapping[str, str]:
    """Return the names that a spec can't pass to an engine, each with the fields that set it; empty where none does.

    They are what the planner or the renderer writes, in every version, in small letters and without prefix. LMI is
    told vLLM's own names too: it refuses to start when one option has two.
    """
    engines = ("lmi", "vllm") if engine == "lmi" else (engine,)
    names: dict[str, str] = {}
    for option in ENGINE_OPTIONS.rows:
        if option.decided_by in ("planner", "renderer"):
            rows = [row for row in option.spellings if {DIALECTS[name].engine for name in row.dialects} & {*engines}]
            written = {bare_name(text) for row in rows for text in (row.key, row.env) if text}
            names |= dict.fromkeys((*sorted(written), *option.also_named.get(engine, ())), option.set_in)
    return names


def bare_name(name: str) -> str:
    """Return the name of an option, as a key of a file or an environment variable, without prefix in small letters."""
    for prefix in ("option.", "OPTION_", *PREFIXES.values(), NEURON_PREFIX):
        name = name.removeprefix(prefix)
    return name.lower()


def find_spellings(dialect: DialectName, version: str) -> SpellingTable:
    """Return how a dialect spells things in one version of its container.

    Args:
        dialect: One of `DIALECT_NAMES`.
        version: As `engine_versions.read_version` reads it.

    Raises:
        RenderError: SEA307 when the version names none, or the dialect does not exist in it.
    """
    return _table(*dialect_in(dialect, version))


def refusal_status(dialect: DialectName, version: str) -> int | None:
    """Return the HTTP status by which a container refuses a request beyond its queue; None where the queue has no end.

    LMI's asynchronous handler has none: it hands each request to vLLM at once, so that DJL's queue of jobs is empty
    (djl-serving, `AsyncRequestManager.addInput`).

    Raises:
        RenderError: As `find_spellings`.
    """
    rows = find_spellings(dialect, version).of_field("max_queued_requests")
    return next((row.refuses for row in rows if row.refuses is not None), None)


def all_spellings() -> tuple[Spelling, ...]:
    """Return every spelling of every dialect and version."""
    return tuple(row for option in ENGINE_OPTIONS.rows for row in option.spellings)


def option_env(key: str) -> str:
    """Return the environment variable that LMI reads for a key of `serving.properties`.

    LMI lowers a name in capitals and takes a mixed one as it is; `engine` and `entryPoint` it knows in capitals too.
    """
    name = key.removeprefix("option.")
    if key == name and key != "engine":
        return f"SERVING_{name.upper()}"
    return f"OPTION_{name.upper() if name.islower() or name == 'entryPoint' else name}"


@cache
def all_known_keys() -> tuple[KnownKey, ...]:
    """Return the keys that the containers' sources name."""
    return tuple(key for keys in _KEYS_BY_SCOPE.rows for key in keys)


@cache
def known_names(engine: EngineName, scope: str) -> frozenset[str]:
    """Return the names of one scope, of whatever version."""
    return frozenset(key.name for key in all_known_keys() if (key.engine, key.scope) == (engine, scope))


@cache
def all_known_options() -> tuple[KnownOptions, ...]:
    """Return the options of LMI itself, then of each build that was read; the file holds what each build changed."""
    own, *builds = _BUILDS.rows
    rows = [own.known]
    names: frozenset[str] = frozenset()
    for build in builds:
        names = names - {*build.removed} | {*build.known.options}
        rows.append(replace(build.known, options=tuple(sorted(names))))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class LoadingOptions:
    """Options of which is known what their values name.

    Attributes:
        what: What they name; of `nothing` the engine loads nothing, whatever the text looks like.
        names: Their names, in small letters and without prefix.
    """

    what: Literal["a model", "a configuration that may name a model", "a file, folder or repository", "code", "nothing"]
    names: tuple[str, ...]
    source: str


# What is known of what an engine loads by an option.
LOADING_OPTIONS: Final = CatalogTable(LoadingOptions, "engine_options.json#loading", key="names")


@cache
def every_known_name() -> frozenset[str]:
    """Return the names of options that any container's sources or vLLM build know, in small letters."""
    own = (name for row in all_known_options() for name in row.options)
    return frozenset(name.lower() for name in (*own, *(key.name for key in all_known_keys())))


_OFF = ("false", "none", "0", "off", "auto")  # texts of an option that ask for nothing


@dataclass(frozen=True, slots=True)
class OptionEffect:
    """How a prediction takes options of engines (`EngineOptionRow.predicted`), by names without prefix.

    Attributes:
        assumed: Texts with which a prediction is made anyway; names and texts are in small letters.
        field: The field of a spec by which it would be counted: as an option it is not.
        sets: The field of `engines.Engine` that it sets, of the KV cache; empty for another option.
        engines: Those that read it so.
    """

    how: Predicted
    names: tuple[str, ...] = ()
    why: str = ""
    assumed: tuple[str, ...] = _OFF
    field: str = ""
    sets: str = ""
    engines: tuple[str, ...] = ()


# Of options that no row of `ENGINE_OPTIONS` spells, of what sets the KV cache, and of what is on by default.
EFFECTS: Final = CatalogTable(OptionEffect, "engine_options.json#predicted")


def effect_of(name: str) -> OptionEffect | None:
    """Return how a prediction takes an option that a spec passes on; `None` for a name that nobody knows."""
    return _effects().get(bare_name(name))


@cache
def _effects() -> Mapping[str, OptionEffect]:
    """Return the effects by name; of two options that are spelled alike the one that is free to be passed on."""
    effects: dict[str, OptionEffect] = {}
    for row in sorted(ENGINE_OPTIONS.rows, key=lambda row: row.decided_by in ("spec", "engine")):
        as_field = row.decided_by == "spec" and row.predicted == "counted"
        effect = OptionEffect("named", field=row.set_in) if as_field else OptionEffect(row.predicted)
        names = {row.name, *(bare_name(text) for each in row.spellings for text in (each.key, each.env) if text)}
        effects |= dict.fromkeys(names, effect)
    return effects | {name: row for row in EFFECTS.rows for name in row.names}


def unknown_options(names: tuple[str, ...], lmi: int) -> dict[str, tuple[str, ...]]:
    """Return the names that an LMI build does not know, each with the nearest known; none for an unread build."""
    own, passed = (next((row for row in all_known_options() if row.lmi == number), None) for number in (None, lmi))
    if own is None or passed is None:
        return {}
    known = {*own.options, *passed.options}
    return {name: nearest_names(name, sorted(known)) for name in names if name not in known}


def bundled_vllm(lmi: int) -> str | None:
    """Return the vLLM version that an LMI build bundles; `None` when it was not read."""
    return next((row.vllm for row in all_known_options() if row.lmi == lmi), None)


@dataclass(frozen=True, slots=True)
class _Build:
    """What a build adds to the names of the one before it, and what it removes."""

    known: KnownOptions
    removed: tuple[str, ...]


def _engine_option(  # noqa: PLR0917 (the keys of a row)
    name: str,
    topic: Topic,
    decided_by: Decider,
    predicted: Predicted,
    set_in: str = "",
    spellings: tuple[dict[str, object], ...] = (),
    absent: tuple[dict[str, object], ...] = (),
    also_named: Mapping[EngineName, list[str]] | None = None,
) -> EngineOptionRow:
    return EngineOptionRow(
        name,
        topic,
        decided_by,
        predicted,
        set_in or (f"serving.overrides.{name}" if decided_by in ("planner", "spec") else ""),
        tuple(_with_env(read_row(Spelling, _placed(name, row))) for row in spellings),
        tuple(read_row(Absence, _placed(name, row, with_option=False)) for row in absent),
        {engine: tuple(names) for engine, names in (also_named or {}).items()},
    )


def _placed(option: str, row: Mapping[str, object], *, with_option: bool = True) -> dict[str, object]:
    """Return the fields of a row with its option and its dotted neutral field; what is fixed says no field."""
    member = row.get("member")
    field = None if "fixed" in row else f"{option}.{member}" if member else option
    fields = {key: value for key, value in row.items() if key != "member"} | {"field": field}
    return fields | {"option": option} if with_option else fields


def _known_keys(engine: EngineName, scope: str, names: Mapping[str, str], source: str) -> tuple[KnownKey, ...]:
    """Return the keys of one scope, each written as `since-until`."""
    del source  # for people who read the file
    ranges = ((name, versions.partition("-")) for name, versions in names.items())
    return tuple(KnownKey(engine, scope, name, since, until or None) for name, (since, _, until) in ranges)


def _with_env(row: Spelling) -> Spelling:
    return dataclasses.replace(row, env=option_env(row.key)) if row.key and row.env is None else row


@cache
def _table(dialect: Dialect, version: Version) -> SpellingTable:
    def holds(row: Spelling | Absence) -> bool:
        return dialect.name in row.dialects and within(version, row.since, row.until)

    rows = tuple(row for row in all_spellings() if holds(row))
    absences = tuple(row for option in ENGINE_OPTIONS.rows for row in option.absent if holds(row))
    return SpellingTable(dialect, version, rows, absences)


# In the order in which a container's configuration is written.
ENGINE_OPTIONS: Final = CatalogTable(_engine_option, "engine_options.json#options", key="name")
_KEYS_BY_SCOPE: Final = CatalogTable(_known_keys, "engine_options.json#keys")
_BUILDS: Final = CatalogTable(
    lambda removed, added, **known: _Build(KnownOptions(options=added, **known), removed), "engine_options.json#builds"
)


# Each parser, and the option that brings parsers of one's own, whose names no one knows.
PLUGINS: Final = {"tool_call_parser": "tool_parser_plugin", "reasoning_parser": "reasoning_parser_plugin"}


@dataclass(frozen=True, slots=True)
class ModelParsers(Sourced):
    """The parsers of a model family in an engine; LMI takes the names of vLLM, which it runs.

    Attributes:
        engine: The engine whose names they are.
        models: Regular expression of hub ids in lower case.
        tool_call_parser: Of tool calls; `None` where no source names one.
        reasoning_parser: Of the reasoning; `None` where no source names one.
    """

    engine: Literal["vllm", "sglang"]
    models: str
    tool_call_parser: str | None
    reasoning_parser: str | None


MODEL_PARSERS: Final = CatalogTable(ModelParsers, "parsers.json", key="engine")


def model_parsers(engine: str, hub_id: str) -> ModelParsers | None:
    """Return the parsers of a model, or `None` where the catalog has none for it."""
    spoken = "vllm" if engine == "lmi" else engine
    rows = MODEL_PARSERS.having(spoken)
    return next((row for row in rows if re.fullmatch(row.models, hub_id, re.IGNORECASE)), None)


@dataclass(frozen=True, slots=True)
class ParserNames(Sourced):
    """The names that an engine takes for one of its parsers.

    Attributes:
        engine: The engine; LMI takes the names of vLLM, which it runs.
        names: All names, ascending; those of the newest source that was read, so that an older release may lack some.
    """

    engine: Literal["vllm", "sglang"]
    option: Literal["tool_call_parser", "reasoning_parser"]
    names: tuple[str, ...]


PARSER_NAMES: Final = CatalogTable(ParserNames, "parsers.json#names", key=lambda row: (row.engine, row.option))


def parser_names(engine: str, option: str) -> ParserNames | None:
    """Return the names of an engine's parsers, or `None` where the catalog has none."""
    return PARSER_NAMES.get(("vllm" if engine == "lmi" else engine, option))


@dataclass(frozen=True, slots=True)
class Range(Sourced):
    """What a number may be.

    Attributes:
        dialects: Those that refuse another.
        least: Smallest value that is taken; `None` for no end.
        most: Largest value; `None` for no end.
        above: The value that is not taken any more below `least`: the range is open there.
        but: Single values that are taken beside the range.
        values: The only values that are taken; empty for a range.
        until: Last version, a prefix.
    """

    dialects: tuple[str, ...]
    names: tuple[str, ...]
    least: float | None = None
    most: float | None = None
    above: float | None = None
    but: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    since: str | None = None
    until: str | None = None

    def takes(self, number: float) -> bool:
        """Return whether a number is taken."""
        if number in self.but or number in self.values:
            return True
        low = (self.least is not None and number < self.least) or (self.above is not None and number <= self.above)
        return not (self.values or low or (self.most is not None and number > self.most))

    @property
    def shown(self) -> str:
        """The range for users."""
        if self.values:
            return ", ".join(f"{value:g}" for value in self.values)
        low = f"{self.least:g} or more" if self.least is not None else f"above {self.above:g}"
        both = f"{low}, at most {self.most:g}" if self.most is not None else low
        return f"{both}, or {', '.join(f'{value:g}' for value in self.but)}" if self.but else both


RANGES: Final = CatalogTable(Range, "engine_options.json#ranges", key="names")


def refusing_range(name: str, value: object) -> Range | None:
    """Return the range of an option that a number is outside of, whatever the engine; `None` where one takes it."""
    rows, number = (*RANGES.having(name.lower()), *RANGES.having(name.upper())), as_number(value)
    return None if number is None or any(row.takes(number) for row in rows) else next(iter(rows), None)
