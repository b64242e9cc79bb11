"""The head of the report: what was tried, what must be known before any number is read, the figures that matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.report.document.baseline import comparison_sentence, verdict_reason
from seatrial.report.document.cost import NO_MEASURED_COST
from seatrial.report.document.section import Fact
from seatrial.report.planned import plan_of_trial
from seatrial.report.values import (
    NO_SECOND_TOKEN,
    NO_TOKEN_COUNT,
    NOT_STREAMED,
    as_set,
    count_cell,
    missing_cell,
    money_cell,
    number_cell,
    seconds,
    sentence,
    why_missing,
)
from seatrial_base.table import Cell
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.result import loads_words
from seatrial_load.measure.lengths import lengths_of
from seatrial_load.metrics.sent import QUEUEING, arrival_words, conversation_words, omission_words, prefix_words
from seatrial_load.slo.evaluate import statistic_of
from seatrial_load.slo.verdict import doubt_texts, gate_level

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial_load.documents.result import LevelResult, TrialResult


def cautions(result: TrialResult, plan: Plan | None) -> Iterator[str]:
    """Yield what must be known before any number is read."""
    own = plan_of_trial(result, plan)
    if result.engine_note:
        planned = "the GPU that was planned" if own is None else f"the GPU that was planned ({own.instance_type.value})"
        yield (
            f"Local engine: “{result.engine_note}”, a small random model on this machine's CPU, not {planned}. The "
            f"numbers show that deployment and trial work, not the speed or cost of the real endpoint."
        )
    void = [level for level in result.levels if level.void is not None]
    if void:
        yield (
            f"Void (○): at {loads_words(void)} the client was the limit. Knee, verdict and cost ignore these levels."
        )
    if cut := [level for level in result.levels if level.cut]:
        yield (
            f"Cut (○): {loads_words(cut)} ended early; the numbers are of what had been answered. Knee, verdict and "
            f"cost ignore these levels."
        )
    yield from (f"Doubtful answers: {doubts}." for doubts in doubt_texts(result))
    if result.comparison is not None and result.comparison.status == "worse":
        yield f"Worse than the last release: {comparison_sentence(result.comparison)}"
    if plan is None and result.request.target.kind == "sagemaker":
        yield "No plan was given: planned cost is missing, predictions are from the trial request."
    elif plan is not None and own is None:
        yield (
            f"The given plan ({plan.digest}) is not the plan of this trial ({result.request.plan_digest}) and is "
            f"ignored."
        )


def header_facts(result: TrialResult, plan: Plan | None) -> Iterator[Fact]:
    """Yield what was tried, on what, and when."""
    request = result.request
    work, target = request.workload, request.target
    place = target.region if target.kind == "sagemaker" else str(target.endpoint_url)
    yield Fact("Endpoint", Cell(target.endpoint_name, tone="code"), place)
    if plan is not None:
        yield Fact("Model", Cell(plan.model_name))
        yield Fact("Planned on", Cell(plan.instance_type.value), f"{plan.engine.value} {plan.engine_version.value}")
    streamed = "streamed" if work.stream else "not streamed"
    talks = conversation_words(work)
    aside = ", ".join(part for part in (work.schema, streamed, omission_words(work), talks, prefix_words(work)) if part)
    yield Fact("Workload", Cell(lengths_of(work).words + (" a turn" if talks else "")), aside)
    yield _load_fact(result)
    if result.users is not None:
        known = result.users.concurrency_per_copy
        users = missing_cell(result.users.because) if known is None else as_set(known)
        yield Fact("Users", users, "requests in flight per copy, before the trial")
    planned = result.live.planned_copy_count
    yield Fact("Copies", count_cell(request.copy_count), "" if planned is None else f"the plan has {planned}")
    yield Fact("Started", Cell(result.started_at.replace("T", " ")), f"took {seconds(result.duration_s)}")


def _load_fact(result: TrialResult) -> Fact:
    load = result.request.load
    if result.request.manner == "load":
        aside = QUEUEING if ARRIVALS[load.arrival].is_open else f"{load.search}, {load.protocol}"
        return Fact("Load", Cell(arrival_words(load)), aside)
    if result.levels:
        return Fact("Load", Cell(arrival_words(load)), "alongside users' requests; no knee was sought")
    return Fact("Load", Cell("none"), "single requests; no knee was sought")


def key_figures(result: TrialResult) -> Iterator[Fact]:
    """Yield the figures that matter most: the scaling target, the results of the gate's level, the cost."""
    level, at_gate = _gate_level(result)
    unmeasured = f"concurrency {result.request.gate_concurrency} was not measured"
    target = as_set(result.target_concurrency_per_copy)
    yield Fact("Scaling target", target, "requests in flight per copy")
    for name, unit, value, otherwise in _gate_values(level):
        because = otherwise if level else unmeasured
        yield Fact(name, number_cell(value, because, unit=unit), because if value is None else at_gate)
    if not result.engine_note:
        usd = result.usd_per_million_output_tokens
        aside = NO_MEASURED_COST if usd is None else "per million output tokens"
        yield Fact("Measured cost", money_cell(usd, NO_MEASURED_COST), aside)


def _gate_level(result: TrialResult) -> tuple[LevelResult | None, str]:
    """Return the level that the verdict is about, and its load in words: of an open loop, the rate of its gate."""
    at_gate = gate_level(result.request, result.levels)
    if at_gate is not None and at_gate.is_open:
        return at_gate, f"at {at_gate.offered_load:,.3g} requests/s offered"
    if result.request.manner == "in_place" and result.levels:
        level = result.levels[-1]
        return level, f"with users' load, at concurrency {level.concurrency}"
    return at_gate, f"at the gate, concurrency {result.request.gate_concurrency}"


def _gate_values(level: LevelResult | None) -> tuple[tuple[str, str, float | None, str], ...]:
    """Return throughput, TTFT and TPOT: name, unit, value, and why it may be missing."""
    if level is None:
        return ("Throughput", "tok/s", None, ""), ("TTFT p95", "ms", None, ""), ("TPOT p95", "ms", None, "")
    return (
        ("Throughput", "tok/s", level.output_tok_s, why_missing(level, NO_TOKEN_COUNT)),
        ("TTFT p95", "ms", statistic_of(level.ttft_ms, "p95"), why_missing(level, NOT_STREAMED)),
        ("TPOT p95", "ms", statistic_of(level.tpot_ms, "p95"), why_missing(level, NO_SECOND_TOKEN)),
    )


def verdict_sentence(result: TrialResult) -> str:
    """Return the reason of the verdict as a sentence."""
    return sentence(verdict_reason(result))
