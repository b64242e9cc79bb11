"""The trial that a promotion rests on, and everything that it does not prove."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from seatrial.deployment.trial import slo_objectives, trial_workload
from seatrial.documents.plan import Promoted
from seatrial.operations.drift.trials import ended_at
from seatrial.specs.endpoint import TrialSpec
from seatrial_base.field_facts import facts_of
from seatrial_base.findings import Finding, Place
from seatrial_load.documents.request import CONVERSATIONS, Workload
from seatrial_load.slo.verdict import up_to_gate, verdict_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import TrialResult


_NO_REQUESTS: Final = {"schema", "stream", "api", "source", "source_digest", "sends_prefix_id"}
"""Of a trial's workload: how its requests are sent, which the engine and the endpoint decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEvidence:
    """What is known of the trial of a deployed plan.

    Attributes:
        missing_because: Why there is no result; empty otherwise.
        report_uri: Of its short report.
        request_id: CloudFormation's request that it was made for; `None` where it is unknown.
        deployed_digest: The plan that is deployed; `None` where the stack was not read.
    """

    result: TrialResult | None
    missing_because: str = ""
    result_uri: str = ""
    report_uri: str = ""
    request_id: str | None = None
    deployed_digest: str | None = None


@dataclass(frozen=True, slots=True)
class PromotionStep:
    """One endpoint's step from an environment to another.

    Attributes:
        source: The spec in the environment where its plan was tried.
        target: The spec in the environment to come.
        plan: The locked plan of the source.
    """

    source: LoadedSpec
    target: LoadedSpec
    plan: Plan

    def problem(self, rule: str, message: str, hint: str) -> Finding:
        """Return a problem of this step."""
        step = f"{self.source.environment.name} -> {self.target.environment.name}"
        return Finding(rule, Place.at(self.target.path.as_posix(), step), message, hint)


def provenance_of(promotion: PromotionStep, evidence: TrialEvidence, result: TrialResult) -> Promoted:
    """Return the provenance of a promoted plan: its trial, which was passed."""
    return Promoted(
        source=promotion.source.environment.name,
        plan_digest=promotion.plan.digest,
        spec_digest=promotion.plan.spec_digest,
        result_uri=evidence.result_uri,
        report_uri=evidence.report_uri,
        request_id=evidence.request_id,
        verdict="pass",
        ended_at=ended_at(result).isoformat(timespec="seconds"),
        knee_concurrency_per_copy=None if result.knee is None else result.knee.concurrency,
        engine_note=result.engine_note,
    )


def evidence_problems(
    promotion: PromotionStep, evidence: TrialEvidence, *, now: datetime, accept_simulated: bool
) -> Iterator[Finding]:
    """Yield everything for which a trial is no proof of the plan to promote."""
    result, where = evidence.result, promotion.source.environment.name
    deployed, locked = evidence.deployed_digest, promotion.plan.digest
    if deployed is not None and deployed != locked:
        message = f"{where} runs the plan {deployed}, and its lock is {locked}"
        yield promotion.problem("SEA473", message, f"deploy the lock to {where}, so that it is tried")
    if result is None:
        hint = f"deploy the plan to {where} with its trial (`trial.mode: rollback`)"
        yield promotion.problem("SEA471", f"there is no result of a trial in {where}: {evidence.missing_because}", hint)
        return
    yield from _subject_problems(promotion, result)
    yield from _verdict_problems(promotion, result)
    age_days = (now - ended_at(result)) / timedelta(days=1)
    most = promotion.target.environment.promotion.max_age_days
    if age_days > most:
        message = f"the trial ended {age_days:.0f} days ago; promotion.max_age_days is {most}"
        again = f"seatrial trial start {promotion.source.endpoint.name} -e {where}"
        yield promotion.problem("SEA474", message, f"try it again: `{again}`, then give its result with --result")
    # A simulated engine proves the pipeline and no speed: on the laptop that is all that is promised, on AWS it must
    # be accepted by name.
    if result.engine_note and not accept_simulated and not promotion.target.environment.is_embedded:
        message = f"the engine of the trial was simulated: {result.engine_note}"
        hint = f"try the plan on AWS in {where}; --accept-simulated takes the result as it is, and the lock says so"
        yield promotion.problem("SEA477", message, hint)


