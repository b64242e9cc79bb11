"""One total order of versions for each engine, and the dialects in which its container is configured by version.

LMI is ordered by its build number, because one DJL version (0.36.0) covers eleven builds. Builds before 8 have no
number of their own: counting on downwards, DJL 0.25 is 7 (AWS calls it V7), 0.24 is 6 and 0.23 is 5. From DJL 0.23 to
0.35 the number is the minor version less 18. TGI, vLLM and SGLang are ordered by their version's numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, get_args

from seatrial_base.catalog.images import IMAGES
from seatrial_base.catalog.rows import CatalogTable
from seatrial_base.errors import RenderError

EngineName = Literal["lmi", "tgi", "vllm", "sglang"]
Version = tuple[int, ...]

OLDEST_LMI = 5
_PARTS = 3
_MINOR_LESS_NUMBER = 18
_MINORS_WITH_ONE_BUILD = range(23, 36)
_NAMES: dict[EngineName, str] = {"lmi": "LMI", "tgi": "TGI", "vllm": "vLLM", "sglang": "SGLang"}


def read_version(engine: EngineName, text: str) -> Version | None:
    """Return a version as a tuple that compares in the order of release; `None` when the text names none.

    LMI is read from a build (`0.36.0-lmi27.0.0`), a number (`lmi27`, `27`), a DJL version (`0.25.0`), or an image tag.
    """
    return _lmi(text) if engine == "lmi" else _numbers(engine, text)


def is_older(engine: EngineName, text: str) -> bool:
    """Return whether an image tag names a version from before those of the catalog."""
    if engine == "lmi":
        match = re.match(r"v?0\.([1-9]\d*)\.(?!.*lmi)", text.lower())
        return match is not None and int(match[1]) < OLDEST_LMI + _MINOR_LESS_NUMBER
    number = read_version(engine, text)
    # Builds for AWS Neuron count from 0.0.1.
    rows = [row for row in DIALECTS.rows if row.engine == engine and ("neuron" in row.name) == ("neuron" in text)]
    return number is not None and bool(rows) and not any(has_dialect(row, number) for row in rows)


def given_version(engine: EngineName, text: str) -> Version:
    """Return a version that a user names.

    Raises:
        ValueError: When the text names none, or a build of LMI that is not known; it says which are.
    """
    version = read_version(engine, text)
    if engine == "lmi" and (version is None or not OLDEST_LMI <= version[0] <= newest_lmi()):
        known = f"lmi{OLDEST_LMI} (DJL 0.{OLDEST_LMI + _MINOR_LESS_NUMBER}) to lmi{newest_lmi()}"
        raise ValueError(f"{text!r} is not a known version of LMI; known: {known}")
    if version is None:
        raise ValueError(f"{text!r} is not a version of {_NAMES[engine]}")
    return version


@cache
def newest_lmi() -> int:
    """Return the number of the newest build of LMI in the catalog."""
    return max(build.lmi for build in IMAGES.rows if build.family == "lmi" and build.lmi is not None)


def version_text(engine: EngineName, version: Version) -> str:
    """Return a version for users: `LMI 27`, `TGI 3.3.6`."""
    if engine == "lmi" and version[0] <= 7:  # noqa: PLR2004 (the last without a number of its own)
        return f"DJL 0.{version[0] + _MINOR_LESS_NUMBER}"
    return f"{_NAMES[engine]} {'.'.join(map(str, version))}"


def _lmi(text: str) -> Version | None:
    if match := re.search(r"lmi[-_]?(\d+)", text.lower()):
        # A build of development has the number 0: nothing tells what is in it.
        return (int(match[1]),) if int(match[1]) >= OLDEST_LMI else None
    if re.fullmatch(r"\d+", text):
        return (int(text),) if int(text) >= OLDEST_LMI else None
    if not (match := re.match(r"v?0\.(\d+)(\.|$)", text)):
        return None
    minor = int(match[1])
    if minor in _MINORS_WITH_ONE_BUILD:
        return (minor - _MINOR_LESS_NUMBER,)
    djl = text.partition("-")[0].removeprefix("v")
    builds = [build for build in IMAGES.rows if build.family == "lmi" and build.version.startswith(f"{djl}-")]
    numbers = [build.lmi for build in builds if build.lmi is not None and build.documented] or [
        build.lmi for build in builds if build.lmi is not None
    ]
    return (max(numbers),) if numbers else None


def _numbers(engine: str, text: str) -> Version | None:
    if engine == "tgi" and "optimum" in text:  # a tag that leads with PyTorch's version: `2.7.0-optimum3.3.6-neuronx-…`
        match = re.search(r"optimum(\d+(?:\.\d+)+)", text)
    else:
        named = re.search(rf"{engine}[-_]?v?(\d+(?:\.\d+)+)", text.lower())
        match = named or re.match(r"v?(\d+(?:\.\d+)*)", text)
    if not match:
        return None
    numbers = tuple(int(number) for number in match[1].split("."))
    return numbers + (0,) * (_PARTS - len(numbers))


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
DIALECT_NAMES: Final[tuple[DialectName, ...]] = get_args(DialectName)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One way in which a container is configured.

    Attributes:
        batcher: What runs the model, for users.
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


DIALECTS: Final = CatalogTable(Dialect, "engine_options.json#dialects", key="name")


def dialect_in(name: DialectName, version: str) -> tuple[Dialect, Version]:
    """Return a dialect with the version of its container as a tuple that compares.

    Raises:
        RenderError: SEA307 when the text names no version, or the dialect does not exist in it.
    """
    dialect = DIALECTS[name]
    number = read_version(dialect.engine, version)
    if number is None:
        hint = "write an LMI number (lmi27), a DJL version (0.25.0) or an engine version (3.3.6)"
        raise RenderError.of("SEA307", f"{version!r} is not a version of {dialect.engine}", hint=hint)
    if not has_dialect(dialect, number):
        raise _no_such_dialect(dialect, number)
    return dialect, number


def existing_dialects(engine: EngineName, version: str) -> tuple[DialectName, ...]:
    """Return the dialects that a version of a container has; none when the version can't be read."""
    number = read_version(engine, version)
    if number is None:
        return ()
    return tuple(one.name for one in DIALECTS.rows if one.engine == engine and has_dialect(one, number))


