"""A recommendation job of SageMaker beside a plan: what each would deploy, and what each expects of it.

Facts: botocore 1.44.8, DescribeAIRecommendationJob. The texts of metrics are SageMaker's own: their names and units are
not documented, so they are shown and not compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.account.reader import count, mapping, rows, text_at
from seatrial_base.errors import SpecError
from seatrial_base.table import DASH, name_column, table_of, text_columns
from seatrial_base.text import printable
from seatrial_base.units import usd

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial.documents.plan import Plan
    from seatrial_base.table import Table

_METRIC = ("Metric", "Stat", "Value", "Unit")
_DEGREES = ("_TENSOR_PARALLEL_DEGREE", "_TENSOR_PARALLEL_SIZE")
"""Ends of the variables by which LMI and vLLM take the accelerators of a copy."""
_ROWS = ("instance type", "instances", "copies per instance", "TP", "$ per hour", "expected", "optimized by")


def recommendation_table(
    plan: Plan, job: Mapping[str, object], where: str, price: Callable[[str], float | None]
) -> Table:
    """Return the plan in one column, each recommendation of a job that names an instance type in another.

    Args:
        job: The answer of DescribeAIRecommendationJob, or the JSON that the AWS CLI prints of it.
        price: List price of an instance type, in US dollars per hour.

    Raises:
        SpecError: SEA633 when the job is not completed or recommends nothing that can be compared.
    """
    status, recommended = text_at(job, "AIRecommendationJobStatus"), [*rows(job, "Recommendations")]
    if status != "Completed" or not recommended:
        because = text_at(job, "FailureReason") or (
            "it recommends nothing" if status == "Completed" else "read it again once it is Completed"
        )
        raise SpecError.of("SEA633", f"the job is {status or 'of no known status'}", where=where, hint=because)
    named = [(number, each) for number, each in enumerate(recommended, 1) if text_at(_deployed(each), "InstanceType")]
    if not named:
        hint = "read the job's answer: nothing in it can be compared"
        raise SpecError.of("SEA633", "no recommendation names an instance type", where=where, hint=hint)
    lines = [_plan_line(plan), *(_line(number, each, price) for number, each in named)]
    columns = (name_column(""), *text_columns(*(line[0] for line in lines)))
    cells = list(zip(_ROWS, *(line[1:] for line in lines), strict=True))
    return table_of(columns, cells, "On-demand list prices; what a plan predicts, and what SageMaker measured.")


def _deployed(recommendation: Mapping[str, object]) -> Mapping[str, object]:
    return mapping(recommendation, "DeploymentConfiguration")


def _plan_line(plan: Plan) -> list[str]:
    gate, copies = plan.gate_concurrency_per_copy.value, plan.copy_count.value
    at_gate = min(plan.curve, key=lambda point: abs(point.concurrency - gate), default=None)
    expected = "" if at_gate is None else f"ttft p95 {at_gate.ttft_p95_ms:,.0f} ms, "
    expected += (
        "" if at_gate is None else f"{copies * at_gate.output_tok_s:,.0f} tok/s at {copies * at_gate.concurrency}"
    )
    cost = plan.cost.on_demand_usd_per_hour or plan.cost.usd_per_hour
    sizes = (plan.instance_count, plan.copies_per_instance, plan.tensor_parallel_degree)
    numbers = [f"{each.value}" for each in sizes]
    return ["plan", plan.instance_type.value, *numbers, DASH if cost is None else usd(cost), expected or DASH, DASH]


def _line(number: int, recommendation: Mapping[str, object], price: Callable[[str], float | None]) -> list[str]:
    deployed = _deployed(recommendation)
    instance_type, instances = text_at(deployed, "InstanceType"), count(deployed, "InstanceCount")
    hourly, variables = price(instance_type), mapping(deployed, "EnvironmentVariables")
    degree = next((f"{value}" for name, value in variables.items() if name.endswith(_DEGREES)), DASH)
    copies = count(deployed, "CopyCountPerInstance")
    cost = DASH if hourly is None or not instances else usd(hourly * instances)
    kinds = [text_at(each, "OptimizationType") for each in rows(recommendation, "OptimizationDetails")]
    metrics = [[text_at(row, name) for name in _METRIC] for row in rows(recommendation, "ExpectedPerformance")]
    expected = ", ".join(" ".join(filter(None, each)) for each in metrics)
    texts = [f"recommendation {number}", instance_type, f"{instances or DASH}", f"{copies or DASH}", degree, cost]
    return [printable(text) or DASH for text in (*texts, expected, ", ".join(kinds))]
