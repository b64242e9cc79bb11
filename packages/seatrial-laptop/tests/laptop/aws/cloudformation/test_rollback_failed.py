"""A stack whose rollback meets the alarm that ended its update, and the way out of it."""

from __future__ import annotations

import json
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


def test_the_rollback_meets_the_same_alarm_and_goes_on_without_the_resource(
    laptop: Laptop, control: Callable[..., dict[str, object]], host: str
) -> None:
    stack, alarm, cloudwatch = laptop.name("stack"), laptop.name("alarm"), boto3.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName=alarm,
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Statistic="Sum",
        Period=3600,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )
    client = laptop.cloudformation
    client.create_stack(StackName=stack, TemplateBody=template(host, laptop.model(), alarm))
    assert laptop.stack_settled(stack) == "CREATE_COMPLETE"

    control(raised_alarms_end_updates=True)
    cloudwatch.set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="errors before the update")
    client.update_stack(StackName=stack, TemplateBody=template(host, laptop.model(), alarm))
    assert laptop.stack_settled(stack) == "UPDATE_ROLLBACK_FAILED"
    client.continue_update_rollback(StackName=stack)
    assert laptop.stack_settled(stack) == "UPDATE_ROLLBACK_FAILED", "the alarm is raised still"
    client.continue_update_rollback(StackName=stack, ResourcesToSkip=["Component"])
    assert laptop.stack_settled(stack) == "UPDATE_ROLLBACK_COMPLETE"
    client.delete_stack(StackName=stack)
    client.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig={"Delay": 1})
    cloudwatch.delete_alarms(AlarmNames=[alarm])
