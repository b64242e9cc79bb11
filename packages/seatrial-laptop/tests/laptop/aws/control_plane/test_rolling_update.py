from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, Self

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.control_plane.rollout import rollback_batch_size, update_batch_size
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_cloudwatch import CloudWatchClient

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def size(kind: str, value: int) -> dict[str, object]:
    return {"Type": kind, "Value": value}


@pytest.mark.parametrize(
    ("kind", "value", "copies", "batch"),
    [
        ("COPY_COUNT", 1, 2, 1),
        ("COPY_COUNT", 5, 10, 5),
        ("COPY_COUNT", 1, 20, 1),
        ("COPY_COUNT", 1, 1, 1),
        ("COPY_COUNT", 3, 0, 3),
        ("CAPACITY_PERCENT", 50, 5, 2),
        ("CAPACITY_PERCENT", 5, 3, 1),
        ("CAPACITY_PERCENT", 100, 1, 1),
    ],
)
def test_a_batch_is_from_5_to_50_percent_of_the_copies(kind: str, value: int, copies: int, batch: int) -> None:
    assert update_batch_size(size(kind, value), copies) == batch


@pytest.mark.parametrize(
    ("kind", "value", "copies"),
    [
        ("COPY_COUNT", 2, 3),
        ("COPY_COUNT", 1, 21),
        ("COPY_COUNT", 2, 1),
        ("CAPACITY_PERCENT", 51, 10),
        ("CAPACITY_PERCENT", 4, 10),
    ],
)
def test_another_batch_is_refused(kind: str, value: int, copies: int) -> None:
    with pytest.raises(ApiError, match="must be from 5 % to 50 % of the copies"):
        update_batch_size(size(kind, value), copies)


def test_a_rollback_without_a_batch_size_is_done_at_once() -> None:
    assert rollback_batch_size({}, 4) == 4
    assert rollback_batch_size({"RollbackMaximumBatchSize": size("COPY_COUNT", 2)}, 4) == 2
    assert rollback_batch_size({"RollbackMaximumBatchSize": size("CAPACITY_PERCENT", 25)}, 4) == 1


def specification(model: str, devices: int = 1) -> dict[str, object]:
    resources = {"NumberOfAcceleratorDevicesRequired": devices, "MinMemoryRequiredInMb": 1024}
    return {"ModelName": model, "ComputeResourceRequirements": resources}


