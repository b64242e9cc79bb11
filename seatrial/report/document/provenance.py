"""Provenance of a trial: deployment, start, decisions, name, and the command that makes it again."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision, Image
from seatrial.locks.locked_plan import provenance_lines
from seatrial.report.document.section import Fact, Section, Text
from seatrial.report.values import count_cell, missing_cell, number_cell, sentence
from seatrial_base.table import Cell, Column, Table, number_columns, table_of, text_columns
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.options import OPTIONS
from seatrial_load.documents.request import JUMPSTART_LEVELS, LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial.documents.simulation import CopyStart
    from seatrial_load.documents.request import Load, TrialRequest, Workload
    from seatrial_load.documents.result import TrialResult


REPRODUCTION = "Plan digest and start time seed the prompts. The request contains the rest."
SCALED = (
    "The local engine is a small random model on this machine's CPU. Workload, SLO and trial were scaled to it; what "
    "the spec sets for the laptop itself is kept."
)


def live_section(result: TrialResult) -> Section:
    """Return the live endpoint by the control plane."""
    live, not_checked = result.live, "not checked"
    proven = Cell("✓ yes", tone="good") if live.proven else Cell("? no", tone="unknown")
    return Section(
        anchor="live",
        heading="Deployment check",
        paragraphs=(sentence(live.because),),
        facts=(
            Fact("Matches the deployment", proven),
            Fact("Endpoint config", _named(live.endpoint_config_name, not_checked)),
            Fact("Model", _named(live.model_name, not_checked)),
            Fact(
                "Running copies", missing_cell(not_checked) if live.copy_count is None else count_cell(live.copy_count)
            ),
        ),
        detail=True,
    )


def scaled_section(result: TrialResult) -> Section:
    """Return the laptop's values in place of the spec's; empty elsewhere."""
    scaled = result.request.scaled
    columns = (Column("field", kind="text"), Column("spec", kind="number"), Column("laptop", kind="number"))
    rows = tuple((Cell(value.field, tone="code"), Cell(value.asked), Cell(value.used)) for value in scaled)
    return Section(
        anchor="scaled",
        heading="Scaled to the laptop",
        paragraphs=(SCALED,) if rows else (),
        tables=(Table("Values of the laptop in place of the spec's", columns, rows),) if rows else (),
    )


def decisions_section(plan: Plan) -> Section:
    """Return every decision of the plan with its reason."""
    columns = (Column("decision", kind="text"), Column("value", kind="text"), Column("reason", kind="prose"))
    decision_rows: list[tuple[Cell, ...]] = []
    for name in type(plan).model_fields:
        decision: object = getattr(plan, name)
        if isinstance(decision, Decision):
            decision_rows.append((Cell(name.replace("_", " ")), _decided(decision.value), Cell(decision.because)))
    table = Table("Decisions of the plan", columns, tuple(decision_rows))
    warnings = tuple(f"Warning: {warning}" for warning in plan.warnings)
    return Section(
        anchor="decisions",
        heading="Decisions of the plan",
        paragraphs=tuple(sentence(line) for line in provenance_lines(plan.promoted)),
        tables=(table,),
        remarks=warnings,
        detail=True,
    )


def start_section(result: TrialResult, start: CopyStart | None) -> Section:
    """Return how long the copy on trial took to start, and what the plan says of a start and of a shorter one."""
    lines = [] if result.start is None else [f"The copy on trial: {result.start.words}"]
    lines += [] if start is None else [start.waits, *start.warnings]
    return Section(
        anchor="start",
        heading="Start of a copy",
        paragraphs=tuple(map(sentence, lines)),
        tables=tuple(start_tables(start)) if start is not None else (),
        detail=True,
    )


def start_tables(start: CopyStart) -> Iterator[Table]:
    """Yield the parts of a copy's start, when it gives its first answer, and what would shorten it by how much."""
    columns = (*text_columns("part"), *number_columns("seconds", "likely"), *text_columns("source"))
    for caption, parts in (("Parts", start.parts), ("First answer", start.totals), ("What saves", start.shortcuts)):
        rows = (
            (
                part.part,
                f"{part.seconds:,.0f}",
                "" if part.likely_s is None else f"{part.likely_s:,.0f}",
                "; ".join(dict.fromkeys(filter(None, (part.source, part.likely_source)))),
            )
            for part in parts
        )
        yield table_of(columns, rows, caption)


def reproduction_section(result: TrialResult) -> Section:
    """Return what another run needs to be the same trial."""
    request = result.request
    return Section(
        anchor="reproduce",
        heading="Reproduce this trial",
        paragraphs=(REPRODUCTION,),
        facts=tuple(_circumstances(result)),
        texts=(
            Text("Command", command_of(request)),
            Text("Request of the trial (JSON)", json.dumps(json.loads(request.to_json()), indent=2)),
        ),
        detail=True,
    )


