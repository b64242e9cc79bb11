"""The first screen of a plan: the deployment, its price, the SLO, the runner-up, the warnings and the next command."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.text import Text

from seatrial.documents.plan import AT_PEAK, STAND_IN, UNPREDICTED, hardware_words
from seatrial.report.planned import carried_lines, edges, measure_first, met_words
from seatrial.report.scaling_cost import scaling_cost_lines
from seatrial.report.terminal.tables import narrow_usd, table_view, whole_percent
from seatrial.specs.prices import CONDITIONS, PURCHASES, priced
from seatrial_base.catalog.images import IMAGES
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.catalog.precision import kept_quality
from seatrial_base.table import name_column, number_columns, table_of, text_columns
from seatrial_base.units import GB, S_PER_HOUR, counted, short, usd, whole_or_tenths
from seatrial_load.documents.arrivals import ARRIVALS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from seatrial.documents.plan import Alternative, CurvePoint, Plan, Probe, Proposal, RatePoint, Rejected
    from seatrial.specs.endpoint import Percentiles, Slo
    from seatrial.specs.hosting import MetricsSpec
    from seatrial.specs.load import LoadedSpec

USD_PER_METRIC_AND_MONTH: Final = 0.30
USUAL_S: Final = 60
SERIES: Final = 100
"""AWS lists more than a hundred detailed metrics of an endpoint; each label's value makes another series."""
POINT_BYTES: Final = 400
"""A data point of `vllm:num_requests_waiting` with nine labels of usual length has 386 bytes."""
PER_INSTANCE: Final = 3
"""CPU, memory and disk."""
PER_ACCELERATOR: Final = 2
"""Utilization and memory."""
PER_COPY: Final = 12
"""CPU, memory, accelerators and their memory; invocations, 4XX, 5XX, model errors, three latencies, concurrency."""
HOURS_PER_MONTH = 730
MOST_LINES = 15
COLUMNS = 100
_NAME_COLUMNS = 12  # of the names of the rows and the gap
_MOST_BOUNDS = 2  # on the screen; --section curve has every latency
_FIRST_TO_GO = ("runner-up", "probe", "proposed", "hosting", "left out", "unpriced")
_HALF, _CENT = 0.5, 0.01  # of the plan's price, to the cent: a proposal that costs no more is shown above the plan
_NAMES: Mapping[str, str] = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "e2e_latency_ms": "end-to-end latency"}
_UNBOUNDED = (("ttft_ms", "ttft_p95_ms", "TTFT p95"), ("tpot_ms", "tpot_p95_ms", "TPOT p95"))


def metric_lines(metrics: MetricsSpec, plan: Plan) -> Iterator[str]:
    """Yield the metrics that an endpoint of planned size publishes in a month on top of the usual ones.

    Formulas: metrics = instances x (3 + 2 x accelerators) + copies x 12; GB = 100 series x 400 bytes x seconds of a
    month / frequency / 1e9.

    Facts: AWS's list price of custom metrics, US East (N. Virginia), first 10,000: $0.30 each and month, as public
    guides to CloudWatch's pricing quote it (2026-11-26); CloudWatch user guide, "OTel metrics pricing and storage"
    (OpenTelemetry metrics are billed by GB of name, labels, time and value, storage included); SageMaker developer
    guide, metrics of endpoints and of inference components. AWS's price of a GB is not known here, and AWS does not say
    whether enhanced metrics are billed as custom ones.
    """
    known = find_instance(plan.instance_type.value)
    accelerators = 0 if known is None else known.accelerator_count
    instances, copies = plan.instance_count.value, plan.copy_count.value
    enhanced = instances * (PER_INSTANCE + PER_ACCELERATOR * accelerators) + copies * PER_COPY
    if metrics.enhanced:
        yield f"enhanced metrics: {enhanced}, {usd(enhanced * USD_PER_METRIC_AND_MONTH)}/month if billed as custom ones"
    if metrics.detailed is not False:
        every_s = metrics.frequency_s or USUAL_S
        monthly_gb = SERIES * POINT_BYTES * HOURS_PER_MONTH * S_PER_HOUR / every_s / GB
        yield f"detailed metrics every {every_s} s: {monthly_gb:.1f} GB/month for each {SERIES} series, billed by GB"


