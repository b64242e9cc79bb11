"""Two templates in which no rule finds anything: components that scale to zero, and an asynchronous endpoint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

from seatrial_lint.cloudformation.template import template_of
from seatrial_lint.template_rules.check import check_templates

if TYPE_CHECKING:
    from pydantic import JsonValue

    from seatrial_base.findings import Finding

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ROLE = "arn:aws:iam::123456789012:role/hosting"
WAKE_METRIC = "NoCapacityInvocationFailures"
DELETE = object()


def components() -> dict[str, JsonValue]:
    """Return a template of one endpoint with one component, in a copy of its own."""
    document: dict[str, JsonValue] = json.loads(json.dumps(_COMPONENTS))
    return document


def single() -> dict[str, JsonValue]:
    """Return a template of an asynchronous endpoint of one model, in a copy of its own."""
    document: dict[str, JsonValue] = json.loads(json.dumps(_SINGLE))
    return document


def changed(document: dict[str, JsonValue], path: str, value: object) -> dict[str, JsonValue]:
    """Return a template with another value at a dotted path below `Resources`; `DELETE` takes it away."""
    *above, last = path.split(".")
    at = cast("dict[str, object]", document["Resources"])
    for name in above:
        below = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
        at = cast("dict[str, object]", below)
    if value is DELETE:
        del at[last]
    else:
        at[last] = value
    return document


def found(*documents: dict[str, JsonValue], region: str | None = "us-east-1") -> tuple[Finding, ...]:
    """Return the findings of templates, called `0`, `1` and so on."""
    templates = {
        f"{number}": template_of(document, name=f"{number}", region=region or "")
        for number, document in enumerate(documents)
    }
    return check_templates(templates, region)


_COMPONENTS = {
    "Resources": {
        "Model": {
            "Type": "AWS::SageMaker::Model",
            "Properties": {
                "ExecutionRoleArn": ROLE,
                "EnableNetworkIsolation": True,
                "PrimaryContainer": {
                    "Image": IMAGE,
                    "Environment": {"HF_MODEL_ID": "/opt/ml/model", "HF_TOKEN": "{{resolve:secretsmanager:hub}}"},
                    "ModelDataSource": {
                        "S3DataSource": {
                            "S3Uri": "s3://weights/chat/",
                            "S3DataType": "S3Prefix",
                            "CompressionType": "None",
                        }
                    },
                },
            },
        },
        "Config": {
            "Type": "AWS::SageMaker::EndpointConfig",
            "Properties": {
                "ExecutionRoleArn": ROLE,
                "ProductionVariants": [
                    {
                        "VariantName": "AllTraffic",
                        "InstanceType": "ml.g6e.12xlarge",
                        "InitialInstanceCount": 1,
                        "InferenceAmiVersion": "al2023-ami-sagemaker-inference-gpu-4-1",
                        "ManagedInstanceScaling": {"Status": "ENABLED", "MinInstanceCount": 0, "MaxInstanceCount": 2},
                        "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
                        "ContainerStartupHealthCheckTimeoutInSeconds": 3600,
                    }
                ],
            },
        },
        "Endpoint": {
            "Type": "AWS::SageMaker::Endpoint",
            "Properties": {
                "EndpointName": "chat",
                "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
                "RetainAllVariantProperties": True,
            },
        },
        "Component": {
            "Type": "AWS::SageMaker::InferenceComponent",
            "DependsOn": ["Endpoint"],
            "Properties": {
                "InferenceComponentName": "chat-model",
                "EndpointName": "chat",
                "VariantName": "AllTraffic",
                "Specification": {
                    "ModelName": {"Fn::GetAtt": "Model.ModelName"},
                    "ComputeResourceRequirements": {
                        "MinMemoryRequiredInMb": 1024,
                        "NumberOfAcceleratorDevicesRequired": 4,
                        "NumberOfCpuCoresRequired": 16,
                    },
                    "StartupParameters": {"ModelDataDownloadTimeoutInSeconds": 60},
                },
                "RuntimeConfig": {"CopyCount": 2},
                "DeploymentConfig": {
                    "RollingUpdatePolicy": {
                        "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 50},
                        "WaitIntervalInSeconds": 60,
                    },
                    "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]},
                },
            },
        },
        "Target": {
            "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
            "Properties": {
                "ServiceNamespace": "sagemaker",
                "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
                "ResourceId": {
                    "Fn::Join": ["", ["inference-component/", {"Fn::GetAtt": ["Component", "InferenceComponentName"]}]]
                },
                "MinCapacity": 0,
                "MaxCapacity": 2,
            },
        },
        "Tracking": {
            "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
            "Properties": {
                "PolicyType": "TargetTrackingScaling",
                "ScalingTargetId": {"Ref": "Target"},
                "TargetTrackingScalingPolicyConfiguration": {
                    "PredefinedMetricSpecification": {
                        "PredefinedMetricType": "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"
                    },
                    "TargetValue": 8,
                    "ScaleInCooldown": 300,
                    "ScaleOutCooldown": 60,
                },
            },
        },
        "Wake": {
            "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
            "Properties": {"PolicyType": "StepScaling", "ScalingTargetId": {"Ref": "Target"}},
        },
        "WakeAlarm": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "Namespace": "AWS/SageMaker",
                "MetricName": WAKE_METRIC,
                "AlarmActions": [{"Ref": "Wake"}],
            },
        },
    }
}

_SINGLE = {
    "Resources": {
        "Model": {
            "Type": "AWS::SageMaker::Model",
            "Properties": {
                "ExecutionRoleArn": ROLE,
                "PrimaryContainer": {"Image": IMAGE.replace("lmi27.0.0-cu130", "lmi24.0.0-cu129")},
            },
        },
        "Config": {
            "Type": "AWS::SageMaker::EndpointConfig",
            "Properties": {
                "ProductionVariants": [
                    {
                        "VariantName": "AllTraffic",
                        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
                        "InstanceType": "ml.inf2.xlarge",
                        "InitialInstanceCount": 4,
                        "VolumeSizeInGB": 200,
                    }
                ],
                "AsyncInferenceConfig": {"OutputConfig": {"S3OutputPath": "s3://out/"}},
            },
        },
        "Endpoint": {
            "Type": "AWS::SageMaker::Endpoint",
            "Properties": {
                "EndpointName": "batch",
                "EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]},
                "RetainAllVariantProperties": True,
            },
        },
        "Target": {
            "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
            "Properties": {
                "ServiceNamespace": "sagemaker",
                "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
                "ResourceId": {"Fn::Sub": "endpoint/${Endpoint.EndpointName}/variant/AllTraffic"},
                "MinCapacity": 0,
                "MaxCapacity": 4,
            },
        },
        "Tracking": {
            "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
            "Properties": {
                "PolicyType": "TargetTrackingScaling",
                "ScalingTargetId": {"Ref": "Target"},
                "TargetTrackingScalingPolicyConfiguration": {
                    "CustomizedMetricSpecification": {
                        "MetricName": "ApproximateBacklogSizePerInstance",
                        "Namespace": "AWS/SageMaker",
                        "Dimensions": [{"Name": "EndpointName", "Value": "batch"}],
                    },
                    "TargetValue": 5,
                },
            },
        },
    }
}
