"""How the adaptive search fares on simulated endpoints: the error of its knee, and its share of the sweep's time.

    python -m benchmarks.search.simulated [--held-out] [--goal knee] [--seed 1] [--verbose]

Every number is simulated: endpoints are the catalog's copies in the planner's simulation, each level slower or faster
by 2 % (standard deviation). The knee that leads is held against that of a sweep of 3 % steps from 1 to 512 without
noise, and the time against that of the doubling sweep 1, 2, …, 512.
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.search.cases import HELD_OUT, TUNED, Case, Suite, cases
from benchmarks.search.endpoints import (
    MOST,
    Endpoint,
    copy_at,
    doubling_s,
    fine_grid,
    level_of,
    prior_of,
    slowdown,
)
from seatrial_load.documents.request import Load, Objective, Prior, TrialRequest, TrialTarget, Workload
from seatrial_load.documents.result import Knee
from seatrial_load.knee import gate_knee, saturation_knee, scaling_target, slo_knee
from seatrial_load.search import NextLevel, next_level

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.planner.predict.copy_model import Copy
    from seatrial_load.documents.request import Goal
    from seatrial_load.documents.result import LevelResult

NOISE = 0.02
SEED = 20261121
MOST_LEVELS = 40
WITHIN = 0.10
A_THIRD = 1 / 3


@dataclass(frozen=True, slots=True)
class Found:
    """What one search came to.

    Attributes:
        error: Of the knee's concurrency, as a share; for goodput, which may be flat, of the lesser of load and goodput.
        time_share: Time of the search over that of the doubling sweep.
        steps: What was measured, and why.
        rises: Whether an SLO that is missed is missed by all loads above, too.
    """

    case: Case
    detector: str
    found: float | None
    true: float | None
    error: float
    time_share: float
    steps: tuple[str, ...]
    rises: bool

    @property
    def succeeded(self) -> bool:
        """Whether the knee is right and came in time."""
        return self.error <= WITHIN and self.time_share <= A_THIRD


@cache
def _fine(copy: Copy, objectives: tuple[Objective, ...], falls_from: int | None) -> tuple[LevelResult, ...]:
    return tuple(
        level_of(copy, concurrency, objectives, slower=slowdown(concurrency, falls_from)) for concurrency in fine_grid()
    )


def search(case: Case, goal: Goal, seed: int, noise: float = NOISE) -> tuple[Endpoint, list[str]]:
    """Search one simulated endpoint; return it with what was measured, and why each level was."""
    endpoint = Endpoint(case.real, noise, random.Random(f"{seed} {case}"), case.falls_from)  # noqa: S311 (noise, no secret)
    request = request_of(case, goal)
    steps: list[str] = []
    for _ in range(MOST_LEVELS):
        step = next_level(request, endpoint.levels, left_s=1e9)
        steps.append(f"{getattr(step, 'concurrency', 'stop')}: {step.because}")
        if not isinstance(step, NextLevel):
            break
        endpoint.measure(step.concurrency, case.objectives)
    return endpoint, steps


def run(case: Case, goal: Goal, seed: int) -> Found:
    """Search one simulated endpoint, and hold what it found against the truth."""
    endpoint, steps = search(case, goal, seed)
    detector, found, true, error = _judge(case, endpoint.levels, goal)
    met = [level.meets_slo for level in _fine(case.real, case.objectives, case.falls_from)]
    return Found(
        case=case,
        detector=detector,
        found=found,
        true=true,
        error=error,
        time_share=endpoint.spent_s / doubling_s(case.real, case.falls_from),
        steps=tuple(steps),
        rises=met == sorted(met, reverse=True),
    )


def request_of(case: Case, goal: Goal) -> TrialRequest:
    """Return the trial of a case."""
    return TrialRequest(
        endpoint="simulated",
        environment="none",
        plan_digest="",
        target=TrialTarget(endpoint_name="simulated", inference_component=None, region="none"),
        expected=None,
        workload=Workload(
            input_tokens=case.place.input_tokens, output_tokens=case.place.output_tokens, schema="openai_chat"
        ),
        load=Load(
            concurrency_levels=(1, MOST),
            requests_per_concurrency=3,
            ramp_per_concurrency=1,
            warmup_requests=0,
            budget_s=1e9,
            request_timeout_s=480,
            search="adaptive",
            goal=goal,
        ),
        objectives=case.objectives,
        gate_concurrency=case.gate,
        copy_count=1,
        mode="report",
        usd_per_hour_per_copy=None,
        fallback_target_concurrency=1.0,
        target_utilization=1.0,
        prior=Prior() if case.wrong is None else prior_of(copy_at(case.place)),
    )


def _judge(case: Case, levels: Sequence[LevelResult], goal: Goal) -> tuple[str, float | None, float | None, float]:
    fine = _fine(case.real, case.objectives, case.falls_from)
    found: float | None
    true: float | None
    if goal == "max_goodput":
        best = max(levels, key=lambda level: level.goodput_requests_per_s or 0.0)
        top = max(fine, key=lambda level: level.goodput_requests_per_s or 0.0)
        slower = slowdown(best.concurrency, case.falls_from)
        here = level_of(case.real, best.concurrency, case.objectives, slower=slower).goodput_requests_per_s or 0.0
        most = top.goodput_requests_per_s or 0.0
        beside = abs(best.concurrency / top.concurrency - 1)
        return "goodput", best.concurrency, top.concurrency, min(beside, 1 - here / most) if most else 0.0
    if goal == "max_concurrency":
        name = "slo"
        found, true = (slo_knee(some, case.objectives).concurrency for some in (levels, fine))
    else:
        request = request_of(case, goal)
        truth = _true_knee(case)
        found, true, name = _knee(request, levels).concurrency, truth.concurrency, truth.detector
    if found is None or true is None:
        return name, found, true, 0.0 if found is true else 1.0
    return name, found, true, 0.0 if abs(found - true) <= 1 else abs(found / true - 1)


@cache
def _true_knee(case: Case) -> Knee:
    return _knee(request_of(case, "knee"), _fine(case.real, case.objectives, case.falls_from))


def _knee(request: TrialRequest, levels: Sequence[LevelResult]) -> Knee:
    """Return the knee that leads; one without a load where scaling would take the plan's target."""
    taken = (
        slo_knee(levels, request.objectives),
        saturation_knee(levels, request.prior.batch_limit),
        gate_knee(levels, request.gate_concurrency),
    )
    found = scaling_target(request, levels, taken).knee
    return Knee(detector="slo", concurrency=None, because="fallback") if found is None else found


