"""What each instance type makes of the planned load: the cheapest deployment on it that keeps everything asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.documents.comparison import TypeAtLoad
from seatrial.planner.resolve import resolve
from seatrial.planner.search.best_first import Search
from seatrial.planner.search.candidate import FeasibleCandidate, RejectedCandidate, known

if TYPE_CHECKING:
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance


_LAST_TO_FIRST: Final = ("budget", "price", "copies", "slo")


def types_at_load(loaded: LoadedSpec) -> tuple[TypeAtLoad, ...]:
    """Return what each allowed instance type makes of the planned load; predicted, not measured.

    Raises:
        PlanError: When the model, the engine's image or every instance type is unknown.
    """
    resolved = resolve(loaded)
    return tuple(_at_load(resolved.demand, instance) for instance in resolved.allowed)


def _at_load(demand: Demand, instance: Instance) -> TypeAtLoad:
    found = Search(demand).on(instance)
    kept = [each for each in found if isinstance(each, FeasibleCandidate)]
    if not kept:
        stages = {each.stage for each in found if isinstance(each, RejectedCandidate)}
        nearest = next((stage for stage in _LAST_TO_FIRST if stage in stages), None)
        return TypeAtLoad(instance_type=instance.instance_type, exceeds=nearest)
    best = min(kept, key=lambda each: (each.score.usd_per_hour, -each.score.output_tok_s))
    return TypeAtLoad(
        instance_type=instance.instance_type,
        tensor_parallel_degree=best.candidate.degree,
        instance_count=best.instance_count,
        usd_per_hour=known(best.score.usd_per_hour),
        output_tok_s=round(best.score.output_tok_s, 1),
    )
