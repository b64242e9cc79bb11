"""Locks as commands write and check them: what changed in one, and which are missing, stale or edited."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from seatrial_lint.cli.run import WRONG, lines_text, show_judgement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.locks.locked_plan import Freshness
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Format
    from seatrial_base.printer import Json


def lock_plan(plan: Plan, spec: Path, before: Mapping[str, object] | None) -> tuple[Path, tuple[str, ...]]:
    """Write one lock next to its spec, and return its path with what changed since `before`, the locked plan.

    Raises:
        SpecError: SEA403 when there is a lock that can't be read or replaced.
    """
    from seatrial.locks.changes import changes, count_generation, dropped_provenance, keep_digest
    from seatrial.locks.lock_file import write_lock

    kept, another = count_generation(before, keep_digest(before, plan))
    file = write_lock(kept, spec)
    if before is None:
        return file, ()
    return file, (*another, *changes(before, kept), *dropped_provenance(before.get("promoted")))


def refuse_format_of_findings(
    output_format: Format, *, is_check: bool, others: tuple[Format, ...] = ("text", "json")
) -> None:
    """Refuse a format that only findings have where no lock is checked; `others` are those of a plan."""
    if not is_check and output_format not in others:
        raise typer.BadParameter(f"{output_format} needs --check", param_hint="'--format'")


def check_freshness(loaded: Sequence[LoadedSpec], output_format: Format, command: str) -> None:
    """List the state of each lock, other than as text with every problem; exit 1 where a plan must be made again."""
    from seatrial.deployment.evidence import with_evidence
    from seatrial.locks.guard_rails import waiver_findings
    from seatrial.locks.locked_plan import freshness_of
    from seatrial.operations.review.side import stale_plan
    from seatrial_base.printer import Judgement

    now = datetime.now(UTC)
    states = [with_evidence(freshness_of(spec), now=now) for spec in loaded]
    waived = [spec for spec in loaded if spec.environment.guard_rails.waivers]
    waivers = [each for spec in waived for each in waiver_findings(spec, now.date(), stale_plan(spec))]
    problems = [*(problem for state in states for problem in state.problems), *waivers]
    facts: dict[str, Json] = {
        "locks": [
            {"spec": state.loaded.path.as_posix(), "environment": state.loaded.environment.name, "state": state.state}
            for state in states
        ]
    }
    judgement = Judgement(command=command, findings=problems, facts=facts)
    lines = [*map(_state_line, states), *map(str, waivers)]
    show_judgement(judgement, output_format, {"text": lambda: lines_text(lines)})
    if any(each.severity == "error" for each in waivers) or any(
        state.state not in {"fresh", "awaiting promotion"} for state in states
    ):
        raise typer.Exit(WRONG)


def _state_line(freshness: Freshness) -> str:
    place = f"{freshness.loaded.path.as_posix()}: {freshness.loaded.environment.name}: {freshness.state}"
    if freshness.state == "edited":
        fields = [problem.field.rpartition(".")[2] for problem in freshness.problems if problem.rule == "SEA411"]
        return f"{place} ({', '.join(fields)})"
    return (
        place if not freshness.problems else f"{place} ({freshness.problems[0].rule}: {freshness.problems[0].message})"
    )
