from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.smoke_benchmark.runtime.scaling_pause import AwsCopyScaling

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

PLACE = {
    "ServiceNamespace": "sagemaker",
    "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
}
STATE: SuspendedStateTypeDef = {
    "DynamicScalingInSuspended": True,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}
TARGET: dict[str, object] = {
    **PLACE,
    "ResourceId": "inference-component/dev-chat-model",
    "MinCapacity": 1,
    "MaxCapacity": 2,
    "RoleARN": "arn:aws:iam::123456789012:role/scaling",
    "CreationTime": 0,
}


@pytest.fixture
def scaling() -> AwsCopyScaling:
    client = boto3.client(
        "application-autoscaling",
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    return AwsCopyScaling(client)


@pytest.mark.parametrize(
    ("targets", "state"),
    [([], None), ([{**TARGET, "SuspendedState": STATE}], STATE), ([TARGET], {})],
)
def test_what_is_suspended_is_asked_of_the_component_alone(
    scaling: AwsCopyScaling, targets: list[dict[str, object]], state: SuspendedStateTypeDef | None
) -> None:
    with Stubber(scaling.client) as stub:
        asked = {**PLACE, "ResourceIds": ["inference-component/dev-chat-model"]}
        stub.add_response("describe_scalable_targets", {"ScalableTargets": targets}, asked)
        assert scaling.suspended("dev-chat-model") == state


@pytest.mark.parametrize("state", [STATE, {"DynamicScalingInSuspended": True}])
def test_suspending_says_each_kind_and_leaves_the_bounds(scaling: AwsCopyScaling, state: SuspendedStateTypeDef) -> None:
    with Stubber(scaling.client) as stub:
        sent = {**PLACE, "ResourceId": "inference-component/dev-chat-model", "SuspendedState": STATE}
        stub.add_response("register_scalable_target", {"ScalableTargetARN": "arn:target"}, sent)
        scaling.suspend("dev-chat-model", state)
        stub.assert_no_pending_responses()
