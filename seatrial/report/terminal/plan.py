"""A plan on a terminal: its sections, the deployments that were not chosen, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rich.console import Group
from rich.text import Text

from seatrial.deployment.starts import copy_start
from seatrial.documents.plan import Decision, Image
from seatrial.report.document.provenance import start_tables
from seatrial.report.planned import band_text, carried_lines, measure_first, side_lines
from seatrial.report.scaling_cost import scaling_cost_lines
from seatrial.report.terminal.first_screen import COLUMNS, first_screen, warnings_of
from seatrial.report.terminal.tables import heading, narrow_usd, table_view, whole_percent
from seatrial.specs.prices import CONDITIONS, PURCHASES
from seatrial_base.table import Column, name_column, number_columns, table_of, text_columns
from seatrial_base.units import MS_PER_S, counted, digits, gib, short, usd

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from seatrial.documents.comparison import DegreeVerdict
    from seatrial.documents.plan import Alternative, Cost, CurvePoint, Plan, RatePoint
    from seatrial.documents.prediction import MemoryFit, Regime
    from seatrial.specs.load import LoadedSpec


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
_KIB = 1024
_LATENCY_COLUMNS = (("TTFT", "ms"), ("TPOT", "ms"), ("e2e", "s"))
RATES = "At a rate, queueing included; the last row is the planned one:"
FRONT = (
    "No other deployment is better in price, single-request latency and highest throughput together. > marks the plan."
)
UNPRICED = "Predicted to meet the SLO. Chosen only where the spec names the type or with --allow-unknown-price."
Section = Literal["decisions", "memory", "regime", "curve", "cost", "start", "alternatives", "warnings"]


def decisions_view(plan: Plan) -> RenderableType:
    """Return every decision of the plan."""
    columns = (*text_columns("what"), Column("value", kind="text", width=_WIDEST_VALUE), *text_columns("because"))
    return Group(heading("Decisions"), table_view(table_of(columns, decision_rows(plan))))


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
    return Text(f"\n{price_sentence(cost)}", style="" if cost.usd_per_hour is not None else "yellow")


def price_sentence(cost: Cost) -> str:
    """Return the cost of the planned size, its discount, and the source of the price."""
    if cost.usd_per_hour is None:
        return "Cost unknown: this instance type has no known price."
    return f"Cost {', '.join(_amounts(cost, cost.usd_per_hour))}. {_price(cost)}."


def _amounts(cost: Cost, usd_per_hour: float) -> Iterator[str]:
    yield f"{usd(usd_per_hour)} per hour"
    if cost.usd_per_million_output_tokens is not None:
        yield f"{usd(cost.usd_per_million_output_tokens)} per million output tokens at the planned load"
    if cost.blended_usd_per_million_tokens is not None:
        yield f"{usd(cost.blended_usd_per_million_tokens)} per million tokens blended 3:1"
    if cost.usd_per_session is not None:
        yield f"{usd(cost.usd_per_session)} per session"
    if cost.on_demand_usd_per_hour is not None:
        how, condition = PURCHASES[cost.purchase], CONDITIONS[cost.purchase]
        yield f"bought {how} ({condition}); {usd(cost.on_demand_usd_per_hour)} per hour on demand"
    elif cost.savings_plan_usd_per_hour is not None:
        yield f"{usd(cost.savings_plan_usd_per_hour)} per hour under a Savings Plan of one year without upfront payment"


def _price(cost: Cost) -> str:
    off = f" less the spec's discount of {whole_percent(cost.discount)}" if cost.discount else ""
    kind = "List price" if cost.purchase == "on_demand" else "Price"
    return f"{kind} of {cost.price_date}{off}, {cost.price_source}{cost.elsewhere}"


def memory_view(fit: MemoryFit, tokens: int) -> RenderableType:
    """Return the memory table for requests of this many tokens, prompt and output."""
    adapters = ("adapters",) if fit.adapters_bytes else ()
    columns = number_columns(
        "accelerator", "weights", *adapters, "activations", "reserve", "KV cache", "KV per token", "sequences"
    )
    sizes = (
        fit.accelerator_memory_bytes,
        fit.weights_bytes,
        *((fit.adapters_bytes,) if fit.adapters_bytes else ()),
        fit.activation_bytes,
        fit.reserve_bytes,
        fit.kv_room_bytes,
    )
    row = (*map(gib, sizes), f"{fit.kv_bytes_per_token / _KIB:,.0f} KiB", f"{fit.kv_limited_batch:,}")
    view = table_view(table_of(columns, (row,)))
    return Group(heading("Memory of one accelerator"), view, Text(memory_sentence(fit, tokens)))


def memory_sentence(fit: MemoryFit, tokens: int) -> str:
    """Return how many sequences fit, and how many by the published rule of thumb where it differs."""
    ours = f"The KV cache holds {counted(fit.kv_limited_batch, 'sequence')} of {tokens:,} tokens."
    theirs = rule_of_thumb(fit, tokens)
    if theirs == fit.kv_limited_batch:
        return f"{ours} The rule of thumb, (memory - weights) / (KV per token x tokens), gives the same."
    # It may be off to both sides: what it leaves out takes memory, and what it does not know saves some.
    why = "a sliding window, a shared prefix, or attention by groups, which keep fewer tokens in each cache"
    if theirs > fit.kv_limited_batch:
        why = "activations and the engine's reserve"
    return (
        f"{ours} The rule of thumb, (memory - weights) / (KV per token x tokens), gives {theirs:,}: it ignores {why}."
    )


def rule_of_thumb(fit: MemoryFit, tokens: int) -> int:
    """Return floor((memory - weights) / (KV per token * tokens)), the batch as the published articles compute it."""
    return max(0, (fit.accelerator_memory_bytes - fit.weights_bytes) // (fit.kv_bytes_per_token * tokens))


def regime_view(regime: Regime) -> RenderableType:
    """Return the regime: its sentence, the numbers behind it, and where a step's time goes at each level."""
    shares = (heading("Share of step time"), _shares(regime)) if regime.per_level else ()
    return Group(heading("Regime"), Text(regime.sentence), Text(balance_sentence(regime)), *shares)


