"""The locked plan of a spec: whether it is fresh, unchanged and within all limits, and where it was promoted from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from seatrial.locks.changes import change_text
from seatrial.locks.guard_rails import limit_problems, rail_problems
from seatrial.locks.lock_file import Seal, changed_fields, changing_file, put_plan, read_lock, validated_plan
from seatrial.specs.spec_files import lock_path
from seatrial_base.errors import SpecError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from seatrial.documents.plan import Plan, Promoted
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.errors import SeatrialError

_LONGEST_SHOWN = 120
State = Literal["fresh", "stale", "missing", "edited", "unreadable", "beyond limits", "awaiting promotion", "unproven"]
# What the first of these rules among a lock's problems means; any other is a limit that the plan breaks.
_STATES: Mapping[str, State] = {
    "SEA403": "unreadable",
    "SEA113": "unreadable",
    "SEA137": "unreadable",
    "SEA401": "missing",
    "SEA411": "edited",
    "SEA402": "stale",
}
# What is wrong with a lock until a tried plan is promoted to it.
_PROMOTION_ENDS = frozenset({"SEA401", "SEA402", "SEA478", "SEA580"})


@dataclass(frozen=True, slots=True)
class Changed:
    """What was changed by hand in a locked plan since it was written.

    Attributes:
        fields: The fields, sorted; empty for none.
        problems: One for each of them, or one that says why nothing can be told.
        seal: The digests with which it was written; `None` where they are missing.
    """

    fields: tuple[str, ...]
    problems: tuple[Finding, ...]
    seal: Seal | None


def change_locked_plan(loaded: LoadedSpec, change: Callable[[Plan], Plan]) -> Path:
    """Read the locked plan, change it, and write it; the lock is kept from other writers meanwhile.

    Raises:
        SpecError: What `read_locked_plan` and `write_lock` raise.
    """
    path = lock_path(loaded.path)
    with changing_file(path, "SEA403"):
        put_plan(change(read_locked_plan(loaded)), path)
    return path


def read_locked_plan(loaded: LoadedSpec, *, stale: bool = False) -> Plan:
    """Return the plan that was locked for a spec in its environment, as it was planned or adopted.

    `stale`: take the plan also when the spec or the environment changed since; their limits are not checked then.

    Raises:
        SpecError: SEA401 when there is none, SEA403 when the lock can't be read. Else with every problem of SEA402
            when it is stale and may not be, SEA411 when it was changed by hand, SEA413 to SEA415 when it is beyond
            what the environment and the spec allow, and SEA478 when it was not promoted and must be.
    """
    plan, changed = read_edited_plan(loaded)
    problems = list(changed.problems)
    # A stale plan breaks limits of a spec that it was not made for: then only the environment's rails are checked.
    if not stale:
        stale_by = _stale(plan, loaded)
        problems += (*stale_by, *rail_problems(plan, loaded)) if stale_by else limit_problems(plan, loaded)
        problems += provenance_problems(plan, loaded)
    if problems:
        raise SpecError(problems)
    return plan


def read_edited_plan(loaded: LoadedSpec) -> tuple[Plan, Changed]:
    """Return the locked plan with what was changed by hand since it was written.

    Raises:
        SpecError: SEA401 when there is none, SEA403 when it can't be read.
    """
    path, name = lock_path(loaded.path), loaded.environment.name
    lock = read_lock(path)
    if name not in lock.environments:
        message = f"there is no plan for {name}" if lock.environments else "there is no lock"
        raise SpecError.of("SEA401", message, hint=_plan_again(loaded), where=path.as_posix(), field=name)
    document = lock.environments[name]
    plan, where = validated_plan(document, path, name), path.as_posix()
    try:
        seal = Seal.model_validate(lock.digests.get(name))
    except ValidationError:
        message = "the plan has no digest, so changes by hand can't be detected"
        return plan, Changed((), (Finding("SEA411", Place.at(where, name), message, _plan_again(loaded)),), None)
    # The document as written is compared, not the plan: the model would add fields of a later release.
    fields = document if isinstance(document, dict) else {}
    hint = (
        f"restore the committed lock, plan again (`{_command(loaded)} --write`), or adopt the changes "
        f"(`{_command(loaded)} --adopt`)"
    )
    changed = changed_fields(fields, seal)
    problems = (
        Finding("SEA411", Place.at(where, f"{name}.{field}"), f"changed by hand{_shown(field, fields)}", hint)
        for field in changed
    )
    return plan, Changed(changed, tuple(problems), seal)


def _shown(field: str, document: Mapping[str, object]) -> str:
    """Return what a changed field holds now, as far as it fits into a message."""
    if field not in document:
        return ": removed" if field != "digests" else ""
    value = change_text(document[field])
    return f": now {value}" if len(value) <= _LONGEST_SHOWN else ""


def _stale(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return what changed since the plan was made; none when it is fresh."""
    where, name = lock_path(loaded.path).as_posix(), loaded.environment.name
    if plan.spec_digest != loaded.digest:
        message = f"the spec changed after planning: digest {loaded.digest}, planned {plan.spec_digest}"
        return (Finding("SEA402", Place.at(where, name), message, _plan_again(loaded)),)
    # The key is only deployed, so it is in no digest; yet a volume in service can't change it.
    key, planned = loaded.environment.kms_key_arn, plan.volume_kms_key_arn
    if plan.volume_size_gb is not None and key != planned:
        message = f"the volume key changed after planning: {change_text(key)}, planned {change_text(planned)}"
        return (Finding("SEA402", Place.at(where, f"{name}.volume_kms_key_arn"), message, _plan_again(loaded)),)
    return ()