@dataclass(frozen=True, slots=True)
class Bounded:
    """A latency that the SLO bounds.

    Attributes:
        field: Its nearest value in a point of the predicted curve.
        name: That, in words.
        bounded: The bound in words.
    """

    metric: str
    field: str
    name: str
    bound_ms: float
    bounded: str

    def of(self, point: CurvePoint | RatePoint) -> float:
        """Return the predicted latency of a point, in milliseconds."""
        return float(getattr(point, self.field))


def bounded_latencies(slo: Slo) -> Iterator[Bounded]:
    """Yield the latencies that have bounds: a median is held against the mean, every higher percentile against p95."""
    for metric, name in _NAMES.items():
        percentiles: Percentiles = getattr(slo, metric)
        for statistic, bound_ms in percentiles.model_dump().items():
            if bound_ms is not None:
                # The plan predicts mean and p95 alone: each bound is held against the nearer of the two.
                median = statistic == "p50"
                field = metric if median else f"{metric.removesuffix('_ms')}_p95_ms"
                shown = f"{name} {'mean' if median else 'p95'}"
                yield Bounded(metric, field, shown, bound_ms, f"{name} {statistic} {bound_ms:,g} ms")


def first_screen(plan: Plan, loaded: LoadedSpec, columns: int = COLUMNS) -> RenderableType:
    """Return the plan in 15 lines at most, on a terminal of some columns; `--explain` has what finds no room."""
    headline, point = _headline(plan), planned_point(plan)
    unpredicted = next((warning for warning in plan.warnings if warning.startswith(UNPREDICTED)), "")
    longest = f"requests of at most {plan.max_model_len.value:,} tokens"
    lines: list[tuple[str, str]] = [
        ("best buy", _best_buy(headline, plan, loaded)),
        ("model", _model(plan)),
        ("load", f"{loaded.lengths.words}, {_turns(loaded)}{_traffic(loaded)}: {_throughput(plan, loaded)}"),
        ("rate", "\n".join(carried_lines(plan))),
        ("deployment", f"{deployment(plan)}; {longest}{_offer(plan.instance_type.value, loaded)}"),
        ("hosting", "\n".join(_hosting(plan, loaded))),
        ("cost", "\n".join((_cost(plan, loaded.environment.region), *scaling_cost_lines(plan, loaded)))),
        ("latency", "\n".join(_latencies(plan, loaded, point))),
        ("SLO", _slo(plan, loaded)),
        *_doubts_and_rivals(plan, loaded, unpredicted, columns),
        # The best buy is on top already.
        ("proposed", _proposal(min(plan.proposals, key=_gain), loaded) if plan.proposals and headline is None else ""),
        ("probe", "" if plan.probe is None else _probe(plan.probe, loaded)),
    ]
    lines, last = [(name, text) for name, text in lines if text], ("next", _next(loaded))
    if warnings := [warning for warning in warnings_of(plan) if warning != unpredicted]:
        lines.append(("warnings", _warned(warnings, MOST_LINES - 1 - _height((*lines, last), columns), columns)))
    rows = fitted((*lines, last), columns)
    view = table_view(table_of((name_column(""), *text_columns("")), rows))
    return Group(Text(f"Plan for {plan.endpoint} in {plan.environment}", style="bold"), view)


def _best_buy(headline: Proposal | None, plan: Plan, loaded: LoadedSpec) -> str:
    if headline is None:
        return ""
    share = whole_percent((headline.usd_per_hour or 0) / (plan.cost.usd_per_hour or math.inf))
    kept = f"if your answers stay as good: {kept_quality(headline.quantization)}; measure it"
    return f"{_proposal(headline, loaded, f' ({share} of the plan)')}\n{kept}"


