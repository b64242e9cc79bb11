"""The knee that scaling takes: the lower of two; for a trial and for a plan alike."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from seatrial_base.units import whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import TargetKnee
    from seatrial_load.documents.result import Detector, Knee


@dataclass(frozen=True, slots=True)
class LeadingKnee:
    """The knee that scaling takes.

    Attributes:
        target: Requests in flight per copy that scaling shall track; 0 without a knee.
    """

    knee: Knee | None
    target: float
    because: str


def leading_knee(knees: Sequence[Knee], *, has_slo: bool, target_knee: TargetKnee, utilization: float) -> LeadingKnee:
    """Choose the knee that scaling takes: where the SLO begins to be missed, or where more load stops paying.

    A knee gives its share of target utilization. More load stops paying at the knee of `saturation`; it gives at least
    the gate, as it is: that many requests are planned for each copy, and the SLO decides whether they are too many. The
    lower one leads. An SLO that no measured load misses is no lower than the loads that meet it. Neither takes a slope
    of throughput, which is mostly noise.

    Args:
        knees: Those of `slo`, `saturation` and `gate`, measured or predicted; others don't count.
        target_knee: `slo` takes the SLO's knee alone.
        utilization: Target utilization, above 0 and at most 1.
    """
    slo, saturation, gate = (_given(detector, knees, utilization) for detector in _TAKEN)
    known = [knee for knee in (saturation, gate) if knee.knee is not None]
    pays = max(known, key=attrgetter("target"), default=saturation)
    reasons = [saturation.because] if saturation.knee is not None and pays is not saturation else []
    if not has_slo:
        return _leading(pays, [*reasons, "no SLO is set"])
    if slo.knee is None or target_knee == "slo":
        return _leading(slo, ["trial.target is slo"])
    # Tell whether the SLO was met up to a load and missed nowhere: its knee has an interval without an upper end.
    if pays.knee is not None and (
        slo.knee.interval is not None
        and slo.knee.interval.high is None
        and (slo.knee.concurrency or 0.0) >= pays.target
    ):
        return _leading(pays, [*reasons, f"the SLO is met at {whole_or_tenths(pays.target)}"])
    if pays.knee is None or slo.target <= pays.target:
        return _leading(slo, [pays.because])
    return _leading(pays, [*reasons, slo.because])


_TAKEN: tuple[Detector, ...] = ("slo", "saturation", "gate")


def _leading(given: LeadingKnee, others: Sequence[str]) -> LeadingKnee:
    if given.knee is None:
        return given
    return LeadingKnee(given.knee, given.target, "; ".join(others))


def _given(detector: Detector, knees: Sequence[Knee], utilization: float) -> LeadingKnee:
    """Return what a detector's knee gives by itself."""
    knee = next((knee for knee in knees if knee.detector == detector), None)
    if knee is None or knee.concurrency is None:
        because = "not evaluated" if knee is None else knee.because
        return LeadingKnee(None, 0.0, f"no {detector} knee: {because}")
    target = knee.concurrency * (1.0 if detector == "gate" else utilization)
    return LeadingKnee(knee, target, f"{detector} would give {whole_or_tenths(target)}")
