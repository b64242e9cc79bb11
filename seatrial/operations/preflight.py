"""Checks of an account before a deployment: quotas, secrets, weights, network and whatever else a deployment needs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from seatrial.account.clients import check_account
from seatrial.account.live_endpoint import raised_alarms, read_endpoint
from seatrial.account.reader import (
    AwsReader,
    ClientCalls,
    aws_failures,
    count,
    error_code,
    error_sentence,
    mapping,
    moment,
    rows,
    text_at,
)
from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.documents.live import ROLLBACK_ALARMS_OFF
from seatrial_base.catalog.images import console_host
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.resource_types import INFERENCE_COMPONENT, availability
from seatrial_base.errors import BenchError
from seatrial_base.findings import Finding, Place
from seatrial_base.printer import Judgement
from seatrial_base.units import counted
from seatrial_load.documents.request_checks import read_trial_request
from seatrial_load.measure.functions import workers_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_service_quotas import ServiceQuotasClient
    from mypy_boto3_ssm import SSMClient

    from seatrial.account.clients import AccountClients
    from seatrial.deployment.document import Deployment
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.hosting import HostingSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.printer import Json

UNREAD = "SEA436"
SERVICE = "sagemaker"
AT_ONCE: Final = 8
"""Stacks that `cdk deploy --concurrency 8` of the generated pipelines deploys at a time."""
SWEEP: Final = 1
CONCURRENCY: Final = "L-B99A9384"
"""Code of "Concurrent executions" in Service Quotas, service `lambda`."""
_UNREAD = "could not be read"
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_NEEDED = 6
"""`requiresBootstrapStackVersion` of the cloud assemblies that aws-cdk-lib 2.275 writes."""
NETWORK_HINT = "fix the network of the environment's file"


@dataclass(frozen=True, slots=True)
class AccountCheck:
    """A check of the account.

    Attributes:
        answer: What the account has, or why it could not be read.
        finding: What is wrong, an error, or a warning of what will be; a note where it could not be read; `None` where
            all is well.
    """

    subject: str
    answer: str
    finding: Finding | None = None

    @property
    def is_ok(self) -> bool:
        """Whether all is well."""
        return self.finding is None

    @property
    def is_wrong(self) -> bool:
        """Whether something would fail."""
        return self.finding is not None and self.finding.severity == "error"

    @property
    def warns(self) -> bool:
        """Whether something will fail later."""
        return self.finding is not None and self.finding.severity == "warning"

    @property
    def is_unread(self) -> bool:
        """Whether it could not be read."""
        return self.finding is not None and self.finding.severity == "note"


def ok(subject: str, answer: str) -> AccountCheck:
    """Return that all is well."""
    return AccountCheck(subject, answer)


def problem(subject: str, rule: str, answer: str, hint: str) -> AccountCheck:
    """Return what would fail, and how to fix it."""
    return AccountCheck(subject, answer, Finding(rule, Place(field=subject), answer, hint, severity="error"))


def unread(subject: str, because: str) -> AccountCheck:
    """Return that it could not be read."""
    message = f"could not be read: {because}"
    return AccountCheck(subject, because, Finding(UNREAD, Place(field=subject), message, severity="note"))


def account_check(subject: str, ask: Callable[[], AccountCheck], *, refusals: Mapping[str, Finding]) -> AccountCheck:
    """Check, and make a problem of a refusal of AWS whose code is among `refusals`; another leaves it unread."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    try:
        with aws_failures(subject):
            return ask()
    except BenchError as error:
        return unread(subject, error.problems[0].message)
    except ClientError as error:
        known = refusals.get(error_code(error))
        if known is None:
            return unread(subject, error_sentence(error))
        return problem(subject, known.rule, known.message, known.hint)


def refusal(rule: str, message: str, hint: str) -> Finding:
    """Return what an error of AWS means."""
    return Finding(rule, Place(), message, hint)