def balance_sentence(regime: Regime) -> str:
    """Return the arithmetic of a decode step per byte, and the batch from which it would bound the step."""
    return (
        f"A decode step at the gate does {digits(regime.arithmetic_intensity_flops_per_byte)} FLOPs for each byte it "
        f"reads; the accelerator balances at {digits(regime.machine_balance_flops_per_byte)}. Critical batch size: "
        f"{regime.critical_batch_size:,} sequences."
    )


def _shares(regime: Regime) -> RenderableType:
    parts = [name for name, _ in regime.per_level[0].share_of_step]
    rows = (
        (f"{level.concurrency:,}", *(whole_percent(share) for _, share in level.share_of_step), level.bound_by)
        for level in regime.per_level
    )
    return table_view(table_of((*number_columns("concurrency", *parts), *text_columns("limited by")), rows))


def curve_view(plan: Plan) -> RenderableType:
    """Return the predicted curve as a table, with how far it may be off."""
    title = heading("Predicted for one copy; simulated, not measured")
    if not plan.curve:
        return Group(title, Text("The plan has no levels."))
    reading = Text(f"{legend(plan)}\n")
    rates: tuple[RenderableType, ...] = (Text(f"\n{RATES}\n"), _rate_points(plan)) if plan.rates else ()
    rates += tuple(map(Text, carried_lines(plan)))
    # The letters of the knee's level and of the gate's, by concurrency.
    gate = plan.gate_concurrency_per_copy.value
    knee = plan.knee.concurrency
    signs = {knee: "KG"} if knee == gate else {knee: "K", gate: "G"}
    late = any(point.late for point in plan.curve)
    pairs = (f"{name}\n{statistic}\n{unit}" for name, unit in _LATENCY_COLUMNS for statistic in ("mean", "p95"))
    columns = (
        *number_columns("concurrency"),
        *text_columns(""),
        *number_columns("tok/s", *pairs, *(("late",) if late else ())),
        *text_columns("limited by"),
    )
    return Group(
        title,
        Text(f"{band_text(plan)}\n"),
        reading,
        table_view(table_of(columns, (_point_row(point, signs, late=late) for point in plan.curve))),
        *rates,
    )


def _rate_points(plan: Plan) -> RenderableType:
    columns = number_columns(
        "requests/s",
        "of\nsaturation",
        "in flight\nper copy",
        "queue\np95\nms",
        "TTFT\nmean\nms",
        "TTFT\np95\nms",
        "TPOT\nmean\nms",
        "TPOT\np95\nms",
        "pause\np99\nms",
        "e2e\np95\ns",
    )
    return table_view(table_of(columns, map(_rate_row, plan.rates)), gap=1)


