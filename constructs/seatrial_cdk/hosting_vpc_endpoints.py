"""The VPC endpoints that containers and trials need in a VPC without internet access."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from seatrial_cdk.acknowledgements import acknowledge

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class HostingVpcEndpoints(Construct):
    """Interface endpoints for SageMaker, ECR, CloudWatch, STS and Secrets Manager, and a gateway endpoint for S3.

    A trial in the VPC calls more: add `lambda`, `states`, `ssm`, `events` and `application-autoscaling` to
    `more_services`, and `sns` where its findings are published.

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
        groups = [*security_groups] if security_groups else [_security_group(self, vpc)]
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


def _security_group(scope: HostingVpcEndpoints, vpc: ec2.IVpc) -> ec2.ISecurityGroup:
    group = ec2.SecurityGroup(
        scope, "SecurityGroup", vpc=vpc, description="VPC endpoints of SageMaker hosting", allow_all_outbound=False
    )
    acknowledge(group, ACKNOWLEDGED)
    group.add_ingress_rule(ec2.Peer.ipv4(vpc.vpc_cidr_block), ec2.Port.tcp(443), "HTTPS from the VPC")
    return group