def main() -> None:
    """Run every case of a suite, print the table and the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goal", choices=("knee", "max_concurrency", "max_goodput"), default="knee")
    parser.add_argument("--held-out", action="store_true", help="the places, SLOs and gates that nothing was tuned on")
    parser.add_argument("--seed", type=int, default=SEED, help="of the noise")
    parser.add_argument("--verbose", action="store_true", help="print the failures step by step")
    given = parser.parse_args()
    suite, name = (HELD_OUT, "held out") if given.held_out else (TUNED, "tuned")
    results = [run(case, given.goal, given.seed) for case in cases(suite)]
    _table(suite, results)
    if given.verbose:
        for found in (found for found in results if not found.succeeded):
            _failure(found)
    _row(f"simulated, {name}, goal {given.goal}, seed {given.seed}, all", results)


def _table(suite: Suite, results: Sequence[Found]) -> None:
    for place in suite.places:
        _row(str(place), [found for found in results if found.case.place == place])
    for wrong in (*suite.wrong, None):
        _row(f"plan wrong by {wrong}" if wrong else "no plan", [one for one in results if one.case.wrong == wrong])
    for slo in suite.slos:
        _row(f"SLO {slo}", [found for found in results if found.case.slo == slo])
    for gate in suite.gates:
        _row(f"gate {gate}", [found for found in results if found.case.gate == gate])
    _row("throughput falls", [found for found in results if found.case.falls_from])
    for detector in dict.fromkeys(found.detector for found in results):
        ours = [found for found in results if found.detector == detector]
        _row(f"leading knee {detector}", ours)
    _row("SLO missed and met again by more load", [found for found in results if not found.rises])
    _row("all but these", [found for found in results if found.rises])


def _failure(found: Found) -> None:
    case = found.case
    print(f"\n{case.place}, {case.slo}, gate {case.gate}, wrong {case.wrong}: {found.detector} {found.found} for")
    print(f"  {found.true}, error {found.error:.2f}, time {found.time_share:.2f}, falls from {case.falls_from}")
    print("  " + "\n  ".join(found.steps))


def _row(name: str, results: Sequence[Found]) -> None:
    if not results:
        return
    errors, times = [found.error for found in results], [found.time_share for found in results]
    right, quick = sum(error <= WITHIN for error in errors), sum(time <= A_THIRD for time in times)
    print(
        f"{name:58} {len(results):4} cases  both {sum(one.succeeded for one in results) / len(results):6.1%}  "
        f"within 10 % {right / len(results):6.1%}  error median {median(errors):5.1%} worst {max(errors):5.0%}  "
        f"time <= 1/3 {quick / len(results):6.1%} median {median(times):5.1%} worst {max(times):5.0%}  "
        f"levels {median(len(one.steps) - 1 for one in results):.0f}"
    )


if __name__ == "__main__":
    main()
