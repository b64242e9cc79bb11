"""The order in which a plan goes through the environments of a folder."""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from seatrial.specs.load import environment_names, load_environment
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_base.findings import Finding


def promotion_order(environments: Path) -> tuple[EnvironmentSpec, ...]:
    """Return the environments of a folder, each after its source; by name where the sources leave it open.

    Raises:
        SpecError: With every problem of every environment, an unknown source (SEA109) and a cycle (SEA121) among them.
    """
    found: dict[str, EnvironmentSpec] = {}
    problems: list[Finding] = []
    for name in environment_names(environments):
        try:
            found[name] = load_environment(environments, name)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return tuple(found[name] for name in _sources_first(found))


def _sources_first(found: dict[str, EnvironmentSpec]) -> list[str]:
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name, environment in found.items():
        source = environment.promotion.source
        sorter.add(name, *(() if source is None else (source,)))
    sorter.prepare()
    order: list[str] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        order += ready
        sorter.done(*ready)
    return order
