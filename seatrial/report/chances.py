"""The chance that the plan meets the SLO, and of the cheaper and the dearer deployment beside it, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan

_MOST, _LEAST = 0.99, 0.01  # beyond, the errors of a few hundred rows tell nothing


def chance_words(chance: float) -> str:
    """Write a chance in whole percent: `91 %`, and at the ends `over 99 %` or `under 1 %`."""
    if chance > _MOST:
        return "over 99 %"
    return "under 1 %" if chance < _LEAST else f"{chance * 100:.0f} %"


def met_words(plan: Plan) -> str:
    """Write how likely the plan meets the SLO: `91 % to meet it; $0.60/h more for 99 %`; empty without a chance."""
    if plan.chance is None:
        return ""
    safer = plan.safer
    more = "" if safer is None else f"; {usd(safer.more_usd_per_hour)}/h more for {chance_words(safer.chance)}"
    return f"{chance_words(plan.chance)} to meet it{more}"


def side_lines(plan: Plan) -> Iterator[str]:
    """Yield the plan and the deployments on both sides of it, each with its price and its chance to meet the SLO."""
    if plan.chance is not None:
        yield f"plan: {plan.deployment.words}: {chance_words(plan.chance)} to meet the SLO"
    if plan.probe is not None:
        saved, chance = usd(plan.probe.saving_usd_per_hour), chance_words(plan.probe.chance)
        yield f"cheaper: {plan.probe.words}: {chance} to meet the SLO, saves {saved}/h"
    if plan.safer is not None:
        more, chance = usd(plan.safer.more_usd_per_hour), chance_words(plan.safer.chance)
        yield f"dearer: {plan.safer.words}: {chance} to meet the SLO, costs {more}/h more; {_measured_by(plan)}"


def _measured_by(plan: Plan) -> str:
    """Say with which option `seatrial probe` measures the dearer deployment: more of the plan's copies, or another."""
    one = plan.safer
    if one is None:
        return ""
    if (one.instance_type, one.tensor_parallel_degree) == (plan.instance_type.value, plan.tensor_parallel_degree.value):
        return f"--level {one.concurrency_per_copy} measures it"
    return f"--candidate {one.instance_type}:{one.tensor_parallel_degree} measures it"
