"""The probe that would decide between the plan and a cheaper deployment within the band."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import Probe
from seatrial.planner.decisions.derived_limits import band_for
from seatrial.planner.search.doubt import doubt
from seatrial_base.units import counted, tenths, usd

if TYPE_CHECKING:
    from seatrial.planner.search.best_first import SearchResult
    from seatrial.planner.search.demand import Demand
    from seatrial.planner.search.doubt import Doubt


def propose_probe(demand: Demand, found: SearchResult, engine_version: str) -> Probe | None:
    """Return the level of the cheaper deployment that is worth measuring; `None` where none is.

    Args:
        demand: What is asked.
        found: What was found; the first of it is the plan.
        engine_version: The engine's version, for the band.
    """
    doubtful = doubt(demand, found, lambda candidate: band_for(demand, engine_version, candidate))
    if doubtful is None:
        return None
    saving = found.ranked[0].score.usd_per_hour - doubtful.usd_per_hour
    return Probe(
        instance_type=doubtful.candidate.instance.instance_type,
        tensor_parallel_degree=doubtful.candidate.degree,
        copy_count=doubtful.load.copy_count,
        instance_count=doubtful.instance_count,
        usd_per_hour=round(doubtful.usd_per_hour, 4),
        saving_usd_per_hour=round(saving, 4),
        concurrency_per_copy=doubtful.load.concurrency_per_copy,
        field=doubtful.field,
        predicted=round(doubtful.predicted, 2),
        bound=doubtful.bound,
        chance=round(doubtful.chance, 2),
        because=_because(doubtful, saving),
    )


def _because(doubtful: Doubt, saving: float) -> str:
    level = counted(doubtful.load.concurrency_per_copy, "concurrent request")
    count, candidate = doubtful.instance_count, doubtful.candidate
    throughput = doubtful.field == "slo.output_tok_s"
    unit, within = ("tok/s", "at least") if throughput else ("ms", "at most")
    predicted, bound = f"{tenths(doubtful.predicted, grouped=True)} {unit}", f"{doubtful.bound:,.12g} {unit}"
    return (
        f"{count} x {candidate} costs {usd(doubtful.usd_per_hour)} per hour, {usd(saving)} less than the plan. "
        f"It is predicted to miss {doubtful.field} by {doubtful.ratio - 1:.0%}, which is within the band: {predicted} "
        f"against {bound}, with {level} per copy. Measure this level: {within} {bound} and this deployment is the "
        "cheaper plan, else the plan stays."
    )
