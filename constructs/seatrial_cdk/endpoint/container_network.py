"""The network of containers: the subnets and security groups that they join, and the VPC endpoints they need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_cdk.policy import acknowledge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.specs.environment import Network

SERVICES = (
    "sagemaker.api",
    "sagemaker.runtime",
    "ecr.api",
    "ecr.dkr",
    "logs",
    "monitoring",
    "sts",
    "secretsmanager",
)
"""What has an interface endpoint (AWS PrivateLink guide, "AWS services that integrate with AWS PrivateLink")."""
ACKNOWLEDGED = {"EC23": "Its only rule lets the addresses of the VPC in on port 443; the pack can't read a token."}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerNetwork:
    """The VPC of containers, by IDs or tokens; without subnets they run in the service's own network.

    Attributes:
        security_groups: The groups themselves, where the app has them.
    """

    subnet_ids: tuple[str, ...] = ()
    security_group_ids: tuple[str, ...] = ()
    security_groups: tuple[ec2.ISecurityGroup, ...] = ()

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
            subnet_ids=tuple(chosen.subnet_ids),
            security_group_ids=tuple(group.security_group_id for group in groups),
            security_groups=tuple(groups),
        )


def connections_of(scope: Construct, network: ContainerNetwork) -> ec2.Connections:
    """Return what may connect to a network's containers, and they to others, by their security groups.

    Groups of a network that is given by IDs are imported into `scope`.

    Raises:
        SpecError: SEA449 without a VPC.
    """
    if not network.security_group_ids:
        message, hint = "the containers are in no VPC, so they have no connections", "give vpc, or network with groups"
        raise SpecError.of("SEA449", message, where=scope.node.path, hint=hint)
    known = network.security_groups or [
        ec2.SecurityGroup.from_security_group_id(scope, f"SecurityGroup{number}", group)
        for number, group in enumerate(network.security_group_ids)
    ]
    return ec2.Connections(security_groups=[*known])


def refuse_parts_of_no_vpc(
    scope: Construct,
    vpc: ec2.IVpc | None,
    subnets: ec2.SubnetSelection | None,
    security_groups: Sequence[ec2.ISecurityGroup] | None,
) -> None:
    """Report subnets and security groups without their VPC, which would be ignored, as an error of the CDK: SEA449."""
    if vpc is None and (subnets is not None or security_groups is not None):
        Annotations.of(scope).add_error("SEA449: vpc_subnets and security_groups need their VPC. Give vpc beside them.")


class HostingVpcEndpoints(Construct):
    """Interface endpoints for SageMaker, ECR, CloudWatch, STS and Secrets Manager, and a gateway endpoint for S3.

    A trial in the VPC calls more: add `states`, `cloudformation`, `application-autoscaling`, `ssm`, `events`, `kms` and
    `lambda` to `more_services`, and `sns` where its findings are published.

    Args:
        vpc: The VPC, with DNS support and DNS host names.
        vpc_subnets: Subnets of the interface endpoints; default: the private ones.
        security_groups: Security groups of the interface endpoints, which must let the containers in on port 443;
            default: a new one for all of them that lets the whole VPC in.
        more_services: More services with interface endpoints, by the last parts of their names, as `states`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        more_services: Sequence[str] = (),
    ) -> None:
        super().__init__(scope, construct_id)
        groups = [*(security_groups or ())]
        if not groups:
            group = ec2.SecurityGroup(
                self,
                "SecurityGroup",
                vpc=vpc,
                description="VPC endpoints of SageMaker hosting",
                allow_all_outbound=False,
            )
            acknowledge(group, ACKNOWLEDGED)
            group.add_ingress_rule(ec2.Peer.ipv4(vpc.vpc_cidr_block), ec2.Port.tcp(443), "HTTPS from the VPC")
            groups = [group]
        self.gateway = ec2.GatewayVpcEndpoint(self, "S3", vpc=vpc, service=ec2.GatewayVpcEndpointAwsService.S3)
        self.interfaces = {
            name: ec2.InterfaceVpcEndpoint(
                self,
                name,
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService(name),
                subnets=vpc_subnets,
                security_groups=groups,
                open=False,
                private_dns_enabled=True,
            )
            for name in dict.fromkeys((*SERVICES, *more_services))
        }