def rolling(*alarms: str, wait_s: int = 0, batch: int = 1) -> dict[str, object]:
    policy = {"MaximumBatchSize": size("COPY_COUNT", batch), "WaitIntervalInSeconds": wait_s}
    watched = {"AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name} for name in alarms]}} if alarms else {}
    return {"RollingUpdatePolicy": {**policy, "MaximumExecutionTimeoutInSeconds": 28_800}, **watched}


def described(laptop: Laptop, component: str) -> Any:  # noqa: ANN401 (a description)
    return laptop.sagemaker.describe_inference_component(InferenceComponentName=component)


class Users:
    """Threads that ask a component one request after the other."""

    def __init__(self, endpoint: str, component: str, *, count: int, tokens: int) -> None:
        self._ask = {"EndpointName": endpoint, "InferenceComponentName": component}
        self._body = json.dumps({"inputs": "hi", "parameters": {"max_new_tokens": tokens}})
        self._runtime = boto3.client("sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}))
        self._gone = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        self.answered = 0
        self.failed: list[str] = []

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while not self._gone.is_set():
            try:
                self._runtime.invoke_endpoint(**self._ask, Body=self._body, ContentType="application/json")
                self.answered += 1
            except ClientError as error:
                self.failed.append(str(error))


def test_a_rolling_update_replaces_copy_by_copy_and_breaks_no_request(
    laptop: Laptop, control: Callable[..., dict[str, object]]
) -> None:
    control(clock_speed=30)
    endpoint = laptop.endpoint(most_instances=3)
    component = laptop.component(endpoint, laptop.model(), copies=2)
    before = laptop.ports(component)
    counts: list[int] = []
    mixed: list[bool] = []
    with Users(endpoint, component, count=2, tokens=24) as users:
        until(lambda: users.answered >= 2, "users")
        model = laptop.model(OPTION_MAX_ROLLING_BATCH_SIZE="3")
        laptop.sagemaker.update_inference_component(
            InferenceComponentName=component, Specification=specification(model), DeploymentConfig=rolling(wait_s=20)
        )
        while (now := described(laptop, component))["InferenceComponentStatus"] == "Updating":
            counts.append(now["RuntimeConfig"]["CurrentCopyCount"])
            mixed.append(
                bool(set(laptop.ports(component)) & set(before)) and set(laptop.ports(component)) != set(before)
            )
        served = users.answered
        until(lambda: users.answered > served, "users after the update")
    assert users.failed == []
    assert (min(counts), max(counts) <= 3) == (2, True)
    assert any(mixed)
    after = laptop.ports(component)
    assert (len(after), set(after) & set(before)) == (2, set())
    assert now["Specification"]["ModelName"] == model
    assert now["LastDeploymentConfig"]["RollingUpdatePolicy"]["WaitIntervalInSeconds"] == 20
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_an_alarm_rolls_back_what_was_replaced(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    control(clock_speed=30)
    alarm = laptop.name("alarm")
    cloudwatch = boto3.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName=alarm,
        Namespace="AWS/SageMaker",
        MetricName="Invocation5XXErrors",
        Dimensions=[{"Name": "InferenceComponentName", "Value": "nobody"}],
        Statistic="Sum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
        TreatMissingData="notBreaching",
    )
    component = laptop.component(laptop.endpoint(most_instances=3), old := laptop.model(), copies=2)
    before = laptop.ports(component)
    ask = {"InferenceComponentName": component, "Specification": specification(laptop.model())}
    laptop.sagemaker.update_inference_component(**ask, DeploymentConfig=rolling(alarm, wait_s=3600))
    until(lambda: set(laptop.ports(component)) - set(before), "the first batch")
    cloudwatch.set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="a test")
    assert laptop.component_settled(component) == (
        "InService",
        f"The update was rolled back. Alarms in state ALARM: {alarm}.",
    )
    found = described(laptop, component)
    assert found["Specification"]["ModelName"] == old
    assert found["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}
    assert len(set(laptop.ports(component)) & set(before)) == 1

    with pytest.raises(ClientError, match='Could not find alarm "none"'):
        laptop.sagemaker.update_inference_component(**ask, DeploymentConfig=rolling("none"))
    with pytest.raises(ClientError, match="must be from 5 % to 50 % of the copies"):
        laptop.sagemaker.update_inference_component(**ask, DeploymentConfig=rolling(batch=2))
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
    cloudwatch.delete_alarms(AlarmNames=[alarm])


def put_alarm(cloudwatch: CloudWatchClient, name: str) -> None:
    """Make an alarm that nothing raises by itself."""
    cloudwatch.put_metric_alarm(
        AlarmName=name,
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Statistic="Sum",
        Period=3600,
        EvaluationPeriods=1,
        Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )


def test_an_execution_role_must_be_allowed_to_describe_the_alarms(laptop: Laptop) -> None:
    alarm, role = laptop.name("alarm"), laptop.name("instances")
    cloudwatch, iam = boto3.client("cloudwatch"), boto3.client("iam")
    put_alarm(cloudwatch, alarm)
    arn = iam.create_role(RoleName=role, AssumeRolePolicyDocument=json.dumps({"Statement": []}))["Role"]["Arn"]
    component = laptop.component(laptop.endpoint(most_instances=3, role=arn), laptop.model(), copies=2)
    ask = {"InferenceComponentName": component, "Specification": specification(laptop.model())}
    refused = f"{role} is not authorized to perform cloudwatch:DescribeAlarms on {alarm}"
    with pytest.raises(ClientError, match=refused):
        laptop.sagemaker.update_inference_component(**ask, DeploymentConfig=rolling(alarm))

    reading = {"Effect": "Allow", "Action": "cloudwatch:DescribeAlarms"}

    def allow(name: str) -> None:
        statement = {**reading, "Resource": f"arn:aws:cloudwatch:us-east-1:{arn.split(':')[4]}:alarm:{name}"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_role_policy(RoleName=role, PolicyName="read", PolicyDocument=policy)

    allow("another")
    with pytest.raises(ClientError, match=refused):
        laptop.sagemaker.update_inference_component(**ask, DeploymentConfig=rolling(alarm))
    allow(alarm)
    laptop.sagemaker.update_inference_component(**ask, DeploymentConfig=rolling(alarm))
    assert laptop.component_settled(component) == ("InService", "")
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
    cloudwatch.delete_alarms(AlarmNames=[alarm])


def test_what_fails_or_takes_too_long_is_rolled_back(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    component = laptop.component(laptop.endpoint(most_instances=3), old := laptop.model(), copies=2)
    before = laptop.ports(component)
    bad = specification(laptop.model(OPTION_DTYPE="float16"))
    laptop.sagemaker.update_inference_component(
        InferenceComponentName=component, Specification=bad, DeploymentConfig=rolling()
    )
    status, reason = laptop.component_settled(component)
    assert (status, "SEA605" in reason, laptop.ports(component)) == ("InService", True, before)

    control(clock_speed=600)
    slow = rolling(wait_s=3600)
    slow["RollingUpdatePolicy"] = {**slow["RollingUpdatePolicy"], "MaximumExecutionTimeoutInSeconds": 1800}  # type: ignore[dict-item] # a dictionary
    laptop.sagemaker.update_inference_component(
        InferenceComponentName=component, Specification=specification(laptop.model()), DeploymentConfig=slow
    )
    assert laptop.component_settled(component) == (
        "InService",
        "The update was rolled back. It took more than MaximumExecutionTimeoutInSeconds (1800 s).",
    )
    assert described(laptop, component)["Specification"]["ModelName"] == old
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_an_update_without_a_count_keeps_the_live_one(laptop: Laptop) -> None:
    component = laptop.component(laptop.endpoint(), laptop.model())
    laptop.sagemaker.update_inference_component_runtime_config(
        InferenceComponentName=component, DesiredRuntimeConfig={"CopyCount": 2}
    )
    assert described(laptop, component)["RuntimeConfig"]["DesiredCopyCount"] == 2
    laptop.component_settled(component)
    laptop.sagemaker.update_inference_component(
        InferenceComponentName=component, Specification=specification(laptop.model())
    )
    assert laptop.component_settled(component) == ("InService", "")
    assert described(laptop, component)["RuntimeConfig"] == {"DesiredCopyCount": 2, "CurrentCopyCount": 2}
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_an_update_needs_no_model_of_the_former_specification_unless_it_is_rolled_back(laptop: Laptop) -> None:
    component = laptop.component(laptop.endpoint(most_instances=3), old := laptop.model(), copies=2)
    laptop.sagemaker.delete_model(ModelName=old)
    ask = {"InferenceComponentName": component}
    laptop.sagemaker.update_inference_component(
        **ask, Specification=specification(newer := laptop.model()), DeploymentConfig=rolling()
    )
    assert laptop.component_settled(component) == ("InService", "")

    laptop.sagemaker.delete_model(ModelName=newer)
    slow = laptop.model()
    alarm = laptop.name("alarm")
    cloudwatch = boto3.client("cloudwatch")
    put_alarm(cloudwatch, alarm)
    before = laptop.ports(component)
    laptop.sagemaker.update_inference_component(
        **ask, Specification=specification(slow), DeploymentConfig=rolling(alarm, wait_s=3600)
    )
    until(lambda: laptop.ports(component) != before, "the first batch")
    cloudwatch.set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason="a test")
    assert laptop.component_settled(component) == (
        "Failed",
        f"Alarms in state ALARM: {alarm}. The rollback failed: The model of the former specification "
        f"of {component} was deleted.",
    )
    assert len(laptop.ports(component)) == 2
    cloudwatch.delete_alarms(AlarmNames=[alarm])
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)


def test_a_component_is_not_created_without_copies(laptop: Laptop, host: str) -> None:
    with pytest.raises(ClientError, match="CopyCount must be at least 1 to create"):
        laptop.sagemaker.create_inference_component(
            InferenceComponentName="none",
            EndpointName=host,
            VariantName="main",
            Specification=specification(laptop.model()),
            RuntimeConfig={"CopyCount": 0},
        )


def test_the_faults_of_an_update(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    component = laptop.component(laptop.endpoint(), old := laptop.model())
    control(silent_rollback=True)
    ask = {"InferenceComponentName": component, "Specification": specification(new := laptop.model())}
    laptop.sagemaker.update_inference_component(**ask)
    assert laptop.component_settled(component) == ("InService", "")
    assert described(laptop, component)["Specification"]["ModelName"] == old

    assert control(stuck=component)["silent_rollback"] is False
    laptop.sagemaker.update_inference_component(**ask)
    with pytest.raises(ClientError, match="Cannot update in-progress inference component"):
        laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
    assert described(laptop, component)["InferenceComponentStatus"] == "Updating"
    control(stuck=None)
    assert laptop.component_settled(component) == ("InService", "")
    assert described(laptop, component)["Specification"]["ModelName"] == new
    laptop.sagemaker.delete_inference_component(InferenceComponentName=component)
