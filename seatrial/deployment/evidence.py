"""What proves a promoted plan: the signed result of its trial, held against plan and spec.

It needs neither an account nor the time: the same at synthesis, in CI and on a laptop.
"""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Final

from seatrial.deployment.trial import slo_objectives, trial_workload
from seatrial.engines.render import render_plan
from seatrial.engines.rendered import configuration_digest
from seatrial.locks.lock_file import read_lock
from seatrial.locks.locked_plan import awaits_promotion, promotion_command, read_locked_plan
from seatrial.specs.endpoint import TrialSpec
from seatrial.specs.spec_files import lock_path
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.field_facts import facts_of
from seatrial_base.findings import Finding, Place
from seatrial_load.documents.request import CONVERSATIONS, Workload
from seatrial_load.documents.result import TrialResult
from seatrial_load.documents.seal import signed_bytes
from seatrial_load.slo.verdict import rederived_verdict, up_to_gate, verdict_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from seatrial.documents.plan import Plan, Promoted
    from seatrial.engines.rendered import RenderedConfig
    from seatrial.locks.locked_plan import Freshness
    from seatrial.specs.load import LoadedSpec

_NO_REQUESTS: Final = {"schema", "stream", "api", "source", "source_digest", "sends_prefix_id"}
"""Of a trial's workload: how its requests are sent, which the engine and the endpoint decide."""
_FUTURE: Final = timedelta(minutes=5)  # that the clocks of two machines may differ by
_OTHER: Final = "restore the committed lock, or promote again: "


def step_problem(target: LoadedSpec, source: str, rule: str, message: str, hint: str) -> Finding:
    """Return a problem of the promotion from a source to an environment."""
    return Finding(rule, Place.at(target.path.as_posix(), f"{source} -> {target.environment.name}"), message, hint)


def ended_at(result: TrialResult) -> datetime:
    """Return when a trial ended, in UTC, from its result."""
    started = datetime.fromisoformat(result.started_at)
    return started.astimezone(UTC) + timedelta(seconds=result.duration_s)


def copied_fields(result: TrialResult) -> dict[str, object]:
    """Return what a plan's provenance repeats of the result of its trial, by its names there."""
    return {
        "source": result.request.environment,
        "plan_digest": result.request.plan_digest,
        "verdict": result.verdict.status,
        "ended_at": ended_at(result).isoformat(timespec="seconds"),
        "knee_concurrency_per_copy": None if result.knee is None else result.knee.concurrency,
        "engine_note": result.engine_note,
    }


def is_proof_needed(loaded: LoadedSpec) -> bool:
    """Tell whether a promoted plan needs a signed result: where a promotion is required, and where keys are given."""
    promotion = loaded.environment.promotion
    return promotion.required or bool(promotion.public_keys)


def locked_evidence_problems(
    loaded: LoadedSpec, plan: Plan, serving: RenderedConfig, *, now: datetime | None = None
) -> tuple[Finding, ...]:
    """Return everything for which a locked, promoted plan is not proven; none where no proof is needed.

    Args:
        now: The time, where it is known; synthesis has none.
    """
    promoted, name = plan.promoted, loaded.environment.name
    if promoted is None or not is_proof_needed(loaded):
        return ()
    path = lock_path(loaded.path)
    place, command = Place.at(path.as_posix(), f"{name}.promoted"), promotion_command(loaded)
    text = read_lock(path).evidence.get(name)
    if text is None:
        message = "the lock has no signed result of the trial on which the plan was promoted"
        keys = "" if loaded.environment.promotion.public_keys else f"; {_keys_hint(loaded)} first"
        return (Finding("SEA580", place, message, f"promote again with this release: `{command}`{keys}"),)
    try:
        result = TrialResult.from_json(text)
    except SeatrialError as error:
        return tuple(Finding("SEA581", place, each.message, f"{_OTHER}`{command}`") for each in error.problems)
    return (
        *signature_problems(text, result, loaded, place),
        *_copied(promoted, result, loaded, place),
        *_age(promoted, result, loaded, place, now),
        *simulated_problems(result, loaded),
        *verdict_problems(result, loaded),
        *configuration_problems(result, loaded, plan, serving),
        *workload_problems(loaded, result),
        *slo_problems(loaded, plan, result),
    )


def signature_problems(text: str, result: TrialResult, target: LoadedSpec, place: Place) -> Iterator[Finding]:
    """Yield that a result is not signed with a key of its environment, where a proof is needed.

    Args:
        text: The result as its service wrote it: what this release would write of it may be other bytes.
    """
    promotion, seal = target.environment.promotion, result.seal
    if not is_proof_needed(target):
        return
    keys = _keys_hint(target)
    if seal is None:
        message = "the result of the trial is not signed"
        hint = f"deploy with this release to {promotion.source}, whose trial service signs, and try the plan again"
        yield Finding("SEA580", place, message, hint)
    elif not promotion.public_keys:
        message = f"promotion.public_keys of {target.environment.name} are empty: no signature can be verified"
        yield Finding("SEA580", place, message, keys)
    elif not any(verifies(key, text, seal.signature) for key in promotion.public_keys):
        message = (
            f"the signature is not that of a key of {promotion.source} over this result: the result was changed, or "
            f"signed by {seal.key_arn}, which is not among promotion.public_keys"
        )
        hint = f"promote the result of the environment's bucket; after a change of the key, {keys}"
        yield Finding("SEA581", place, message, hint)