def has_dialect(dialect: Dialect, version: Version) -> bool:
    """Return whether a version of its container has a dialect."""
    return within(version, dialect.since, dialect.until)


def within(version: Version, since: str | None, until: str | None) -> bool:
    """Return whether a version is in a range; the end is a prefix, so that 1.4.5 is before the end of 1.4."""
    last = _parts(until)
    return version >= _parts(since) and (not last or version[: len(last)] <= last)


@cache
def _parts(text: str | None) -> Version:
    return tuple(int(number) for number in text.split(".")) if text else ()


def missing_dialect_text(name: DialectName, version: Version) -> str:
    """Return that a version of its container lacks a dialect, in words."""
    engine = DIALECTS[name].engine
    here = version_text(engine, version)
    return f"Seatrial does not know {here}" if name == engine else f"{name} does not exist in {here}"


def _no_such_dialect(dialect: Dialect, version: Version) -> RenderError:
    here = version_text(dialect.engine, version)
    first = version_text(dialect.engine, _parts(dialect.since))
    last = f" to {version_text(dialect.engine, _parts(dialect.until))}" if dialect.until else " on"
    others = [one.name for one in DIALECTS.rows if one.engine == dialect.engine and has_dialect(one, version)]
    hint = f"it exists from {first}{last}" + (f"; {here} has {', '.join(others)}" if others else "")
    return RenderError.of("SEA307", missing_dialect_text(dialect.name, version), hint=hint)


NEWEST_READ: Final = {"lmi": "27", "tgi": "3.3.6", "vllm": "0.26.0", "sglang": "0.5.20"}
_NEWEST_READ_ON_NEURON: Final = {"lmi": "11", "tgi": "0.3.0", "vllm": "0.4.5"}


_ON_NEURON: dict[EngineName, DialectName] = {"lmi": "lmi-neuronx", "tgi": "tgi-neuronx", "vllm": "vllm-neuronx"}


def dialect_of(engine: EngineName, version: str, backend: str = "auto", *, on_neuron: bool = False) -> DialectName:
    """Return the dialect of a plan: what the spec fixes, else the newest vLLM form that the container has."""
    if on_neuron and engine in _ON_NEURON:
        return _ON_NEURON[engine]
    if engine != "lmi":
        return engine
    if backend != "auto":
        return _BACKENDS[backend]
    return "lmi-async" if "lmi-async" in existing_dialects(engine, version) else "lmi-vllm"


_BACKENDS: dict[str, DialectName] = {
    "vllm": "lmi-async",
    "vllm-rolling": "lmi-vllm",
    "lmi-dist": "lmi-dist",
    "trtllm": "lmi-trtllm",
    "neuronx": "lmi-neuronx",
    "deepspeed": "lmi-deepspeed",
    "python": "lmi-python",
}


def spelled_version(engine: EngineName, version: str, *, on_neuron: bool = False) -> str:
    """Return the version to spell by: the plan's, or the newest that was read when an image of the user has none."""
    if on_neuron:
        read = read_version(engine, version)
        dialect = DIALECTS[_ON_NEURON[engine]]
        return version if read is not None and has_dialect(dialect, read) else _NEWEST_READ_ON_NEURON[engine]
    return version if read_version(engine, version) is not None else NEWEST_READ[engine]
