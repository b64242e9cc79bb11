"""Clients of an environment's account, and the calls that are made of them: all of them only read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_kms import KMSClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_service_quotas import ServiceQuotasClient
    from mypy_boto3_ssm import SSMClient
    from mypy_boto3_sts import STSClient

    from seatrial.specs.environment import EnvironmentSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountClients:
    """Clients of one account in one region."""

    identity: STSClient
    quotas: ServiceQuotasClient
    endpoints: SageMakerClient
    secrets: SecretsManagerClient
    objects: S3Client
    keys: KMSClient
    networks: EC2Client
    parameters: SSMClient
    alarms: CloudWatchClient
    functions: LambdaClient


def account_clients(environment: EnvironmentSpec) -> AccountClients:
    """Return clients of the environment's region; no call is made yet."""
    return clients_of_region(environment.region, where=environment.name)


def clients_of_region(region: str, *, where: str) -> AccountClients:
    """Return clients of a region; no call is made yet, and `where` is named when one can't be made."""
    import boto3  # noqa: PLC0415 (heavy, and tests need no client)

    with aws_failures(where):
        return AccountClients(
            identity=boto3.client("sts", region_name=region),
            quotas=boto3.client("service-quotas", region_name=region),
            endpoints=boto3.client("sagemaker", region_name=region),
            secrets=boto3.client("secretsmanager", region_name=region),
            objects=boto3.client("s3", region_name=region),
            keys=boto3.client("kms", region_name=region),
            networks=boto3.client("ec2", region_name=region),
            parameters=boto3.client("ssm", region_name=region),
            alarms=boto3.client("cloudwatch", region_name=region),
            functions=boto3.client("lambda", region_name=region),
        )


def check_account(environment: EnvironmentSpec, identity: STSClient) -> None:
    """Refuse credentials that AWS does not accept, and those of another account: its stacks would seem not to be there.

    Raises:
        SpecError: SEA455.
        BenchError: As `aws_failures`.
    """
    # Also where any account will do: what is read without credentials would seem not to be known.
    with aws_failures(environment.name):
        account = f"{identity.get_caller_identity()['Account']}"
    if environment.account not in {None, account}:
        message = f"they belong to {account}, and {environment.name} is {environment.account}"
        raise SpecError.of("SEA455", message, where=environment.name, hint="choose others with AWS_PROFILE")