def _subject_problems(promotion: PromotionStep, result: TrialResult) -> Iterator[Finding]:
    """Yield a trial of another endpoint, environment or plan."""
    request, plan = result.request, promotion.plan
    pairs = {
        "endpoint": (request.endpoint, plan.endpoint),
        "environment": (request.environment, plan.environment),
        "plan": (request.plan_digest, plan.digest),
    }
    other = [f"{name} {tried}, not {locked}" for name, (tried, locked) in pairs.items() if tried != locked]
    if other:
        hint = f"give the result of the plan that is locked for {plan.environment}, or deploy it there"
        yield promotion.problem("SEA473", f"the trial is of {', '.join(other)}", hint)


def _verdict_problems(promotion: PromotionStep, result: TrialResult) -> Iterator[Finding]:
    where = promotion.source.environment.name
    if result.request.manner == "verify":
        message = "the trial only verified the deployment: it sent a few requests and no load"
        yield promotion.problem("SEA471", message, f"set trial.update: candidate in {where}, and deploy again")
    if not result.live.proven:
        message = f"the trial did not prove that the deployed plan served its requests: {result.live.because}"
        yield promotion.problem("SEA471", message, f"deploy the plan to {where}, which proves it")
    if result.verdict.status != "pass":
        outcome = "failed" if result.verdict.status == "fail" else "was inconclusive"
        message = f"the trial {outcome}: {result.verdict.because}"
        yield promotion.problem("SEA472", message, f"change the spec or the plan, and deploy it to {where} again")


def workload_problems(promotion: PromotionStep, result: TrialResult) -> Iterator[Finding]:
    """Yield where the trial's requests differ from those of the environment to come."""
    tried = result.request.workload
    requested = trial_workload(promotion.target, tried.schema, tried.api)
    older = not promotion.target.endpoint.workload.shared_prefix_tokens  # then a prefix has the trial's spelling
    other = dict.fromkeys(_differences(requested, tried, set(TrialSpec.model_fields) if older else set()))
    if other:
        hint = f"give both environments the same requests, and try them in {promotion.source.environment.name}"
        yield promotion.problem("SEA475", "; ".join(other), hint)


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


def most_concurrency(promotion: PromotionStep, result: TrialResult) -> int | None:
    """Return the highest measured concurrency per copy that meets the latencies and error rate of the target's SLO.

    `None` when no level does.
    """
    # Throughput is of all copies, and how many the target runs is decided from this very number: it is judged
    # afterwards, by `slo_problems`.
    objectives = [each for each in slo_objectives(promotion.target.endpoint.slo) if each.metric != "output_tok_s"]
    confidence = promotion.target.endpoint.trial.confidence
    held = [
        level.concurrency
        for level in result.levels
        if verdict_at(level.concurrency, (level,), objectives, confidence=confidence).status == "pass"
    ]
    return max(held, default=None)


def no_level_problem(promotion: PromotionStep, result: TrialResult) -> Finding:
    """Return that no measured level meets the target's SLO, and by what the lowest misses it."""
    objectives = list(slo_objectives(promotion.target.endpoint.slo))
    lowest = sorted(result.levels, key=lambda level: level.load)[:1]
    confidence = promotion.target.endpoint.trial.confidence
    verdict = verdict_at(lowest[0].concurrency if lowest else 1, lowest, objectives, confidence=confidence)
    message = f"no measured level meets the SLO of {promotion.target.environment.name}: {verdict.because}"
    return promotion.problem("SEA475", message, "relax the SLO, or promote a plan with a faster copy")


def slo_problems(promotion: PromotionStep, plan: Plan, result: TrialResult) -> Iterator[Finding]:
    """Yield where the measurement contradicts the promoted plan at its load per copy.

    Throughput is of all copies: the measured copies' counts for as many as the plan has.
    """
    # The live count is of the copies that took the load; the request's is what was planned before.
    measured = result.live.copy_count or result.request.copy_count
    share = measured / plan.copy_count.value
    objectives = [
        replace(objective, bound=objective.bound * share) if objective.metric == "output_tok_s" else objective
        for objective in slo_objectives(promotion.target.endpoint.slo)
    ]
    gate, confidence = plan.gate_concurrency_per_copy.value, promotion.target.endpoint.trial.confidence
    levels = up_to_gate(result.levels, result.request.load)
    verdict = verdict_at(gate, levels, objectives, confidence=confidence)
    if verdict.status != "pass":
        copies = plan.copy_count.value
        message = f"at the load of {plan.environment}, {gate} concurrent requests per copy on {copies} copies: "
        hint = "allow more copies (scaling), measure that concurrency where the plan is tried, or relax the SLO"
        yield promotion.problem("SEA475", f"{message}{verdict.because}", hint)
