"""What the picks of the planner and of its peers cost, over the cheapest deployment that measurements show to do.

    python -m benchmarks.planner_accuracy.decisions    # print the table; accuracy.py writes it into README.md

A workload is a model with its prompt and output lengths and a number of requests in flight. It can be served by any
measured deployment (accelerator, tensor parallel degree, precision, engine), in as many copies as the requests in
flight need, each copy at a concurrency that was measured. The tool picks the cheapest deployment that it predicts to
meet the objective. *Regret* is the price of the pick over the price of the cheapest that the measurements show to meet
it, less 1. A *miss* is a pick that the measurements show not to meet it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.compare import MISSING
from benchmarks.planner_accuracy.earned_bands import nested
from benchmarks.planner_accuracy.judged import LEFT_OUT, JudgedRow, grouped, read_judged
from benchmarks.planner_accuracy.questions import ANSWERS, Figures, Question, read_answers
from seatrial_base.catalog.instances import find_instance

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

TPOT_MS = (10, 15, 20, 30, 40, 50, 60, 80, 100)
E2E_S = (5, 10, 20, 30, 60, 120)
MS_PER_S = 1_000
LATE = 0.9  # the quantile of the regret that is told beside the median

# EC2's on-demand price in USD per hour of types that lack a SageMaker price: tsaol/aws-gpu data/p5en_instances.js
# (instances.vantage.sh, us-east-1, 2025-12-21); p6-b200: the list price of us-east-2 that public repositories repeat.
EC2_USD_PER_HOUR = {"ml.p5en.48xlarge": 63.296, "ml.p6-b200.48xlarge": 113.9328, "ml.p6-b300.48xlarge": 142.416}
SAGEMAKER_OVER_EC2 = 63.296 / 55.04  # ml.p5.48xlarge in the catalog over p5.48xlarge on EC2


@dataclass(frozen=True, slots=True)
class Objective:
    """One target of a latency.

    Attributes:
        figure: `tpot_ms` or `e2e_mean_ms`.
        target_ms: The most that is allowed.
    """

    figure: str
    target_ms: float

    def met(self, figures: Figures) -> bool:
        """Return whether a figure is there and within the target."""
        value: float | None = getattr(figures, self.figure)
        return value is not None and value <= self.target_ms


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one pick.

    Attributes:
        regret: Price over the cheapest that does, less 1; `None` without a pick that meets the objective.
        picked: The tool predicted some deployment to meet the objective.
        missed: The pick does not meet it.
    """

    regret: float | None
    picked: bool
    missed: bool


OBJECTIVES = (
    *(Objective("tpot_ms", target) for target in TPOT_MS),
    *(Objective("e2e_mean_ms", target * MS_PER_S) for target in E2E_S),
)


def main() -> None:
    """Print the table."""
    print(table(read_judged() if LEFT_OUT.exists() else ()))


def table(rows: Sequence[JudgedRow]) -> str:
    """Return regret and misses of every tool; the peers' on the rows that Seatrial and aiconfigurator both answered."""
    kinds = {kind: [row for row in rows if row.left_out == kind and _usable(row)] for kind in ("model", "accelerator")}
    whole = {f"Seatrial, {kind} left out": decisions(own) for kind, own in kinds.items()}
    whole["Seatrial, model left out, whole band within the target"] = decisions(guarded(kinds["model"]))
    shared = _shared(kinds["model"])
    both = {f"shared rows: {title}": decisions(own) for title, own in shared.items()}
    head = ("tool", "decisions", "regret, median", "regret, 90th percentile", "misses", "no pick")
    rule = ["---"] + ["---:"] * (len(head) - 1)
    lines = [head, rule, *([title, *_told(found)] for title, found in {**whole, **both}.items())]
    return "\n".join(f"| {' | '.join(cells_)} |" for cells_ in lines)


def decisions(rows: Sequence[JudgedRow]) -> list[Decision]:
    """Return what became of every pick; workloads that only one deployment was measured for are no decisions."""
    decided = (decide(*asked, objective) for asked in workloads(rows) for objective in OBJECTIVES)
    return [one for one in decided if one is not None]