def _model(plan: Plan) -> str:
    """Name model and engine; with the family that is used for an unknown one: every number rests on it."""
    # Containers for AWS Neuron have numbers of their own, which read like an old engine's.
    inside = [row.bundles for row in IMAGES.rows if row.tag == plan.image.value.tag and row.flavour == "neuronx"]
    neuron = f" for AWS Neuron ({inside[0]})" if inside and inside[0] else ""
    stand_in = next((f"\n{warning.rstrip('.')}" for warning in plan.warnings if warning.startswith(STAND_IN)), "")
    return f"{plan.model_name}, {plan.engine.value} {plan.engine_version.value}{neuron}{stand_in}"


def _slo(plan: Plan, loaded: LoadedSpec) -> str:
    if planned_point(plan) is None:
        return ""
    words = {
        "met": met_words(plan) or "met, also at the upper end of the band",
        "at risk": met_words(plan) or "met, but missed at the upper end of the band",
        "missed": "missed",
        "none": "none: the spec bounds no latency",
    }[slo_state(plan, loaded)]
    return f"{words}; band ±{whole_percent(plan.band.latency)} ({plan.band.kind})"


def _doubts_and_rivals(plan: Plan, loaded: LoadedSpec, unpredicted: str, columns: int) -> Iterator[tuple[str, str]]:
    """Yield what to measure first, what the prediction leaves out, the next best, and what has no price."""
    if unsure := measure_first(plan, loaded):
        yield "measure", unsure
    if unpredicted:
        yield "left out", shorten(unpredicted.rstrip("."), columns - _NAME_COLUMNS, placeholder="… --section warnings")
    yield "runner-up", _runner_up(plan, loaded)
    if unpriced := _unpriced_winner(plan, loaded):
        yield "unpriced", unpriced


def fitted(rows: Sequence[tuple[str, str]], columns: int = COLUMNS) -> tuple[tuple[str, str], ...]:
    """Return the rows that find room below the title: those in `_FIRST_TO_GO` go until all others do."""
    kept = list(rows)
    for name in _FIRST_TO_GO:
        if _height(kept, columns) < MOST_LINES:
            break
        kept = [row for row in kept if row[0] != name]
    return tuple(kept)


def _height(rows: Iterable[tuple[str, str]], columns: int) -> int:
    """Return the lines that rows take on the screen: one long row may wrap into three."""
    return sum(len(wrap(line, columns - _NAME_COLUMNS)) or 1 for _, text in rows for line in text.splitlines())


def _warned(warnings: Sequence[str], room: int, columns: int) -> str:
    """Return as many whole warnings as find room, at least the beginning of the first."""
    count = len(warnings)
    for kept in range(count, 0, -1):
        more = f" {count - kept} more: --section warnings" if kept < count else ""
        text = f"{count}: {' '.join(warnings[:kept])}{more}"
        if _height([("", text)], columns) <= room:
            return text
    width = max(1, room) * (columns - _NAME_COLUMNS)
    return shorten(f"{count}: {warnings[0]}", width, placeholder="… --section warnings")


def plans_view(plans: Sequence[tuple[Plan, LoadedSpec]]) -> RenderableType:
    """Return one line for each plan."""
    columns = (
        *text_columns("endpoint", "deployment"),
        *number_columns("$/h", "$/Mtok", "tok/s"),
        *text_columns("SLO", "warnings"),
    )
    rows = (
        (
            plan.endpoint,
            deployment(plan),
            narrow_usd(plan.cost.usd_per_hour),
            narrow_usd(plan.cost.usd_per_million_output_tokens),
            short(load_tok_s(plan)),
            slo_state(plan, loaded),
            str(len(warnings_of(plan)) or ""),
        )
        for plan, loaded in plans
    )
    return table_view(table_of(columns, rows), gap=1)


def deployment(plan: Plan) -> str:
    """Write instances, degree and copies: `2 x ml.g5.12xlarge, TP 4, 2 copies`."""
    return f"{plan.deployment.words}, {counted(plan.copy_count.value, 'copy', 'copies')}"


def warnings_of(plan: Plan) -> tuple[str, ...]:
    """Return the warnings: of rules, of a start that may time out, the others; the band's reason is with the band."""
    warnings = [warning for warning in plan.warnings if warning != plan.band.because]
    costly = ("time out", AT_PEAK)
    return tuple(
        sorted(
            warnings,
            key=lambda warning: (not warning.startswith("SEA"), not any(words in warning for words in costly)),
        )
    )


