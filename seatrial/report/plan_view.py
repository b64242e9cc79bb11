"""A plan as a person reads it in a terminal: the first screen, or the sections that are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.alternatives import pareto_view, rejected_view, unpriced_view
from seatrial.report.terminal.curve import curve_view
from seatrial.report.terminal.first_screen import first_screen, summary_table, warnings_of
from seatrial.report.terminal.plan_sections import cost_view, decisions_view, memory_view, regime_view

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from seatrial.planner.document import Plan
    from seatrial.specs.load import LoadedSpec

Section = Literal["decisions", "memory", "regime", "curve", "cost", "alternatives", "warnings"]


def plan_view(plan: Plan, loaded: LoadedSpec, sections: Collection[Section] = ()) -> RenderableType:
    """Return the sections of a plan, in their fixed order; the first screen where none is asked for."""
    if not sections:
        return first_screen(plan, loaded)
    parts = [part for name, view in SECTIONS.items() if name in sections for part in view(plan, loaded)]
    title = Text(f"Plan for {plan.endpoint} in {plan.environment}", style="bold")
    return Group(title, Text(subtitle(plan, loaded), style="dim"), *parts)


def plans_view(plans: Sequence[tuple[Plan, LoadedSpec]]) -> RenderableType:
    """Return one line for each of many plans."""
    return summary_table(plans)


def subtitle(plan: Plan, loaded: LoadedSpec) -> str:
    """Name the model, the workload and the objective that the plan was made for."""
    load = loaded.endpoint.workload
    return (
        f"{plan.model_name} ({plan.architecture}), {load.input_tokens} + {load.output_tokens} tokens, objective "
        f"{loaded.endpoint.objective}, plan {plan.digest}"
    )


def _decisions(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    del loaded
    yield decisions_view(plan)


def _memory(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    workload = loaded.endpoint.workload
    yield memory_view(plan.memory, workload.input_tokens + workload.output_tokens)


def _regime(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    del loaded
    yield regime_view(plan.regime)


def _curve(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    del loaded
    yield curve_view(plan)


def _cost(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    del loaded
    yield cost_view(plan.cost)


def _alternatives(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    del loaded
    if plan.pareto:
        yield pareto_view(plan)
    if plan.probe is not None:
        yield Text(f"\nWorth a probe ({plan.probe.chance:.0%} likely to decide for it): {plan.probe.because}")
    for proposal in plan.proposals:
        yield Text(f"\nProposed: quantization {proposal.quantization}. {proposal.because} {proposal.gives_up}")
    if plan.unpriced:
        yield unpriced_view(plan)
    if plan.rejected:
        yield rejected_view(plan)


def _warnings(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    del loaded
    yield from (Text(f"\nwarning: {warning}", style="yellow") for warning in warnings_of(plan))


SECTIONS: Mapping[Section, Callable[[Plan, LoadedSpec], Iterator[RenderableType]]] = {
    "decisions": _decisions,
    "memory": _memory,
    "regime": _regime,
    "curve": _curve,
    "cost": _cost,
    "alternatives": _alternatives,
    "warnings": _warnings,
}