def _keys_hint(target: LoadedSpec) -> str:
    source = target.environment.promotion.source
    return f"run `seatrial keys -e {source} --write` with an account's rights, and have the change reviewed"


def verifies(key: str, text: str, signature: str) -> bool:
    """Tell whether a signature is that of a public key, in base64, over a document in JSON."""
    # Heavy, and most commands verify nothing.
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    try:
        public = serialization.load_der_public_key(b64decode(key, validate=True))
        signed = b64decode(signature, validate=True)
        if not isinstance(public, ec.EllipticCurvePublicKey):
            return False
        public.verify(signed, signed_bytes(json.loads(text)), ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):  # of a text that is no base64 too, and of a point that is on no curve
        return False
    return True


def fingerprint(key: str) -> str:
    """Return the SHA-256 of a public key's DER, in hexadecimal digits."""
    return sha256(b64decode(key)).hexdigest()


def _copied(promoted: Promoted, result: TrialResult, loaded: LoadedSpec, place: Place) -> Iterator[Finding]:
    pairs = {name: (getattr(promoted, name), value) for name, value in copied_fields(result).items()}
    pairs["endpoint"] = (loaded.endpoint.name, result.request.endpoint)
    if promoted.request_id is not None and result.seal is not None:
        pairs["request_id"] = (promoted.request_id, result.seal.actor.rpartition(":")[2])
    for name, (copied, signed) in pairs.items():
        if copied != signed:
            message = f"{name} is {copied} in the lock, and {signed} in the signed result"
            yield Finding("SEA582", place, message, f"{_OTHER}`{promotion_command(loaded)}`")


