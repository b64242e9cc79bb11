"""A SageMaker endpoint that serves an LLM as an inference component, and has room for more of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration, Stack, Tags
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from seatrial.deployment.alias import alias_name
from seatrial.deployment.document import COMPONENT_SUFFIX
from seatrial.tags import ENVIRONMENT_TAG
from seatrial_cdk.execution_role import ExecutionRole, ModelSources
from seatrial_cdk.inference_component import (
    VARIANT_NAME,
    define_component,
    define_model,
    specification_document,
)
from seatrial_cdk.model_container import model_container
from seatrial_cdk.rolling_update import endpoint_update, rolling_update
from seatrial_cdk.serving_artifact import ServingArtifact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.plan.document import Plan
    from seatrial.serving.rendered import RenderedConfig
    from seatrial.spec.environment import Network


class LlmEndpoint(Construct):
    """Model, endpoint configuration, endpoint and inference component of one plan.

    Only the endpoint and the component have names of their own. Model and endpoint configuration can't be changed,
    only replaced, and a replacement under a fixed name collides with what it replaces. The component's change of
    model is an update in place.

    CopyCount is the planned count. With a `CandidateTrial` an update carries the live count instead; without one it
    sets the planned count again, and scaling goes on from there. New copies run beside the old ones meanwhile, so the
    instances may grow by the plan's surge.

    Another instance type, tensor parallel degree, AMI or volume is not safe in place: the service moves a live
    endpoint's instances and its components one after the other, and copies of the old size may not fit on what the new
    ones need. The plan of such a change has another generation, so `endpoint_name` is another one: CloudFormation
    creates the new endpoint and component, and deletes the old ones in its clean-up.

    Its resources carry the environment's name as a tag (`seatrial.tags`).

    More models share the endpoint's instances as `AddedComponent`s.

    Args:
        endpoint_name: The endpoint's name; the component is called the same with `-model` behind it.
        base_name: The name of the first generation, which the later ones begin with; default: `endpoint_name`.
        plan: Instances, degrees, limits and timeouts.
        serving: What the container will read.
        network: The VPC of the containers.
        weights_s3_uri: S3 prefix of the weights that the container may read; default: what the service mounts.
        accept_eula: The user has accepted the licence of the mounted weights.
        kms_key_arn: Key of the weights, and of the volume where there is one.
        has_local_nvme: The instance type has local NVMe: the service refuses a volume key for it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        base_name: str | None = None,
        plan: Plan,
        serving: RenderedConfig,
        network: Network,
        weights_s3_uri: str | None = None,
        accept_eula: bool = False,
        kms_key_arn: str | None = None,
        has_local_nvme: bool = True,
    ) -> None:
        super().__init__(scope, construct_id)
        self._plan = plan
        self.endpoint_name = endpoint_name
        self.instance_type = plan.instance_type.value
        self.inference_component_name = f"{endpoint_name}{COMPONENT_SUFFIX}"
        artifact = ServingArtifact(self, "Artifact", files=serving.files) if serving.files else None
        self.base_name = base_name or endpoint_name
        self.instance_role = ExecutionRole(
            self, "InstanceRole", name=self.base_name, sources=None, network=network
        ).role
        self.model_role = ExecutionRole(
            self,
            "ModelRole",
            name=self.base_name,
            sources=ModelSources(
                image=serving.image,
                artifact=artifact,
                weights_s3_uri=weights_s3_uri or serving.weights_s3_uri,
                kms_key_arn=kms_key_arn,
            ),
            network=network,
        ).role
        container = model_container(serving, artifact=artifact, accept_eula=accept_eula)
        self.model = define_model(self, self.model_role, container, serving, network)
        self.config = _config(self, plan, serving, network, None if has_local_nvme else kms_key_arn)
        self.endpoint = _endpoint(self)
        self.component = define_component(self, self.endpoint, self.model, self.inference_component_name, plan)
        self.specification = specification_document(plan, self.model.attr_model_name)
        Tags.of(self).add(ENVIRONMENT_TAG, plan.environment)

    def roll_back_on(self, alarm_names: Sequence[str]) -> None:
        """Roll an update of the component or of the endpoint back when one of these alarms is raised meanwhile.

        Args:
            alarm_names: One to ten alarms of this account and region; none of them may depend on this endpoint.
        """
        self.component.deployment_config = rolling_update(self._plan, alarm_names)
        self.endpoint.deployment_config = endpoint_update(self._plan, alarm_names)

    @property
    def alias_name(self) -> str:
        """The name of the SSM parameter that names the endpoint that serves (`EndpointAlias`)."""
        return alias_name(self._plan.environment, self._plan.endpoint)

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow invoking each generation of this endpoint and its component, and reading the alias that names it.

        The rights name no single generation, so that a caller keeps the old endpoint until the alias has moved. ARNs
        have names in lower case; a generation has up to three digits.
        """
        stack, base = Stack.of(self), self.base_name.lower()
        names = [base, *(f"{base}-{digits}" for digits in ("?", "??", "???"))]
        invoked = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"],
            resource_arns=[
                stack.format_arn(service="sagemaker", resource=kind, resource_name=f"{name}{suffix}")
                for kind, suffix in (("endpoint", ""), ("inference-component", COMPONENT_SUFFIX))
                for name in names
            ],
        )
        return invoked.combine(
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["ssm:GetParameter"],
                resource_arns=[
                    stack.format_arn(service="ssm", resource="parameter", resource_name=self.alias_name[1:])
                ],
            )
        )

    def grant_describe(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading what this endpoint and its component are made of at the moment."""
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:DescribeEndpoint", "sagemaker:DescribeInferenceComponent"],
            resource_arns=[self.endpoint.ref, self.component.ref],
        )

    def metric_5xx_errors(self) -> cloudwatch.Metric:
        """Invocations that failed on the server's side, per minute."""
        return self._metric("Invocation5XXErrors", statistic="Sum")

    def metric_model_latency(self, *, statistic: str = "p95") -> cloudwatch.Metric:
        """Time that the container took to answer, in microseconds as the service publishes it."""
        return self._metric("ModelLatency", statistic=statistic)

    def metric_first_chunk_latency(self, *, statistic: str = "p95") -> cloudwatch.Metric:
        """Time until the first chunk of a streamed answer, in microseconds; answers in one piece have none."""
        return self._metric("FirstChunkModelLatency", statistic=statistic)

    def metric_no_capacity(self) -> cloudwatch.Metric:
        """Invocations that were refused because no copy was in service, per minute."""
        return self._metric("NoCapacityInvocationFailures", statistic="Sum")

    def _metric(self, name: str, *, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace="AWS/SageMaker",
            metric_name=name,
            statistic=statistic,
            period=Duration.minutes(1),
            dimensions_map={"InferenceComponentName": self.inference_component_name},
        )


