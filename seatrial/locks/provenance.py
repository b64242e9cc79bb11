"""Where a promoted plan comes from, in words, and whether a locked plan was promoted where that is required."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.locks.path import lock_path
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan, Promoted
    from seatrial.specs.load import LoadedSpec


def provenance_problems(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return that a locked plan lacks the provenance that its environment requires; none when it has it."""
    promotion, promoted = loaded.environment.promotion, plan.promoted
    if not promotion.required or (promoted is not None and promoted.source == promotion.source):
        return ()
    here, source = loaded.environment.name, promotion.source
    told = "was not promoted" if promoted is None else f"was promoted from {promoted.source}"
    where = loaded.place.where(("promotion", "required"))
    message = f"the plan {told}; promotion.required ({where}) asks for a passed trial in {source}"
    hint = f"run `{promotion_command(loaded)}`"
    return (Finding("SEA478", Place.at(lock_path(loaded.path).as_posix(), f"{here}.promoted"), message, hint),)


def promotion_command(loaded: LoadedSpec) -> str:
    """Return the command that writes a promoted plan into the lock of a spec."""
    source, here = loaded.environment.promotion.source, loaded.environment.name
    return f"seatrial promote {loaded.path.as_posix()} --from {source} --to {here} --write"


def unpromoted_problem(loaded: LoadedSpec) -> Finding | None:
    """Return that the environment takes promoted plans alone, so that no other is to be written; `None` otherwise."""
    if not loaded.environment.promotion.required:
        return None
    here, where = loaded.environment.name, loaded.place.where(("promotion", "required"))
    message = f"{here} takes promoted plans alone (promotion.required, {where})"
    hint = f"deploy the plan to {loaded.environment.promotion.source}, then run `{promotion_command(loaded)}`"
    return Finding("SEA478", Place.at(loaded.path.as_posix(), here), message, hint)


def provenance_lines(promoted: Promoted | None) -> tuple[str, ...]:
    """Return the trial that a plan was promoted after, as people read it; none where it was not promoted."""
    if promoted is None:
        return ()
    knee = promoted.knee_concurrency_per_copy
    found = "no knee" if knee is None else f"knee {knee:g} concurrent requests per copy"
    simulated = f"; simulated hardware: {promoted.engine_note}" if promoted.engine_note else ""
    return (
        f"promoted from {promoted.source}: trial passed, ended {promoted.ended_at}, {found}{simulated}",
        f"plan {promoted.plan_digest} of spec {promoted.spec_digest}, request {promoted.request_id or 'unknown'}",
        f"result {promoted.result_uri}",
    )
