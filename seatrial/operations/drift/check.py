"""Asks the account, endpoint by endpoint, whether what runs is what is locked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.account.live_endpoint import read_tags
from seatrial.account.reader import AwsReader, ClientCalls, aws_failures, error_sentence, text_at
from seatrial.account.trials import describe_stack
from seatrial.deployment.document import endpoint_name, stack_name
from seatrial.operations.drift.live import live_findings
from seatrial.operations.drift.report import DriftReport, EndpointDrift, drift_finding
from seatrial.operations.drift.trials import LastTrial, deployed_trial, scheduled_trial, trial_findings
from seatrial.operations.preflight.instances import instance_checks, needs_of
from seatrial_base.catalog.engine_choice import status_of
from seatrial_base.catalog.images import find_image, update_of
from seatrial_base.errors import BenchError
from seatrial_base.tags import ENVIRONMENT_TAG, PRODUCT_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from datetime import datetime

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial.account.clients import AccountClients
    from seatrial.deployment.document import Deployment
    from seatrial.documents.live_stack import LiveStack
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_base.findings import Finding


_IN_ORDER = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftClients:
    """Clients of one account in one region.

    Attributes:
        stacks: CloudFormation.
        endpoints: SageMaker.
        results: S3.
        account: What a preflight asks, for the quotas.
    """

    stacks: CloudFormationClient
    endpoints: SageMakerClient
    results: S3Client
    account: AccountClients


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What is locked for one environment.

    Attributes:
        environment: The environment.
        deployments: What the readable locks say, in the order of their files.
        unreadable: What is wrong with the others, by the endpoint's name.
        names: The names of every spec, deployed here or not.
    """

    environment: EnvironmentSpec
    deployments: tuple[Deployment, ...]
    unreadable: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()


def check_drift(locked: Locked, clients: DriftClients, *, now: datetime, most_days: float) -> DriftReport:
    """Compare what runs with what is locked; nothing is changed, and what could not be asked is no finding.

    Args:
        locked: What is locked.
        clients: Clients of the environment's account and region.
        now: The time, for the ages of trials.
        most_days: A scheduled trial may be so old, in days.

    Raises:
        BenchError: As `aws_failures`, when not even the caller's identity is answered.
    """
    with aws_failures(locked.environment.name):
        clients.account.identity.get_caller_identity()
    found = [_endpoint_drift(each, clients, now=now, most_days=most_days) for each in locked.deployments]
    found += [_unreadable(name, problems, locked) for name, problems in locked.unreadable.items()]
    quotas, unasked = _quotas(locked, clients)
    unknown, because = _asked(lambda: tuple(_unknown(locked, clients)))
    return DriftReport(
        environment=locked.environment.name,
        endpoints=tuple(sorted(found, key=lambda each: each.endpoint)),
        findings=(*quotas, *(unknown or ())),
        not_asked=(*unasked, *([f"endpoints without a spec: {because}"] if because else ())),
    )


def _unreadable(name: str, problems: tuple[Finding, ...], locked: Locked) -> EndpointDrift:
    findings = (
        drift_finding(rule=each.rule, severity="warning", what="lock", live=each.message, hint=each.hint)
        for each in problems
    )
    stack = stack_name(locked.environment.name, name)
    return EndpointDrift(endpoint=name, stack_name=stack, findings=tuple(findings))


def _endpoint_drift(deployment: Deployment, clients: DriftClients, *, now: datetime, most_days: float) -> EndpointDrift:
    drift = EndpointDrift(
        endpoint=deployment.endpoint.name,
        stack_name=deployment.stack_name,
        plan_digest=deployment.plan.digest,
        findings=tuple(_image_findings(deployment)),
    )
    try:
        stack = describe_stack(deployment.stack_name, clients.stacks)
    except BenchError as error:
        return _without_stack(drift, error)
    deployed = stack.outputs.get("PlanDigest", "")
    drift = replace(drift, status=stack.status, deployed_digest=deployed)
    drift = _with(drift, tuple(_stack_findings(stack, deployment)))
    if deployed == deployment.plan.digest and not _in_progress(stack):
        drift = _with_asked(drift, "live endpoint", lambda: live_findings(deployment, stack, _reader(clients)))
    else:
        why = "the stack is being updated" if _in_progress(stack) else "another plan is deployed"
        drift = replace(drift, not_asked=(*drift.not_asked, f"live endpoint, field by field: {why}"))
    return _with_trials(drift, deployment, stack, clients, now=now, most_days=most_days)


def _without_stack(drift: EndpointDrift, error: BenchError) -> EndpointDrift:
    message = error.problems[0].message
    if "does not exist" not in message:
        return replace(drift, not_asked=(*drift.not_asked, f"stack: {message}"))
    hint = f"deploy it: cdk deploy {drift.stack_name}; or remove its lock for this environment"
    missing = drift_finding(rule="SEA430", severity="error", what="stack", expected="deployed", live="none", hint=hint)
    return _with(drift, (missing,))


def _with(drift: EndpointDrift, findings: tuple[Finding, ...]) -> EndpointDrift:
    return replace(drift, findings=(*drift.findings, *findings))


def _with_asked(drift: EndpointDrift, what: str, ask: Callable[[], Iterable[Finding]]) -> EndpointDrift:
    found, because = _asked(lambda: tuple(ask()))
    if found is None:
        return replace(drift, not_asked=(*drift.not_asked, f"{what}: {because}"))
    return _with(drift, found)