def _age(
    promoted: Promoted, result: TrialResult, loaded: LoadedSpec, place: Place, now: datetime | None
) -> Iterator[Finding]:
    """Judge the trial's age at its promotion: what is deployed and unchanged since does not expire."""
    try:
        written = datetime.fromisoformat(promoted.promoted_at)
        then = written.replace(tzinfo=written.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        then = datetime.min.replace(tzinfo=UTC)
    ended = ended_at(result)
    hint = f"promote again: `{promotion_command(loaded)}`"
    if then < ended or (now is not None and then > now + _FUTURE):
        message = f"promoted_at is {promoted.promoted_at or 'missing'}; the trial ended {ended.isoformat()}"
        yield Finding("SEA474", place, message, hint)
    elif problem := age_problem(ended, then, loaded):
        yield Finding("SEA474", place, problem, hint)


def age_problem(ended: datetime, then: datetime, target: LoadedSpec) -> str:
    """Return that a trial was too old for a promotion at some time; empty when it was not."""
    days, most = (then - ended) / timedelta(days=1), target.environment.promotion.max_age_days
    return f"the trial ended {days:.0f} days ago; promotion.max_age_days is {most}" if days > most else ""


def configuration_problems(
    result: TrialResult, target: LoadedSpec, plan: Plan, serving: RenderedConfig
) -> Iterator[Finding]:
    """Yield that a copy would not serve as it was tried, where a proof is needed."""
    source, tried = result.request.environment, result.request.configuration_digest or "unknown"
    if not is_proof_needed(target):
        return
    (copy, _, place), (tried_copy, _, tried_place) = (
        text.partition(".") for text in (configuration_digest(target, plan, serving), tried)
    )
    if copy != tried_copy:
        message = f"the trial is of another configuration of a copy (digest {tried}) than the locked one"
        hint = f"deploy the plan to {source} with this release, try it there, and promote it"
        yield step_problem(target, source, "SEA582", message, hint)
    # An environment may keep the weights in a bucket of its own: its file, which its owners review, names the places.
    elif place != tried_place and target.rails.models is None:
        message = f"the weights come from another place than those that were tried in {source}"
        hint = f"load the tried ones, or name the places in guard_rails.models of {target.environment.name}"
        yield step_problem(target, source, "SEA582", message, hint)


def simulated_problems(result: TrialResult, target: LoadedSpec, *, accepted: bool = False) -> Iterator[Finding]:
    """Yield that a simulated engine was tried: on the laptop that is all that is promised, on AWS it proves no speed.

    Args:
        accepted: Whether a person accepts it. Where a proof is needed, only the environment's file can, which its
            owners review: a lock is written by whoever has the option.
    """
    if not result.engine_note or target.environment.is_embedded or target.environment.promotion.accept_simulated:
        return
    proven, source = is_proof_needed(target), result.request.environment
    if accepted and not proven:
        return
    accept = f"promotion.accept_simulated: true in {target.environment.name}" if proven else "--accept-simulated"
    message = f"the engine of the trial was simulated: {result.engine_note}"
    hint = f"try the plan on AWS in {source}; {accept} takes the result as it is, and the lock records it"
    yield step_problem(target, source, "SEA477", message, hint)


def verdict_problems(result: TrialResult, target: LoadedSpec) -> Iterator[Finding]:
    """Yield where a result contradicts itself, or proves no deployment."""
    source, status = result.request.environment, result.verdict.status
    hint = f"deploy the plan to {source} and try it there again"
    if result.request.manner == "verify" or not result.levels:  # beside users there may have been room for no load
        message = "the trial only verified the deployment: it sent a few requests and no load"
        yield step_problem(
            target, source, "SEA471", message, f"set trial.update: candidate in {source}, and deploy again"
        )
    elif status == "pass" and (derived := rederived_verdict(result)).status != "pass":
        message = f"the result says pass, and its own levels say {derived.status}: {derived.because}"
        yield step_problem(target, source, "SEA583", message, hint)
    if not result.live.proven:
        message = f"the trial did not prove that the deployed plan served its requests: {result.live.because}"
        yield step_problem(target, source, "SEA471", message, f"deploy the plan to {source}, which proves it")


def with_evidence(freshness: Freshness, *, now: datetime) -> Freshness:
    """Return the state of a lock with what its signed result does not prove."""
    loaded = freshness.loaded
    if freshness.state != "fresh" or not is_proof_needed(loaded):
        return freshness
    try:
        plan = read_locked_plan(loaded)
        problems = locked_evidence_problems(loaded, plan, render_plan(loaded, plan), now=now)
    except SeatrialError as error:
        problems = error.problems
    if not problems:
        return freshness
    awaits = awaits_promotion(SpecError(problems), loaded)
    return replace(freshness, state="awaiting promotion" if awaits else "unproven", problems=problems)


def workload_problems(target: LoadedSpec, result: TrialResult) -> Iterator[Finding]:
    """Yield where the trial's requests differ from those of the environment to come."""
    tried, source = result.request.workload, result.request.environment
    requested = trial_workload(target, tried.schema, tried.api)
    older = not target.endpoint.workload.shared_prefix_tokens  # then a prefix has the trial's spelling
    other = dict.fromkeys(_differences(requested, tried, set(TrialSpec.model_fields) if older else set()))
    if other:
        hint = f"give both environments the same requests, and try them in {source}"
        yield step_problem(target, source, "SEA475", "; ".join(other), hint)


def _differences(requested: Workload, tried: Workload, of_trial: Collection[str]) -> Iterator[str]:
    for name, facts in facts_of(Workload).items():
        ours, theirs = getattr(requested, name), getattr(tried, name)
        if ours == theirs or name in _NO_REQUESTS:
            continue
        if facts.of == CONVERSATIONS:
            yield "workload has other conversations than the trial's"
        elif isinstance(ours, tuple):
            yield f"workload.dataset has other {name.removesuffix('_s')} than the trial's"
        else:
            yield f"{'trial' if name in of_trial else 'workload'}.{name} is {ours}, the trial's was {theirs}"


def slo_problems(target: LoadedSpec, plan: Plan, result: TrialResult) -> Iterator[Finding]:
    """Yield where the measurement contradicts the promoted plan at its load per copy.

    Throughput is of all copies: the measured copies' counts for as many as the plan has.
    """
    # The live count is of the copies that took the load; the request's is what was planned before.
    measured = result.live.copy_count or result.request.copy_count
    share = measured / plan.copy_count.value
    objectives = [
        replace(objective, bound=objective.bound * share) if objective.metric == "output_tok_s" else objective
        for objective in slo_objectives(target.endpoint.slo)
    ]
    source, confidence = result.request.environment, target.endpoint.trial.confidence
    levels = up_to_gate(result.levels, result.request.load)
    hint = "allow more copies (scaling), measure that concurrency where the plan is tried, or relax the SLO"
    # Above the load that a copy was measured to hold, a scaling target would add copies too late, or never.
    loads = {
        "load": plan.gate_concurrency_per_copy.value,
        "scaling target": ceil(plan.target_concurrency_per_copy.value),
    }
    for name, load in loads.items():
        verdict = verdict_at(load, levels, objectives, confidence=confidence)
        if verdict.status != "pass":
            copies = f"{load} concurrent requests per copy on {plan.copy_count.value} copies"
            message = f"at the {name} of {plan.environment}, {copies}: {verdict.because}"
            yield step_problem(target, source, "SEA475", message, hint)
            return