@dataclass(frozen=True, slots=True)
class Need:
    """The most instances of one type that an endpoint runs: of its most copies, and of an update of them."""

    endpoint_name: str
    instance_type: str
    instances: int


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of the account: its code in Service Quotas and its value, in instances."""

    code: str
    value: float


@dataclass(frozen=True, slots=True)
class InUse:
    """The instances of the account by endpoint and type; or why they could not be read."""

    instances: Mapping[tuple[str, str], int]
    unknown: str = ""

    def of_others(self, instance_type: str, needs: Iterable[Need]) -> int:
        """Return the instances of a type at endpoints that are not deployed now under the same name and type.

        The old endpoint of a move to another name, or to another type, is one of the others: both run for a while.
        """
        ours = {(need.endpoint_name, need.instance_type) for need in needs}
        return sum(n for place, n in self.instances.items() if place[1] == instance_type and place not in ours)


def needs_of(deployments: Iterable[Deployment]) -> tuple[Need, ...]:
    """Return what each deployment needs at most."""
    return tuple(
        Need(deployment.endpoint_name, deployment.plan.instance_type.value, deployment.most_instances)
        for deployment in deployments
    )


def instance_checks(
    needs: tuple[Need, ...], environment: EnvironmentSpec, clients: AccountClients
) -> Iterator[AccountCheck]:
    """Yield one check for each instance type, by name."""
    types = sorted({need.instance_type for need in needs})
    if environment.is_embedded:
        yield from (unread(subject, "the embedded AWS has no service quotas") for subject in map(_subject, types))
        return
    yield from quota_checks(needs, environment.region, clients)


def quota_checks(needs: tuple[Need, ...], region: str, clients: AccountClients) -> Iterator[AccountCheck]:
    """Yield one check for each instance type of an account on AWS, by name."""
    types = sorted({need.instance_type for need in needs})
    quotas, because = _quotas(clients.quotas, {_quota_name(instance_type) for instance_type in types})
    in_use = instances_in_use(clients.endpoints)
    for instance_type in types:
        if because:
            yield unread(_subject(instance_type), because)
        else:
            yield _judged(instance_type, needs, in_use, quotas.get(_quota_name(instance_type)), region)


def _subject(instance_type: str) -> str:
    return f"quota {_quota_name(instance_type)}"


def _quota_name(instance_type: str) -> str:
    return f"{instance_type} for endpoint usage"


def _judged(
    instance_type: str, needs: tuple[Need, ...], in_use: InUse, quota: Quota | None, region: str
) -> AccountCheck:
    mine = Counter({need.endpoint_name: need.instances for need in needs if need.instance_type == instance_type})
    others = in_use.of_others(instance_type, needs)
    needed_words = ", ".join(f"{name} {number}" for name, number in sorted(mine.items()))
    used = f"others use {others}" if not in_use.unknown else f"what others use is unknown ({in_use.unknown})"
    whole = f"needs {mine.total()} ({needed_words}); {used}"
    if quota is None:
        because = f"{whole}; Service Quotas has none of this name in {region}, which may lack the instance type"
        return unread(_subject(instance_type), because)
    summary = f"{whole}; the quota is {quota.value:g}"
    short = mine.total() + others - int(quota.value)
    if short > 0:
        hint = f"request {mine.total() + others} or more at {quota_link(region, quota.code)}"
        return problem(_subject(instance_type), "SEA460", f"{summary}, {counted(short, 'instance')} too few", hint)
    return unread(_subject(instance_type), summary) if in_use.unknown else ok(_subject(instance_type), summary)


def quota_link(region: str, code: str, *, service: str = SERVICE) -> str:
    """Return the page on which an increase of a quota is requested."""
    return f"https://{region}.{console_host(region)}/servicequotas/home/services/{service}/quotas/{code}"


def _quotas(service: ServiceQuotasClient, wanted: set[str]) -> tuple[dict[str, Quota], str]:
    """Return quotas by name, as set for the account or else as every account has them; or why they can't be read."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 (heavy, and only this command needs it here)

    try:
        with aws_failures("Service Quotas"):
            quotas = _listed(service.list_service_quotas, wanted)
            if missing := wanted - quotas.keys():
                quotas |= _listed(service.list_aws_default_service_quotas, missing)
    except BenchError as error:
        return {}, error.problems[0].message
    except ClientError as error:
        return {}, f"{error}"
    return quotas, ""


def _listed(ask: Callable[..., Mapping[str, object]], wanted: set[str]) -> dict[str, Quota]:
    quotas: dict[str, Quota] = {}
    token = ""
    while True:
        page = ask(ServiceCode=SERVICE, **({"NextToken": token} if token else {}))
        for row in rows(page, "Quotas"):
            value = row.get("Value")
            if text_at(row, "QuotaName") in wanted and isinstance(value, int | float):
                quotas[text_at(row, "QuotaName")] = Quota(text_at(row, "QuotaCode"), value)
        if not (token := text_at(page, "NextToken")):
            return quotas


