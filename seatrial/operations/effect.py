"""What a change of a resource means for those who use the endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.plan import Plan

EffectKind = Literal[
    "none",
    "starts",
    "rolling_update",
    "all_at_once",
    "download",
    "doubled",
    "second_endpoint",
    "candidate",
    "trial",
    "copies",
    "rights",
    "alias",
    "removed",
    "unknown",
]
TITLES: Mapping[EffectKind, str] = MappingProxyType(
    {
        "none": "no effect",
        "starts": "copies started",
        "rolling_update": "copies restarted one batch after the other",
        "all_at_once": "all copies replaced at once",
        "download": "weights downloaded again",
        "doubled": "instances doubled meanwhile",
        "second_endpoint": "second endpoint beside the first",
        "candidate": "one candidate copy meanwhile",
        "trial": "trial",
        "copies": "number of copies changed",
        "rights": "rights changed before the copies",
        "alias": "clients moved to another endpoint",
        "removed": "endpoint removed",
        "unknown": "effect unknown",
    }
)
"""What each kind is called."""
BY_RISK: tuple[EffectKind, ...] = (
    "removed",
    "all_at_once",
    "doubled",
    "second_endpoint",
    "rolling_update",
    "rights",
    "alias",
    "copies",
    "unknown",
    "starts",
    "candidate",
    "trial",
    "download",
    "none",
)
"""Every kind, what users may notice most first."""
MOVES_COPIES: frozenset[EffectKind] = frozenset(
    {"starts", "rolling_update", "all_at_once", "doubled", "second_endpoint", "copies", "removed", "unknown"}
)
"""The kinds that start, stop or move copies of what serves, or may do so."""
NOTICED: frozenset[EffectKind] = MOVES_COPIES | {"alias", "rights"}
"""The kinds that users of the endpoint may notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One effect.

    Attributes:
        kind: What it is.
        because: Why, as a sentence.
        instances: Instances that it needs while it lasts, beside those that serve at the planned number of copies.
        most_instances: The same where as many copies serve as autoscaling may start.
    """

    kind: EffectKind
    because: str
    instances: int = 0
    most_instances: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSize:
    """How much of what an endpoint is planned with.

    Attributes:
        instance_type: Of its instances.
        instance_count: Instances of the planned copies.
        max_instances: Instances of the most copies.
        copies_per_instance: Copies that fit on one.
        copy_count: Planned copies.
        max_copies: The most copies.
        weights_bytes: What a copy holds of weights on all its accelerators, in bytes.
        usd_per_hour: Price of one instance, in US dollars; `None` when it is unknown.
    """

    instance_type: str
    instance_count: int
    max_instances: int
    copies_per_instance: int
    copy_count: int
    max_copies: int
    weights_bytes: int
    usd_per_hour: float | None

    @classmethod
    def of(cls, plan: Plan) -> PlannedSize:
        """Return the size of a plan."""
        count, price = plan.instance_count.value, plan.cost.usd_per_hour
        return cls(
            instance_type=plan.instance_type.value,
            instance_count=count,
            max_instances=plan.max_instances,
            copies_per_instance=plan.copies_per_instance.value,
            copy_count=plan.copy_count.value,
            max_copies=plan.max_copies,
            weights_bytes=plan.memory.weights_bytes * plan.tensor_parallel_degree.value,
            usd_per_hour=None if price is None or not count else price / count,
        )

    def surge(self, copies: int, beside: int) -> int:
        """Return the instances that some copies need beside those of others, which run on as few as they fit on."""
        each = max(1, self.copies_per_instance)
        return -(-(copies + beside) // each) - -(-copies // each)

    def hourly(self, instances: int) -> float | None:
        """Return the price of some instances, in US dollars per hour; `None` when it is unknown."""
        return None if self.usd_per_hour is None else self.usd_per_hour * instances
