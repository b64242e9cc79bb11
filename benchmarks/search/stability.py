"""How stable the autoscaling target is: the same simulated endpoint, tried ten times with other noise.

    python -m benchmarks.search.stability [--noise 0.02] [--verbose]

Every number is simulated (see `simulated`). The spread is the highest target of ten trials over the lowest, less 1.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.search.cases import TUNED, Case, cases
from benchmarks.search.simulated import NOISE, request_of, search
from seatrial_load.knee import knees_of, scaling_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TRIALS = 10
BOUNDS = (0.15, 0.25)
GATE = 16


def targets(case: Case, noise: float) -> list[float]:
    """Return the targets of ten trials of one endpoint."""
    found = []
    for seed in range(TRIALS):
        endpoint, _ = search(case, "knee", seed, noise)
        request = request_of(case, "knee")
        found.append(scaling_target(request, endpoint.levels, knees_of(request, endpoint.levels)).concurrency_per_copy)
    return found


def spread(values: Sequence[float]) -> float:
    """Return how far values lie apart, as a share of the least."""
    return max(values) / min(values) - 1


def main() -> None:
    """Print the spread of every endpoint's targets: of all, by SLO, and of those whose throughput falls."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=float, default=NOISE, help="standard deviation of a level's speed, as a share")
    parser.add_argument("--verbose", action="store_true", help="print the targets of every endpoint")
    given = parser.parse_args()
    asked = [case for case in cases(TUNED) if case.gate == GATE and case.wrong in {(1.0, 1.0), None}]
    found = {case: targets(case, given.noise) for case in asked}
    for case, values in found.items() if given.verbose else ():
        print(f"{spread(values):5.0%}  {case.place}, {case.slo}: {', '.join(f'{value:.1f}' for value in values)}")
    _row("all", found, given.noise)
    for slo in TUNED.slos:
        _row(slo, {case: values for case, values in found.items() if case.slo == slo}, given.noise)
    _row("throughput falls", {case: values for case, values in found.items() if case.falls_from}, given.noise)


def _row(name: str, found: Mapping[Case, Sequence[float]], noise: float) -> None:
    spreads = sorted(spread(values) for values in found.values())
    within = ", ".join(
        f"{sum(one <= bound for one in spreads) / len(spreads):.1%} within {bound:.0%}" for bound in BOUNDS
    )
    print(
        f"simulated, noise {noise:.0%}, {name:16} {len(spreads):3} endpoints, {TRIALS} trials each: {within}, "
        f"median {median(spreads):.1%}, worst {spreads[-1]:.1%}"
    )


if __name__ == "__main__":
    main()