def instances_in_use(endpoints: SageMakerClient) -> InUse:
    """Count the instances of every endpoint of the account in this region, by endpoint and type."""
    reader = AwsReader(ClientCalls(endpoints))
    instances: Counter[tuple[str, str]] = Counter()
    for row in reader.rows("endpoints", "sagemaker", "list_endpoints", "Endpoints", MaxResults=100):
        name = text_at(row, "EndpointName")
        endpoint = read_endpoint(name, reader, with_tags=False)
        for variant in (*endpoint.variants, *endpoint.shadow_variants):
            for pool in variant.pools:
                instances[name, pool.instance_type] += pool.current
            if not variant.pools:
                instances[name, variant.instance_type] += max(variant.current, variant.desired)
    return InUse({}, reader.unreadable[0]) if reader.unreadable else InUse(instances)


def functions_at_once(deployments: Iterable[Deployment]) -> int:
    """Return how many functions the trials of deployments run at a time at most, those of the sweep included.

    Of each trial that is its largest level's, and one more for a request of CloudFormation that waits.
    """
    # The largest trials may meet in one pipeline: their sum is the bound, not the mean.
    tried = (deployment for deployment in deployments if deployment.endpoint.trial.mode != "off")
    functions = sorted((functions_of(deployment) + 1 for deployment in tried), reverse=True)
    return sum(functions[:AT_ONCE]) + SWEEP if functions else 0


def functions_of(deployment: Deployment) -> int:
    """Return how many functions load the largest level of a deployment's trial."""
    region = deployment.environment.region
    target = {"endpoint_name": deployment.endpoint_name, "inference_component": None, "region": region}
    whole = {**json.loads(deployment.trial_request), "target": target, "expected": None}
    request = read_trial_request(json.dumps(whole))
    return max(workers_at(request, level) for level in request.load.concurrency_levels)


def function_checks(
    deployments: tuple[Deployment, ...], environment: EnvironmentSpec, functions: LambdaClient
) -> Iterator[AccountCheck]:
    """Yield the check of what AWS Lambda runs at a time; none where nothing is tried."""
    needed = functions_at_once(deployments)
    if not needed:
        return
    subject = "Lambda functions at a time"
    if environment.is_embedded:
        yield unread(subject, "the embedded AWS has no service quotas")
        return

    def ask() -> AccountCheck:
        limit = count(mapping(functions.get_account_settings(), "AccountLimit"), "UnreservedConcurrentExecutions")
        summary = f"the trials need {needed}; {limit} are not reserved"
        if needed > limit:
            link = quota_link(environment.region, CONCURRENCY, service="lambda")
            hint = f"request {needed} or more at {link}, deploy fewer stacks at a time, or release reserved concurrency"
            return problem(subject, "SEA467", summary, hint)
        return ok(subject, summary)

    yield account_check(subject, ask, refusals={})


def reservation_end(hosting: HostingSpec, ends_at: datetime | None, now: datetime) -> Finding | None:
    """Return that reserved capacity has ended or ends within the notice of its spec; `None` where it does not.

    Args:
        ends_at: When, by the account; default: by the spec.
    """
    ends_at, arn = ends_at or hosting.reservation_end, hosting.capacity_reservation_arn
    if arn is None or ends_at is None or ends_at - now > timedelta(days=hosting.capacity_reservation_notice_days):
        return None
    days = (ends_at - now) / timedelta(days=1)
    when = f"ends in {days:.1f} days" if days > 0 else "has ended"
    message = f"the reserved capacity {when} ({_utc(ends_at)}): no instance of it serves after that"
    hint = (
        f"extend it: `aws sagemaker search-training-plan-offerings --training-plan-arn {arn}` lists the offerings, "
        "`aws sagemaker extend-training-plan --training-plan-extension-offering-id ID` buys one; or name another "
        "reservation, or none, and deploy before that"
    )
    place = Place(field="hosting.capacity_reservation_arn")
    return Finding("SEA630", place, message, hint, severity="warning" if days > 0 else "error")