def load_tok_s(plan: Plan) -> float | None:
    """Return the output tokens per second of all copies at the planned load: predicted, or what a rate offers."""
    chosen = next((alternative for alternative in plan.pareto if alternative.chosen), None)
    if chosen is not None:
        return chosen.output_tok_s
    point = gate_point(plan)
    return None if point is None else point.output_tok_s * plan.copy_count.value


def gate_point(plan: Plan) -> CurvePoint | None:
    """Return the predicted level at which the SLO must hold, or the nearest; `None` without levels."""
    gate = plan.gate_concurrency_per_copy.value
    return min(plan.curve, key=lambda level: abs(level.concurrency - gate), default=None)


def planned_point(plan: Plan) -> CurvePoint | RatePoint | None:
    """Return the prediction of a copy at the planned load: of a rate with its arrivals, else of the gate."""
    return plan.rates[-1] if plan.rates else gate_point(plan)


def slo_state(plan: Plan, loaded: LoadedSpec) -> str:
    """Return in one or two words whether the predictions keep the SLO, and whether the whole band does."""
    point, bounds = planned_point(plan), tuple(bounded_latencies(loaded.endpoint.slo))
    if point is None or not bounds:
        return "none"
    if any(_ratio(bound, point) > 1 for bound in bounds):
        return "missed"
    # The upper end of the band is value * (1 + share), as in `edges`.
    late = any(_ratio(bound, point) * (1 + plan.band.latency_of(bound.metric)) > 1 for bound in bounds)
    return "at risk" if late else "met"


def _ratio(bound: Bounded, point: CurvePoint | RatePoint) -> float:
    return bound.of(point) / bound.bound_ms


def _headline(plan: Plan) -> Proposal | None:
    """Return the proposal that halves the bill, of a precision that is published to keep quality; else `None`."""
    paid = plan.cost.usd_per_hour
    if paid is None:
        return None
    kept = (proposal for proposal in plan.proposals if kept_quality(proposal.quantization))
    priced = ((proposal.usd_per_hour, proposal) for proposal in kept if proposal.usd_per_hour is not None)
    half = [proposal for price, proposal in priced if price <= _HALF * paid + _CENT]
    return min(half, key=_gain, default=None)


def _gain(proposal: Proposal) -> tuple[bool, float, float]:
    """Order proposals: those that are published to keep quality first, then the cheapest, then the fastest."""
    price = math.inf if proposal.usd_per_hour is None else proposal.usd_per_hour
    return not kept_quality(proposal.quantization), price, -proposal.highest_tok_s


def _unpriced_winner(plan: Plan, loaded: LoadedSpec) -> str:
    """Name the deployment without a price that would win, and the price; empty where none could.

    It could where its estimated price is lower, or, without an estimate, where memory is nowhere cheaper than at the
    price below which it wins.
    """
    paid = plan.cost.usd_per_hour
    if paid is None:
        return ""
    below = {alternative: paid / alternative.instance_count for alternative in plan.unpriced}
    winners = [(usd, one) for one, usd in below.items() if usd > _least_usd(one.instance_type)]
    if not winners:
        return ""
    usd, one = max(winners, key=lambda pair: pair[0] / _least_usd(pair[1].instance_type))
    known = find_instance(one.instance_type)
    guess = known.estimated_usd_per_hour if known else None
    estimate = ("" if guess is None else f"; estimated {narrow_usd(guess)}/h") + _offer(one.instance_type, loaded)
    return f"{one.words} meets the SLO too and wins below {narrow_usd(usd)}/h for an instance{estimate}"


@cache
def _least_usd(instance_type: str) -> float:
    """Return the least that an instance type without a price may cost per hour: infinite where it is unknown."""
    instance = find_instance(instance_type)
    if instance is None:
        return math.inf
    if instance.estimated_usd_per_hour is not None:
        return instance.estimated_usd_per_hour
    priced = [(row.usd_per_hour, row) for row in INSTANCES.rows if row.usd_per_hour is not None]
    # A type without any estimate is held against the cheapest memory that AWS sells: a bound from below, so no
    # winner is hidden by a guess.
    per_byte = min(usd / (one.accelerator_count * one.accelerator_memory_bytes) for usd, one in priced)
    return per_byte * instance.accelerator_count * instance.accelerator_memory_bytes


