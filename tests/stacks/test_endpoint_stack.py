from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from seatrial_stacks.endpoint_stack import EndpointStack

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

KEY_ARN = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("resource", "name"),
    [("AWS::SageMaker::Model", "ModelName"), ("AWS::SageMaker::EndpointConfig", "EndpointConfigName")],
)
def test_what_is_replaced_has_no_name(dev_template: Template, resource: str, name: str) -> None:
    dev_template.has_resource_properties(resource, {name: Match.absent()})


def test_endpoint_and_component_keep_their_names(dev_template: Template) -> None:
    dev_template.has_resource_properties("AWS::SageMaker::Endpoint", {"EndpointName": "dev-chat"})
    dev_template.has_resource_properties(
        "AWS::SageMaker::InferenceComponent", {"InferenceComponentName": "dev-chat-model"}
    )


def test_the_variant_holds_no_model_and_scales_its_instances_itself(dev_template: Template) -> None:
    variant = {
        "VariantName": "AllTraffic",
        "ModelName": Match.absent(),
        "InstanceType": "ml.g5.2xlarge",
        "InitialInstanceCount": 1,
        "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 1, "MaxInstanceCount": 2 + 1},
        "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
        "ContainerStartupHealthCheckTimeoutInSeconds": 900,
        "ModelDataDownloadTimeoutInSeconds": 600,
    }
    dev_template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig",
        {"ExecutionRoleArn": Match.any_value(), "ProductionVariants": [Match.object_like(variant)]},
    )


def test_an_update_keeps_the_instance_count_that_scaling_reached(dev_template: Template) -> None:
    dev_template.has_resource_properties("AWS::SageMaker::Endpoint", {"RetainAllVariantProperties": True})


@pytest.mark.parametrize(
    ("template", "ami"),
    [("dev_template", Match.absent()), ("prod_template", "al2023-ami-sagemaker-inference-gpu-4-1")],
)
def test_the_ami_is_the_planned_one(template: str, ami: object, request: pytest.FixtureRequest) -> None:
    chosen: Template = request.getfixturevalue(template)
    variants = {"ProductionVariants": [Match.object_like({"InferenceAmiVersion": ami})]}
    chosen.has_resource_properties("AWS::SageMaker::EndpointConfig", variants)


def test_the_component_reserves_what_one_copy_needs(dev_template: Template) -> None:
    dev_template.has_resource_properties(
        "AWS::SageMaker::InferenceComponent",
        {
            "VariantName": "AllTraffic",
            "Specification": {
                "ComputeResourceRequirements": {
                    "NumberOfAcceleratorDevicesRequired": 1,
                    "NumberOfCpuCoresRequired": 6.5,
                    "MinMemoryRequiredInMb": 16384,
                },
                "StartupParameters": {
                    "ContainerStartupHealthCheckTimeoutInSeconds": 900,
                    "ModelDataDownloadTimeoutInSeconds": 600,
                },
            },
        },
    )


def test_a_single_copy_is_replaced_as_the_service_does_by_itself(dev_template: Template) -> None:
    dev_template.has_resource_properties("AWS::SageMaker::InferenceComponent", {"DeploymentConfig": Match.absent()})


def test_several_copies_are_replaced_a_batch_at_a_time(dev_deployment: Deployment) -> None:
    rolling = dev_deployment.plan.model_copy(update={"copies_replaced_at_once": 1})
    stack = EndpointStack(App(), "rolling", deployment=replace(dev_deployment, plan=rolling))
    policy = {
        "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
        "RollbackMaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
        "WaitIntervalInSeconds": 60,
        "MaximumExecutionTimeoutInSeconds": 2
        * (600 + 900 + 600 + 60),  # two batches: instance, start-up, download, wait
    }
    Template.from_stack(stack).has_resource_properties(
        "AWS::SageMaker::InferenceComponent", {"DeploymentConfig": {"RollingUpdatePolicy": policy}}
    )


@pytest.mark.parametrize(("max_copies", "timeout_s"), [(13, 28_080), (14, 28_800)])
def test_a_rolling_update_takes_no_longer_than_the_service_allows(
    dev_deployment: Deployment, max_copies: int, timeout_s: int
) -> None:
    rolling = dev_deployment.plan.model_copy(update={"copies_replaced_at_once": 1, "max_copies": max_copies})
    stack = EndpointStack(App(), "rolling", deployment=replace(dev_deployment, plan=rolling))
    policy = Match.object_like({"MaximumExecutionTimeoutInSeconds": timeout_s})
    Template.from_stack(stack).has_resource_properties(
        "AWS::SageMaker::InferenceComponent", {"DeploymentConfig": {"RollingUpdatePolicy": policy}}
    )


def test_a_secret_is_a_reference_that_cloudformation_resolves(dev_template: Template) -> None:
    environment = {
        "SERVING_JOB_QUEUE_SIZE": "48",
        "HF_TOKEN": "{{resolve:secretsmanager:seatrial/hub-token:SecretString:::}}",
    }
    dev_template.has_resource_properties(
        "AWS::SageMaker::Model", {"PrimaryContainer": Match.object_like({"Environment": environment})}
    )