def _circumstances(result: TrialResult) -> Iterator[Fact]:
    request = result.request
    yield Fact("Spec", Cell(request.endpoint, tone="code"))
    yield Fact("Environment", Cell(request.environment, tone="code"))
    digest = request.plan_digest
    yield Fact("Plan digest", Cell(digest, tone="code") if digest else missing_cell("no plan was deployed"))
    yield Fact("Seed of the prompts", Cell(f"{digest}:{result.started_at}", tone="code"))
    yield Fact("Seatrial", Cell(result.seatrial_version) if result.seatrial_version else missing_cell("not recorded"))
    yield Fact("Result schema", Cell(result.schema_version))
    yield Fact("Protocol", Cell(request.load.protocol))
    if request.workload.source != "synthetic":
        yield Fact("Prompts", Cell(request.workload.source), f"SHA-256 {request.workload.source_digest}")
    if result.words_per_token is not None:
        yield Fact("Words per token", number_cell(result.words_per_token, ""), "of the synthetic prompts")
    if result.clock_offset_s is not None:
        yield Fact("Clock corrected by", number_cell(result.clock_offset_s, "", unit="s"), "by the service's refusal")


def _named(name: str | None, because: str) -> Cell:
    return missing_cell(because) if name is None else Cell(name, tone="code")


def _decided(value: object) -> Cell:
    if value is None:
        return missing_cell("service default")
    if isinstance(value, Image):
        return Cell(value.uri)
    return Cell(", ".join(map(str, value)) if isinstance(value, tuple) else str(value))


def trial_name(request: TrialRequest) -> str:
    """Name what was tried: an endpoint in its environment, or a server by its address."""
    if request.target.kind == "openai":
        return f"{request.endpoint} at {request.target.endpoint_url}"
    return f"{request.endpoint} in {request.environment}"


def command_of(request: TrialRequest) -> str:
    """Return the command that makes this trial again, with what a spec doesn't hold; files are named by their kind."""
    load_options: list[str] = []
    load = request.load
    if request.workload.source == "jsonl":
        load_options += ("--prompts", "PROMPTS.jsonl")
    if load.protocol != "seatrial":
        load_options += ("--protocol", load.protocol)
        if load.concurrency_levels != JUMPSTART_LEVELS:
            load_options += ("--levels", ",".join(map(str, load.concurrency_levels)))
    else:
        load_options += _timing(load)
    if load.requests is not None and not ARRIVALS[load.arrival].is_open:
        load_options += ("--requests", str(load.requests))
    load_options += [
        row.flag for row in OPTIONS.values() if row.kind is bool and getattr(request.workload, row.name, False)
    ]
    if request.target.kind == "openai":
        load_options += _limit_options(load)
    if request.overload == "require" and request.target.kind == "openai":  # else the spec says it
        load_options.append("--overload")
    return shlex.join(("seatrial", "bench", *_target_options(request), *load_options, "--output", "report"))


def _target_options(request: TrialRequest) -> Iterator[str]:
    target, work = request.target, request.workload
    if target.kind == "sagemaker":
        yield from ("SPEC", "--environment", request.environment)
        return
    yield from ("--url", str(target.endpoint_url))
    for option, value in (("--model", target.model), ("--api-key-variable", target.api_key_variable)):
        if value is not None:
            yield from (option, value)
    if work.source != "trace":
        yield from _length_options(work)
    for objective in request.objectives:
        statistic = "" if objective.statistic == "value" else f".{objective.statistic}"
        yield from ("--slo", f"{objective.metric}{statistic}={_exact(objective.bound)}")
    if not ARRIVALS[request.load.arrival].is_open:
        yield from ("--gate", str(request.gate_concurrency))
    if request.usd_per_hour_per_copy is not None:
        yield from ("--usd-per-hour", _exact(request.usd_per_hour_per_copy))


def _length_options(work: Workload) -> Iterator[str]:
    for row in OPTIONS.values():
        value = getattr(work, row.name) if row.part == "workload" and row.option.needs else None
        if value is not None and (row.option.default is not None or value != row.usual):
            yield from (row.flag, _exact(value))


def _limit_options(load: Load) -> Iterator[str]:
    """Yield the bounds of a server's trial that aren't those of `seatrial bench --url` without options."""
    options = () if load.protocol == "seatrial" else ("--timeout",)
    options = options if ARRIVALS[load.arrival].is_open else (*options, "--connections")
    for row in OPTIONS.values():
        if (row.group == LIMITS or row.flag in {"--workers", "--connections"}) and row.flag not in options:
            value = getattr(load, row.name)
            if value is not None and value / row.option.unit != row.usual:
                yield from (row.flag, _exact(value / row.option.unit))


def _timing(load: Load) -> Iterator[str]:
    arrivals = ARRIVALS[load.arrival]
    if not arrivals.is_open:
        yield from ("--levels", ",".join(map(str, load.concurrency_levels)))
        if load.start == "together" and load.protocol == "seatrial":
            yield from ("--start", load.start)
    elif arrivals.follows_trace:
        yield from ("--trace", "TRACE")
    elif load.gate_rate_per_s is None:  # else the rates are the spec's own
        rates = ",".join(_exact(rate) for rate in load.rates_per_s)
        yield from ("--rate", rates, "--arrival", load.arrival, "--level-seconds", _exact(load.level_s))
        if arrivals.takes_smoothness:
            yield from ("--smoothness", _exact(load.arrival_smoothness))
    if load.search != "sweep":
        yield from ("--search", load.search, "--goal", load.goal)


def _exact(value: float) -> str:
    """Write a number as it was set: with the digits that make the same trial, and without the noise of binary ones."""
    return f"{value:.12g}"
