"""Comparison of what runs with what is locked, endpoint by endpoint: stack, live fields, trials, quotas."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.account.clients import account_clients, check_account
from seatrial.account.live_endpoint import read_component, read_endpoint, read_tags
from seatrial.account.reader import AwsReader, ClientCalls, aws_failures, error_sentence, text_at
from seatrial.account.trials import describe_stack
from seatrial.deployment.document import COMPONENT_SUFFIX, endpoint_name, stack_name
from seatrial.deployment.load import deployment_of, refuse_hosted
from seatrial.documents.live import LiveVariant
from seatrial.locks.lock_file import locked_environments
from seatrial.locks.locked_plan import awaits_promotion, read_locked_plan
from seatrial.operations.drift.report import DriftReport, EndpointDrift, drift_finding
from seatrial.operations.drift.trials import deployed_trial, scheduled_trial, trial_findings
from seatrial.operations.preflight import instance_checks, needs_of, reservation_checks
from seatrial.specs.load import environments_of, load_environment, load_spec
from seatrial.specs.spec_files import endpoint_name_of, hosts
from seatrial_base.catalog.engines import status_of
from seatrial_base.catalog.images import find_image, image_digest, update_of
from seatrial_base.errors import BenchError, SeatrialError
from seatrial_base.findings import Place
from seatrial_base.tags import CONFIG_TAG, ENVIRONMENT_TAG, PRODUCT_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial.account.clients import AccountClients
    from seatrial.deployment.document import Deployment
    from seatrial.documents.live import LiveComponent, LiveEndpoint, LiveStack
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding, Severity

HINT = "find out who changed it; set it back with `cdk deploy --revert-drift`, or take it over into the spec"
ONLY_VARIANT = "AllTraffic"  # the name that our constructs give a variant without one
Compared = dict[str, tuple[str, str]]
"""The locked and the live value, by what was compared."""
_IN_ORDER = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"})
_OF_THE_SPEC = ("container configuration", "least instances", "most instances", "copies", "instances")
_RULE = "SEA433"


def live_findings(deployment: Deployment, stack: LiveStack, reader: AwsReader) -> Iterator[Finding]:
    """Yield each field in which a live endpoint is not what was deployed; the reader must be a strict one.

    Raises:
        BenchError: As `aws_failures`.
        ClientError: SageMaker refuses.
    """
    endpoint = read_endpoint(deployment.endpoint_name, reader, with_tags=False)
    if endpoint.existence == "absent":
        yield _absent("endpoint", deployment.endpoint_name, deployment.environment.region)
    elif deployment.endpoint.hosting.kind == "single_model":
        # What differs where the model is in a production variant: that of the endpoint's own plan.
        name = own_variant(deployment)
        variant = endpoint.variant(name) or LiveVariant(name=name)
        compared = _endpoint(stack, endpoint)
        # With pools SageMaker chooses among the types of the plan: none of them is drift.
        if not deployment.endpoint.hosting.instance_pools:
            compared["instance type"] = (deployment.plan.instance_type.value, variant.instance_type)
        if not variant.model:
            compared["variant"] = (name, "")
        yield from _differences(compared)
        if variant.model:
            yield from _container(deployment, endpoint, variant.model, reader)
        yield from _statuses({"endpoint status": endpoint.status})
        yield from _copies(deployment, "instances", variant.current)
    elif (component := read_component(f"{deployment.endpoint_name}{COMPONENT_SUFFIX}", reader)) is None:
        yield _absent("inference component", f"{deployment.endpoint_name}{COMPONENT_SUFFIX}")
    else:
        compared = _endpoint(stack, endpoint) | _config(deployment, endpoint) | _component(deployment, stack, component)
        yield from _differences(compared)
        yield from _container(deployment, endpoint, component.model, reader)
        yield from _statuses({"endpoint status": endpoint.status, "component status": component.status})
        yield from _copies(deployment, "copies", component.copies)


def _absent(what: str, name: str, region: str = "") -> Finding:
    hint = f"`seatrial doctor {name} --region {region}` shows the state of its stack" if region else HINT
    return drift_finding(rule="SEA432", severity="error", what=what, expected=name, live="absent", hint=hint)


def own_variant(deployment: Deployment) -> str:
    """Return the name of the variant that runs the endpoint's own plan and image."""
    variants = deployment.endpoint.hosting.variants or ()
    return next((variant.name for variant in variants if not (variant.spec or variant.image)), ONLY_VARIANT)


def _differences(compared: Compared) -> Iterator[Finding]:
    for what, (expected, live) in compared.items():
        if expected != live:
            yield drift_finding(
                rule="SEA432", severity="warning", what=what, expected=expected, live=live or "absent", hint=HINT
            )


