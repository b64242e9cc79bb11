"""Needs and exclusions of optimizations: engines, versions, accelerators, one another, optimization jobs; each sourced.

Optimizations are named as in `seatrial.specs.optimization`, engines as in `engine_choice.json`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from seatrial_base.catalog.engine_versions import within
from seatrial_base.catalog.rows import CatalogTable

Provenance = Literal["published", "unknown"]


@dataclass(frozen=True, slots=True)
class EngineSupport:
    """Versions of some engines that run some optimizations.

    Attributes:
        supported: Whether any version runs them.
        since: The first version; `None` for every one.
        until: The last version; `None` for every one.
        because: Why the others do not, a sentence; empty where every version runs them.
    """

    engines: tuple[str, ...]
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
        engines: The engines that it is true of; empty for every one.
        until: The last version of the engine that it is true of; `None` for every one.
        accelerators: The accelerators, as the instances name them.
        verdict: `excludes`: it does not run; `limits`: it runs, and gives less.
        because: The reason, a sentence.
    """

    optimizations: tuple[str, ...]
    engines: tuple[str, ...]
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
    engines: tuple[str, ...]
    until: str | None
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class FeatureLimit:
    """Optimizations that exclude a field of `serving.overrides`."""

    optimizations: tuple[str, ...]
    field: str
    engines: tuple[str, ...]
    until: str | None
    because: str
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class JobSupport:
    """What a SageMaker optimization job makes.

    Attributes:
        allowed: Whether a job makes them at all.
        needs: Optimization that must be in the same job; `None` for none.
        families: Families of instance types that SageMaker's SDK lists for them.
        because: Why not, a sentence; empty where nothing is refused.
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
        quality: What happens to the answers, a sentence.
        provenance: `published` where someone measured or proved it, `unknown` where only a comparison tells.
        startup: What happens to the start of a container; empty for nothing.
        features: What is lost beside; empty for nothing.
    """

    optimization: str
    quality: str
    provenance: Provenance
    startup: str
    features: str
    source: str
    date: str


ENGINE_SUPPORT: Final = CatalogTable(EngineSupport, "optimizations.json#engines", key="optimizations")
ACCELERATOR_LIMITS: Final = CatalogTable(AcceleratorLimit, "optimizations.json#accelerators", key="optimizations")
PAIR_LIMITS: Final = CatalogTable(PairLimit, "optimizations.json#pairs")
FEATURE_LIMITS: Final = CatalogTable(FeatureLimit, "optimizations.json#features")
JOB_SUPPORT: Final = CatalogTable(JobSupport, "optimizations.json#jobs", key="optimizations")
# One row.
JOB_INSTANCES: Final = CatalogTable(JobInstances, "optimizations.json#job_instances")
SAGEMAKER_DRAFTS: Final = CatalogTable(DraftRestriction, "optimizations.json#sagemaker_drafts")
LOSSES: Final = CatalogTable(GivenUp, "optimizations.json#gives_up", key="optimization")


def supports(optimization: str, engine: str) -> tuple[EngineSupport, ...]:
    """Return the rows about an optimization on an engine; none where nobody wrote one."""
    return tuple(row for row in ENGINE_SUPPORT.having(optimization) if engine in row.engines)


def holds_since(row: EngineSupport, version: tuple[int, ...]) -> bool:
    """Tell whether a version lies in the range of a row."""
    return row.supported and within(version, row.since, row.until)


def holds(engines: tuple[str, ...], until: str | None, engine: str, version: tuple[int, ...] | None) -> bool:
    """Tell whether a row is true of an engine; of a version that can't be read, only rows of every version are.

    Args:
        until: The row's last version; `None` for every one.
    """
    if engines and engine not in engines:
        return False
    return until is None or (version is not None and within(version, None, until))


def limits_on(
    optimization: str, engine: str, version: tuple[int, ...] | None, accelerator: str
) -> tuple[AcceleratorLimit, ...]:
    """Return what is said of an optimization on an accelerator."""
    return tuple(
        row
        for row in ACCELERATOR_LIMITS.having(optimization)
        if accelerator in row.accelerators and holds(row.engines, row.until, engine, version)
    )
