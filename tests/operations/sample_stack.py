"""A stack of one endpoint as a template, written out by hand; each test changes what it is about."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from seatrial.operations.effect import PlannedSize
from seatrial_lint.cloudformation.template import read_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_lint.cloudformation.template import Template

Document = dict[str, Any]
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
SIZE = PlannedSize(
    instance_type="ml.g5.2xlarge",
    instance_count=2,
    max_instances=4,
    copies_per_instance=1,
    copy_count=2,
    max_copies=4,
    weights_bytes=14 * 2**30,
    usd_per_hour=1.515,
)
TAGS = [{"Key": "stage", "Value": "dev"}, {"Key": "seatrial:environment", "Value": "dev"}]


def _get(name: str, attribute: str) -> Document:
    return {"Fn::GetAtt": [name, attribute]}


def sample_document() -> Document:
    """Return the template of the stack."""
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::weights/llama/*"}
    resources = {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "Policies": [{"PolicyName": "Serve", "PolicyDocument": {"Statement": [statement]}}],
                "Tags": TAGS,
            },
        },
        "Model": {
            "Type": "AWS::SageMaker::Model",
            "Properties": {
                "ExecutionRoleArn": _get("Role", "Arn"),
                "PrimaryContainer": {"Image": IMAGE, "Environment": {"MAX_BATCH": "48"}},
                "Tags": TAGS,
            },
        },
        "Config": {
            "Type": "AWS::SageMaker::EndpointConfig",
            "Properties": {
                "ExecutionRoleArn": _get("Role", "Arn"),
                "ProductionVariants": [
                    {
                        "VariantName": "AllTraffic",
                        "InstanceType": "ml.g5.2xlarge",
                        "InitialInstanceCount": 2,
                        "InferenceAmiVersion": "al2023-ami-sagemaker-inference-gpu-4-1",
                    }
                ],
            },
        },
        "Endpoint": {
            "Type": "AWS::SageMaker::Endpoint",
            "Properties": {
                "EndpointName": "dev-chat",
                "EndpointConfigName": _get("Config", "EndpointConfigName"),
                "RetainAllVariantProperties": True,
            },
        },
        "Candidate": {
            "Type": "Custom::CandidateTrial",
            "Properties": {
                "ServiceToken": {"Fn::Sub": "arn:${AWS::Partition}:lambda:us-east-1:${AWS::AccountId}:function:trials"},
                "ModelName": _get("Model", "ModelName"),
                "PlanDigest": "048dbcc6",
                "Update": "candidate",
                "Request": json.dumps({"objectives": [{"metric": "ttft_ms", "bound": 2000.0}]}),
            },
        },
        "Component": {
            "Type": "AWS::SageMaker::InferenceComponent",
            "Properties": {
                "EndpointName": _get("Endpoint", "EndpointName"),
                "InferenceComponentName": "dev-chat-model",
                "VariantName": "AllTraffic",
                "RuntimeConfig": {"CopyCount": _get("Candidate", "CopyCount")},
                "Specification": {
                    "ModelName": _get("Model", "ModelName"),
                    "ComputeResourceRequirements": {"NumberOfAcceleratorDevicesRequired": 1},
                },
                "DeploymentConfig": {"RollingUpdatePolicy": {"MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1}}},
            },
        },
        "Trial": {
            "Type": "Custom::SmokeBenchmark",
            "Properties": {
                "ServiceToken": {"Fn::Sub": "arn:${AWS::Partition}:lambda:us-east-1:${AWS::AccountId}:function:trials"},
                "ModelName": _get("Model", "ModelName"),
                "PlanDigest": "048dbcc6",
                "Update": "candidate",
                "Request": json.dumps({"objectives": [{"metric": "ttft_ms", "bound": 2000.0}]}),
            },
        },
        "Errors": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Threshold": 5, "EvaluationPeriods": 5}},
        "Scaling": {
            "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
            "Properties": {
                "MinCapacity": 2,
                "MaxCapacity": 4,
                "ResourceId": "inference-component/dev-chat-model",
                "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
                "ServiceNamespace": "sagemaker",
            },
        },
        "Policy": {
            "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
            "Properties": {
                "PolicyName": "concurrency-per-copy",
                "ScalingTargetId": {"Ref": "Scaling"},
                "TargetTrackingScalingPolicyConfiguration": {
                    "TargetValue": _get("Trial", "TargetConcurrencyPerCopy"),
                    "ScaleInCooldown": 300,
                },
            },
        },
        "Alias": {
            "Type": "AWS::SSM::Parameter",
            "Properties": {"Name": "/seatrial/dev/chat", "Value": _get("Endpoint", "EndpointName")},
        },
    }
    return {"Resources": resources, "Outputs": {"PlanDigest": {"Value": "048dbcc6"}}}


def properties(document: Document, name: str) -> Document:
    """Return the properties of a resource, to be changed."""
    found: Document = document["Resources"][name]["Properties"]
    return found


def read(document: Document) -> Template:
    """Return a document as a template."""
    return read_template(json.dumps(document), name="test", region="us-east-1")


def changed(change: Callable[[Document], object]) -> Template:
    """Return the stack with a change."""
    document = copy.deepcopy(sample_document())
    change(document)
    return read(document)


def same() -> Template:
    """Return the stack as it is."""
    return read(sample_document())