def _plan_again(loaded: LoadedSpec) -> str:
    if loaded.environment.promotion.required:
        return f"run `{promotion_command(loaded)}`"
    return f"run `{_command(loaded)} --write`"


def _command(loaded: LoadedSpec) -> str:
    return f"seatrial plan {loaded.path.as_posix()} --environment {loaded.environment.name}"


def provenance_problems(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return that a locked plan lacks the provenance that its environment requires; none when it has it."""
    promotion, promoted = loaded.environment.promotion, plan.promoted
    if not promotion.required or (promoted is not None and promoted.source == promotion.source):
        return ()
    here, source = loaded.environment.name, promotion.source
    origin = "was not promoted" if promoted is None else f"was promoted from {promoted.source}"
    where = loaded.place.where(("promotion", "required"))
    message = f"the plan {origin}; promotion.required ({where}) asks for a passed trial in {source}"
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
    """Return the trial that a plan was promoted after, in words; none where it was not promoted."""
    if promoted is None:
        return ()
    knee = promoted.knee_concurrency_per_copy
    result = "no knee" if knee is None else f"knee {knee:g} concurrent requests per copy"
    simulated = f"; simulated hardware: {promoted.engine_note}" if promoted.engine_note else ""
    return (
        f"promoted from {promoted.source}: trial passed, ended {promoted.ended_at}, {result}{simulated}",
        f"plan {promoted.plan_digest} of spec {promoted.spec_digest}, request {promoted.request_id or 'unknown'}",
        f"result {promoted.result_uri}",
    )


@dataclass(frozen=True, slots=True)
class Freshness:
    """What is to be said of a lock in one environment.

    Attributes:
        loaded: The spec in its environment.
        state: `fresh`, or what is wrong with it.
    """

    loaded: LoadedSpec
    state: State
    problems: tuple[Finding, ...] = ()


def awaits_promotion(error: SeatrialError, loaded: LoadedSpec) -> bool:
    """Return whether all that is wrong with a lock ends with a promotion, which its environment requires.

    A changed spec makes the locks of every environment stale; where a promotion is required, the new plan comes only
    after its trial in the environment before. Until then what is deployed stays.
    """
    rules = {problem.rule for problem in error.problems}
    return loaded.environment.promotion.required and bool(rules) and rules <= _PROMOTION_ENDS


def freshness_of(loaded: LoadedSpec) -> Freshness:
    """Return whether the lock of a spec is the plan of the spec as it is now."""
    try:
        read_locked_plan(loaded)
    except SpecError as error:
        if awaits_promotion(error, loaded):
            return Freshness(loaded, "awaiting promotion", error.problems)
        rules = {problem.rule for problem in error.problems}
        state: State = next((state for rule, state in _STATES.items() if rule in rules), "beyond limits")
        return Freshness(loaded, state, error.problems)
    return Freshness(loaded, "fresh")
