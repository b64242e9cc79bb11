"""Which deployments a probe measures, and with how many requests in flight."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seatrial.documents.plan import hardware_words
from seatrial.specs.shapes import INSTANCE_TYPE
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan, Probe, SaferDeployment

Role = Literal["plan", "candidate"]
WHERE = "command line"
_MOST_DEGREE = 1024  # as of serving.overrides.tensor_parallel_degree


@dataclass(frozen=True, slots=True)
class ProbedHardware:
    """What one copy runs on.

    Attributes:
        instance_type: The instance type.
        tensor_parallel_degree: Accelerators of one copy.
    """

    instance_type: str
    tensor_parallel_degree: int

    @classmethod
    def of(cls, plan: Plan) -> ProbedHardware:
        """Return the hardware of a plan."""
        return cls(plan.instance_type.value, plan.tensor_parallel_degree.value)

    def __str__(self) -> str:
        return hardware_words(self.instance_type, self.tensor_parallel_degree)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedDeployment:
    """One deployment of a probe: one copy, loaded at one level.

    Attributes:
        role: Whether it is the plan's deployment or the one that is compared with it.
        hardware: What the copy runs on.
        copy_count: Copies that would serve the whole workload; an objective on their throughput is shared by them.
        concurrency_per_copy: Requests in flight on the copy: the level.
    """

    role: Role
    hardware: ProbedHardware
    copy_count: int
    concurrency_per_copy: int


def read_candidate(text: str, option: str = "--candidate") -> ProbedHardware:
    """Read `ml.g6e.12xlarge:4`: an instance type and a tensor parallel degree.

    Args:
        text: What the user wrote.
        option: Where.

    Raises:
        SpecError: SEA524 when it is not that.
    """
    instance_type, _, degree = text.partition(":")
    if re.fullmatch(INSTANCE_TYPE, instance_type) and re.fullmatch("[1-9][0-9]{0,3}", degree):
        found = ProbedHardware(instance_type, int(degree))
        if found.tensor_parallel_degree <= _MOST_DEGREE:
            return found
    message = f"{text[:60]!r} is not an instance type with a tensor parallel degree"
    raise SpecError.of("SEA524", message, hint="write ml.g6e.12xlarge:4", where=WHERE, field=option)


def deployments_to_probe(
    plan: Plan, candidate: ProbedHardware | None, level: int | None
) -> tuple[ProbedDeployment, ...]:
    """Return what to measure, the plan's deployment first; none where the plan is not in doubt and nothing is asked.

    Args:
        plan: The locked plan.
        candidate: The deployment to compare with; `None` takes that of the plan's probe.
        level: Requests in flight per copy, of both; `None` takes the level of the plan's probe for its deployment, and
            the gate for any other.
    """
    probe = plan.probe
    if candidate is None and probe is not None:
        candidate = _hardware_of(probe)
    if candidate is None and level is None:
        return ()
    planned = probed_as(plan, ProbedHardware.of(plan), level)
    if candidate is None or candidate == planned.hardware:
        return (planned,)
    return planned, probed_as(plan, candidate, level)


def probed_as(plan: Plan, hardware: ProbedHardware, level: int | None) -> ProbedDeployment:
    """Return the deployment on some hardware, with the copies and the level that the plan has for it.

    Args:
        plan: The locked plan.
        hardware: What one copy runs on.
        level: Requests in flight per copy; `None` takes that of the plan.
    """
    is_planned = hardware == ProbedHardware.of(plan)
    sides = (plan.probe, None if is_planned else plan.safer)
    side = next((one for one in sides if one is not None and hardware == _hardware_of(one)), None)
    copies = plan.copy_count.value if side is None else side.copy_count
    own = plan.gate_concurrency_per_copy.value if side is None else side.concurrency_per_copy
    return ProbedDeployment(
        role="plan" if is_planned else "candidate",
        hardware=hardware,
        copy_count=copies,
        concurrency_per_copy=own if level is None else level,
    )


def _hardware_of(side: Probe | SaferDeployment) -> ProbedHardware:
    return ProbedHardware(side.instance_type, side.tensor_parallel_degree)