def _turns(loaded: LoadedSpec) -> str:
    conversations = loaded.conversations
    return "" if conversations is None else f"conversations of {whole_or_tenths(conversations.turns.mean)} turns, "


def _traffic(loaded: LoadedSpec) -> str:
    load = loaded.endpoint.workload
    if load.concurrency is not None:
        return f"{load.concurrency:,} concurrent requests"
    return f"{load.requests_per_second:g} requests/s, {ARRIVALS[load.arrivals].timing}"


def _cost(plan: Plan, region: str) -> str:
    cost = plan.cost
    if cost.usd_per_hour is None:
        known = find_instance(plan.instance_type.value)
        guess = None if known is None else known.estimated_usd_per_hour
        estimate = "" if guess is None else f"; estimated {usd(guess * plan.instance_count.value)}/h"
        return f"unknown: this instance type has no known price{estimate}"
    off = f" ({whole_percent(cost.discount)} discount)" if cost.discount else ""
    token = cost.usd_per_million_output_tokens
    planned = None if cost.purchase != "on_demand" else cost.savings_plan_usd_per_hour
    off += "" if planned is None else f" ({usd(planned)}/h with a Savings Plan)"
    per_token = "" if token is None else f", {usd(token)} per million output tokens"
    per_token += "" if cost.usd_per_session is None else f", {usd(cost.usd_per_session)} per session"
    paid = f"{usd(cost.usd_per_hour)}/h, ${cost.usd_per_hour * HOURS_PER_MONTH:,.0f}/month{off}{per_token}"
    if cost.price_region is not None:
        return f"price not known in {region} ({cost.price_region}: {paid})"
    if cost.purchase == "on_demand":
        return paid
    listed = cost.on_demand_usd_per_hour
    on_demand = "" if listed is None else f"; {usd(listed)}/h on demand"
    return f"{paid}\n{PURCHASES[cost.purchase]}: {CONDITIONS[cost.purchase]}{on_demand}"


def _hosting(plan: Plan, loaded: LoadedSpec) -> Iterator[str]:
    """Yield what of the hosting is not the default: kind, pools, copies at zero, protection, metrics and their cost."""
    hosting, scaling = loaded.endpoint.hosting, loaded.endpoint.scaling
    if hosting.kind == "single_model":
        yield "model in the production variant" + ("" if hosting.asynchronous is None else ", asynchronous")
    variants = (*(hosting.variants or ()), *((hosting.shadow,) if hosting.shadow else ()))
    if more := [variant.name for variant in variants]:
        yield f"variants {', '.join(more)}: each on its own instances; the cost is that of the endpoint's own"
    if hosting.instance_pools:
        first, *others = hosting.instance_pools
        yield f"{', '.join(others)} where {first} has no capacity; cost not counted"
    if scaling.scale_in_protection:
        yield "scaling never removes copies"
    if hosting.metrics is not None:
        yield from metric_lines(hosting.metrics, plan)


def _latencies(plan: Plan, loaded: LoadedSpec, point: CurvePoint | RatePoint | None) -> Iterator[str]:
    """Yield each bounded latency with its band and its bound; TTFT and TPOT where nothing is bounded."""
    if point is None:
        return
    bounds = tuple(bounded_latencies(loaded.endpoint.slo))
    # The two that are nearest to their bounds, or furthest above them, decide; they are shown in the spec's order.
    tightest = sorted(bounds, key=lambda bound: _ratio(bound, point), reverse=True)[:_MOST_BOUNDS]
    for bound in (each for each in bounds if each in tightest):
        yield f"{bound.name} {_banded(bound.of(point), plan, bound.metric)}, SLO {bound.bounded}"
    for metric, field, name in () if bounds else _UNBOUNDED:
        yield f"{name} {_banded(float(getattr(point, field)), plan, metric)}"


