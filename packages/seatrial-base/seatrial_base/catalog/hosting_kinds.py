"""What each kind of endpoint excludes, and which namespace of CloudWatch has which metric of SageMaker.

One table for who judges a template and for who answers as SageMaker: a path is that of the API's request, which
CloudFormation's properties share.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from seatrial_base.catalog.rows import CatalogTable, read_mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seatrial_base.findings import Severity

FILE = "hosting_kinds.json"
HostingKind: TypeAlias = Literal["serverless", "asynchronous", "shadowed", "burstable", "inf1", "instances"]
Place: TypeAlias = Literal["variant", "config", "model", "endpoint", "target"]
MEMORY_MB: Final = (1024, 2048, 3072, 4096, 5120, 6144)
"""Sizes of a serverless variant (SageMaker API reference, ProductionVariantServerlessConfig)."""
CONCURRENCY: Final = (1, 200)
"""Bounds of a serverless variant's concurrency (the same)."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Something that a kind of endpoint excludes.

    Attributes:
        on: The resource, or the variant, that has it.
        path: Where it is written, names joined by dots.
        least_items: A list of fewer items is taken; 0 takes none.
        value: The value that is excluded, with `*` for any text; empty for every one.
        unless_false: What turns it off below the path.
        remedy: What to do; empty: remove it.
        source: The ID of its source.
    """

    kind: HostingKind
    on: Place
    path: str
    source: str
    least_items: int = 0
    value: str = ""
    unless_false: str = ""
    severity: Severity = "error"
    remedy: str = ""

    def holds(self, written: object) -> bool:
        """Return whether a value at the path is excluded; `None` and what is switched off are not."""
        if self.value:
            return isinstance(written, str) and fnmatchcase(written, self.value)
        if self.least_items:
            return isinstance(written, list) and len(written) >= self.least_items
        if isinstance(written, dict) and self.unless_false:
            return f"{written.get(self.unless_false)}".lower() != "false"
        return written is not None and f"{written}".lower() != "false" and written != []

    def refusal(self, written: object) -> str:
        """Return what is refused of a value that is excluded, for users."""
        if self.least_items and isinstance(written, list):
            refused = f"at most {self.least_items - 1} of {self.path}, not {len(written)}"
        else:
            refused = f"no {self.path}{f' {written}' if self.value else ''}"
        return f"{hosting_texts('kinds')[self.kind]} takes {refused}"


@dataclass(frozen=True, slots=True)
class MetricNamespace:
    """Metrics of one namespace."""

    namespace: str
    names: tuple[str, ...]
    source: str


EXCLUSIONS: Final = CatalogTable(Exclusion, f"{FILE}#exclusions", key=lambda row: (row.kind, row.on))
METRICS: Final = CatalogTable(MetricNamespace, f"{FILE}#metrics", key="names")


@cache
def hosting_texts(part: Literal["kinds", "rights", "sources"]) -> dict[str, str]:
    """Return each kind in words, the actions that an execution role needs by what for, or the page of each source."""
    return read_mapping(FILE, part)


def kinds_of(instance_type: str | None, *, is_serverless: bool) -> tuple[HostingKind, ...]:
    """Return the kinds of a variant; none where only the deployment knows its instance type."""
    if is_serverless:
        return ("serverless",)
    if instance_type is None:
        return ()
    families: dict[str, tuple[HostingKind, ...]] = {"t2": ("burstable",), "inf1": ("inf1",)}
    return ("instances", *families.get(instance_type.removeprefix("ml.").partition(".")[0], ()))


def kinds_of_config(config: Mapping[str, object]) -> tuple[HostingKind, ...]:
    """Return the kinds that a whole endpoint configuration is of; what is a function of a template counts as set."""
    asynchronous: tuple[HostingKind, ...] = ("asynchronous",) if config.get("AsyncInferenceConfig") else ()
    return (*asynchronous, "shadowed") if config.get("ShadowProductionVariants") else asynchronous


def refusals(kinds: Iterable[HostingKind], on: Place, document: Mapping[str, object]) -> Iterator[str]:
    """Yield what SageMaker refuses of a request for some kinds of endpoint, in our words."""
    for row in (row for kind in kinds for row in EXCLUSIONS.having((kind, on)) if row.severity == "error"):
        written: object = document
        for name in row.path.split("."):
            written = written.get(name) if isinstance(written, dict) else None
        if row.holds(written):
            yield row.refusal(written)


@cache
def namespaces_of(metric: str) -> frozenset[str]:
    """Return the namespaces that have a metric of SageMaker; none of a metric that is not known."""
    return frozenset(row.namespace for row in METRICS.having(metric))


@cache
def namespaces() -> frozenset[str]:
    """Return every namespace of SageMaker's hosting and jobs."""
    return frozenset(row.namespace for row in METRICS.rows)
