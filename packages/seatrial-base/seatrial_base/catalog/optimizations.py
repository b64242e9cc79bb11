"""What optimizations need and exclude: engines, versions, accelerators, one another, optimization jobs; each sourced.

Optimizations are named as in `seatrial.specs.optimization`, engines as in `engine_choice.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from seatrial_base.catalog.engine_versions import within
from seatrial_base.catalog.rows import catalog_rows

_TABLE = "optimizations.json"
Provenance = Literal["published", "unknown"]


@dataclass(frozen=True, slots=True)
class EngineSupport:
    """Versions of some engines that run some optimizations.

    Attributes:
        options: The engines.
        optimizations: The optimizations.
        supported: Whether any version runs them.
        since: The first version; `None` for every one.
        until: The last version; `None` for every one.
        because: Why the others do not, a sentence; empty where every version runs them.
        source: Where it was read.
        date: When.
    """

    options: tuple[str, ...]
    optimizations: tuple[str, ...]
    supported: bool
    since: str | None
    until: str | None
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class AcceleratorLimit:
    """What an optimization does not do, or does with less, on some accelerators.

    Attributes:
        optimizations: The optimizations.
        options: The engines that it is true of; empty for every one.
        until: The last version of the engine that it is true of; `None` for every one.
        accelerators: The accelerators, as the instances name them.
        verdict: `excludes`: it does not run; `limits`: it runs, and gives less.
        because: The reason, a sentence.
        source: Where it was read.
        date: When.
    """

    optimizations: tuple[str, ...]
    options: tuple[str, ...]
    until: str | None
    accelerators: tuple[str, ...]
    verdict: Literal["excludes", "limits"]
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class PairLimit:
    """Optimizations that exclude one another: each of the first with each of the second."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    options: tuple[str, ...]
    until: str | None
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class FeatureLimit:
    """Optimizations that exclude a field of `serving.overrides`."""

    optimizations: tuple[str, ...]
    field: str
    options: tuple[str, ...]
    until: str | None
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class JobSupport:
    """What a SageMaker optimization job makes.

    Attributes:
        optimizations: The optimizations.
        allowed: Whether a job makes them at all.
        needs: Optimization that must be in the same job; `None` for none.
        families: Families of instance types that SageMaker's SDK lists for them.
        because: Why not, a sentence; empty where nothing is refused.
        source: Where it was read.
        date: When.
    """

    optimizations: tuple[str, ...]
    allowed: bool
    needs: str | None
    families: tuple[str, ...]
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class JobInstances:
    """Families of instance types that an optimization job takes as its target."""

    families: tuple[str, ...]
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class DraftRestriction:
    """A restriction of the draft models that SageMaker brings."""

    field: str
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class GivenUp:
    """What an optimization gives up.

    Attributes:
        optimization: The optimization.
        quality: What happens to the answers, a sentence.
        provenance: `published` where someone measured or proved it, `unknown` where only a comparison tells.
        startup: What happens to the start of a container; empty for nothing.
        features: What is lost beside; empty for nothing.
        source: Where it was read.
        date: When.
    """

    optimization: str
    quality: str
    provenance: Provenance
    startup: str
    features: str
    source: str
    date: str


@cache
def engine_support() -> tuple[EngineSupport, ...]:
    """Return every row about engines."""
    return catalog_rows(_TABLE, EngineSupport, part="engines")


@cache
def accelerators() -> tuple[AcceleratorLimit, ...]:
    """Return every row about accelerators."""
    return catalog_rows(_TABLE, AcceleratorLimit, part="accelerators")


@cache
def pairs() -> tuple[PairLimit, ...]:
    """Return every row about two optimizations."""
    return catalog_rows(_TABLE, PairLimit, part="pairs")


@cache
def features() -> tuple[FeatureLimit, ...]:
    """Return every row about other options of an engine."""
    return catalog_rows(_TABLE, FeatureLimit, part="features")


@cache
def jobs() -> tuple[JobSupport, ...]:
    """Return every row about optimization jobs."""
    return catalog_rows(_TABLE, JobSupport, part="jobs")


@cache
def job_instances() -> JobInstances:
    """Return the families of instance types that an optimization job takes."""
    return catalog_rows(_TABLE, JobInstances, part="job_instances")[0]


@cache
def sagemaker_drafts() -> tuple[DraftRestriction, ...]:
    """Return the restrictions of SageMaker's own draft models."""
    return catalog_rows(_TABLE, DraftRestriction, part="sagemaker_drafts")


@cache
def losses_by_name() -> dict[str, GivenUp]:
    """Return what each optimization gives up, by its name."""
    return {row.optimization: row for row in catalog_rows(_TABLE, GivenUp, part="gives_up")}


def supports(optimization: str, option: str) -> tuple[EngineSupport, ...]:
    """Return the rows about an optimization on an engine; none where nobody wrote one."""
    return tuple(row for row in engine_support() if optimization in row.optimizations and option in row.options)


def holds_since(row: EngineSupport, version: tuple[int, ...]) -> bool:
    """Tell whether a version lies in the range of a row."""
    return row.supported and within(version, row.since, row.until)


def holds(options: tuple[str, ...], until: str | None, option: str, version: tuple[int, ...] | None) -> bool:
    """Tell whether a row is true of an engine; of a version that can't be read, only rows of every version are.

    Args:
        options: The row's engines; empty for every one.
        until: The row's last version; `None` for every one.
        option: The engine.
        version: Its version; `None` where it can't be read.
    """
    if options and option not in options:
        return False
    return until is None or (version is not None and within(version, None, until))


def limits_on(
    optimization: str, option: str, version: tuple[int, ...] | None, accelerator: str
) -> tuple[AcceleratorLimit, ...]:
    """Return what is said of an optimization on an accelerator."""
    return tuple(
        row
        for row in accelerators()
        if optimization in row.optimizations
        and accelerator in row.accelerators
        and holds(row.options, row.until, option, version)
    )