def ended_reservations(loaded: LoadedSpec, now: datetime) -> Iterator[Finding]:
    """Yield that the reserved capacity of a spec has ended, by the spec, or ends soon.

    A note until the end: a day of the calendar must not fail every pull request.
    """
    if (ending := reservation_end(loaded.endpoint.hosting, None, now)) is not None:
        ended = loaded.problem(("hosting", "capacity_reservation_arn"), ending.rule, ending.message, ending.hint)
        yield replace(ended, severity="error" if ending.severity == "error" else "note")


def reservation_checks(
    deployments: Iterable[Deployment], clients: AccountClients, now: datetime
) -> Iterator[AccountCheck]:
    """Yield the checks of each reserved capacity that a deployment names: that it holds the endpoint, and how long."""
    for deployment in deployments:
        hosting = deployment.endpoint.hosting
        if (arn := hosting.capacity_reservation_arn) is None:
            continue
        plan: dict[str, object] = {}
        kind, _, name = arn.rpartition(":")[2].partition("/")
        subject = f"capacity reservation {name} of {deployment.endpoint_name}"
        if deployment.environment.is_embedded:
            read = unread(subject, "the embedded AWS has none")
        elif kind != "training-plan" or not hasattr(clients.endpoints, "describe_training_plan"):
            read = unread(subject, f"this boto3 describes no {kind}")
        else:
            missing = refusal("SEA631", "there is no such training plan", "name another reservation, or none")
            ask = partial(_describe_plan, subject, name, plan, clients.endpoints)
            read = account_check(subject, ask, refusals={"ResourceNotFoundException": missing})
        ends_at, written = moment(plan, "EndTime"), hosting.reservation_end
        ending = reservation_end(hosting, ends_at, now)
        wrong = [AccountCheck(subject, ending.message, ending)] if ending is not None else []
        wrong += [problem(subject, "SEA631", *each) for each in _unfit_plan(deployment, plan)] if plan else []
        if ends_at is not None and (written is None or abs(ends_at - written) >= timedelta(minutes=1)):
            message = f"it ends at {_utc(ends_at)}, and the spec says {'nothing' if written is None else _utc(written)}"
            hint = "write capacity_reservation_ends_at and deploy: the alarm before the end goes by the spec"
            place = Place(field="hosting.capacity_reservation_ends_at")
            wrong.append(AccountCheck(subject, message, Finding("SEA632", place, message, hint, severity="warning")))
        yield from wrong
        if not wrong or not read.is_ok:
            yield read


def _describe_plan(subject: str, name: str, plan: dict[str, object], endpoints: SageMakerClient) -> AccountCheck:
    plan |= endpoints.describe_training_plan(TrainingPlanName=name)
    return ok(subject, f"{text_at(plan, 'Status')}, {count(plan, 'TotalInstanceCount')} instances")


