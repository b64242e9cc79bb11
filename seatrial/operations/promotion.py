"""Promotion of a tried plan to the next environment: the trial, what it does not prove, the plan that follows.

The trial of a deployed endpoint is read from its stack and its environment's bucket of results.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures
from seatrial.account.trials import describe_stack
from seatrial.deployment.document import service_stack
from seatrial.deployment.evidence import (
    age_problem,
    configuration_problems,
    copied_fields,
    ended_at,
    fingerprint,
    signature_problems,
    simulated_problems,
    slo_problems,
    step_problem,
    verdict_problems,
    workload_problems,
)
from seatrial.deployment.trial import slo_objectives
from seatrial.documents.plan import Promoted
from seatrial.engines.render import render_plan
from seatrial.engines.rendered import served_identity
from seatrial.locks.changes import changes, count_generation
from seatrial.locks.guard_rails import limit_problems
from seatrial.locks.lock_file import locked_document
from seatrial.locks.locked_plan import provenance_problems, read_edited_plan, read_locked_plan
from seatrial.operations.drift.trials import deployed_trial
from seatrial.planner.existing import TriedCopy, promoted_plan
from seatrial_base.errors import BenchError, PlanError, RenderError, SpecError
from seatrial_base.findings import Finding, Place
from seatrial_load.slo.verdict import verdict_at

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_s3 import S3Client

    from seatrial.documents.plan import Plan
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import TrialResult

_MOST_DOCUMENTS = 1000  # of one page of S3
_LONGEST_SHOWN = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEvidence:
    """What is known of the trial of a deployed plan.

    Attributes:
        missing_because: Why there is no result; empty otherwise.
        report_uri: Of its short report.
        request_id: CloudFormation's request that it was made for; `None` where it is unknown.
        deployed_digest: The plan that is deployed; `None` where the stack was not read.
        text: The result as its service wrote and signed it.
    """

    result: TrialResult | None
    missing_because: str = ""
    result_uri: str = ""
    report_uri: str = ""
    request_id: str | None = None
    deployed_digest: str | None = None
    text: str = ""


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
        return step_problem(self.target, self.source.environment.name, rule, message, hint)


def provenance_of(
    promotion: PromotionStep, evidence: TrialEvidence, result: TrialResult, *, now: datetime | None = None
) -> Promoted:
    """Return the provenance of a promoted plan: its trial, which was passed."""
    fields = {
        **copied_fields(result),
        # Any other is refused beside it, and a plan is sized all the same.
        "source": promotion.source.environment.name,
        "verdict": "pass",
        "spec_digest": promotion.plan.spec_digest,
        "result_uri": evidence.result_uri,
        "report_uri": evidence.report_uri,
        "request_id": evidence.request_id,
        "promoted_at": "" if now is None else now.isoformat(timespec="seconds"),
    }
    return Promoted.model_validate(fields)


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
    step = f"{where} -> {promotion.target.environment.name}"
    place = Place.at(promotion.target.path.as_posix(), step)
    yield from signature_problems(evidence.text, result, promotion.target, place)
    if message := age_problem(ended_at(result), now, promotion.target):
        again = f"seatrial trial start {promotion.source.path.as_posix()} -e {where}"
        yield promotion.problem("SEA474", message, f"try it again: `{again}`, then give its result with --result")
    yield from simulated_problems(result, promotion.target, accepted=accept_simulated)


def _subject_problems(promotion: PromotionStep, result: TrialResult) -> Iterator[Finding]:
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
    yield from verdict_problems(result, promotion.target)
    if result.verdict.status != "pass":
        outcome = "failed" if result.verdict.status == "fail" else "was inconclusive"
        message, where = f"the trial {outcome}: {result.verdict.because}", promotion.source.environment.name
        yield promotion.problem("SEA472", message, f"change the spec or the plan, and deploy it to {where} again")


def most_concurrency(promotion: PromotionStep, result: TrialResult) -> int | None:
    """Return the highest measured concurrency per copy that meets the latencies and error rate of the target's SLO.

    `None` when no level does.
    """
    # Throughput is of all copies, and how many the target runs is decided from this very number: it is judged
    # afterwards, by `slo_problems`.
    bounded = slo_objectives(promotion.target.endpoint.slo)
    objectives = [objective for objective in bounded if objective.metric != "output_tok_s"]
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


def evidence_of_stack(
    stack_name: str, endpoint_name: str, cloudformation: CloudFormationClient, s3: S3Client
) -> TrialEvidence:
    """Return what is known of the trial of a deployed endpoint.

    A stack without outputs of a trial was deployed without one; an `error` is no result.

    Raises:
        BenchError: SEA502 when there is no such stack, SEA501 when the result can't be read; as `aws_failures`.
    """
    stack = describe_stack(stack_name, cloudformation)
    digest = stack.outputs.get("PlanDigest")
    trial, uri = deployed_trial(stack, s3), stack.outputs.get("TrialResultUri", "")
    if trial.result is None:
        ended = f"it ended with an error: {trial.error} ({uri})"
        because = ended if trial.error else f"the stack {stack_name} ({stack.status}) was deployed without one"
        return TrialEvidence(result=None, missing_because=because, deployed_digest=digest)
    return TrialEvidence(
        result=trial.result,
        result_uri=uri,
        report_uri=stack.outputs.get("TrialReportUri", ""),
        request_id=find_request(uri, endpoint_name, trial.result, s3),
        deployed_digest=digest,
        text=trial.text,
    )


def evidence_of_result(result: TrialResult, where: str, text: str = "") -> TrialEvidence:
    """Return a given result, and its text as it was written, as evidence; no stack is read."""
    request_id = None if result.seal is None else result.seal.actor.rpartition(":")[2]
    report_uri = f"{where.removesuffix('.json')}.md"
    return TrialEvidence(result=result, result_uri=where, report_uri=report_uri, request_id=request_id, text=text)


def find_request(uri: str, endpoint_name: str, result: TrialResult, s3: S3Client) -> str | None:
    """Return the request that a result was made for: as it is signed, else as the same document is named.

    `None` where the document has expired, or the caller may not list the bucket.
    """
    if result.seal is not None:
        return result.seal.actor.rpartition(":")[2]
    bucket = uri.removeprefix("s3://").partition("/")[0]
    folder = f"trials/{endpoint_name}/{result.request.plan_digest}/"
    try:
        with aws_failures(uri):
            listed = s3.list_objects_v2(Bucket=bucket, Prefix=folder, MaxKeys=_MOST_DOCUMENTS)
            keys = [entry["Key"] for entry in listed.get("Contents", ()) if entry["Key"].endswith(".json")]
            matches = (key for key in keys if _started_at(s3, bucket, key) == result.started_at)
            key = next(matches, None)
    # The request's ID only makes the lock easier to trace: a caller without the right to list may promote without it.
    except (BenchError, s3.exceptions.ClientError):
        return None
    return None if key is None else key.removeprefix(folder).removesuffix(".json")


def _started_at(s3: S3Client, bucket: str, key: str) -> str | None:
    text = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    try:
        document = json.loads(text)
    except ValueError:
        return None  # whatever it is, the result may be among the others
    return document.get("started_at") if isinstance(document, dict) else None


@dataclass(frozen=True, slots=True)
class PromotedLock:
    """A plan that may be locked.

    Attributes:
        loaded: The spec in the environment to come.
        plan: Its plan, with provenance.
        lines: What changes against the plan that is locked there; one line when nothing is locked yet.
        evidence: The signed result, which goes into the lock beside the plan.
        signed_by: The execution that the signature names; empty where the result is not signed.
    """

    loaded: LoadedSpec
    plan: Plan
    lines: tuple[str, ...]
    evidence: str = ""
    signed_by: str = ""


def source_of(target: EnvironmentSpec, given: str | None) -> str:
    """Return the environment that plans are promoted from: the given one, else `promotion.source`.

    Raises:
        SpecError: SEA470 when there is none, or it contradicts the environments' order.
    """
    ordered = target.promotion.source
    source = given or ordered
    if source is None:
        message = f"{target.name} has no promotion.source"
        raise _out_of_order(target, message, "give --from, or set promotion.source in its file")
    if source == target.name:
        raise _out_of_order(target, f"{source} is the same environment", "name the environment before it")
    if ordered is not None and source != ordered:
        message = f"{target.name} takes plans from {ordered}, not from {source}"
        raise _out_of_order(target, message, f"promote to {ordered} first")
    return source


def _out_of_order(target: EnvironmentSpec, message: str, hint: str) -> SpecError:
    return SpecError.of("SEA470", message, where=target.name, field="promotion.source", hint=hint)


def check_order(source: EnvironmentSpec, target: EnvironmentSpec, order: tuple[EnvironmentSpec, ...]) -> None:
    """Refuse to promote to an environment that comes before its source.

    Args:
        order: Every environment, each after its source.

    Raises:
        SpecError: SEA470.
    """
    # `--from` may name any environment: followed back to its own sources, it must never come to the target, or
    # plans would travel in a circle.
    sources = {environment.name: environment.promotion.source for environment in order}
    before = sources.get(source.name)
    while before is not None:
        if before == target.name:
            message = f"{target.name} comes before {source.name}"
            raise _out_of_order(target, message, "promote in the order of the environments")
        before = sources.get(before)


def promote_plan(
    source: LoadedSpec, target: LoadedSpec, evidence: TrialEvidence, *, now: datetime, accept_simulated: bool = False
) -> PromotedLock:
    """Return the lock of an environment from the tried plan of the one before it.

    Raises:
        SpecError: With everything that forbids it: SEA401 to SEA403 and SEA411 of the source's lock, SEA471 to SEA477,
            and each guard rail and limit of the target that the plan breaks.
        PlanError, RenderError: When the target's spec can't be planned or rendered at all.
    """
    tried, problems = _tried_plan(source)
    if tried is None:
        raise SpecError(problems)
    promotion = PromotionStep(source, target, tried)
    problems += evidence_problems(promotion, evidence, now=now, accept_simulated=accept_simulated)
    plan = None
    if evidence.result is not None:
        plan, of_plan = _planned(promotion, evidence, evidence.result, now)
        problems += of_plan
    if problems or plan is None:
        raise SpecError(dict.fromkeys(problems))
    before = locked_document(target)
    plan, another = count_generation(before, plan)
    lines = (*another, *changes(before, plan)) if before is not None else ("no plan is locked yet",)
    seal = None if evidence.result is None else evidence.result.seal
    return PromotedLock(target, plan, lines, evidence.text, "" if seal is None else seal.actor)


def _tried_plan(source: LoadedSpec) -> tuple[Plan | None, list[Finding]]:
    """Return the locked plan with what is wrong with it; `None` when it can't be read."""
    try:
        return read_locked_plan(source), []
    except SpecError as error:
        problems = list(error.problems)
    try:
        # An edited lock can't be promoted, but the rest is still checked against it, so that all problems are
        # reported at once.
        return read_edited_plan(source)[0], problems
    except SpecError:
        return None, problems


