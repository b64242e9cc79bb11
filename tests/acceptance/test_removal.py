"""After `cdk destroy` nothing of an environment is left that costs money or names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.endpoint import Endpoint
    from tests.acceptance.target import Target

pytestmark = pytest.mark.acceptance

LISTED: dict[str, tuple[str, str, str, str]] = {
    "endpoint": ("sagemaker", "list_endpoints", "Endpoints", "EndpointName"),
    "endpoint configuration": ("sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigName"),
    "component": ("sagemaker", "list_inference_components", "InferenceComponents", "InferenceComponentName"),
    "model": ("sagemaker", "list_models", "Models", "ModelName"),
    "alarm": ("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "role": ("iam", "list_roles", "Roles", "RoleName"),
    "function": ("lambda", "list_functions", "Functions", "FunctionName"),
    "workflow": ("stepfunctions", "list_state_machines", "stateMachines", "name"),
    "schedule": ("scheduler", "list_schedules", "Schedules", "Name"),
}
"""What is listed page by page: by its kind the service, the operation, the list in its answer, and the name there."""

KEPT = {
    "CustomS3AutoDeleteObjects": "Lambda makes it for the CDK's own function, which empties buckets, a last time",
}
"""Log groups that stay, and why: each holds some lines."""


def left(target: Target) -> Iterator[str]:
    """Yield everything that bears the environment's name."""
    for kind, (service, operation, key, name) in LISTED.items():
        for each in pages(target, service, operation, key):
            if is_ours(target, each[name]):
                yield f"{kind} {each[name]}"
    for bucket in target.client("s3").list_buckets()["Buckets"]:
        if is_ours(target, bucket["Name"]):
            yield f"bucket {bucket['Name']}"
    scaled = target.client("application-autoscaling").describe_scalable_targets(ServiceNamespace="sagemaker")
    for each in scaled["ScalableTargets"]:
        if is_ours(target, each["ResourceId"]):
            yield f"scalable target {each['ResourceId']}"
    path = f"/seatrial/{target.environment}"
    for each in target.client("ssm").get_parameters_by_path(Path=path, Recursive=True)["Parameters"]:
        yield f"parameter {each['Name']}"
    yield from log_groups(target)


def pages(target: Target, service: str, operation: str, key: str) -> Iterator[dict[str, Any]]:
    """Yield what an operation lists."""
    client = target.client(service)
    if client.can_paginate(operation):
        for page in client.get_paginator(operation).paginate():
            yield from page[key]
    else:
        call: Callable[[], dict[str, Any]] = getattr(client, operation)
        yield from call()[key]


def is_ours(target: Target, name: str) -> bool:
    """Tell whether a name is one of the environment's."""
    return f"{target.environment}-" in name and not name.startswith("cdk-")


def log_groups(target: Target) -> Iterator[str]:
    """Yield the log groups that are kept for ever: those of containers end by themselves, and cost nothing then."""
    for each in pages(target, "logs", "describe_log_groups", "logGroups"):
        name = each["logGroupName"]
        if is_ours(target, name) and "retentionInDays" not in each and not any(map(name.__contains__, KEPT)):
            yield f"log group {name} is kept for ever"


def test_a_destroyed_environment_leaves_nothing(chat: Endpoint, target: Target) -> None:
    bucket = chat.outputs()["ResultsBucket"]
    assert list(left(target)), "there is something to remove"
    target.destroy(target.folder / f"cdk.out.{chat.name}")
    assert (target.stacks(), "\n".join(left(target))) == ([], "")
    with pytest.raises(ClientError) as gone:
        target.client("s3").list_objects_v2(Bucket=bucket)
    assert gone.value.response["Error"]["Code"] == "NoSuchBucket"