def test_files_of_the_serving_configuration_ship_as_a_tar_gz(prod_template: Template) -> None:
    url = r"^s3://cdk-hnb659fds-assets-123456789012-eu-west-1/[0-9a-f]{64}\.tar\.gz$"
    container = {"ModelDataUrl": Match.string_like_regexp(url), "ModelDataSource": Match.absent()}
    prod_template.has_resource_properties("AWS::SageMaker::Model", {"PrimaryContainer": Match.object_like(container)})


def test_weights_are_mounted_uncompressed_with_the_licence_accepted(weights_template: Template) -> None:
    source = {
        "S3Uri": "s3://model-weights/llama-2-7b/",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
        "ModelAccessConfig": {"AcceptEula": True},
    }
    container = {"ModelDataUrl": Match.absent(), "ModelDataSource": {"S3DataSource": source}}
    weights_template.has_resource_properties(
        "AWS::SageMaker::Model", {"PrimaryContainer": Match.object_like(container)}
    )


@pytest.mark.parametrize("resource", ["AWS::SageMaker::Model", "AWS::SageMaker::EndpointConfig"])
def test_containers_join_the_network_of_the_environment(
    prod_template: Template, dev_template: Template, weights_template: Template, resource: str
) -> None:
    vpc = {"Subnets": ["subnet-0a1b2c3d"], "SecurityGroupIds": ["sg-0a1b2c3d"]}
    prod_template.has_resource_properties(resource, {"VpcConfig": vpc, "EnableNetworkIsolation": False})
    dev_template.has_resource_properties(resource, {"VpcConfig": Match.absent()})
    weights_template.has_resource_properties(resource, {"EnableNetworkIsolation": True})


@pytest.mark.parametrize(
    ("template", "key", "why"),
    [
        ("prod_template", KEY_ARN, "the volume is EBS"),
        ("weights_template", Match.absent(), "the service refuses a key beside local NVMe"),
        ("dev_template", Match.absent(), "the environment has no key"),
    ],
)
def test_the_volume_key(template: str, key: object, why: str, request: pytest.FixtureRequest) -> None:
    chosen: Template = request.getfixturevalue(template)
    chosen.has_resource_properties("AWS::SageMaker::EndpointConfig", {"KmsKeyId": key})


def test_scaling_follows_the_measured_knee(dev_template: Template) -> None:
    (trial,) = dev_template.find_resources("Custom::SmokeBenchmark")
    metric = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
    dev_template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        {
            "PolicyType": "TargetTrackingScaling",
            "TargetTrackingScalingPolicyConfiguration": {
                "PredefinedMetricSpecification": {"PredefinedMetricType": metric},
                "TargetValue": {"Fn::GetAtt": [trial, "TargetConcurrencyPerCopy"]},
                "ScaleOutCooldown": 60,
                "ScaleInCooldown": 300,
            },
        },
    )
    dev_template.has_resource_properties(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        {
            "ServiceNamespace": "sagemaker",
            "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
            "ResourceId": "inference-component/dev-chat-model",
            "MinCapacity": 1,
            "MaxCapacity": 2,
        },
    )


def test_a_fixed_number_of_copies_is_not_scaled(weights_template: Template) -> None:
    weights_template.resource_count_is("AWS::ApplicationAutoScaling::ScalableTarget", 0)
    weights_template.resource_count_is("AWS::ApplicationAutoScaling::ScalingPolicy", 0)


def test_tags_of_environment_and_endpoint_are_on_the_resources(prod_template: Template) -> None:
    named = {"cost-center": "42", "seatrial:environment": "prod", "stage": "prod", "team": "search"}
    tags = [{"Key": key, "Value": value} for key, value in named.items()]
    prod_template.has_resource_properties("AWS::SageMaker::Endpoint", {"Tags": tags})


def test_what_reads_an_attribute_of_the_trial_is_named_in_its_properties(dev_template: Template) -> None:
    """CloudFormation keeps the attributes of a resource that an update leaves alone: a new one would be missing."""
    (trial,) = dev_template.find_resources("Custom::SmokeBenchmark")
    properties = dev_template.find_resources("Custom::SmokeBenchmark")[trial]["Properties"]
    read = set(re.findall(rf'"Fn::GetAtt": \["{trial}", "(\w+)"\]', json.dumps(dev_template.to_json())))
    assert {"TargetConcurrencyPerCopy", "SloKneeConcurrencyPerCopy", "ResultsBucket"} <= read
    assert read <= set(properties["Attributes"].split(","))


def test_outputs_name_what_people_look_for(dev_template: Template, weights_template: Template) -> None:
    always = {"EndpointName", "InferenceComponentName", "EndpointConfigName", "ModelName", "PlanDigest"}
    always |= {"OpenAiBaseUrl"}
    tried = {
        *("ResultsBucket", "TrialResultUri", "TrialReportUri", "TargetConcurrencyPerCopy"),
        *("SloKneeConcurrencyPerCopy", "SaturationKneeConcurrencyPerCopy", "TargetKnee"),
        *("KneeConcurrencyPerCopy", "OutputTokensPerSecond", "TtftP95Ms", "TpotP95Ms", "E2eP95Ms"),
        *("UsdPerMillionOutputTokens", "BlendedUsdPerMillionTokens", "TrialUsd", "Comparison"),
        *("Verdict", "Verified"),
    }
    assert set(dev_template.find_outputs("*")) == always | tried
    assert set(weights_template.find_outputs("*")) == always
