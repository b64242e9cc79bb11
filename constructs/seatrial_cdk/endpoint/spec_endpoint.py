"""How an endpoint of either kind is made from its spec and lock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_cdk.endpoint.container_network import ContainerNetwork
from seatrial_cdk.observability.endpoint_alarms import allow_alarms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_sns as sns

    from seatrial_cdk.endpoint.deployed_endpoint import EndpointParts


class SpecEndpoint:
    """An endpoint that a spec and its lock may define.

    Attributes:
        parts: What belongs to it; `None` where it was not made from a spec.
    """

    parts: EndpointParts | None = None

    @classmethod
    def from_spec(
        cls,
        scope: Construct,
        construct_id: str,
        spec: str | Path,
        *,
        environment: str,
        environments: str | Path | None = None,
        vpc: ec2.IVpc | None = None,
        vpc_subnets: ec2.SubnetSelection | None = None,
        security_groups: Sequence[ec2.ISecurityGroup] | None = None,
        network: ContainerNetwork | None = None,
        key: kms.IKey | None = None,
        alarm_topic: sns.ITopic | None = None,
        trials: Literal["stack", "deployed"] = "stack",
        templates: str | Path | None = None,
    ) -> Self:
        """Define the endpoint of a spec and its lock, with its trial, scaling, alarms, alias and schedule in `parts`.

        A later generation of the plan has its number behind the construct ID.

        Args:
            scope: What it belongs to.
            construct_id: Its construct ID.
            spec: The endpoint's YAML file; its lock lies beside it.
            environment: Name of the environment.
            environments: Folder of environments; default: `environments` beside the spec, or beside its folder.
            vpc: The VPC of the containers; default: that of the environment's file.
            vpc_subnets: Its subnets; default: the private ones.
            security_groups: Security groups of the containers; default: a new one, in a VPC.
            network: The VPC by IDs, in place of `vpc`.
            key: Key of weights, volumes, answers and captures; default: that of the environment's file.
            alarm_topic: Is told of alarms; default: that of the environment.
            trials: `stack` adds the environment's `TrialsStack` to the app, unless it is there; `deployed` takes the
                one that the account has already.
            templates: Folder of serving templates that override ours file by file; default: none.

        Raises:
            SpecError: With every problem of spec, environment and lock; SEA125 for a spec of the other kind.
            RenderError: When the plan can't be rendered.
        """
        from seatrial_cdk.endpoint.deployed_endpoint import endpoint_from_spec  # noqa: PLC0415 (it makes endpoints)

        if vpc is not None:
            home = Construct(scope, f"{construct_id}Network")
            network = ContainerNetwork.in_vpc(home, vpc, subnets=vpc_subnets, security_groups=security_groups)
        if alarm_topic is not None:
            allow_alarms(scope, alarm_topic)
        endpoint = endpoint_from_spec(
            scope,
            construct_id,
            Path(spec),
            environment,
            environments=None if environments is None else Path(environments),
            network=network,
            key=key,
            alarm_topic_arn=None if alarm_topic is None else alarm_topic.topic_arn,
            adds_trials_stack=trials == "stack",
            templates=None if templates is None else Path(templates),
        )
        if not isinstance(endpoint, cls):
            message = f"hosting.kind needs {type(endpoint).__name__}, not {cls.__name__}"
            hint = f"use {type(endpoint).__name__}.from_spec"
            raise SpecError.of("SEA125", message, hint=hint, where=str(spec), field="hosting.kind")
        return endpoint