def _rate_row(point: RatePoint) -> tuple[str, ...]:
    latencies = (point.queue_p95_ms, point.ttft_ms, point.ttft_p95_ms, point.tpot_ms, point.tpot_p95_ms)
    return (
        f"{point.requests_per_second:g}",
        whole_percent(point.utilization),
        f"{point.in_flight:.1f}",
        *map(short, latencies),
        short(point.itl_p99_ms),
        short(point.e2e_latency_p95_ms / MS_PER_S),
    )


def legend(plan: Plan) -> str:
    """Return the meaning of the table's signs."""
    gate = plan.gate_concurrency_per_copy.value
    if any(point.concurrency == gate for point in plan.curve):
        marked = f"G: gate, {gate:,}"
    else:
        marked = f"The gate, {gate:,}, is not among the levels"
    knee = plan.knee
    sign = "K, " if any(point.concurrency == knee.concurrency for point in plan.curve) else ""
    return f"{marked}; the predicted knee is {sign}{knee.concurrency:,} ({knee.detector}: {knee.meaning})."


def _point_row(point: CurvePoint, signs: Mapping[int, str], *, late: bool) -> Iterator[str]:
    yield from (f"{point.concurrency:,}", signs.get(point.concurrency, ""), short(point.output_tok_s))
    yield from map(short, (point.ttft_ms, point.ttft_p95_ms, point.tpot_ms, point.tpot_p95_ms))
    yield from (short(value / MS_PER_S) for value in (point.e2e_latency_ms, point.e2e_latency_p95_ms))
    if late:
        yield whole_percent(point.late)
    yield point.limit


def pareto_view(plan: Plan) -> RenderableType:
    """Return the deployments of the Pareto front; the chosen one carries an arrow head."""
    names = ("degree", "copies", "$/h", "$/1M\noutput", "tok/s\nat load", "tok/s\nat most", "ms/token\nalone")
    columns = (name_column("instance type"), *number_columns(*names))
    view = table_view(table_of(columns, map(_alternative, plan.pareto)), gap=1)
    return Group(heading("Pareto front"), Text(FRONT), view)


def unpriced_view(plan: Plan) -> RenderableType:
    """Return the deployments on instance types without a price, with their predictions."""
    names = ("degree", "copies", "tok/s\nat load", "tok/s\nat most", "ms/token\nalone")
    columns = (name_column("instance type"), *text_columns("price"), *number_columns(*names))
    rows = (
        (
            f"{'' if row.instance_count == 1 else f'{row.instance_count} x '}{row.instance_type}",
            "unknown",
            str(row.tensor_parallel_degree),
            str(row.copy_count),
            *map(short, (row.output_tok_s, row.highest_tok_s, row.ms_per_token_alone)),
        )
        for row in plan.unpriced
    )
    view = table_view(table_of(columns, rows), gap=1)
    return Group(heading("Price unknown"), Text(UNPRICED), view)


def rejected_view(plan: Plan) -> RenderableType:
    """Return the nearest losers, each with the reason it lost."""
    columns = (*text_columns("instance type"), *number_columns("degree", "$/h", "tok/s"), *text_columns("because"))
    rows = (
        (
            loser.instance_type,
            str(loser.tensor_parallel_degree),
            narrow_usd(loser.usd_per_hour),
            short(loser.output_tok_s, ""),
            loser.because,
        )
        for loser in plan.rejected
    )
    return Group(heading("Considered and rejected"), table_view(table_of(columns, rows)))


def _alternative(alternative: Alternative) -> tuple[str, ...]:
    sign = ">" if alternative.chosen else " "
    instances = "" if alternative.instance_count == 1 else f"{alternative.instance_count} x "
    return (
        f"{sign} {instances}{alternative.instance_type}",
        str(alternative.tensor_parallel_degree),
        str(alternative.copy_count),
        narrow_usd(alternative.usd_per_hour),
        narrow_usd(alternative.usd_per_million_output_tokens),
        short(alternative.output_tok_s),
        short(alternative.highest_tok_s),
        short(alternative.ms_per_token_alone),
    )


