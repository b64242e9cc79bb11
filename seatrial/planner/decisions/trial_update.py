"""How an update of a serving endpoint is tried, and what each way needs and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision
from seatrial.planner.cost import usd_per_hour
from seatrial.planner.search.sizing import instances_for
from seatrial_base.bounds import LONGEST_TRIAL_S
from seatrial_base.units import S_PER_HOUR, S_PER_MINUTE, counted, hourly_words, usd

if TYPE_CHECKING:
    from seatrial.planner.search.candidate import FeasibleCandidate
    from seatrial.planner.search.demand import Demand
    from seatrial.specs.endpoint import TrialSpec, TrialUpdate

_SHORTEST_START_S = 600


def decide_trial_update(best: FeasibleCandidate, demand: Demand, start_s: int) -> Decision[TrialUpdate]:
    """Return how an update is tried.

    Args:
        best: The chosen deployment.
        demand: What is asked for.
        start_s: Longest time for the download and the start of a copy.
    """
    trial = demand.endpoint.trial
    if trial.mode == "off":
        return Decision(value=trial.update, because="trial.mode is off: no trial runs.")
    ways: dict[TrialUpdate, str] = {
        "candidate": _candidate(best, demand, start_s),
        "in_place": "in_place: no instance more; load up to the gate less the users' requests; no knee.",
        "verify_only": "verify_only: no instance more; single requests, no load; no knee.",
    }
    others = (sentence for way, sentence in ways.items() if way != trial.update)
    return Decision(value=trial.update, because=" ".join((ways[trial.update], *others)))


def _candidate(best: FeasibleCandidate, demand: Demand, start_s: int) -> str:
    """Say what one copy beside the planned ones needs: accelerators that are free, or an instance of the surge."""
    more = instances_for(best.candidate, best.load.copy_count + 1) - best.instance_count
    longest_s = start_s + demand.endpoint.trial.budget_minutes * S_PER_MINUTE
    if more <= 0:
        planned = counted(best.instance_count, "instance")
        return f"candidate: one copy more, on free accelerators of the planned {planned}."
    price = usd_per_hour(best.candidate.instance, more, demand.discount)
    lasts = f"at most {longest_s / S_PER_MINUTE:.0f} min"
    total = "" if price is None else f", {usd(price * longest_s / S_PER_HOUR)}"
    return (
        f"candidate: one copy more, on {counted(more, 'instance')} more within the surge, {lasts} at "
        f"{hourly_words(price, demand.discount)}{total}."
    )


def candidate_warnings(trial: TrialSpec, start_s: int) -> tuple[str, ...]:
    """Warn when CloudFormation's hour may end before the candidate has started and been tried.

    Args:
        trial: The trial that is asked for.
        start_s: Longest time for the download and the start of a copy.
    """
    if trial.update != "candidate" or trial.mode == "off":
        return ()
    left_s = LONGEST_TRIAL_S - trial.budget_minutes * S_PER_MINUTE
    left = f"{left_s / S_PER_MINUTE:.0f} min to start, of the 60 min that CloudFormation waits"
    if left_s < _SHORTEST_START_S:
        needed = f"at least {_SHORTEST_START_S / S_PER_MINUTE:.0f} min are needed"
        return (f"trial.budget_minutes {trial.budget_minutes:g} leaves a candidate copy {left}; {needed}.",)
    if left_s < start_s:
        return (f"A candidate copy has {left}; its timeouts allow {start_s / S_PER_MINUTE:.0f} min.",)
    return ()
