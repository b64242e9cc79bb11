"""Whether a lock still is the plan of its spec: read, never planned again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.errors import SpecError
from seatrial.plan.lock import read_locked_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.errors import Problem
    from seatrial.spec.load import LoadedSpec

State = Literal["fresh", "stale", "missing", "edited", "unreadable", "beyond limits"]
_STATES: Mapping[str, State] = {
    "SEA403": "unreadable",
    "SEA113": "unreadable",
    "SEA401": "missing",
    "SEA411": "edited",
    "SEA402": "stale",
}
"""What the first of these rules among a lock's problems means; any other is a limit that the plan breaks."""


@dataclass(frozen=True, slots=True)
class Freshness:
    """What is to be said of a lock in one environment.

    Attributes:
        loaded: The spec in its environment.
        state: `fresh`, or what is wrong with it.
        problems: Everything that is wrong with it.
    """

    loaded: LoadedSpec
    state: State
    problems: tuple[Problem, ...] = ()


def freshness_of(loaded: LoadedSpec) -> Freshness:
    """Return whether the lock of a spec is the plan of the spec as it is now."""
    try:
        read_locked_plan(loaded)
    except SpecError as error:
        rules = {problem.rule for problem in error.problems}
        state: State = next((state for rule, state in _STATES.items() if rule in rules), "beyond limits")
        return Freshness(loaded, state, error.problems)
    return Freshness(loaded, "fresh")