def why_view(instance_type: str, verdicts: Sequence[DegreeVerdict]) -> RenderableType:
    """Return one row for each degree of an instance type."""
    if not verdicts:
        return Text(f"{instance_type}: no tensor parallel degree to try.")
    columns = (*number_columns("degree", "$/h", "tok/s"), *text_columns("verdict", "because"))
    title = Text(why_title(instance_type, verdicts), style="bold")
    rows = (
        (
            str(verdict.tensor_parallel_degree),
            "" if verdict.usd_per_hour is None else narrow_usd(verdict.usd_per_hour),
            short(verdict.output_tok_s, ""),
            verdict_words(verdict),
            verdict.because,
        )
        for verdict in verdicts
    )
    return Group(title, table_view(table_of(columns, rows)))


def why_title(instance_type: str, verdicts: Sequence[DegreeVerdict]) -> str:
    """Return in one line whether an instance type is the plan."""
    won = [verdict.tensor_parallel_degree for verdict in verdicts if verdict.won]
    return f"{instance_type} is the plan, with degree {won[0]}" if won else f"{instance_type} is not the plan"


def verdict_words(verdict: DegreeVerdict) -> str:
    """Write a verdict in two words at most: `chosen`, `outdone`, `not allowed`, or at which question it failed."""
    if verdict.won:
        return "chosen"
    return {"ranking": "outdone", "allowed": "not allowed"}.get(verdict.stage, f"fails: {verdict.stage}")


def plan_view(
    plan: Plan, loaded: LoadedSpec, sections: Collection[Section] = (), columns: int = COLUMNS
) -> RenderableType:
    """Return the sections of a plan, in their fixed order; the first screen where none is requested."""
    if not sections:
        return first_screen(plan, loaded, max(columns, COLUMNS))
    parts = [part for name, view in SECTIONS.items() if name in sections for part in view(plan, loaded)]
    title = Text(f"Plan for {plan.endpoint} in {plan.environment}", style="bold")
    return Group(title, Text(subtitle(plan, loaded), style="dim"), *parts)


def subtitle(plan: Plan, loaded: LoadedSpec) -> str:
    """Name the model, the workload and the objective that the plan was made for."""
    return (
        f"{plan.model_name} ({plan.architecture}), {loaded.lengths.words}, objective "
        f"{loaded.endpoint.objective.goal}, plan {plan.digest}"
    )


def _memory_parts(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    typical = round(loaded.lengths.input.mean) + loaded.endpoint.workload.output_tokens
    yield memory_view(plan.memory, typical)


def _start_parts(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    start = copy_start(plan, loaded)
    yield heading("Start of a copy")
    yield from map(table_view, start_tables(start))
    yield Text("\n".join((start.waits, *start.warnings)))


def _alternative_parts(plan: Plan, loaded: LoadedSpec) -> Iterator[RenderableType]:
    if plan.pareto:
        yield pareto_view(plan)
    if plan.cost.price_region is not None:
        yield Text(f"Prices that {loaded.environment.region} does not publish are those of {plan.cost.price_region}.")
    if sides := "\n".join(side_lines(plan)):
        yield Text(f"\n{sides}")
    if unsure := measure_first(plan, loaded):
        yield Text(f"\nMeasure {unsure}")
    if plan.probe is not None:
        yield Text(f"\nWorth a probe: {plan.probe.because}")
    for proposal in plan.proposals:
        yield Text(f"\nProposed: quantization {proposal.quantization}. {proposal.because} {proposal.gives_up}")
    if plan.unpriced:
        yield unpriced_view(plan)
    if plan.rejected:
        yield rejected_view(plan)


SECTIONS: Mapping[Section, Callable[[Plan, LoadedSpec], Iterable[RenderableType]]] = {
    "decisions": lambda plan, _: (decisions_view(plan),),
    "memory": _memory_parts,
    "regime": lambda plan, _: (regime_view(plan.regime),),
    "curve": lambda plan, _: (curve_view(plan),),
    "cost": lambda plan, loaded: (cost_view(plan.cost), *map(Text, scaling_cost_lines(plan, loaded, whole=True))),
    "start": _start_parts,
    "alternatives": _alternative_parts,
    "warnings": lambda plan, _: (Text(f"\nwarning: {warning}", style="yellow") for warning in warnings_of(plan)),
}