def _endpoint(stack: LiveStack, endpoint: LiveEndpoint) -> Compared:
    return {"endpoint configuration": (stack.outputs.get("EndpointConfigName", ""), endpoint.config)}


def _config(deployment: Deployment, endpoint: LiveEndpoint) -> Compared:
    plan, variant = deployment.plan, next(iter(endpoint.variants), LiveVariant(name=""))
    pools = deployment.endpoint.hosting.instance_pools
    live = [pool.instance_type for pool in variant.pools] or [variant.instance_type]
    fewest = 0 if deployment.endpoint.scaling.goes_to_zero else deployment.instance_count
    scaled = variant.least is not None
    compared = {
        "instance type": (", ".join(pools or (plan.instance_type.value,)), ", ".join(live)),
        "least instances": (f"{fewest}", f"{variant.least}" if scaled else ""),
        "most instances": (f"{deployment.most_instances}", f"{variant.most}" if scaled else ""),
    }
    ami = plan.inference_ami_version.value
    return compared if ami is None else compared | {"inference AMI": (ami, variant.ami)}


def _component(deployment: Deployment, stack: LiveStack, component: LiveComponent) -> Compared:
    plan = deployment.plan
    compared = {
        "model": (stack.outputs.get("ModelName", ""), component.model),
        "accelerators per copy": (f"{plan.accelerators_per_copy}", _number(component.accelerators)),
        "CPU cores per copy": (f"{plan.cpu_cores_per_copy:g}", _number(component.cpu_cores)),
        "memory per copy (MiB)": (f"{plan.memory_min_mb.value}", _number(component.memory_mb)),
        "start-up timeout (s)": (f"{plan.startup_timeout_s.value}", _number(component.startup_timeout_s)),
        "download timeout (s)": (f"{plan.download_timeout_s.value}", _number(component.download_timeout_s)),
    }
    resolved, pinned = image_digest(component.resolved_image), image_digest(plan.image.value.uri)
    # A tag may be pushed again: only digests show that the image is the same, and an image without one can't drift.
    if resolved is not None and pinned is not None:
        compared["image digest"] = (pinned, resolved)
    return compared


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _container(deployment: Deployment, endpoint: LiveEndpoint, model_name: str, reader: AwsReader) -> Iterator[Finding]:
    """Yield a model whose container reads another configuration, by the digest in its tag.

    The model itself is not described: its environment may hold the token of a hub, which CI may not read.
    """
    arn = f"{endpoint.arn.rpartition(':')[0]}:model/{model_name.lower()}"
    live = read_tags(model_name, arn, reader).get(CONFIG_TAG, "")
    yield from _differences({"container configuration": (deployment.serving.container_digest, live)})


def _statuses(statuses: Mapping[str, str]) -> Iterator[Finding]:
    for what, status in statuses.items():
        if status != "InService":
            hint = "read its failure reason in the SageMaker console; deploy again"
            severity: Severity = "error" if status in {"Failed", "OutOfService"} else "note"
            yield drift_finding(
                rule="SEA432", severity=severity, what=what, expected="InService", live=status, hint=hint
            )