def workloads(rows: Sequence[JudgedRow]) -> Iterator[tuple[list[JudgedRow], float]]:
    """Yield the deployments that may serve a workload, and its requests in flight, where there are two or more."""
    for options in grouped(rows, _workload).values():
        if len({_deployment(row) for row in options}) < 2:  # noqa: PLR2004  (one deployment is no choice)
            continue
        for in_flight in sorted({row.question.concurrency for row in options}):
            yield [row for row in options if row.question.concurrency <= in_flight], in_flight


def decide(options: Sequence[JudgedRow], in_flight: float, objective: Objective) -> Decision | None:
    """Pick the cheapest option that is predicted to do; `None` where nothing does, by prediction nor by measurement."""
    promised = [row for row in options if objective.met(row.predicted)]
    able = [row for row in options if objective.met(row.measured)]
    if not promised:
        return Decision(regret=None, picked=False, missed=False) if able else None
    pick = min(promised, key=lambda row: (cost(row.question, in_flight), getattr(row.predicted, objective.figure)))
    if not objective.met(pick.measured):
        return Decision(regret=None, picked=True, missed=True)
    least = min(cost(row.question, in_flight) for row in able)
    return Decision(regret=cost(pick.question, in_flight) / least - 1, picked=True, missed=False)


def cost(question: Question, in_flight: float) -> float:
    """Return USD per hour of the accelerators that hold these requests in flight, at this concurrency per copy."""
    copies = math.ceil(in_flight / question.concurrency)
    return copies * question.tp_degree * accelerator_usd_per_hour(question.instance_type)


def accelerator_usd_per_hour(instance_type: str) -> float:
    """Return the price of one accelerator: SageMaker's of the catalog, else EC2's times what SageMaker adds.

    Raises:
        LookupError: Neither has a price.
    """
    instance = find_instance(instance_type)
    if instance is None:
        raise LookupError(instance_type)
    price = instance.usd_per_hour
    if price is None:
        price = EC2_USD_PER_HOUR[instance_type] * SAGEMAKER_OVER_EC2
    return price / instance.accelerator_count


def guarded(rows: Sequence[JudgedRow]) -> list[JudgedRow]:
    """Return rows whose predicted latencies are at the upper end of their band, which other models' errors give."""
    return [replace(row, predicted=_slower(row.predicted, 1 + share)) for row, share in nested(rows, "latency")]


def _slower(figures: Figures, factor: float) -> Figures:
    return Figures(
        tpot_ms=None if figures.tpot_ms is None else figures.tpot_ms * factor,
        e2e_mean_ms=None if figures.e2e_mean_ms is None else figures.e2e_mean_ms * factor,
    )


def _shared(rows: Sequence[JudgedRow]) -> dict[str, list[JudgedRow]]:
    """Return the rows that Seatrial and aiconfigurator answered, with each tool's predictions."""
    peers = {name: _answers(ANSWERS / f"{name}.csv") for name in ("aiconfigurator", "roofline")}
    asked = [row for row in rows if peers["aiconfigurator"].get(row.question, Figures()).e2e_mean_ms]
    answers = {
        name: [replace(row, predicted=found.get(row.question, Figures())) for row in asked]
        for name, found in peers.items()
    }
    return {"Seatrial, model left out": asked, **answers}


def _answers(path: Path) -> Mapping[Question, Figures]:
    return read_answers(path) if path.exists() else {}


def _usable(row: JudgedRow) -> bool:
    return row.predicted.e2e_mean_ms is not None and row.measured.tpot_ms is not None


def _workload(row: JudgedRow) -> tuple[object, ...]:
    return row.question.model, row.question.input_tokens, row.question.output_tokens


def _deployment(row: JudgedRow) -> tuple[object, ...]:
    asked = row.question
    return asked.instance_type, asked.tp_degree, asked.precision, asked.engine


def _told(found: Sequence[Decision]) -> list[str]:
    regrets = sorted(one.regret for one in found if one.regret is not None)
    picks = [one for one in found if one.picked]
    if not regrets:
        return [str(len(found)), *[MISSING] * 4]
    late = regrets[math.ceil(LATE * len(regrets)) - 1]
    shares = (median(regrets), late, sum(one.missed for one in picks) / len(picks), 1 - len(picks) / len(found))
    return [str(len(found)), *(f"{100 * share:.1f} %" for share in shares)]


if __name__ == "__main__":
    main()
