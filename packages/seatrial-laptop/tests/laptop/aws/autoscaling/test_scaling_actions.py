"""Target tracking on the real server, in virtual time: users come, copies are added; users go, copies are removed."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3

from seatrial.operations.traffic import metric_sums
from seatrial_laptop.aws.runtime.running_copies import CopyPlace
from seatrial_laptop.aws.runtime.telemetry import Invocation, metric_data
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
METRIC = "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution"


def place(component: str) -> dict[str, Any]:
    return {
        "ServiceNamespace": "sagemaker",
        "ResourceId": f"inference-component/{component}",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
    }


def tracked(component: str, **target: object) -> Any:  # noqa: ANN401 (a client)
    client: Any = boto3.client("application-autoscaling")
    client.register_scalable_target(**place(component), **{"MinCapacity": 1, "MaxCapacity": 3, **target})
    client.put_scaling_policy(
        **place(component),
        PolicyName="knee",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 1.0,
            "PredefinedMetricSpecification": {"PredefinedMetricType": METRIC},
            "ScaleOutCooldown": 10,
            "ScaleInCooldown": 60,
        },
    )
    return client


def activities(client: Any, component: str) -> list[tuple[str, str]]:  # noqa: ANN401 (a client)
    request = {key: value for key, value in place(component).items() if key != "ScalableDimension"}
    found = client.describe_scaling_activities(**request)["ScalingActivities"]
    return [(each["Description"], each["StatusCode"]) for each in reversed(found)]


def load(laptop: Laptop, endpoint: str, component: str, gone: threading.Event) -> None:
    body = json.dumps({"inputs": "hi", "parameters": {"max_new_tokens": 48}})
    while not gone.is_set():
        laptop.runtime.invoke_endpoint(
            EndpointName=endpoint, InferenceComponentName=component, Body=body, ContentType="application/json"
        )


def test_copies_follow_the_users(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    endpoint = laptop.endpoint(most_instances=3)
    component = laptop.component(endpoint, laptop.model())
    client = tracked(component)
    control(clock_speed=60)
    gone = threading.Event()
    users = [threading.Thread(target=load, args=(laptop, endpoint, component, gone)) for _ in range(4)]
    for user in users:
        user.start()
    try:
        until(lambda: len(laptop.ports(component)) == 3, "three copies")
    finally:
        gone.set()
        for user in users:
            user.join()
    variant = laptop.sagemaker.describe_endpoint(EndpointName=endpoint)["ProductionVariants"][0]
    assert (variant["CurrentInstanceCount"], variant["DesiredInstanceCount"]) == (3, 3)
    alarms = client.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    names = [
        alarm["AlarmName"] for each in alarms if each["ResourceId"].endswith(component) for alarm in each["Alarms"]
    ]
    control(clock_speed=600)
    until(lambda: len(laptop.ports(component)) == 1, "one copy")
    until(lambda: activities(client, component)[-1][1] == "Successful", "the last activity")
    states = boto3.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    assert {alarm["AlarmName"].split("-Alarm")[1][:4]: alarm["StateValue"] for alarm in states} == {
        "High": "OK",
        "Low-": "ALARM",
    }
    told = activities(client, component)
    assert ("Setting desired copy count to 3.", "Successful") in told
    assert told[-1] == ("Setting desired copy count to 1.", "Successful")
    until(
        lambda: (
            laptop.sagemaker.describe_endpoint(EndpointName=endpoint)["ProductionVariants"][0]["CurrentInstanceCount"]
            == 1
        ),
        "idle instances are released",
    )
    client.deregister_scalable_target(**place(component))
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_a_day_of_its_metrics_tells_the_copies_of_each_minute(laptop: Laptop) -> None:
    endpoint = laptop.endpoint()
    component = laptop.component(endpoint, laptop.model())
    midnight = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC)
    client, answered = boto3.client("cloudwatch"), Invocation(status=200, model_s=1.0, overhead_s=0.0, in_flight=1)
    refused = replace(answered, status=0, no_capacity=True)
    for minute, copies, seen in ((0, 1, [answered] * 3), (1, 2, [answered] * 5), (2, 0, [refused] * 2)):
        at = midnight - timedelta(days=1) + timedelta(minutes=minute)
        data = [{**each, "Timestamp": at} for each in metric_data(CopyPlace(component), seen, copies=copies)]
        client.put_metric_data(Namespace="AWS/SageMaker", MetricData=data)  # type: ignore[arg-type]  # those of the server
    metrics = ("Invocations", "InvocationsPerCopy", "NoCapacityInvocationFailures")
    sums = metric_sums(client, laptop.sagemaker, endpoint, metrics, midnight, days=1, period_s=60)
    assert [each[:4] for each in sums] == [[3, 5, 0, 0], [3, 2.5, 0, 0], [0, 0, 2, 0]]
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_the_least_capacity_holds_at_once_unless_it_is_suspended(
    laptop: Laptop, control: Callable[..., dict[str, object]]
) -> None:
    component = laptop.component(laptop.endpoint(most_instances=3), laptop.model())
    client = tracked(component, MinCapacity=2, SuspendedState={"DynamicScalingOutSuspended": True})
    control(clock_speed=600)
    time.sleep(0.3)  # 180 virtual seconds
    assert (activities(client, component), len(laptop.ports(component))) == ([], 1)
    client.register_scalable_target(**place(component), SuspendedState={"DynamicScalingOutSuspended": False})
    until(lambda: len(laptop.ports(component)) == 2, "two copies")
    until(lambda: activities(client, component)[-1][1] == "Successful", "the activity")
    assert activities(client, component) == [("Setting desired copy count to 2.", "Successful")]
    client.deregister_scalable_target(**place(component))
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
