"""All checks of some deployments in one environment, what they name and don't make, and how the checks read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from seatrial.account.clients import check_account
from seatrial.account.live_endpoint import raised_alarms
from seatrial.account.reader import AwsReader, ClientCalls, aws_failures, count, rows, text_at
from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.documents.live_endpoint import ROLLBACK_ALARMS_OFF
from seatrial.operations.preflight.check import account_check, ok, problem, refusal, unread
from seatrial.operations.preflight.quotas import function_checks, instance_checks, needs_of
from seatrial_base.catalog.instances import find_instance
from seatrial_base.catalog.resource_types import INFERENCE_COMPONENT, availability
from seatrial_base.printer import Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_ssm import SSMClient

    from seatrial.account.clients import AccountClients
    from seatrial.deployment.document import Deployment
    from seatrial.operations.preflight.check import AccountCheck
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_base.printer import Json

_UNREAD = "could not be read"
BOOTSTRAP = "/cdk-bootstrap/hnb659fds/version"
BOOTSTRAP_NEEDED = 6
"""`requiresBootstrapStackVersion` of the cloud assemblies that aws-cdk-lib 2.275 writes."""
NETWORK_HINT = "fix the network of the environment's file"


def check_environment(
    deployments: tuple[Deployment, ...], environment: EnvironmentSpec, clients: AccountClients
) -> tuple[AccountCheck, ...]:
    """Check the account for everything that deployments of one environment need.

    Raises:
        BenchError: As `aws_failures`, when AWS does not even return the caller's identity.
        SpecError: SEA455 when the credentials belong to another account.
    """
    with aws_failures(environment.name):
        clients.identity.get_caller_identity()
    check_account(environment, clients.identity)
    return (
        *instance_checks(needs_of(deployments), environment, clients),
        *part_checks(deployments, environment, clients),
        *function_checks(deployments, environment, clients.functions),
    )


def preflight_lines(checks: tuple[AccountCheck, ...]) -> Iterator[str]:
    """Yield the checks as a table: subject, result, and the remedy of a problem."""
    width = max(len(_status(check)) for check in checks)
    for check in checks:
        finding = check.finding if check.is_wrong else None
        rule = f"{finding.rule}: " if finding is not None else ""
        yield f"{_status(check):<{width}}  {check.subject}: {rule}{check.answer}"
        if finding is not None and finding.hint:
            yield f"{'':<{width}}    hint: {finding.hint}"
    numbers = Counter(map(_status, checks))
    yield ""
    yield f"{numbers['ok']} ok, {numbers['problem']} with a problem, {numbers[_UNREAD]} {_UNREAD}"


def _status(check: AccountCheck) -> str:
    return "ok" if check.is_ok else "problem" if check.is_wrong else _UNREAD


def preflight_judgement(checks: tuple[AccountCheck, ...], environment: EnvironmentSpec) -> Judgement:
    """Return the checks for the printer; its facts are all of them."""
    answers = [{"subject": check.subject, "status": _status(check), "answer": check.answer} for check in checks]
    facts: dict[str, Json] = {"environment": environment.name, "region": environment.region, "checks": answers}
    findings = [check.finding for check in checks if check.finding is not None]
    placed = [replace(each, place=replace(each.place, file=environment.name)) for each in findings]
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
    raised = [each.name for each in raised_alarms(name, components, reader) if each.rolls_back]
    if reader.not_asked:
        return unread(subject, reader.not_asked[0])
    if raised:
        hint = f"wait for the end, or deploy a repair with `-c {ROLLBACK_ALARMS_OFF}` (docs/how-to/alarms.md)"
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
    vpcs = sorted({text_at(one, "VpcId") for one in (*subnets, *groups)})
    if len(vpcs) > 1:
        return problem(subject, "SEA465", f"they belong to several VPCs: {', '.join(vpcs)}", NETWORK_HINT)
    full = [text_at(one, "SubnetId") for one in subnets if one.get("AvailableIpAddressCount") == 0]
    if full:
        hint = "free addresses, or give other subnets"
        return problem(subject, "SEA465", f"no address is free in {', '.join(full)}", hint)
    free = sum(count(one, "AvailableIpAddressCount") for one in subnets)
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