def _asked(
    ask: Callable[[], tuple[Finding, ...]],
) -> tuple[tuple[Finding, ...] | None, str]:
    """Return the findings of a question, or `None` and why it could not be asked."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    try:
        with aws_failures("drift"):
            return ask(), ""
    except BenchError as error:
        return None, error.problems[0].message
    except ClientError as error:
        return None, error_sentence(error)


def _in_progress(stack: LiveStack) -> bool:
    return stack.status.endswith("IN_PROGRESS") and stack.status not in _IN_ORDER


def _stack_findings(stack: LiveStack, deployment: Deployment) -> Iterator[Finding]:
    if stack.status not in _IN_ORDER and not _in_progress(stack):
        rolled_back = stack.status == "UPDATE_ROLLBACK_COMPLETE"
        hint = "read the stack's events; mend the cause and deploy again"
        yield drift_finding(
            rule="SEA430",
            severity="warning" if rolled_back else "error",
            what="stack status",
            expected="CREATE_COMPLETE or UPDATE_COMPLETE",
            live=stack.status,
            hint=hint,
        )
    deployed = stack.outputs.get("PlanDigest", "")
    if deployed != deployment.plan.digest and not _in_progress(stack):
        yield drift_finding(
            rule="SEA431",
            severity="warning",
            what="plan digest",
            expected=deployment.plan.digest,
            live=deployed or "none",
            hint=f"deploy the lock: cdk deploy {deployment.stack_name} -c environment={deployment.environment.name}",
        )


def _image_findings(deployment: Deployment) -> Iterator[Finding]:
    """Yield an image that has newer documented builds, or whose line gets none any more."""
    image = deployment.plan.image.value
    build = find_image(image.repository, image.tag)
    if build is None:
        return
    update = update_of(build, deployment.environment.region)
    hint = "`seatrial images outdated` shows what would change; plan again, and try it"
    if update.newer:
        newest = update.newer[-1].version
        yield drift_finding(
            rule="SEA434", severity="note", what="image version", expected=newest, live=build.version, hint=hint
        )
    if status := status_of(build.family, build.flavour):
        yield drift_finding(rule="SEA434", severity="warning", what="image line", live=status, hint=hint)


def _with_trials(
    drift: EndpointDrift,
    deployment: Deployment,
    stack: LiveStack,
    clients: DriftClients,
    *,
    now: datetime,
    most_days: float,
) -> EndpointDrift:
    if deployment.endpoint.trial.mode == "off":
        return drift
    try:
        last = deployed_trial(stack, clients.results)
        scheduled = scheduled_trial(deployment, stack, clients.results)
    except BenchError as error:
        return replace(drift, not_asked=(*drift.not_asked, f"last trial: {error.problems[0].message}"))
    findings = trial_findings(deployment, last, scheduled, now=now, most_days=most_days)
    told = replace(
        drift,
        trial=last.told(now),
        trial_verdict=last.verdict,
        trial_date=last.date,
        scheduled_trial=scheduled.told(now),
    )
    return _with(told, (*findings, *_never_tried(last)))


def _never_tried(last: LastTrial) -> Iterator[Finding]:
    if last.result is None and not last.error:
        hint = "deploy it with its trial"
        yield drift_finding(rule="SEA435", severity="note", what="trial of the deployment", live="none", hint=hint)


def _quotas(locked: Locked, clients: DriftClients) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    checks = tuple(instance_checks(needs_of(locked.deployments), locked.environment, clients.account))
    findings = (check.finding for check in checks if check.finding is not None and check.is_wrong)
    return tuple(findings), tuple(f"{check.subject}: {check.answer}" for check in checks if check.is_unread)


def _unknown(locked: Locked, clients: DriftClients) -> Iterator[Finding]:
    place = locked.environment.name
    known = {endpoint_name(place, name) for name in locked.names}
    current = {each.endpoint_name for each in locked.deployments}
    current |= {endpoint_name(place, name) for name in locked.unreadable}
    return unknown_endpoints(place, known, current, _reader(clients))


def _reader(clients: DriftClients) -> AwsReader:
    return AwsReader(ClientCalls(clients.endpoints), is_strict=True)


_RULE = "SEA433"


def unknown_endpoints(
    environment: str, known: Collection[str], current: Collection[str], reader: AwsReader
) -> Iterator[Finding]:
    """Yield each endpoint whose name begins with the environment's, or that has its tag, and that is not expected.

    Args:
        environment: The environment's name.
        known: The first generation's names of every spec's endpoint.
        current: The names of the endpoints that the locks deploy.
        reader: A strict reader of the environment's account and region.

    Raises:
        ClientError: SageMaker refuses.
    """
    listed = reader.rows("endpoints", "sagemaker", "list_endpoints", "Endpoints", MaxResults=100)
    for name, arn in sorted((text_at(row, "EndpointName"), text_at(row, "EndpointArn")) for row in listed):
        if name in current or not name.startswith(f"{environment}-"):
            continue
        tags = read_tags(name, arn, reader)
        if PRODUCT_TAG in tags:
            continue  # a product's stack made it, and no spec
        tagged = tags.get(ENVIRONMENT_TAG) == environment
        base = re.sub(r"-\d{1,3}$", "", name)
        if base in known or name in known:
            hint = "deploy the lock: CloudFormation deletes what it replaces; else delete it"
            what = "endpoint of another generation than the locked one"
        else:
            hint = "add its spec, or delete it (its stack, where it has one)"
            what = "endpoint without a spec" if tagged else "endpoint with this environment's prefix, without its tag"
        yield drift_finding(rule=_RULE, severity="warning" if tagged else "note", what=what, live=name, hint=hint)
