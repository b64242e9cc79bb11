"""The sections of a plan in a terminal: memory, what bounds a copy, cost, and each decision with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.planner.document import Decision, Image
from seatrial.report.terminal.tables import add_columns, add_row, heading, percent, table
from seatrial.report.values import digits
from seatrial_base.units import gib, usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from seatrial.planner.document import Cost, Plan
    from seatrial.planner.predict.memory import MemoryFit
    from seatrial.planner.predict.regime import Regime


NAMES: Mapping[str, str] = {
    "inference_ami_version": "inference AMI",
    "instance_count": "instances",
    "copy_count": "copies",
    "max_model_len": "max model length",
    "max_num_seqs": "max sequences",
    "max_num_batched_tokens": "max batched tokens",
    "memory_min_mb": "host memory (MiB)",
    "startup_timeout_s": "start-up timeout (s)",
    "download_timeout_s": "download timeout (s)",
    "target_concurrency_per_copy": "target concurrency",
    "gate_concurrency_per_copy": "gate concurrency",
    "concurrency_levels": "trial levels",
    "trial_update": "trial of an update",
}
_WIDEST_VALUE = 22  # leaves the reasons most of a narrow terminal


def decisions_view(plan: Plan) -> RenderableType:
    """Return every decision of the plan."""
    made = table(words=("what", "value", "because"))
    made.columns[1].max_width = _WIDEST_VALUE
    for name, value, because in decision_rows(plan):
        add_row(made, name, value, because)
    return Group(heading("Decisions"), made)


def decision_rows(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and reason of each decision, in the document's order."""
    for field in type(plan).model_fields:
        decision: object = getattr(plan, field)
        if isinstance(decision, Decision):
            yield NAMES.get(field, field.replace("_", " ")), _written(decision.value), decision.because


def _written(value: object) -> str:
    if value is None:
        return "service default"
    if isinstance(value, Image):
        return f"{value.repository}:{value.tag}"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def cost_view(cost: Cost) -> RenderableType:
    """Return the cost in one paragraph."""
    return Text(f"\n{cost_sentence(cost)}", style="" if cost.usd_per_hour is not None else "yellow")


def cost_sentence(cost: Cost) -> str:
    """Say what the planned size costs, at which discount, and where the price was read."""
    if cost.usd_per_hour is None:
        return "Cost unknown: this instance type has no known price."
    return f"Cost {', '.join(_amounts(cost, cost.usd_per_hour))}. {_price(cost)}."


def _amounts(cost: Cost, usd_per_hour: float) -> Iterator[str]:
    yield f"{usd(usd_per_hour)} per hour"
    if cost.usd_per_million_output_tokens is not None:
        yield f"{usd(cost.usd_per_million_output_tokens)} per million output tokens at the planned load"
    if cost.blended_usd_per_million_tokens is not None:
        yield f"{usd(cost.blended_usd_per_million_tokens)} per million tokens blended 3:1"
    if cost.savings_plan_usd_per_hour is not None:
        yield f"{usd(cost.savings_plan_usd_per_hour)} per hour under a Savings Plan of one year without upfront payment"


def _price(cost: Cost) -> str:
    off = f" less the spec's discount of {percent(cost.discount)}" if cost.discount else ""
    return f"List price of {cost.price_date}{off}, {cost.price_source}"


_KIB = 1024


def memory_view(fit: MemoryFit, tokens: int) -> RenderableType:
    """Return the memory table for requests of this many tokens, prompt and output."""
    names = ("accelerator", "weights", "activations", "reserve", "KV cache", "KV per token", "sequences")
    made = table(numbers=names)
    sizes = (
        fit.accelerator_memory_bytes,
        fit.weights_bytes,
        fit.activation_bytes,
        fit.reserve_bytes,
        fit.kv_room_bytes,
    )
    per_token = f"{fit.kv_bytes_per_token / _KIB:,.0f} KiB"
    add_row(made, *map(gib, sizes), per_token, f"{fit.kv_limited_batch:,}")
    return Group(heading("Memory of one accelerator"), made, Text(memory_sentence(fit, tokens)))


def memory_sentence(fit: MemoryFit, tokens: int) -> str:
    """Say how many sequences fit, and how many the published rule of thumb promises where it differs."""
    ours = f"The KV cache holds {_sequences(fit.kv_limited_batch)} of {tokens:,} tokens."
    theirs = rule_of_thumb(fit, tokens)
    if theirs == fit.kv_limited_batch:
        return f"{ours} The rule of thumb, (memory - weights) / (KV per token x tokens), gives the same."
    return (
        f"{ours} The rule of thumb, (memory - weights) / (KV per token x tokens), gives {theirs:,}: "
        f"{_why(fit, theirs)}."
    )


def rule_of_thumb(fit: MemoryFit, tokens: int) -> int:
    """Return floor((memory - weights) / (KV per token * tokens)), the batch as the published articles compute it."""
    return max(0, (fit.accelerator_memory_bytes - fit.weights_bytes) // (fit.kv_bytes_per_token * tokens))


def _why(fit: MemoryFit, theirs: int) -> str:
    if theirs > fit.kv_limited_batch:
        return "it ignores activations and the engine's reserve"
    return "it ignores the sliding window, which keeps fewer tokens in the cache"


def _sequences(count: int) -> str:
    return f"{count:,} {'sequence' if count == 1 else 'sequences'}"


def regime_view(regime: Regime) -> RenderableType:
    """Return the regime: its sentence, the numbers behind it, and where a step's time goes at each level."""
    shares = (heading("Share of step time"), _shares(regime)) if regime.per_level else ()
    return Group(heading("Regime"), Text(regime.sentence), Text(balance_sentence(regime)), *shares)


def balance_sentence(regime: Regime) -> str:
    """Say how much arithmetic a decode step does per byte, and from which batch on arithmetic would bound it."""
    return (
        f"A decode step at the gate does {digits(regime.arithmetic_intensity_flops_per_byte)} FLOPs for each byte it "
        f"reads; the accelerator balances at {digits(regime.machine_balance_flops_per_byte)}. Critical batch size: "
        f"{regime.critical_batch_size:,} sequences."
    )


def _shares(regime: Regime) -> RenderableType:
    made = table()
    parts = [name for name, _ in regime.per_level[0].share_of_step]
    add_columns(made, "right", ("concurrency", *parts))
    add_columns(made, "left", ("limited by",))
    for level in regime.per_level:
        shares = (percent(share) for _, share in level.share_of_step)
        add_row(made, f"{level.concurrency:,}", *shares, level.bound_by)
    return made
