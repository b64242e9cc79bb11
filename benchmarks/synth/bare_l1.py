"""The same stacks as a user writes them with L1 constructs alone: one call of a constructor for each resource.

Names and numbers are those of our endpoint; references between resources are the attributes of the L1s. It reads no
spec and no lock, and renders nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aws_cdk import App, CfnOutput, CfnResource, Environment, Fn, Stack, Tags, Token
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_ssm as ssm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REGION, ENVIRONMENT, VARIANT = "us-east-1", "dev", "AllTraffic"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ALARMS = (
    ("Errors", "Invocation5XXErrors", "Sum", 5, 5, 3),
    ("NoCapacity", "NoCapacityInvocationFailures", "Sum", 1, 1, 1),
    ("Latency", "ModelLatency", "p95", 27_500_000, 5, 3),
    ("Ttft", "FirstChunkModelLatency", "p95", 1e15, 5, 3),
)


def bare_l1(count: int, folder: str, artifact: str, request: str, outputs: Sequence[str]) -> None:
    """Synthesize so many endpoints, each in a stack of its own.

    Args:
        count: Endpoints.
        folder: Where the assembly goes.
        artifact: The packaged serving configuration.
        request: The trial's request, as JSON.
        outputs: Attributes of the trial that are outputs.
    """
    app = App(outdir=folder, analytics_reporting=False)
    for number in range(count):
        _EndpointStack(app, f"{ENVIRONMENT}-chat-{number}", artifact=artifact, request=request, outputs=outputs)
    app.synth()


class _EndpointStack(Stack):
    def __init__(self, scope: App, name: str, *, artifact: str, request: str, outputs: Sequence[str]) -> None:
        super().__init__(scope, f"bare-{name}", env=Environment(region=REGION), description=f"Endpoint {name}")
        asset = s3_assets.Asset(self, "Artifact", path=artifact)
        account = self.account
        topic = f"arn:aws:sns:{REGION}:{account}:seatrial-{ENVIRONMENT}-alarms"
        instance_role = self._role("InstanceRole", name, account, [])
        model_role = self._role("ModelRole", name, account, _reads(asset.s3_bucket_name, asset.s3_object_key))
        model = sagemaker.CfnModel(
            self,
            "Model",
            execution_role_arn=model_role.attr_arn,
            enable_network_isolation=False,
            primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
                image=IMAGE,
                environment={"HF_TOKEN": "{{resolve:secretsmanager:seatrial/hub-token:SecretString:::}}"},
                model_data_url=asset.s3_object_url,
            ),
        )
        model.add_resource_dependency(model_role)
        config = self._config(instance_role)
        calling = [self._alarm(name, "OnCall", each, [topic]) for each in ALARMS[:-1]]
        alarms = [self._alarm(name, "Rollback", each, []) for each in ALARMS]
        specification = {
            "ModelName": model.attr_model_name,
            "ComputeResourceRequirements": {
                "NumberOfAcceleratorDevicesRequired": 1,
                "NumberOfCpuCoresRequired": 4,
                "MinMemoryRequiredInMb": 1024,
            },
        }
        properties = {
            "ServiceToken": f"arn:aws:lambda:{REGION}:{account}:function:seatrial-{ENVIRONMENT}-trials",
            "EndpointName": name,
            "InferenceComponentName": f"{name}-model",
            "EndpointConfigName": config.attr_endpoint_config_name,
            "ModelName": model.attr_model_name,
            "Specification": self.to_json_string(specification),
            "Request": request,
            "Alarms": Fn.join(",", [alarm.ref for alarm in alarms]),
        }
        candidate = CfnResource(self, "Candidate", type="Custom::CandidateTrial", properties=properties)
        endpoint = self._endpoint(name, config, alarms)
        endpoint.add_resource_dependency(config)
        endpoint.add_resource_dependency(candidate)
        component = self._component(name, endpoint, specification, Token.as_number(candidate.get_att("CopyCount")))
        for needed in (candidate, model, endpoint):
            component.add_resource_dependency(needed)
        trial = CfnResource(self, "Trial", type="Custom::SmokeBenchmark", properties=properties)
        trial.add_resource_dependency(component)
        for alarm in calling:
            alarm.add_resource_dependency(trial)
        self._scale_and_name(name, component, trial)
        values = {"EndpointName": name, "EndpointConfigName": config.attr_endpoint_config_name}
        for output in outputs:
            value = values.get(output) or Token.as_string(trial.get_att(output))
            CfnOutput(self, output, value=value)
        Tags.of(self).add("seatrial:environment", ENVIRONMENT)
        Tags.of(self).add("stage", ENVIRONMENT)

    def _role(self, construct_id: str, name: str, account: str, reads: list[Mapping[str, object]]) -> iam.CfnRole:
        groups = (f"Endpoints/{name}", f"Endpoints/{name}:*", f"Endpoints/{name}-*", f"InferenceComponents/{name}-*")
        logs = {
            "Effect": "Allow",
            "Action": ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            "Resource": [f"arn:aws:logs:{REGION}:{account}:log-group:/aws/sagemaker/{group}" for group in groups],
        }
        metrics = {"Effect": "Allow", "Action": "cloudwatch:PutMetricData", "Resource": "*"}
        assumed = {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Condition": {"StringEquals": {"aws:SourceAccount": account}},
        }
        policy = {"Version": "2012-10-17", "Statement": [*reads, logs, metrics]}
        return iam.CfnRole(
            self,
            construct_id,
            description=f"SageMaker of {name}",
            assume_role_policy_document={"Version": "2012-10-17", "Statement": [assumed]},
            policies=[iam.CfnRole.PolicyProperty(policy_name="Serve", policy_document=policy)],
        )

    def _config(self, role: iam.CfnRole) -> sagemaker.CfnEndpointConfig:
        kind = sagemaker.CfnEndpointConfig
        config = kind(
            self,
            "Config",
            execution_role_arn=role.attr_arn,
            enable_network_isolation=False,
            production_variants=[
                kind.ProductionVariantProperty(
                    variant_name=VARIANT,
                    instance_type="ml.g6e.2xlarge",
                    initial_instance_count=1,
                    inference_ami_version="al2023-ami-sagemaker-inference-gpu-4-1",
                    container_startup_health_check_timeout_in_seconds=600,
                    model_data_download_timeout_in_seconds=600,
                    managed_instance_scaling=kind.ManagedInstanceScalingProperty(
                        status="ENABLED", min_instance_count=1, max_instance_count=4
                    ),
                    routing_config=kind.RoutingConfigProperty(routing_strategy="LEAST_OUTSTANDING_REQUESTS"),
                )
            ],
        )
        config.add_resource_dependency(role)
        return config

    def _alarm(
        self, name: str, use: str, condition: tuple[str, str, str, float, int, int], topics: list[str]
    ) -> cloudwatch.CfnAlarm:
        construct_id, metric, statistic, threshold, watched, bad = condition
        percentile = statistic.startswith("p")
        return cloudwatch.CfnAlarm(
            self,
            f"{use}{construct_id}",
            alarm_description=f"{metric} of {name}",
            namespace="AWS/SageMaker",
            metric_name=metric,
            statistic=None if percentile else statistic,
            extended_statistic=statistic if percentile else None,
            dimensions=[cloudwatch.CfnAlarm.DimensionProperty(name="InferenceComponentName", value=f"{name}-model")],
            period=60,
            threshold=threshold,
            comparison_operator="GreaterThanOrEqualToThreshold",
            evaluation_periods=watched,
            datapoints_to_alarm=bad,
            treat_missing_data="notBreaching",
            alarm_actions=topics or None,
            ok_actions=topics or None,
        )

    def _endpoint(
        self, name: str, config: sagemaker.CfnEndpointConfig, alarms: Sequence[cloudwatch.CfnAlarm]
    ) -> sagemaker.CfnEndpoint:
        kind = sagemaker.CfnEndpoint
        return kind(
            self,
            "Endpoint",
            endpoint_name=name,
            endpoint_config_name=config.attr_endpoint_config_name,
            retain_all_variant_properties=True,
            deployment_config=kind.DeploymentConfigProperty(
                auto_rollback_configuration=kind.AutoRollbackConfigProperty(
                    alarms=[kind.AlarmProperty(alarm_name=alarm.ref) for alarm in alarms]
                ),
                blue_green_update_policy=kind.BlueGreenUpdatePolicyProperty(
                    traffic_routing_configuration=kind.TrafficRoutingConfigProperty(
                        type="ALL_AT_ONCE", wait_interval_in_seconds=60
                    ),
                    termination_wait_in_seconds=300,
                    maximum_execution_timeout_in_seconds=2160,
                ),
            ),
        )

    def _component(
        self, name: str, endpoint: sagemaker.CfnEndpoint, specification: Mapping[str, object], copies: float
    ) -> sagemaker.CfnInferenceComponent:
        kind = sagemaker.CfnInferenceComponent
        component = kind(
            self,
            "Component",
            endpoint_name=endpoint.attr_endpoint_name,
            inference_component_name=f"{name}-model",
            variant_name=VARIANT,
            runtime_config=kind.InferenceComponentRuntimeConfigProperty(copy_count=copies),
        )
        component.add_property_override("Specification", specification)
        return component

    def _scale_and_name(self, name: str, component: sagemaker.CfnInferenceComponent, trial: CfnResource) -> None:
        kind = autoscaling.CfnScalingPolicy
        target = autoscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace="sagemaker",
            scalable_dimension="sagemaker:inference-component:DesiredCopyCount",
            resource_id=f"inference-component/{name}-model",
            min_capacity=1,
            max_capacity=2,
        )
        target.add_resource_dependency(component)
        policy = kind(
            self,
            "Policy",
            policy_name="concurrency-per-copy",
            policy_type="TargetTrackingScaling",
            scaling_target_id=target.ref,
            target_tracking_scaling_policy_configuration=kind.TargetTrackingScalingPolicyConfigurationProperty(
                predefined_metric_specification=kind.PredefinedMetricSpecificationProperty(
                    predefined_metric_type="SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
                ),
                target_value=Token.as_number(trial.get_att("TargetConcurrencyPerCopy")),
                scale_out_cooldown=60,
                scale_in_cooldown=300,
            ),
        )
        policy.add_resource_dependency(target)
        value = {"endpoint_name": name, "inference_component_name": f"{name}-model"}
        alias = ssm.CfnParameter(
            self,
            "Alias",
            name=f"/seatrial/{name}/alias",
            type="String",
            value=json.dumps(value),
            description=f"Endpoint and component that serve {name}",
        )
        for needed in (component, trial, policy, target):
            alias.add_resource_dependency(needed)


def _reads(bucket: str, key: str) -> list[Mapping[str, object]]:
    return [
        {"Effect": "Allow", "Action": "ecr:GetAuthorizationToken", "Resource": "*"},
        {
            "Effect": "Allow",
            "Action": ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            "Resource": f"arn:aws:ecr:{REGION}:763104351884:repository/djl-inference",
        },
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/{key}"},
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": f"arn:aws:s3:::{bucket}",
            "Condition": {"StringLike": {"s3:prefix": [key]}},
        },
    ]