def _config(
    scope: LlmEndpoint, plan: Plan, serving: RenderedConfig, network: Network, volume_key_arn: str | None
) -> sagemaker.CfnEndpointConfig:
    config = sagemaker.CfnEndpointConfig(
        scope,
        "Config",
        execution_role_arn=scope.instance_role.role_arn,
        production_variants=[_variant(plan)],
        enable_network_isolation=serving.isolated,
        kms_key_id=volume_key_arn,
        vpc_config=sagemaker.CfnEndpointConfig.VpcConfigProperty(
            subnets=list(network.subnet_ids), security_group_ids=list(network.security_group_ids)
        )
        if network.subnet_ids
        else None,
    )
    config.node.add_dependency(scope.instance_role)
    return config


def _variant(plan: Plan) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
    """Define the instances; the models come as inference components, so the variant names none."""
    instances = plan.instance_count.value
    return sagemaker.CfnEndpointConfig.ProductionVariantProperty(
        variant_name=VARIANT_NAME,
        instance_type=plan.instance_type.value,
        initial_instance_count=instances,
        inference_ami_version=plan.inference_ami_version.value,
        volume_size_in_gb=plan.volume_size_gb.value if plan.volume_size_gb else None,
        container_startup_health_check_timeout_in_seconds=plan.startup_timeout_s.value,
        model_data_download_timeout_in_seconds=plan.download_timeout_s.value,
        managed_instance_scaling=sagemaker.CfnEndpointConfig.ManagedInstanceScalingProperty(
            status="ENABLED",
            min_instance_count=instances,
            max_instance_count=plan.max_instances + plan.surge_instances.value,
        ),
        routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(routing_strategy="LEAST_OUTSTANDING_REQUESTS"),
    )


def _endpoint(scope: LlmEndpoint) -> sagemaker.CfnEndpoint:
    """Define the endpoint; an update keeps the instance count that managed scaling has reached.

    The desired count is retained too, and not excluded: it belongs to managed instance scaling, which the plan's count
    would cut back under load. A count outside new bounds is for managed scaling to mend.
    """
    endpoint = sagemaker.CfnEndpoint(
        scope,
        "Resource",
        endpoint_name=scope.endpoint_name,
        endpoint_config_name=scope.config.attr_endpoint_config_name,
        retain_all_variant_properties=True,
    )
    endpoint.add_resource_dependency(scope.config)
    return endpoint
