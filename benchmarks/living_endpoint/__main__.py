"""Update a scaled endpoint under the load of its users in every way that hurts: `python -m benchmarks.living_endpoint`.

Everything runs on this machine: CDK, CloudFormation, SageMaker's control plane, autoscaling and the engines share its
cores. A control run loads a component beside the one that serves, without an update, to tell what the sharing costs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.living_endpoint.cases import Outcome, cases, run_case, run_control
from benchmarks.living_endpoint.endpoint import living_endpoint
from benchmarks.living_endpoint.faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterable


def main() -> int:
    """Run the cases, print the table, and return 1 when users were hurt or something was left."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.living_endpoint", description=__doc__.split(":")[0])
    parser.add_argument("--case", action="append", default=[], help="only cases with this letter; may be repeated")
    parser.add_argument("--fault", default="none", choices=FAULTS, help="what the embedded AWS does wrong meanwhile")
    parser.add_argument("--json", type=Path, help="write the outcomes here too")
    arguments = parser.parse_args()
    chosen = [case for case in cases() if not arguments.case or case.name[1] in arguments.case]
    outcomes: list[Outcome] = []
    with (
        tempfile.TemporaryDirectory(prefix="living-") as folder,
        living_endpoint(Path(folder), FAULTS[arguments.fault]) as living,
    ):
        living.write()
        first = living.deploy(living.synth("first"))
        if first.exit_code:
            sys.stderr.write(first.last_lines())
            return 1
        outcomes.append(run_control(living))
        _tell(outcomes[-1])
        for case in chosen:
            outcomes.append(run_case(living, case))
            _tell(outcomes[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(each) for each in outcomes], indent=2) + "\n")
    return int(any(each.is_harmful for each in outcomes))


COLUMNS = (
    "case",
    "deployed",
    "users' requests",
    "failed",
    "p95 before",
    "p95 meanwhile",
    "ratio",
    "least copies",
    "copies after",
    "candidates",
    "left",
    "target",
    "took",
)


def _tell(outcome: Outcome) -> None:
    """Print one row; the header comes before the first."""
    if outcome.case.startswith("control"):
        _row(COLUMNS)
        _row(["---"] * len(COLUMNS))
    _row(
        (
            outcome.case,
            "yes" if outcome.deployed else "no",
            f"{outcome.requests}",
            f"{outcome.failed}",
            f"{outcome.p95_before_ms:.0f} ms",
            f"{outcome.p95_ms:.0f} ms",
            f"{outcome.ratio:.2f}",
            f"{outcome.least_copies} of 3",
            f"{outcome.copies}",
            f"{outcome.tried}",
            ", ".join(outcome.left) or "nothing",
            f"{outcome.target}",
            f"{outcome.took_s:.0f} s",
        )
    )
    if outcome.first_failure:
        print(f"first failure: {outcome.first_failure}", flush=True)


def _row(cells: Iterable[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
