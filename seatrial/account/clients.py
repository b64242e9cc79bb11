"""Clients of an environment's account, and the calls that are made of them: all of them only read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from seatrial.account.reader import aws_failures
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.specs.environment import EnvironmentSpec


class Identity(Protocol):
    """The one call of AWS STS that is needed; everybody may make it."""

    def get_caller_identity(self) -> Mapping[str, object]:
        """Return whose credentials these are."""


class Quotas(Protocol):
    """Service Quotas."""

    def list_service_quotas(self, **filters: str) -> Mapping[str, object]:
        """Return a page of the quotas that were set for the account."""

    def list_aws_default_service_quotas(self, **filters: str) -> Mapping[str, object]:
        """Return a page of the quotas that every account has."""


class Endpoints(Protocol):
    """SageMaker."""

    def list_endpoints(self, **filters: str) -> Mapping[str, object]:
        """Return a page of the endpoints."""

    def describe_endpoint(self, *, EndpointName: str) -> Mapping[str, object]:  # noqa: N803 (the service's words)
        """Return an endpoint."""

    def describe_endpoint_config(self, *, EndpointConfigName: str) -> Mapping[str, object]:  # noqa: N803
        """Return an endpoint configuration."""


class Secrets(Protocol):
    """Secrets Manager."""

    def describe_secret(self, *, SecretId: str) -> Mapping[str, object]:  # noqa: N803
        """Return what a secret is, without its value."""


class Objects(Protocol):
    """Amazon S3."""

    def list_objects_v2(self, *, Bucket: str, Prefix: str, MaxKeys: int) -> Mapping[str, object]:  # noqa: N803
        """Return the first objects below a prefix."""


class Keys(Protocol):
    """AWS KMS."""

    def describe_key(self, *, KeyId: str) -> Mapping[str, object]:  # noqa: N803
        """Return what a key is."""


class Networks(Protocol):
    """Amazon EC2."""

    def describe_subnets(self, *, SubnetIds: Sequence[str]) -> Mapping[str, object]:  # noqa: N803
        """Return subnets."""

    def describe_security_groups(self, *, GroupIds: Sequence[str]) -> Mapping[str, object]:  # noqa: N803
        """Return security groups."""


class Parameters(Protocol):
    """Systems Manager."""

    def get_parameter(self, *, Name: str) -> Mapping[str, object]:  # noqa: N803
        """Return a parameter."""


class Functions(Protocol):
    """AWS Lambda."""

    def get_account_settings(self) -> Mapping[str, object]:
        """Return the limits of the account in this region."""


class RaisedAlarms(Protocol):
    """The alarms that are raised."""

    def describe_alarms(self, **filters: str) -> Mapping[str, object]:
        """Return alarms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountClients:
    """Clients of one account in one region."""

    identity: Identity
    quotas: Quotas
    endpoints: Endpoints
    secrets: Secrets
    objects: Objects
    keys: Keys
    networks: Networks
    parameters: Parameters
    alarms: RaisedAlarms
    functions: Functions


def account_clients(environment: EnvironmentSpec) -> AccountClients:
    """Return clients of the environment's region; no call is made yet."""
    return clients_of_region(environment.region, where=environment.name)


def clients_of_region(region: str, *, where: str) -> AccountClients:
    """Return clients of a region; no call is made yet, and `where` is told when one can't be made."""
    import boto3  # noqa: PLC0415 (heavy, and tests need no client)

    with aws_failures(where):
        return AccountClients(
            identity=cast("Identity", boto3.client("sts", region_name=region)),
            quotas=cast("Quotas", boto3.client("service-quotas", region_name=region)),
            endpoints=cast("Endpoints", boto3.client("sagemaker", region_name=region)),
            secrets=cast("Secrets", boto3.client("secretsmanager", region_name=region)),
            objects=cast("Objects", boto3.client("s3", region_name=region)),
            keys=cast("Keys", boto3.client("kms", region_name=region)),
            networks=cast("Networks", boto3.client("ec2", region_name=region)),
            parameters=cast("Parameters", boto3.client("ssm", region_name=region)),
            alarms=cast("RaisedAlarms", boto3.client("cloudwatch", region_name=region)),
            functions=cast("Functions", boto3.client("lambda", region_name=region)),
        )


def check_account(environment: EnvironmentSpec, identity: Identity) -> None:
    """Refuse credentials of another account than the environment's: its stacks would seem not to be there.

    Raises:
        SpecError: SEA455.
        BenchError: As `aws_failures`.
    """
    if environment.account is None:
        return
    with aws_failures(environment.name):
        account = f"{identity.get_caller_identity()['Account']}"
    if account != environment.account:
        message = f"they belong to {account}, and {environment.name} is {environment.account}"
        raise SpecError.of("SEA455", message, where=environment.name, hint="choose others with AWS_PROFILE")