def _copies(deployment: Deployment, what: str, live: int) -> Iterator[Finding]:
    """Yield copies or instances outside of what scaling, or without scaling the plan, allows."""
    scaling, planned = deployment.endpoint.scaling, deployment.plan.copy_count.value
    fixed = scaling.is_fixed
    # What autoscaling may do is no drift, and neither is the planned number.
    least, most = (planned, planned) if fixed else (scaling.fewest_copies, max(scaling.max_copies, planned))
    if not least <= live <= most:
        expected = f"{least}" if fixed else f"{least} to {most}"
        yield drift_finding(
            rule="SEA432",
            severity="error" if live < least else "warning",
            what=what,
            expected=expected,
            live=f"{live}",
            hint="set the copies, or the bounds of scaling, to those of the spec: `cdk deploy --revert-drift`",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftClients:
    """Clients of one account in one region; `account` has those of a preflight, for the quotas."""

    stacks: CloudFormationClient
    endpoints: SageMakerClient
    results: S3Client
    account: AccountClients

    @classmethod
    def of(cls, environment: EnvironmentSpec) -> DriftClients:
        """Return clients of an environment's account; it must be the credentials' own.

        Raises:
            SpecError: SEA455 when the credentials belong to another account.
            BenchError: As `aws_failures`.
        """
        import boto3  # noqa: PLC0415 (heavy, and no reader of a report needs it)

        account, region = account_clients(environment), environment.region
        check_account(environment, account.identity)
        with aws_failures(environment.name):
            return cls(
                stacks=boto3.client("cloudformation", region_name=region),
                endpoints=boto3.client("sagemaker", region_name=region),
                results=boto3.client("s3", region_name=region),
                account=account,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What is locked for one environment.

    Attributes:
        deployments: Of the readable locks, in the order of their files.
        unreadable: What is wrong with the others, by the endpoint's name.
        awaiting: Why a deployment of a plan that was made for another spec awaits a promotion, by the endpoint's name.
        names: The names of every spec, deployed here or not.
    """

    environment: EnvironmentSpec
    deployments: tuple[Deployment, ...]
    unreadable: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    awaiting: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()


def read_locked(files: Sequence[Path], environment: str, environments: Path | None) -> Locked:
    """Return what is locked for an environment; a lock that can't be read is reported with its endpoint.

    Raises:
        SpecError: With every problem of the environment.
    """
    deployments: list[Deployment] = []
    unreadable: dict[str, tuple[Finding, ...]] = {}
    awaiting: dict[str, tuple[Finding, ...]] = {}
    hosted = {folder: hosts(folder, environment) for folder in {file.parent for file in files}}
    for file in files:
        # A model that another endpoint hosts has no stack: its host is compared, and this one would be reported as
        # missing.
        if file.stem in hosted[file.parent]:
            continue
        try:
            if environment not in locked_environments(file):
                continue
            loaded = load_spec(file, environment, environments=environments or environments_of(file))
            refuse_hosted(loaded, hosted[file.parent])
            deployment, problems = _locked_deployment(loaded)
        except SeatrialError as error:
            # One broken lock must not hide the drift of all others: it is reported with its endpoint.
            unreadable[endpoint_name_of(file)] = error.problems
            continue
        if deployment is not None:
            deployments.append(deployment)
        if problems:
            waits = tuple(replace(each, place=Place(field="lock"), severity="note") for each in problems)
            (unreadable if deployment is None else awaiting)[loaded.endpoint.name] = waits
    # Specs that are not compared are still known: their endpoints must not be reported as "without a spec".
    siblings = {sibling for file in files for sibling in file.parent.glob("*.yaml")}
    own_folder = environments or environments_of(files[0] if files else Path("endpoints", "spec.yaml"))
    return Locked(
        environment=load_environment(own_folder, environment),
        deployments=tuple(deployments),
        unreadable=unreadable,
        awaiting=awaiting,
        names=tuple(sorted({endpoint_name_of(file) for file in (*files, *siblings)})),
    )


def _locked_deployment(loaded: LoadedSpec) -> tuple[Deployment | None, tuple[Finding, ...]]:
    """Return what a lock deploys, and why it awaits a promotion; no deployment where its plan fits the spec no more.

    Raises:
        SeatrialError: The lock is wrong, and no promotion mends it.
    """
    try:
        return deployment_of(loaded), ()
    except SeatrialError as error:
        if not awaits_promotion(error, loaded):
            raise
        problems = error.problems
    with suppress(SeatrialError):
        return deployment_of(loaded, read_locked_plan(loaded, stale=True)), problems
    return None, problems


def check_drift(locked: Locked, clients: DriftClients, *, now: datetime, most_days: float) -> DriftReport:
    """Compare what runs with what is locked; nothing is changed, and what could not be read is no finding.

    Args:
        most_days: The oldest that a scheduled trial may be, in days.

    Raises:
        BenchError: As `aws_failures`, when AWS does not even return the caller's identity.
    """
    # A refusal of any later call is no finding; without this one, no credentials would read as no drift.
    with aws_failures(locked.environment.name):
        clients.account.identity.get_caller_identity()
    drifts = [
        _endpoint_drift(each, clients, locked.awaiting.get(each.endpoint.name, ()), now=now, most_days=most_days)
        for each in locked.deployments
    ]
    place = locked.environment.name
    for name, problems in locked.unreadable.items():
        findings = tuple(
            replace(each, place=Place(field="lock"), severity="note" if each.severity == "note" else "warning")
            for each in problems
        )
        drifts.append(EndpointDrift(endpoint=name, stack_name=stack_name(place, name), findings=findings))
    checks = (
        *instance_checks(needs_of(locked.deployments), locked.environment, clients.account),
        *reservation_checks(locked.deployments, clients.account, now),
    )
    account = tuple(check.finding for check in checks if check.finding is not None and not check.is_unread)
    unread = tuple(f"{check.subject}: {check.answer}" for check in checks if check.is_unread)
    known = {endpoint_name(place, name) for name in locked.names}
    current = {deployment.endpoint_name for deployment in locked.deployments}
    current |= {endpoint_name(place, name) for name in locked.unreadable}
    unknown, because = _findings_of(lambda: tuple(unknown_endpoints(place, known, current, _reader(clients))))
    return DriftReport(
        environment=place,
        endpoints=tuple(sorted(drifts, key=lambda drift: drift.endpoint)),
        findings=(*account, *(unknown or ())),
        unreadable=(*unread, *([f"endpoints without a spec: {because}"] if because else ())),
    )


def _endpoint_drift(
    deployment: Deployment, clients: DriftClients, awaiting: tuple[Finding, ...], *, now: datetime, most_days: float
) -> EndpointDrift:
    drift = EndpointDrift(
        endpoint=deployment.endpoint.name,
        stack_name=deployment.stack_name,
        plan_digest=deployment.plan.digest,
        findings=(*_image_findings(deployment), *awaiting),
    )
    try:
        stack = describe_stack(deployment.stack_name, clients.stacks)
    except BenchError as error:
        message = error.problems[0].message
        if "does not exist" not in message:
            return replace(drift, unreadable=(*drift.unreadable, f"stack: {message}"))
        hint = f"deploy it: cdk deploy {drift.stack_name}; or remove its lock for this environment"
        missing = drift_finding(
            rule="SEA430", severity="error", what="stack", expected="deployed", live="none", hint=hint
        )
        return _with(drift, (missing,))
    deployed = stack.outputs.get("PlanDigest", "")
    drift = replace(drift, status=stack.status, deployed_digest=deployed)
    drift = _with(drift, tuple(_stack_findings(stack, deployment)))
    if deployed == deployment.plan.digest and not _in_progress(stack):
        fields, because = _findings_of(lambda: tuple(live_findings(deployment, stack, _reader(clients))))
        if fields is None:
            drift = replace(drift, unreadable=(*drift.unreadable, f"live endpoint: {because}"))
        elif awaiting:
            # The spec is that of the plan to come: what it decides without the plan says nothing of what is deployed.
            drift = _with(drift, tuple(each for each in fields if each.field not in _OF_THE_SPEC))
            because = f"{', '.join(_OF_THE_SPEC)}: the spec that decides them awaits its promotion"
            drift = replace(drift, unreadable=(*drift.unreadable, because))
        else:
            drift = _with(drift, fields)
    else:
        why = "the stack is being updated" if _in_progress(stack) else "another plan is deployed"
        drift = replace(drift, unreadable=(*drift.unreadable, f"live endpoint, field by field: {why}"))
    if deployment.endpoint.trial.mode == "off":
        return drift
    try:
        last = deployed_trial(stack, clients.results)
        scheduled = scheduled_trial(deployment, stack, clients.results)
    except BenchError as error:
        return replace(drift, unreadable=(*drift.unreadable, f"last trial: {error.problems[0].message}"))
    findings = [*trial_findings(deployment, last, scheduled, now=now, most_days=most_days)]
    with_trials = replace(
        drift,
        trial=last.words(now),
        trial_verdict=last.verdict,
        trial_date=last.date,
        scheduled_trial=scheduled.words(now),
    )
    if last.result is None and not last.error:
        hint, what = "deploy it with its trial", "trial of the deployment"
        findings.append(drift_finding(rule="SEA435", severity="note", what=what, live="none", hint=hint))
    return _with(with_trials, tuple(findings))


def _with(drift: EndpointDrift, findings: tuple[Finding, ...]) -> EndpointDrift:
    return replace(drift, findings=(*drift.findings, *findings))


def _findings_of(ask: Callable[[], tuple[Finding, ...]]) -> tuple[tuple[Finding, ...] | None, str]:
    """Return the findings of a comparison, or `None` and why AWS could not be read."""
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
    deployed = stack.outputs.get("PlanDigest", "")
    if stack.status not in _IN_ORDER and not _in_progress(stack):
        severity: Severity = "error"
        hint = "read the stack's events; fix the cause and deploy again"
        if stack.status == "UPDATE_ROLLBACK_COMPLETE":
            severity = "warning"
            if deployed == deployment.plan.digest:
                severity, hint = "note", "it has the locked plan; the status stays until an update changes the stack"
        yield drift_finding(
            rule="SEA430",
            severity=severity,
            what="stack status",
            expected="CREATE_COMPLETE or UPDATE_COMPLETE",
            live=stack.status,
            hint=hint,
        )
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


def _reader(clients: DriftClients) -> AwsReader:
    return AwsReader(ClientCalls(clients.endpoints), is_strict=True)


def unknown_endpoints(
    environment: str, known: Collection[str], current: Collection[str], reader: AwsReader
) -> Iterator[Finding]:
    """Yield each endpoint whose name begins with the environment's, or that has its tag, and that is not expected.

    Args:
        known: The first generation's names of every spec's endpoint.
        current: The names of the endpoints that the locks deploy.

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
