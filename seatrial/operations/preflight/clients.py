"""The calls of AWS that a preflight makes: all of them only read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.operations.deployed import Identity


class Quotas(Protocol):
    """Service Quotas."""

    def list_service_quotas(self, **asked: str) -> Mapping[str, object]:
        """Return a page of the quotas that were set for the account."""

    def list_aws_default_service_quotas(self, **asked: str) -> Mapping[str, object]:
        """Return a page of the quotas that every account has."""


class Endpoints(Protocol):
    """SageMaker."""

    def list_endpoints(self, **asked: str) -> Mapping[str, object]:
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