def _banded(value: float, plan: Plan, metric: str) -> str:
    low, high = edges(value, plan.band.latency_of(metric))
    return f"{short(value)} ms ({short(low)} to {short(high)})"


def _throughput(plan: Plan, loaded: LoadedSpec) -> str:
    least = loaded.endpoint.slo.output_tok_s
    bound = "" if least is None else f", SLO {least:,g} tok/s"
    # What a rate offers is no prediction: `carried_lines` has the saturation, which is one.
    how = " offered" if plan.rates else f" ±{whole_percent(plan.band.throughput)}"
    return f"{short(load_tok_s(plan))} output tok/s{how}{bound}"


def _offer(instance_type: str, loaded: LoadedSpec) -> str:
    known = find_instance(instance_type)
    is_offered = known is None or priced(known, loaded).is_offered
    return "" if is_offered else f"; not known to be offered in {loaded.environment.region}"


def _rival(instance_type: str, loaded: LoadedSpec) -> str:
    """Say whose price it is where the region's is not known, and that the offer is not known where it is not."""
    known = find_instance(instance_type)
    instance = None if known is None else priced(known, loaded)
    where = f"; {instance.price_region}'s price" if instance is not None and instance.has_other_price else ""
    return where + _offer(instance_type, loaded)


def _runner_up(plan: Plan, loaded: LoadedSpec) -> str:
    """Name the next best: the first rejected deployment that meets the SLO, or else one of the Pareto front."""
    loser: Rejected | Alternative | None = next((one for one in plan.rejected if one.feasible), None)
    loser = loser or next((alternative for alternative in plan.pareto if not alternative.chosen), None)
    if loser is None:
        return "none: no other allowed deployment meets the SLO"
    ours, theirs = plan.cost.usd_per_hour, loser.usd_per_hour
    if theirs is None:
        price = "price unknown"
    elif ours is None:
        price = f"{usd(theirs)}/h"
    else:
        price = f"{usd(theirs)}/h ({'+' if theirs >= ours else '-'}{usd(abs(theirs - ours))}/h)"
    count = f"{loser.instance_count} x " if loser.instance_count > 1 else ""
    hardware = f"{count}{hardware_words(loser.instance_type, loser.tensor_parallel_degree)}"
    speed = "" if plan.rates else f", {short(loser.output_tok_s)} output tok/s"
    return f"{hardware}: {price}{speed}{_rival(loser.instance_type, loaded)}"


def _proposal(proposal: Proposal, loaded: LoadedSpec, share: str = "") -> str:
    price = "price unknown" if proposal.usd_per_hour is None else f"{usd(proposal.usd_per_hour)}/h"
    most = f"at most {short(proposal.highest_tok_s)} output tok/s"
    where = _rival(proposal.instance_type, loaded)
    return f"{proposal.quantization}: {proposal.words}: {price}{share}, {most}{where}"


def _probe(probe: Probe, loaded: LoadedSpec) -> str:
    unit = "tok/s" if probe.field == "slo.output_tok_s" else "ms"
    command = f"seatrial probe {loaded.path.as_posix()} -e {loaded.environment.name}"
    return (
        f"{probe.words} saves {usd(probe.saving_usd_per_hour)}/h if {probe.field} is {short(probe.bound)} {unit}; "
        f"predicted {short(probe.predicted)}\nmeasure {probe.concurrency_per_copy} per copy: "
        f"{command if loaded.has_spec else 'seatrial probe SPEC'}"
    )


def _next(loaded: LoadedSpec) -> str:
    if not loaded.has_spec:
        assumed = f"max_copies {loaded.endpoint.scaling.max_copies} assumed"
        return f"--explain shows every section\n--save endpoints/NAME.yaml writes the spec ({assumed})"
    if not loaded.has_environment:
        return "--explain shows every section\nseatrial init FOLDER writes a repository to deploy from"
    # By its name where that is enough: the name of a file elsewhere is none that `deploy` takes.
    endpoint = loaded.path.stem if loaded.path.parent.as_posix() == "endpoints" else loaded.path.as_posix()
    deploy = f"seatrial deploy {endpoint} -e {loaded.environment.name}"
    return f"--write locks this plan, --explain shows every section\n{deploy}"