def _utc(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def _unfit_plan(deployment: Deployment, plan: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield why a training plan can't hold an endpoint, each with its remedy."""
    planned, needed, status = deployment.plan.instance_type.value, deployment.most_instances, text_at(plan, "Status")
    if status in {"Failed", "Expired"}:
        yield f"its status is {status}", "name another reservation, or none"
    targets = plan.get("TargetResources")
    if isinstance(targets, list) and "endpoint" not in targets:
        yield f"it is for {', '.join(map(str, targets))}", "buy one with TargetResources endpoint"
    types = sorted({text_at(row, "InstanceType") for row in rows(plan, "ReservedCapacitySummaries")})
    if types and planned not in types:
        yield f"it reserves {', '.join(types)}, and {planned} is planned", "name its type in serving.instance_types"
    reserved = count(plan, "TotalInstanceCount")
    if reserved < needed:
        hint = "lower scaling.max_copies, or reserve more"
        yield f"it has {counted(reserved, 'instance')}, and the endpoint with an update needs {needed}", hint


def check_environment(
    deployments: tuple[Deployment, ...], environment: EnvironmentSpec, clients: AccountClients, *, now: datetime
) -> tuple[AccountCheck, ...]:
    """Check the account for everything that deployments of one environment need.

    Raises:
        BenchError: As `aws_failures`, when AWS does not even return the caller's identity.
        SpecError: SEA455 when the credentials belong to another account.
    """
    check_account(environment, clients.identity)
    return (
        *instance_checks(needs_of(deployments), environment, clients),
        *part_checks(deployments, environment, clients),
        *function_checks(deployments, environment, clients.functions),
        *reservation_checks(deployments, clients, now),
    )


def preflight_lines(checks: tuple[AccountCheck, ...]) -> Iterator[str]:
    """Yield the checks as a table: subject, result, and the remedy of a problem."""
    width = max(len(_status(check)) for check in checks)
    for check in checks:
        finding = check.finding if check.is_wrong or check.warns else None
        rule = f"{finding.rule}: " if finding is not None else ""
        yield f"{_status(check):<{width}}  {check.subject}: {rule}{check.answer}"
        if finding is not None and finding.hint:
            yield f"{'':<{width}}    hint: {finding.hint}"
    numbers = Counter(map(_status, checks))
    yield ""
    warned = f", {numbers['warning']} with a warning" if numbers["warning"] else ""
    yield f"{numbers['ok']} ok, {numbers['problem']} with a problem{warned}, {numbers[_UNREAD]} {_UNREAD}"


def _status(check: AccountCheck) -> str:
    return "ok" if check.is_ok else "problem" if check.is_wrong else "warning" if check.warns else _UNREAD


def preflight_judgement(checks: tuple[AccountCheck, ...], environment: EnvironmentSpec) -> Judgement:
    """Return the checks for the printer; its facts are all of them."""
    answers = [{"subject": check.subject, "status": _status(check), "answer": check.answer} for check in checks]
    facts: dict[str, Json] = {"environment": environment.name, "region": environment.region, "checks": answers}
    findings = [check.finding for check in checks if check.finding is not None]
    placed = [replace(finding, place=replace(finding.place, file=environment.name)) for finding in findings]
    return Judgement(command="preflight", findings=placed, facts=facts)


def part_checks(
    deployments: tuple[Deployment, ...], environment: EnvironmentSpec, clients: AccountClients
) -> Iterator[AccountCheck]:
    """Yield the checks of everything that the deployments name, each thing once, in order."""
    yield from _region(environment, {one.plan.instance_type.value for one in deployments})
    for secret in sorted({name for one in deployments for name in one.serving.secret_env.values()}):
        yield secret_check(secret, clients.secrets)
    weights = {uri for one in deployments for uri in (one.serving.weights_s3_uri, one.endpoint.model.s3_uri)}
    for uri in sorted(uri for uri in weights if uri is not None):
        yield weights_check(uri, clients.objects)
    if environment.kms_key_arn is not None:
        yield _key(environment.kms_key_arn, clients.keys)
    if environment.network.subnet_ids:
        network = environment.network
        subject = f"network {', '.join((*network.subnet_ids, *network.security_group_ids))}"
        missing = {
            "InvalidSubnetID.NotFound": "a subnet does not exist",
            "InvalidSubnetID.Malformed": "the ID of a subnet is malformed",
            "InvalidGroup.NotFound": "a security group does not exist",
            "InvalidGroupId.Malformed": "the ID of a security group is malformed",
        }
        refusals = {code: refusal("SEA465", message, NETWORK_HINT) for code, message in missing.items()}
        yield account_check(subject, partial(_ask_network, subject, environment, clients.networks), refusals=refusals)
    yield _bootstrap(environment, clients.parameters)
    for deployment in deployments:
        yield _alarms(deployment, clients)


def _alarms(deployment: Deployment, clients: AccountClients) -> AccountCheck:
    """Check that no alarm is raised that would roll an update of an endpoint back."""
    name = deployment.endpoint_name
    subject = f"alarms of {name}"
    components = [f"{name}{COMPONENT_SUFFIX}", *map(deployment.component_of, deployment.guests)]
    reader = AwsReader(ClientCalls(clients.alarms))
    raised = [alarm.name for alarm in raised_alarms(name, components, reader) if alarm.rolls_back]
    if reader.unreadable:
        return unread(subject, reader.unreadable[0])
    if raised:
        hint = f"wait for the end, or deploy a repair with `-c {ROLLBACK_ALARMS_OFF}`"
        return problem(subject, "SEA771", f"{', '.join(raised)} would roll an update back", hint)
    return ok(subject, "none is raised that rolls an update back")


def _region(environment: EnvironmentSpec, types: Iterable[str]) -> Iterator[AccountCheck]:
    known, region = availability(), environment.region
    subject = f"region {region}"
    if region in known.regions:
        yield ok(subject, f"has {INFERENCE_COMPONENT} (catalog, {known.date})")
    else:
        hint = f"choose one of {', '.join(known.regions)}"
        yield problem(subject, "SEA461", f"has no {INFERENCE_COMPONENT} (catalog, {known.date})", hint)
    for name in sorted(types):
        if find_instance(name) is None:
            yield unread(f"{name} in {region}", "the instance type is not in the catalog")


def secret_check(name: str, secrets: SecretsManagerClient) -> AccountCheck:
    """Check that a secret exists; its value is not read."""
    subject = f"secret {name}"
    create = f"create it: aws secretsmanager create-secret --name {name} --secret-string …"

    def ask() -> AccountCheck:
        if secrets.describe_secret(SecretId=name).get("DeletedDate") is not None:
            restore = f"restore it: aws secretsmanager restore-secret --secret-id {name}"
            return problem(subject, "SEA462", "it is marked for deletion", restore)
        return ok(subject, "it exists; its value was not read")

    missing = refusal("SEA462", "it does not exist", create)
    return account_check(subject, ask, refusals={"ResourceNotFoundException": missing})


def weights_check(uri: str, objects: S3Client) -> AccountCheck:
    """Check that there is an object below an S3 prefix."""
    subject = f"weights {uri}"
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")

    def ask() -> AccountCheck:
        listed = objects.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=1)
        first = next(rows(listed, "Contents"), None)
        if first is None:
            hint = "stage the model: seatrial stage; check model.s3_uri"
            return problem(subject, "SEA463", "there is no object below the prefix", hint)
        return ok(subject, f"{text_at(first, 'Key')} has {count(first, 'Size'):,} bytes")

    missing = refusal("SEA463", "there is no such bucket", "check model.s3_uri")
    return account_check(subject, ask, refusals={"NoSuchBucket": missing})


def _key(arn: str, keys: KMSClient) -> AccountCheck:
    subject = f"KMS key {arn}"

    def ask() -> AccountCheck:
        metadata = keys.describe_key(KeyId=arn).get("KeyMetadata")
        state = text_at(metadata, "KeyState") if isinstance(metadata, dict) else ""
        if state != "Enabled":
            hint = f"enable it: aws kms enable-key --key-id {arn}, or give another kms_key_arn"
            return problem(subject, "SEA464", f"its state is {state or 'unknown'}", hint)
        return ok(subject, "it is enabled")

    missing = refusal("SEA464", "it does not exist", "give another kms_key_arn, or leave it out")
    return account_check(subject, ask, refusals={"NotFoundException": missing})


def _ask_network(subject: str, environment: EnvironmentSpec, networks: EC2Client) -> AccountCheck:
    network = environment.network
    subnets = [*rows(networks.describe_subnets(SubnetIds=[*network.subnet_ids]), "Subnets")]
    groups = [*rows(networks.describe_security_groups(GroupIds=[*network.security_group_ids]), "SecurityGroups")]
    vpcs = sorted({text_at(row, "VpcId") for row in (*subnets, *groups)})
    if len(vpcs) > 1:
        return problem(subject, "SEA465", f"they belong to several VPCs: {', '.join(vpcs)}", NETWORK_HINT)
    full = [text_at(subnet, "SubnetId") for subnet in subnets if subnet.get("AvailableIpAddressCount") == 0]
    if full:
        hint = "free addresses, or give other subnets"
        return problem(subject, "SEA465", f"no address is free in {', '.join(full)}", hint)
    free = sum(count(subnet, "AvailableIpAddressCount") for subnet in subnets)
    return ok(subject, f"they exist in {', '.join(vpcs)}; {free:,} addresses are free")


def _bootstrap(environment: EnvironmentSpec, parameters: SSMClient) -> AccountCheck:
    subject, needed = "CDK bootstrap", f"version {BOOTSTRAP_NEEDED} or later is needed"
    again = f"run `cdk bootstrap -c environment={environment.name}`"

    def ask() -> AccountCheck:
        parameter = parameters.get_parameter(Name=BOOTSTRAP).get("Parameter")
        value = text_at(parameter, "Value") if isinstance(parameter, dict) else ""
        if not value.isdecimal() or int(value) < BOOTSTRAP_NEEDED:
            return problem(subject, "SEA466", f"its version is {value or 'unknown'}; {needed}", again)
        return ok(subject, f"its version is {value}")

    missing = refusal("SEA466", f"{BOOTSTRAP} does not exist in {environment.region}; {needed}", again)
    return account_check(subject, ask, refusals={"ParameterNotFound": missing})