def _planned(
    promotion: PromotionStep, evidence: TrialEvidence, result: TrialResult, now: datetime
) -> tuple[Plan | None, tuple[Finding, ...]]:
    """Return the plan of the target with its problems; `None` when there is no plan at all."""
    target = promotion.target
    workload = tuple(workload_problems(target, result))
    if workload:
        return None, workload
    most = most_concurrency(promotion, result)
    if most is None:
        return None, (no_level_problem(promotion, result),)
    tried = TriedCopy(promotion.plan, promotion.source.environment.region, most)
    try:
        plan = promoted_plan(tried, target, provenance_of(promotion, evidence, result, now=now))
        served = tuple(served_problems(promotion, plan))
        configuration = tuple(configuration_problems(result, target, plan, render_plan(target, plan)))
    except (SpecError, PlanError, RenderError) as error:
        return None, error.problems
    hint = "relax the limit, or try a plan that keeps it"
    limits = (replace(problem, hint=hint) for problem in limit_problems(plan, target))
    rest = (*limits, *provenance_problems(plan, target))
    # What differs is told by its name; the digest tells of what only the signed result knows.
    return plan, (*(served or configuration), *slo_problems(target, plan, result), *rest)


def served_problems(promotion: PromotionStep, plan: Plan) -> Iterator[Finding]:
    """Yield everything in which the promoted plan's container would not be the tried one.

    Where weights are stored is not compared: each environment may have a bucket of its own.

    Raises:
        RenderError: When one of the plans can't be rendered.
    """
    tried = served_identity(promotion.source, render_plan(promotion.source, promotion.plan))
    here = served_identity(promotion.target, render_plan(promotion.target, plan))
    names = promotion.source.environment.name, promotion.target.environment.name
    hint = f"give both environments the same model and serving options, and try them in {names[0]}"
    # Both renderings follow the tried plan, engine included: the target's own engine is in neither of them.
    engine, served = promotion.target.endpoint.serving.engine, promotion.plan.engine.value
    if engine not in ("auto", promotion.source.endpoint.serving.engine) and engine != served.partition("-")[0]:
        yield promotion.problem("SEA476", f"serving.engine: {served} in {names[0]}, {engine} in {names[1]}", hint)
    for name in sorted({*tried, *here}):
        before, after = tried.get(name), here.get(name)
        if before != after:
            message = f"{name}: {_shown(before)} in {names[0]}, {_shown(after)} in {names[1]}"
            yield promotion.problem("SEA476", message, hint)


def _shown(value: str | None) -> str:
    if value is None:
        return "absent"
    return value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}…"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key with which an environment's trial service signs results; its public half as DER in base64."""

    arn: str
    public: str

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the public half, in hexadecimal digits, as `openssl` tells it."""
        return fingerprint(self.public)


def signing_key(environment: EnvironmentSpec, cloudformation: CloudFormationClient, keys: KMSClient) -> SigningKey:
    """Read the public half of the key that signs an environment's results.

    Raises:
        BenchError: SEA502 when the trial service is not deployed, SEA584 when it has no key, or its key can't be read;
            as `aws_failures`.
    """
    name = service_stack(environment.name)
    arn = describe_stack(name, cloudformation).outputs.get("SigningKey")
    if arn is None:
        hint = f"deploy {name} with this release"
        raise BenchError.of("SEA584", "the stack has no key that signs results", where=name, hint=hint)
    hint = "the caller needs kms:GetPublicKey on it"
    with aws_failures(
        name, lambda error: BenchError.of("SEA584", f"the key can't be read: {error}", where=name, hint=hint)
    ):
        return SigningKey(arn, b64encode(keys.get_public_key(KeyId=arn)["PublicKey"]).decode())
