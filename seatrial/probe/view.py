"""The answers of a probe on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.tables import heading, table_view
from seatrial.report.values import sentence
from seatrial_base.table import number_columns, table_of, text_columns
from seatrial_base.units import S_PER_HOUR, S_PER_MINUTE, counted, hourly_words, short, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from seatrial.documents.plan import Plan
    from seatrial.probe.answer import ProbeAnswer
    from seatrial.probe.pinned import PinnedSpec

_NONE = "-"
_VERDICTS = {True: "meets the SLO", False: "misses the SLO", None: "inconclusive"}


def estimate_lines(pinned: Sequence[PinnedSpec], *, what: str = "probe", asking_s: float = 0.0) -> Iterator[str]:
    """Yield what the probe will deploy, and what it costs if all its time limits are used up; nothing on a laptop."""
    if pinned[0].loaded.environment.is_embedded:
        yield from (f"{each.deployment.stack_name}: on the embedded AWS, at no cost" for each in pinned)
        return
    total: float | None = 0.0
    for each in pinned:
        hourly, limit_s = each.plan.cost.usd_per_hour, longest_s(each) + asking_s
        most = None if hourly is None else hourly * limit_s / S_PER_HOUR
        total = None if total is None or most is None else total + most
        price = f"{hourly_words(hourly, each.plan.cost.discount)}{each.plan.cost.elsewhere}"
        in_all = "" if most is None else f", {usd(most)} in all"
        yield (
            f"{each.deployment.stack_name}: {counted(each.plan.instance_count.value, 'instance')} of "
            f"{each.probed.hardware}, {price}, up to {limit_s / S_PER_MINUTE:.0f} min{in_all}"
        )
    yield f"cost of the {what}: {'unknown' if total is None else f'up to {usd(total)}'}, then the stacks are deleted"


def longest_s(pinned: PinnedSpec) -> float:
    """Return the time limits of download, start and trial, in seconds; creation and deletion of the stack come on top.

    The instances are paid for meanwhile.
    """
    plan, budget = pinned.plan, pinned.loaded.endpoint.trial.budget_minutes
    return plan.download_timeout_s.value + plan.startup_timeout_s.value + budget * S_PER_MINUTE


def probe_view(plan: Plan, answers: Sequence[ProbeAnswer], decided: str) -> RenderableType:
    """Return every measured deployment, and what was decided."""
    parts: list[RenderableType] = [Text(f"Probe of {plan.endpoint} in {plan.environment}", style="bold")]
    for answer in answers:
        parts += _deployment(answer)
    return Group(*parts, Text(f"\n{decided}"))


def _deployment(answer: ProbeAnswer) -> Iterator[RenderableType]:
    probed, result = answer.pinned.probed, answer.result
    level = counted(probed.concurrency_per_copy, "concurrent request")
    yield heading(f"{probed.role}: {probed.hardware}, {level} per copy")
    rows = [
        (metric.name, short(metric.predicted), short(metric.measured, _NONE), short(metric.bound, _NONE))
        for metric in answer.metrics
    ]
    columns = (*text_columns(""), *number_columns("predicted", "measured", "SLO"))
    yield table_view(table_of(columns, rows))
    slow = "slo.output_tok_s is not reached. " if answer.throughput_met is False else ""
    yield Text(f"{_VERDICTS[answer.meets_slo]}: {slow}{sentence(result.verdict.because)}")
    if result.engine_note:
        yield Text(f"simulated, measured on: {result.engine_note}", style="yellow")
    elif answer.spent_s is not None:
        plan = answer.pinned.plan
        instances = f"{plan.instance_count.value} x {plan.instance_type.value}"
        spent = "unknown, as the price is" if answer.spent_usd is None else f"about {usd(answer.spent_usd)}"
        yield Text(f"cost: {spent}, for {answer.spent_s / S_PER_MINUTE:.1f} min of {instances}")
