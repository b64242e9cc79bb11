"""How each container spells each neutral option, by version: the one home of keys, names and value translations.

Fields are those of `seatrial_lint.engines.config.ServingConfig`,
dotted below its sub-models (`lora.max_rank`). A new version is a change of `spellings.json`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from seatrial_base.catalog.dialects import Dialect, DialectName, dialect_in, within
from seatrial_base.catalog.engine_versions import version_text
from seatrial_base.catalog.rows import read_rows

if TYPE_CHECKING:
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
INVERTED = {"true": "false", "false": "true"}


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
        alias: Read, never written.
        also: Written beside the first spelling of the field.
        offset: Added to the neutral number.
        note: What to tell people when it is written.
        since: First version, `None` for every.
        until: Last version, a prefix: `1` covers 1.4.5.
    """

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
        dialects: Those that lack it.
        field: Dotted neutral field.
        how: `same`: the engine does so anyway; `note`: it can't be said, and people are told; `error`: it can't be
            said, and would be missed.
        because: Why, for people.
        values: Neutral texts that this concerns; empty for all.
        hint: How to mend it.
        since: First version, `None` for every.
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
class SpellingSource:
    """Where spellings were read.

    Attributes:
        label: What a row calls it.
        source: Where.
        date: When.
    """

    label: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class SpellingTable:
    """Everything that one dialect says in one version.

    Attributes:
        dialect: The dialect.
        version: The container's version, as a tuple that compares.
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
        """The dialect and version for people: `lmi-async on LMI 27`."""
        name, version = self.dialect.name, version_text(self.dialect.engine, self.version)
        return version if name == self.dialect.engine else f"{name} on {version}"


def find_spellings(dialect: DialectName, version: str) -> SpellingTable:
    """Return how a dialect spells things in one version of its container.

    Args:
        dialect: One of `DIALECTS`.
        version: As `engine_versions.read_version` reads it.

    Raises:
        RenderError: SEA307 when the version names none, or the dialect does not exist in it.
    """
    return _table(*dialect_in(dialect, version))


def all_spellings() -> tuple[Spelling, ...]:
    """Return every spelling of every dialect and version."""
    return tuple(_with_env(row) for row in read_rows("spellings.json", Spelling))


@cache
def sources() -> dict[str, SpellingSource]:
    """Return where the spellings were read, by label."""
    return {source.label: source for source in read_rows("spellings.json", SpellingSource, part="sources")}


def option_env(key: str) -> str:
    """Return the environment variable that LMI reads for a key of `serving.properties`.

    LMI lowers a name in capitals and takes a mixed one as it is; `engine` and `entryPoint` it knows in capitals too.
    """
    name = key.removeprefix("option.")
    if key == name and key != "engine":
        return f"SERVING_{name.upper()}"
    return f"OPTION_{name.upper() if name.islower() or name == 'entryPoint' else name}"


def _with_env(row: Spelling) -> Spelling:
    return dataclasses.replace(row, env=option_env(row.key)) if row.key and row.env is None else row


@cache
def _table(dialect: Dialect, version: Version) -> SpellingTable:
    rows = tuple(
        row for row in all_spellings() if dialect.name in row.dialects and within(version, row.since, row.until)
    )
    absences = tuple(
        row for row in _absences() if dialect.name in row.dialects and within(version, row.since, row.until)
    )
    return SpellingTable(dialect, version, rows, absences)


@cache
def _absences() -> tuple[Absence, ...]:
    return read_rows("spellings.json", Absence, part="absent")
