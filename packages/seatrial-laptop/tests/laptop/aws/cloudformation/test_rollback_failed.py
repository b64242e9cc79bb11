"""A stack whose rollback meets the alarm that ended its update, and the way out of it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import boto3

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def template(endpoint: str, model: str, alarm: str) -> str:
    size = {"Type": "COPY_COUNT", "Value": 1}
    policy = {"MaximumBatchSize": size, "WaitIntervalInSeconds": 0, "MaximumExecutionTimeoutInSeconds": 600}
    resources = {"NumberOfAcceleratorDevicesRequired": 1, "MinMemoryRequiredInMb": 1024}
    component = {
        "EndpointName": endpoint,
        "VariantName": "main",
        "Specification": {"ModelName": model, "ComputeResourceRequirements": resources},
        "RuntimeConfig": {"CopyCount": 1},
        "DeploymentConfig": {
            "RollingUpdatePolicy": policy,
            "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": alarm}]},
        },
    }
    return json.dumps(
        {"Resources": {"Component": {"Type": "AWS::SageMaker::InferenceComponent", "Properties": component}}}
    )


def settled(laptop: Laptop, stack: str) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        status: str = laptop.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"]
        if not status.endswith("PROGRESS"):
            return status
        time.sleep(0.05)
    raise TimeoutError(stack)


def test_the_rollback_meets_the_same_alarm_and_goes_on_without_the_resource(
    laptop: Laptop, control: Callable[..., dict[str, object]], host: str
) -> None:
    stack, alarm, cloudwatch = laptop.name("stack"), laptop.name("alarm"), boto3.client("cloudwatch")
    watched: dict[str, Any] = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "Invocations",
        "Statistic": "Sum",
        "Period": 3600,
    }
    compared: dict[str, Any] = {"EvaluationPeriods": 1, "Threshold": 1, "ComparisonOperator": "GreaterThanThreshold"}
    cloudwatch.put_metric_alarm(AlarmName=alarm, **watched, **compared)
    client = laptop.cloudformation
    client.create_stack(StackName=stack, TemplateBody=template(host, laptop.model(), alarm))
    assert settled(laptop, stack) == "CREATE_COMPLETE"

    control(raised_alarms_end_updates=True)
    cloudwatch.set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="errors before the update")
    client.update_stack(StackName=stack, TemplateBody=template(host, laptop.model(), alarm))
    assert settled(laptop, stack) == "UPDATE_ROLLBACK_FAILED"
    client.continue_update_rollback(StackName=stack)
    assert settled(laptop, stack) == "UPDATE_ROLLBACK_FAILED", "the alarm is raised still"
    client.continue_update_rollback(StackName=stack, ResourcesToSkip=["Component"])
    assert settled(laptop, stack) == "UPDATE_ROLLBACK_COMPLETE"
    client.delete_stack(StackName=stack)
    client.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    cloudwatch.delete_alarms(AlarmNames=[alarm])
