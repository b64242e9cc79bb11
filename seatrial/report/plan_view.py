"""A plan as a person reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.cost import cost_view
from seatrial.report.terminal.curve import curve_view
from seatrial.report.terminal.decisions import decisions_view
from seatrial.report.terminal.memory import memory_view
from seatrial.report.terminal.regime import regime_view
from seatrial.report.terminal.rivals import pareto_view, rejected_view

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.plan.document import Plan
    from seatrial.spec.load import LoadedSpec


def plan_view(plan: Plan, loaded: LoadedSpec) -> RenderableType:
    """Return the whole plan: decisions with reasons, memory, regime, curve, cost, rivals, warnings."""
    workload = loaded.endpoint.workload
    warnings = [warning for warning in plan.warnings if warning != plan.band.because]  # which stands by the curve
    parts: list[RenderableType] = [
        Text(f"Plan for {plan.endpoint} in {plan.environment}", style="bold"),
        Text(subtitle(plan, loaded), style="dim"),
        decisions_view(plan),
        memory_view(plan.memory, workload.input_tokens + workload.output_tokens),
        regime_view(plan.regime),
        curve_view(plan),
        cost_view(plan.cost),
        *((pareto_view(plan),) if plan.pareto else ()),
        *((rejected_view(plan),) if plan.rejected else ()),
        *(Text(f"\nwarning: {warning}", style="yellow") for warning in warnings),
    ]
    return Group(*parts)


def subtitle(plan: Plan, loaded: LoadedSpec) -> str:
    """Name the model, the workload and the objective that the plan was made for."""
    load = loaded.endpoint.workload
    return (
        f"{plan.model_name} ({plan.architecture}), {load.input_tokens} + {load.output_tokens} tokens, "
        f"objective {loaded.endpoint.objective}, plan {plan.digest}"
    )
