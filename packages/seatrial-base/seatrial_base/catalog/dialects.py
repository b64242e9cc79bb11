"""The ways in which containers are configured, and in which versions each exists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from seatrial_base.catalog.engine_versions import EngineName, Version, read_version, version_text
from seatrial_base.catalog.rows import read_rows
from seatrial_base.errors import RenderError

DialectName = Literal[
    "lmi-async",
    "lmi-vllm",
    "lmi-dist",
    "lmi-trtllm",
    "lmi-neuronx",
    "lmi-deepspeed",
    "lmi-python",
    "tgi",
    "tgi-neuronx",
    "vllm",
    "vllm-neuronx",
    "sglang",
]
DIALECTS: tuple[DialectName, ...] = get_args(DialectName)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way in which a container is configured.

    Attributes:
        name: Its name.
        engine: The container it belongs to.
        batcher: What runs the model, for people.
        since: First version of the container that has it.
        until: Last version, a prefix; `None` when it still exists.
        last_image: Last version with a published image; `None` when images still come.
        env_since: First version that can be configured through the environment alone; `None` for every.
        scopes: The parts of the container's Python code that it runs through, as known keys are sorted by them.
    """

    name: DialectName
    engine: EngineName
    batcher: str
    since: str
    until: str | None = None
    last_image: str | None = None
    env_since: str | None = None
    scopes: tuple[str, ...] = ("common",)

    @property
    def short_batcher(self) -> str:
        """What runs the model, without how it batches."""
        return self.batcher.partition(",")[0]


def dialect_in(name: DialectName, version: str) -> tuple[Dialect, Version]:
    """Return a dialect with the version of its container as a tuple that compares.

    Raises:
        RenderError: SEA307 when the text names no version, or the dialect does not exist in it.
    """
    dialect = dialects()[name]
    number = read_version(dialect.engine, version)
    if number is None:
        hint = "write an LMI number (lmi27), a DJL version (0.25.0) or an engine version (3.3.6)"
        raise RenderError.of("SEA307", f"{version!r} is not a version of {dialect.engine}", hint=hint)
    if not exists(dialect, number):
        raise _no_such_dialect(dialect, number)
    return dialect, number


def existing(engine: EngineName, version: str) -> tuple[DialectName, ...]:
    """Return the dialects that a version of a container has; none when the version can't be read."""
    number = read_version(engine, version)
    if number is None:
        return ()
    return tuple(name for name, one in dialects().items() if one.engine == engine and exists(one, number))


def exists(dialect: Dialect, version: Version) -> bool:
    """Say whether a version of its container has a dialect."""
    return within(version, dialect.since, dialect.until)


def within(version: Version, since: str | None, until: str | None) -> bool:
    """Say whether a version lies in a range; the end is a prefix, so that 1.4.5 lies before the end of 1.4."""
    last = _numbers(until)
    return version >= _numbers(since) and (not last or version[: len(last)] <= last)


@cache
def dialects() -> dict[DialectName, Dialect]:
    """Return every dialect by name."""
    return {row.name: row for row in read_rows("engine_options.json", Dialect, part="dialects")}


@cache
def _numbers(text: str | None) -> Version:
    return tuple(int(number) for number in text.split(".")) if text else ()


def absence(name: DialectName, version: Version) -> str:
    """Return that a version of its container lacks a dialect, in words."""
    engine = dialects()[name].engine
    here = version_text(engine, version)
    return f"Seatrial does not know {here}" if name == engine else f"{name} does not exist in {here}"


def _no_such_dialect(dialect: Dialect, version: Version) -> RenderError:
    here = version_text(dialect.engine, version)
    first = version_text(dialect.engine, _numbers(dialect.since))
    last = f" to {version_text(dialect.engine, _numbers(dialect.until))}" if dialect.until else " on"
    others = [name for name, one in dialects().items() if one.engine == dialect.engine and exists(one, version)]
    hint = f"it exists from {first}{last}" + (f"; {here} has {', '.join(others)}" if others else "")
    return RenderError.of("SEA307", absence(dialect.name, version), hint=hint)
