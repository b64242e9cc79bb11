"""The environment spec: where an endpoint is deployed, and the guard rails there."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from seatrial.model import FrozenModel
from seatrial.spec import shapes
from seatrial.spec.endpoint import Copies, InstanceTypes, Usd

EMBEDDED_ACCOUNT = "000000000000"
"""The account of the embedded AWS; it is nobody's on the real one."""

Account = Annotated[str, StringConstraints(pattern=shapes.ACCOUNT)]
Region = Annotated[str, StringConstraints(pattern=shapes.REGION)]
EnvironmentName = Annotated[str, StringConstraints(pattern=shapes.ENVIRONMENT_NAME, max_length=16)]
SubnetId = Annotated[str, StringConstraints(pattern=shapes.SUBNET_ID)]
SecurityGroupId = Annotated[str, StringConstraints(pattern=shapes.SECURITY_GROUP_ID)]
TagKey = Annotated[str, StringConstraints(pattern=shapes.TAG_TEXT, min_length=1, max_length=128)]
TagValue = Annotated[str, StringConstraints(pattern=shapes.TAG_TEXT, max_length=256)]
MOST_TAGS = 49  # of each resource but one: `seatrial:environment` is ours
KmsKeyArn = Annotated[str, StringConstraints(pattern=shapes.KMS_KEY_ARN)]


class GuardRails(FrozenModel):
    """What no endpoint of this environment may exceed."""

    instance_types: InstanceTypes | None = Field(None, description="Only these instance types.")
    usd_per_hour: Usd | None = Field(None, description="At most this cost of one endpoint per hour.")
    max_copies: Copies | None = Field(None, description="At most this many copies.")


class Network(FrozenModel):
    """The VPC of the containers; with no subnets they run in the service's own network."""

    subnet_ids: tuple[SubnetId, ...] = Field((), description="Subnets of the containers.")
    security_group_ids: tuple[SecurityGroupId, ...] = Field((), description="Security groups of the containers.")
    isolated: bool = Field(default=False, description="No outbound connection; the weights must lie in S3.")


class EnvironmentSpec(FrozenModel):
    """One environment: account, region, guard rails, network, keys."""

    name: EnvironmentName = Field(description="The name by which specs and commands mean it.")
    account: Account | None = Field(None, description="AWS account; left out, that of the caller's credentials.")
    region: Region = Field(description="AWS region; one that has inference components.")
    guard_rails: GuardRails = GuardRails()
    network: Network = Network()
    kms_key_arn: KmsKeyArn | None = Field(None, description="KMS key of volumes and results; left out, one is made.")
    removal: Literal["destroy", "retain"] = Field("retain", description="What becomes of results on deletion.")
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=MOST_TAGS)] = Field(
        {}, description="Tags of every resource."
    )

    @property
    def is_embedded(self) -> bool:
        """Whether this is the embedded AWS of the laptop."""
        return self.account == EMBEDDED_ACCOUNT
