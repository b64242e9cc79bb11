"""What was deployed, what was decided and why, and how to run the same trial again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.locks.provenance import provenance_lines
from seatrial.planner.document import Decision, Image
from seatrial.report.document.command import command_of
from seatrial.report.document.section import Fact, Section, Text
from seatrial.report.table import Column, Table
from seatrial.report.values import Cell, count, missing, number, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.planner.document import Plan
    from seatrial_load.model.result import TrialResult


REPRODUCTION = "Plan digest and start time seed the prompts. The request contains the rest."


def live_section(result: TrialResult) -> Section:
    """Return what the control plane said the live endpoint was."""
    live, not_asked = result.live, "not checked"
    proven = Cell("✓ yes", tone="good") if live.proven else Cell("? no", tone="unknown")
    return Section(
        anchor="live",
        heading="Deployment check",
        paragraphs=(sentence(live.because),),
        facts=(
            Fact("Matches the deployment", proven),
            Fact("Endpoint config", _named(live.endpoint_config_name, not_asked)),
            Fact("Model", _named(live.model_name, not_asked)),
            Fact("Running copies", missing(not_asked) if live.copy_count is None else count(live.copy_count)),
        ),
        detail=True,
    )


def decisions_section(plan: Plan) -> Section:
    """Return every decision of the plan with its reason."""
    columns = (Column("decision", kind="text"), Column("value", kind="text"), Column("reason", kind="prose"))
    table = Table("Decisions of the plan", columns, tuple(_decision_rows(plan)))
    warnings = tuple(f"Warning: {warning}" for warning in plan.warnings)
    return Section(
        anchor="decisions",
        heading="Decisions of the plan",
        paragraphs=tuple(sentence(line) for line in provenance_lines(plan.promoted)),
        tables=(table,),
        remarks=warnings,
        detail=True,
    )


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
    yield Fact("Plan digest", Cell(digest, tone="code") if digest else missing("no plan was deployed"))
    yield Fact("Seed of the prompts", Cell(f"{digest}:{result.started_at}", tone="code"))
    yield Fact("Seatrial", Cell(result.seatrial_version) if result.seatrial_version else missing("not recorded"))
    yield Fact("Result schema", Cell(result.schema_version))
    yield Fact("Protocol", Cell(request.load.protocol))
    if request.workload.source != "synthetic":
        yield Fact("Prompts", Cell(request.workload.source), f"SHA-256 {request.workload.source_digest}")
    if result.words_per_token is not None:
        yield Fact("Words per token", number(result.words_per_token, ""), "of the synthetic prompts")
    if result.clock_offset_s is not None:
        yield Fact("Clock corrected by", number(result.clock_offset_s, "", unit="s"), "by the service's refusal")


def _named(name: str | None, because: str) -> Cell:
    return missing(because) if name is None else Cell(name, tone="code")


def _decision_rows(plan: Plan) -> Iterator[tuple[Cell, ...]]:
    for name in type(plan).model_fields:
        decision: object = getattr(plan, name)
        if isinstance(decision, Decision):
            yield Cell(name.replace("_", " ")), _decided(decision.value), Cell(decision.because)


def _decided(value: object) -> Cell:
    if value is None:
        return missing("service default")
    if isinstance(value, Image):
        return Cell(value.uri)
    return Cell(", ".join(map(str, value)) if isinstance(value, tuple) else str(value))
