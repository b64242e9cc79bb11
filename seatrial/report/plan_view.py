"""A plan as a person reads it in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from seatrial.units import gib, usd

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.plan.document import Decision, Image, Plan
    from seatrial.spec.load import LoadedSpec

Values = int | float | str | None | tuple[int, ...]


def plan_view(plan: Plan, loaded: LoadedSpec) -> RenderableType:
    """Return the whole plan: decisions with reasons, memory, curve, cost, runners-up, warnings."""
    title = Text(f"Plan for {plan.endpoint} in {plan.environment}", style="bold")
    load = loaded.endpoint.workload
    subtitle = Text(
        f"{plan.model_name} ({plan.architecture}), {load.input_tokens} + {load.output_tokens} tokens, "
        f"objective {loaded.endpoint.objective}, plan {plan.digest}",
        style="dim",
    )
    parts = [title, subtitle, _decisions(plan), _memory(plan), _curve(plan), _cost(plan)]
    if plan.rejected:
        parts.append(_rejected(plan))
    parts += [Text(f"warning: {warning}", style="yellow") for warning in plan.warnings]
    return Group(*parts)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _decisions(plan: Plan) -> RenderableType:
    table = _table("\nDecisions", "what", "value", "because")
    decisions: dict[str, Decision[str] | Decision[str | None] | Decision[int] | Decision[float]] = {
        "engine": plan.engine,
        "engine version": plan.engine_version,
        "inference AMI": plan.inference_ami_version,
        "instance type": plan.instance_type,
        "instances": plan.instance_count,
        "tensor parallel degree": plan.tensor_parallel_degree,
        "copies per instance": plan.copies_per_instance,
        "copies": plan.copy_count,
        "more instances while updating": plan.surge_instances,
        "max model length": plan.max_model_len,
        "max sequences": plan.max_num_seqs,
        "max batched tokens": plan.max_num_batched_tokens,
        "max queued requests": plan.max_queued_requests,
        "dtype": plan.dtype,
        "host memory (MiB)": plan.memory_min_mb,
        "start-up timeout (s)": plan.startup_timeout_s,
        "download timeout (s)": plan.download_timeout_s,
        "target concurrency": plan.target_concurrency_per_copy,
        "gate concurrency": plan.gate_concurrency_per_copy,
    }
    table.add_row("image", _short(plan.image), plan.image.because)
    for name, decision in decisions.items():
        table.add_row(name, _value(decision.value), decision.because)
    table.add_row("trial levels", _value(plan.concurrency_levels.value), plan.concurrency_levels.because)
    return table


def _short(image: Decision[Image]) -> str:
    return f"{image.value.repository}:{image.value.tag}"


def _value(value: Values) -> str:
    if value is None:
        return "service default"
    if isinstance(value, tuple):
        return " ".join(str(level) for level in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _memory(plan: Plan) -> RenderableType:
    table = _table("\nMemory of one accelerator", "accelerator", "weights", "reserve", "room for KV", "sequences")
    fit = plan.memory
    sizes = (fit.accelerator_memory_bytes, fit.weights_bytes, fit.reserve_bytes, fit.kv_room_bytes)
    table.add_row(*(gib(size) for size in sizes), str(fit.kv_limited_batch))
    return table


def _curve(plan: Plan) -> RenderableType:
    title = f"\nPredicted for one copy (each value ±{plan.uncertainty:.0%})"
    table = _table(title, "concurrency", "tok/s", "", "TTFT ms", "TPOT ms", "end-to-end ms", "limited by")
    most = max((point.output_tok_s for point in plan.curve), default=1.0)
    for point in plan.curve:
        bar = "█" * round(20 * point.output_tok_s / most)
        numbers = (point.ttft_ms, point.tpot_ms, point.e2e_latency_ms)
        rounded = (f"{number:,.0f}" for number in numbers)
        table.add_row(str(point.concurrency), f"{point.output_tok_s:,.0f}", bar, *rounded, point.limit)
    return table


def _cost(plan: Plan) -> RenderableType:
    cost = plan.cost
    if cost.usd_per_hour is None:
        return Text("\nCost unknown: the catalog has no price for this instance type", style="yellow")
    text = f"\nCost {usd(cost.usd_per_hour)} per hour"
    if cost.usd_per_million_output_tokens is not None:
        text += f", {usd(cost.usd_per_million_output_tokens)} per million output tokens at the planned load"
    if cost.blended_usd_per_million_tokens is not None:
        text += f", {usd(cost.blended_usd_per_million_tokens)} blended 3:1"
    return Text(f"{text} (price of {cost.price_date}, {cost.price_source})")


def _rejected(plan: Plan) -> RenderableType:
    table = _table("\nConsidered and rejected", "instance type", "degree", "$/h", "tok/s", "because")
    for loser in plan.rejected:
        price = "?" if loser.usd_per_hour is None else usd(loser.usd_per_hour)
        speed = "" if loser.output_tok_s is None else f"{loser.output_tok_s:,.0f}"
        table.add_row(loser.instance_type, str(loser.tensor_parallel_degree), price, speed, loser.because)
    return table
