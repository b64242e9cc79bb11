"""Where containers run: the subnets and security groups that they join."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from constructs import Construct

    from seatrial.specs.environment import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerNetwork:
    """The VPC of containers; without subnets they run in the service's own network.

    Attributes:
        subnet_ids: IDs or tokens of the subnets.
        security_group_ids: IDs or tokens of the security groups.
    """

    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()

    @classmethod
    def of(cls, network: Network) -> ContainerNetwork:
        """Return the network that an environment's file names."""
        return cls(subnet_ids=network.subnet_ids, security_group_ids=network.security_group_ids)

    @classmethod
    def in_vpc(
        cls,
        scope: Construct,
        vpc: ec2.IVpc,
        *,
        subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
    ) -> ContainerNetwork:
        """Return the network of containers in a VPC.

        Args:
            scope: What a security group is made in, where none is given.
            vpc: The VPC.
            subnets: Its subnets; default: the private ones, as for every construct of the CDK.
            security_groups: Their security groups; default: a new one that allows all outbound connections.
        """
        chosen = vpc.select_subnets(
            availability_zones=subnets.availability_zones if subnets else None,
            one_per_az=subnets.one_per_az if subnets else None,
            subnet_filters=subnets.subnet_filters if subnets else None,
            subnet_group_name=subnets.subnet_group_name if subnets else None,
            subnets=subnets.subnets if subnets else None,
            subnet_type=subnets.subnet_type if subnets else None,
        )
        if chosen.has_public:
            message = (
                "SEA449: containers get no public IP address, so those in public subnets reach nothing outside the "
            )
            Annotations.of(scope).add_warning_v2("seatrial:SEA449", f"{message}VPC. Give private subnets.")
        groups = security_groups or [ec2.SecurityGroup(scope, "SecurityGroup", vpc=vpc)]
        return cls(
            subnet_ids=tuple(chosen.subnet_ids), security_group_ids=tuple(group.security_group_id for group in groups)
        )


def refuse_parts_of_no_vpc(
    scope: Construct,
    vpc: ec2.IVpc | None,
    subnets: ec2.SubnetSelection | None,
    security_groups: Sequence[ec2.ISecurityGroup] | None,
) -> None:
    """Report subnets and security groups without their VPC, which would be ignored, as an error of the CDK: SEA449.

    Args:
        scope: What is given them.
        vpc: The VPC.
        subnets: Subnets of it.
        security_groups: Security groups in it.
    """
    if vpc is None and (subnets is not None or security_groups is not None):
        Annotations.of(scope).add_error("SEA449: vpc_subnets and security_groups need their VPC. Give vpc beside them.")
