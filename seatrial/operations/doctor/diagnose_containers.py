"""What holds the containers of an endpoint that serves back, by what they told CloudWatch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.operations.doctor.diagnosis import diagnosis
from seatrial_load.knee.causes import causes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial.operations.doctor.facts import ContainerFacts, Examination
    from seatrial_base.findings import Finding
    from seatrial_load.documents.container_metrics import CauseKind

RULES: Final[Mapping[CauseKind, str]] = {
    "preempted": "SEA772",
    "kv_cache_full": "SEA772",
    "queue_grows": "SEA773",
    "gpu_idle": "SEA774",
}
"""A full batch or busy accelerators alone are an endpoint at work, and no problem."""


def container_diagnoses(found: Examination) -> Iterator[Finding]:
    """Yield what holds containers back."""
    for each in found.containers:
        for cause in causes_of(each.load):
            if (rule := RULES.get(cause.kind)) is not None:
                yield diagnosis(
                    rule=rule,
                    part=each.part,
                    cause=f"In the last 15 minutes: {cause.because}.",
                    mend=cause.mend,
                    seen=container_status(each),
                    source="CloudWatch, detailed observability",
                )


def container_status(each: ContainerFacts) -> str:
    """Return what the containers of one part told, in words."""
    load = each.load
    shares = (
        ("KV cache", load.kv_cache_share_max),
        ("accelerators", load.gpu_share_mean),
        ("accelerator memory", load.gpu_memory_share_max),
    )
    counts = (
        ("running", load.running_max),
        ("waiting", load.waiting_max),
        ("preemptions", load.preemptions),
    )
    told = [f"{name} {value:.0f}" for name, value in counts if value is not None]
    told += [f"{name} {value:.0%}" for name, value in shares if value is not None]
    simulated = f" (measured by {each.simulated_by})" if each.simulated_by else ""
    return ", ".join(told) + simulated
