"""The interface of every endpoint that serves an LLM, whatever made it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import jsii
from aws_cdk import Aspects, CfnResource, Duration, Environment, IAspect, Names, RemovalPolicy, Stack, Tags
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial_base.errors import SpecError
from seatrial_base.tags import ENVIRONMENT_TAG
from seatrial_cdk.endpoint.container_network import ContainerNetwork, connections_of, refuse_parts_of_no_vpc
from seatrial_cdk.endpoint.variant_instances import VARIANT_NAME
from seatrial_cdk.place import TOKEN_MARKER, StackPlace, stack_environment
from seatrial_cdk.policy import acknowledge_wildcards
from seatrial_cdk.value_checks import RULE, check_values, in_unit
from seatrial_load.client.connection import openai_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from aws_cdk import aws_kms as kms
    from constructs import IConstruct

    from seatrial_cdk.endpoint.execution_role import RoleOptions
    from seatrial_cdk.endpoint.variant_instances import VariantInstances

_SERVING = ("ApplicationAutoScaling::", "EC2::SecurityGroup", "IAM::", "SageMaker::", "SSM::")
SERVING_TYPES = tuple(f"AWS::{each}" for each in _SERVING)
"""Beginnings of the resource types that an endpoint needs in order to serve."""
BEARER_ACTION = "sagemaker:CallWithBearerToken"
DESCRIBE_ACTIONS = ("sagemaker:DescribeEndpoint", "sagemaker:DescribeInferenceComponent")
INVOKE_ACTIONS = ("sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream")


class ILlmEndpoint(Construct):
    """An endpoint that serves an LLM: its names, who may invoke it, its metrics.

    `LlmEndpoint` and `SingleModelEndpoint` define one; `LlmEndpoint.from_endpoint_name` and `from_attributes` name one
    that is there already.

    Args:
        endpoint_name: Name of the endpoint, or a token of it.
        inference_component_name: Name of the inference component that serves; `None` when the variant has the model.
        variant_name: Name of the production variant.
        is_asynchronous: It takes requests by `InvokeEndpointAsync` alone.
        place: Where it is; default: in the account and Region of its stack.
    """

    environment: str | None = None
    """The environment of Seatrial that it belongs to; `None` for none."""
    rolls_back = False
    """Whether alarms roll its updates back: this app updates it."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        inference_component_name: str | None = None,
        variant_name: str = VARIANT_NAME,
        is_asynchronous: bool = False,
        place: StackPlace | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._place = place
        self.endpoint_name = endpoint_name
        self.inference_component_name = inference_component_name
        self.variant_name = variant_name
        self.is_asynchronous = is_asynchronous

    @property
    def serving_resource(self) -> CfnResource | None:
        """What must be there before scaling; `None` when something else made the endpoint."""
        return None

    @property
    def fewest_instances(self) -> int | None:
        """Fewest instances that the endpoint keeps without copies; `None` when that is not known."""
        return None

    def keep_instance_counts(self) -> None:
        """Let an update keep the instance counts that scaling has reached; nothing to do where it does anyway."""

    @property
    def place(self) -> StackPlace:
        """The partition, account and Region of the endpoint."""
        return self._place or StackPlace.of(self)

    @property
    def stack(self) -> Stack:
        """The stack that has the construct, as of each resource of the CDK."""
        return Stack.of(self)

    @property
    def env(self) -> Environment:
        """The account and Region of the endpoint, as of each resource of the CDK."""
        return stack_environment(self.place)

    @property
    def endpoint_arn(self) -> str:
        """ARN of the endpoint; names are in lower case there."""
        return self._arn("endpoint", arn_name(self.endpoint_name))

    @property
    def inference_component_arn(self) -> str | None:
        """ARN of the inference component; `None` when the variant has the model."""
        name = self.inference_component_name
        return None if name is None else self._arn("inference-component", arn_name(name))

    @property
    def openai_base_url(self) -> str | None:
        """The base URL for OpenAI clients, of the component where there is one; `None` of an asynchronous endpoint."""
        if self.is_asynchronous:
            return None
        place = self.place
        path = openai_path(self.endpoint_name, self.inference_component_name)
        return f"https://runtime.sagemaker.{place.region}.{place.dns_suffix}/{path}"

    def grant_invoke(self, grantee: iam.IGrantable, *, openai: bool = False) -> iam.Grant:
        """Allow invoking the endpoint and its inference component, with one answer or as a stream.

        Args:
            openai: With a bearer token too, as OpenAI clients do: this right has no resource level.
        """
        grant = self.grant(grantee, *INVOKE_ACTIONS)
        return grant.combine(allow_bearers(grantee)) if openai else grant

    def grant(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow actions on the endpoint and its inference component, of what serves now.

        Raises:
            SpecError: SEA439 without actions, which IAM refuses.
        """
        if not actions:
            hint = 'as in grant(role, "sagemaker:UpdateEndpoint")'
            raise SpecError.of(RULE, "grant has no actions", where=self.node.path, hint=hint)
        arns = [arn for arn in (self.endpoint_arn, self.inference_component_arn) if arn is not None]
        return iam.Grant.add_to_principal(grantee=grantee, actions=[*actions], resource_arns=arns)

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow describing the endpoint and its inference component: their state, copies and instances."""
        return self.grant(grantee, *DESCRIBE_ACTIONS)

    def metric(
        self,
        metric_name: str,
        *,
        namespace: str = "AWS/SageMaker",
        statistic: str = "Average",
        period: Duration | None = None,
        label: str | None = None,
        color: str | None = None,
        unit: cloudwatch.Unit | None = None,
    ) -> cloudwatch.Metric:
        """Return a metric of the inference component, else of the variant.

        Args:
            metric_name: As CloudWatch has it.
            namespace: As CloudWatch has it.
            statistic: As CloudWatch writes it: `Average`, `Sum`, `p95`.
            period: Default: a minute.
            label: Shown in dashboards; default: the metric's name.
            color: Shown in dashboards.
            unit: Only data of this unit; default: of any.
        """
        return cloudwatch.Metric(
            namespace=namespace,
            metric_name=metric_name,
            statistic=statistic,
            period=period or Duration.minutes(1),
            dimensions_map=self.metric_dimensions,
            label=label,
            color=color,
            unit=unit,
            account=None if self._place is None else self._place.account,
            region=None if self._place is None else self._place.region,
        )

    @property
    def metric_dimensions(self) -> dict[str, str]:
        """The dimensions of the endpoint's metrics in CloudWatch."""
        if self.inference_component_name is not None:
            return {"InferenceComponentName": self.inference_component_name}
        return {"EndpointName": self.endpoint_name, "VariantName": self.variant_name}

    def metric_invocations(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """Invocations, per minute."""
        return self.metric("Invocations", statistic=statistic, period=period)

    def metric_4xx_errors(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """Invocations that failed on the caller's side, per minute."""
        return self.metric("Invocation4XXErrors", statistic=statistic, period=period)

    def metric_5xx_errors(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """Invocations that failed on the server's side, per minute."""
        return self.metric("Invocation5XXErrors", statistic=statistic, period=period)

    def metric_model_latency(self, *, statistic: str = "p95", period: Duration | None = None) -> cloudwatch.Metric:
        """Time that the container took to answer, in microseconds as the service publishes it."""
        return self.metric("ModelLatency", statistic=statistic, period=period)

    def metric_overhead_latency(self, *, statistic: str = "p95", period: Duration | None = None) -> cloudwatch.Metric:
        """Time that SageMaker added to the container's, in microseconds."""
        return self.metric("OverheadLatency", statistic=statistic, period=period)

    def metric_first_chunk_latency(
        self, *, statistic: str = "p95", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Time until the first chunk of a streamed answer, in microseconds; answers in one piece have none.

        SageMaker publishes it of a variant, all its components together (developer guide, "Metric name mapping: legacy
        to OTel", under bidirectional streaming); `ContainerAlarms` watch the first tokens of one component.
        """
        variant = {"EndpointName": self.endpoint_name, "VariantName": self.variant_name}
        return self.metric("FirstChunkModelLatency", statistic=statistic, period=period).with_(dimensions_map=variant)

    def metric_no_capacity(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """Invocations that were refused because no copy was in service, per minute."""
        return self.metric("NoCapacityInvocationFailures", statistic=statistic, period=period)

    def metric_concurrent_requests(
        self, *, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Requests in flight per copy of the inference component, or per model of the variant."""
        name = "ConcurrentRequestsPerModel" if self.inference_component_name is None else "ConcurrentRequestsPerCopy"
        return self.metric(name, statistic=statistic, period=period)

    def roll_back_on(self, alarm_names: Sequence[str]) -> None:
        """Roll an update back when one of these alarms is raised meanwhile; what made the endpoint overrides this.

        An endpoint that is imported is updated by something else, so nothing happens.

        Args:
            alarm_names: One to ten alarms of this account and region.
        """

    def _arn(self, kind: str, name: str) -> str:
        return self.place.arn("sagemaker", f"{kind}/{name}")

    def _allow_invoking(self, grantee: iam.IGrantable, names: Iterable[tuple[str, str]]) -> iam.Grant:
        """Allow invoking resources by kind and name."""
        arns = [self._arn(kind, name) for kind, name in names]
        return iam.Grant.add_to_principal(grantee=grantee, actions=[*INVOKE_ACTIONS], resource_arns=arns)


def allow_bearers(grantee: iam.IGrantable) -> iam.Grant:
    """Allow calls with bearer tokens, which the right to what is called must allow too."""
    principal = grantee.grant_principal
    if isinstance(principal, Construct):
        acknowledge_wildcards(principal, ["*"], "sagemaker:CallWithBearerToken has no resource level.")
    return iam.Grant.add_to_principal(grantee=grantee, actions=[BEARER_ACTION], resource_arns=["*"])


def allow_reading_alias(scope: Construct, grantee: iam.IGrantable, alias_name: str) -> iam.Grant:
    """Allow reading the SSM parameter that names the endpoint that serves."""
    alias = StackPlace.of(scope).arn("ssm", f"parameter{alias_name}")
    return iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:GetParameter"], resource_arns=[alias])


@jsii.implements(ec2.IConnectable)
class DefinedEndpoint(ILlmEndpoint):
    """An endpoint that this app defines: its names, its network, its tag.

    Args:
        longest_name: Characters of such a name.
        base_name: The name of the first generation, which the later ones begin with; default: `endpoint_name`.
        values: What the endpoint is made of, by the name of its argument: checked here.
    """

    model_name: str
    endpoint_config_name: str
    config: sagemaker.CfnEndpointConfig
    rolls_back = True

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str | None,
        longest_name: int,
        base_name: str | None,
        environment: str | None,
        alias_name: str | None,
        vpc: ec2.IVpc | None,
        vpc_subnets: ec2.SubnetSelection | None,
        security_groups: Sequence[ec2.ISecurityGroup] | None,
        network: ContainerNetwork | None,
        values: Mapping[str, object],
        variant_name: str = VARIANT_NAME,
        is_asynchronous: bool = False,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            endpoint_name=endpoint_name or "",
            variant_name=variant_name,
            is_asynchronous=is_asynchronous,
        )
        check_values(self, values)
        if endpoint_name is None:
            self.endpoint_name = Names.unique_resource_name(self, max_length=longest_name, separator="-")
        self.base_name, self.alias_name = base_name or self.endpoint_name, alias_name
        self.network = network or ContainerNetwork()
        if vpc is not None:
            self.network = ContainerNetwork.in_vpc(self, vpc, subnets=vpc_subnets, security_groups=security_groups)
        self.environment = environment
        if environment is not None:
            Tags.of(self).add(ENVIRONMENT_TAG, environment)
        refuse_parts_of_no_vpc(self, vpc, vpc_subnets, security_groups)

    @property
    @jsii.member(jsii_name="connections")  # the CDK's process reads it, as of a security group's `allow_to`
    def connections(self) -> ec2.Connections:
        """What connects to the containers, and they to others, by their security groups; as of Lambda's functions.

        Raises:
            SpecError: SEA449 without a VPC.
        """
        return self._connections

    @cached_property
    def _connections(self) -> ec2.Connections:
        return connections_of(self, self.network)

    def apply_removal_policy(self, policy: RemovalPolicy) -> None:
        """Keep or delete what serves, when it leaves the stack: SageMaker's resources, roles, network, scaling, alias.

        An endpoint reads its model with the roles, and is called by the alias: none of them goes alone. Alarms,
        dashboards and trials go with the stack; what it stored keeps the policy of its bucket.
        """
        Aspects.of(self).add(_RemovalOfServing(policy))

    def publish_metrics(
        self, *, detailed: bool | None = None, enhanced: bool | None = None, frequency_s: int | Duration | None = None
    ) -> None:
        """Publish more metrics of the endpoint, or fewer; CloudWatch bills them. Another choice updates the endpoint.

        Args:
            detailed: Of containers, GPUs, hosts and placement; default: SageMaker's, on for new configurations.
            enhanced: Invocations and utilization of each instance and copy; default: SageMaker's, off.
            frequency_s: How often: 10, 30, 60, 120, 180, 240 or 300 s; default: SageMaker's, 60.
        """
        self.config.metrics_config = sagemaker.CfnEndpointConfig.MetricsConfigProperty(
            enable_detailed_observability=detailed,
            enable_enhanced_metrics=enhanced,
            metric_publish_frequency_in_seconds=in_unit(frequency_s, "s"),
        )

    def further_variants(self) -> Iterator[ILlmEndpoint]:
        """Yield the endpoint as seen from each production variant but the first: for alarms of their own."""
        yield from ()


@jsii.implements(IAspect)
class _RemovalOfServing:
    """Applies a policy to what an endpoint serves with, also to what is added after it was asked for."""

    def __init__(self, policy: RemovalPolicy) -> None:
        self._policy = policy

    def visit(self, node: IConstruct) -> None:
        """Apply the policy to a resource."""
        if isinstance(node, CfnResource) and node.cfn_resource_type.startswith(SERVING_TYPES):
            node.apply_removal_policy(self._policy)


class ComponentEndpoint(DefinedEndpoint):
    """An endpoint that this app defines, with its model in an inference component.

    It is what trials, schedules, further models and adapters read of `LlmEndpoint`, the only one there is. They can't
    name that class: its `from_spec` defines them, so both files would import one another.
    """

    component: sagemaker.CfnInferenceComponent
    component_name: str
    endpoint: sagemaker.CfnEndpoint
    instance_role: iam.IRole
    instances: VariantInstances
    model_role: iam.IRole
    role_options: RoleOptions
    siblings: tuple[str, ...]
    specification: Mapping[str, object]
    weights_key: kms.IKey | None

    @property
    def fewest_instances(self) -> int:
        """Fewest instances that the endpoint keeps without copies."""
        return self.instances.fewest

    @property
    def roles_of_weights(self) -> tuple[iam.IRole, ...]:
        """The roles that may load model data: that of the containers and that of the instances."""
        return self.model_role, self.instance_role

    @cached_property
    def specification_json(self) -> str:
        """What a copy of the component is, as JSON with tokens."""
        return Stack.of(self).to_json_string(self.specification)


def generations_of(base_name: str) -> list[str]:
    """Return the names of each generation of an endpoint as ARNs have them; a generation has up to three digits."""
    base = base_name.lower()
    return [base, *(f"{base}-{digits}" for digits in ("?", "??", "???"))]


def arn_name(name: str) -> str:
    """Return a name as ARNs have it; a token is left as it is, since its text is no name."""
    return name if TOKEN_MARKER in name else name.lower()
