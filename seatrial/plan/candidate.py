"""One deployment under consideration: an instance type, a degree, and the copies that share an instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.units import usd

if TYPE_CHECKING:
    from seatrial.catalog.instances import Instance
    from seatrial.plan.copies import Load
    from seatrial.plan.document import CurvePoint, MemoryFit
    from seatrial.plan.latency import Copy

Stage = Literal["specifications", "degree", "memory", "slo", "copies", "price", "budget"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to place copies on an instance type; it holds the model.

    Attributes:
        instance: The instance type.
        degree: Accelerators of one copy.
        copies_per_instance: Copies that share an instance.
        dtype: Type of weights and activations.
        memory: How the memory of one accelerator is used.
        copy: One copy as the latency model sees it.
    """

    instance: Instance
    degree: int
    copies_per_instance: int
    dtype: str
    memory: MemoryFit
    copy: Copy

    def __str__(self) -> str:
        return f"{self.instance.instance_type} with degree {self.degree}"


@dataclass(frozen=True, slots=True)
class Offer:
    """A candidate that satisfies everything that was asked.

    Attributes:
        candidate: The deployment.
        capacity: Highest concurrency per copy at which every objective holds.
        load: The workload spread over its copies.
        instance_count: Instances of the planned size.
        usd_per_hour: Price of the planned size; `None` when unknown.
        alone: The prediction for a single request.
        highest_tok_s: Output tokens per second of all copies loaded to their capacity.
    """

    candidate: Candidate
    capacity: int
    load: Load
    instance_count: int
    usd_per_hour: float | None
    alone: CurvePoint
    highest_tok_s: float

    @property
    def price(self) -> str:
        """The price as people read it."""
        return "an unknown price" if self.usd_per_hour is None else f"{usd(self.usd_per_hour)} per hour"


@dataclass(frozen=True, slots=True)
class Loss:
    """A candidate that fails, and at which question.

    Attributes:
        instance_type: The instance type.
        degree: Accelerators of one copy.
        stage: The question, in the order in which they are asked.
        because: One full sentence.
        gap: How far it misses, to compare losses of one stage; in the stage's own unit.
        field: The field of the spec that it fails against.
        hint: How to mend it.
        usd_per_hour: Price of the size that it would have; `None` when unknown or not reached.
        output_tok_s: Predicted throughput of that size; `None` when not reached.
    """

    instance_type: str
    degree: int
    stage: Stage
    because: str
    gap: float
    field: tuple[str, ...] = ("serving", "instance_types")
    hint: str = ""
    usd_per_hour: float | None = None
    output_tok_s: float | None = None
