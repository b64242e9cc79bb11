"""The knee that scaling takes: the load that pays, which is the lower of two; for a trial and for a plan alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seatrial_base.units import whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import TargetKnee
    from seatrial_load.documents.result import Detector, Knee


class LeadingKnee(NamedTuple):
    """The knee that scaling takes, and why it leads; None, and why there is none."""

    knee: Knee | None
    because: str


def leading_knee(knees: Sequence[Knee], *, has_slo: bool, target_knee: TargetKnee) -> LeadingKnee:
    """Choose the knee that scaling takes: where the SLO begins to be missed, or where more load stops to pay.

    More load stops to pay at the knee of `saturation`, but not below the gate: so many requests are planned for each
    copy, and the SLO says whether they are too many. The lower of the two leads. Neither takes a slope of throughput,
    which is mostly noise.

    Args:
        knees: Those of `slo`, `saturation` and `gate`, measured or predicted; others don't count.
        has_slo: Whether there is an SLO.
        target_knee: `slo` takes the SLO's knee alone.
    """
    slo, saturation, gate = (_of(detector, knees) for detector in _TAKEN)
    pays = max((knee for knee in (saturation, gate) if knee is not None), key=_load, default=None)
    if not has_slo:
        return _missing("saturation", knees) if pays is None else LeadingKnee(pays, _why_pays(pays, saturation, None))
    if slo is None:
        return _missing("slo", knees)
    if target_knee == "slo":
        return LeadingKnee(slo, "trial.target is slo")
    if pays is None:
        return LeadingKnee(slo, _missing("saturation", knees).because)
    if _load(slo) <= _load(pays):
        return LeadingKnee(slo, f"at most {_told(pays)}")
    return LeadingKnee(pays, _why_pays(pays, saturation, slo))


_TAKEN: tuple[Detector, ...] = ("slo", "saturation", "gate")


def _of(detector: Detector, knees: Sequence[Knee]) -> Knee | None:
    return next((knee for knee in knees if knee.detector == detector and knee.concurrency is not None), None)


def _load(knee: Knee) -> float:
    return knee.concurrency or 0.0


def _told(knee: Knee) -> str:
    return f"the knee of {knee.detector}, {whole_or_tenths(_load(knee))}"


def _missing(detector: Detector, knees: Sequence[Knee]) -> LeadingKnee:
    because = next((knee.because for knee in knees if knee.detector == detector), "not evaluated")
    return LeadingKnee(None, f"no {detector} knee: {because}")


def _why_pays(pays: Knee, saturation: Knee | None, slo: Knee | None) -> str:
    """Say why the SLO's knee doesn't lead, and, of the gate, why that of saturation doesn't."""
    above = f"above {_told(saturation)}" if saturation is not None and pays is not saturation else ""
    below = "no SLO is set" if slo is None else f"below {_told(slo)}"
    return ", ".join(part for part in (above, below) if part)
