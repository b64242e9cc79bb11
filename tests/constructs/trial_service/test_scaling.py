from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trial_service.runtime.custom_resource import TrialProperties
from seatrial_cdk.trial_service.runtime.scaling import ALL_SUSPENDED, AwsCopyScaling, rest, restore, resume

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from tests.constructs.conftest import DictScaling, DictStore

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
def aws() -> AwsCopyScaling:
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
    aws: AwsCopyScaling, targets: list[dict[str, object]], state: SuspendedStateTypeDef | None
) -> None:
    with Stubber(aws.client) as stub:
        asked = {**PLACE, "ResourceIds": ["inference-component/dev-chat-model"]}
        stub.add_response("describe_scalable_targets", {"ScalableTargets": targets}, asked)
        assert aws.suspended("dev-chat-model") == state


@pytest.mark.parametrize("state", [STATE, {"DynamicScalingInSuspended": True}])
def test_suspending_says_each_kind_and_leaves_the_bounds(aws: AwsCopyScaling, state: SuspendedStateTypeDef) -> None:
    with Stubber(aws.client) as stub:
        sent = {**PLACE, "ResourceId": "inference-component/dev-chat-model", "SuspendedState": STATE}
        stub.add_response("register_scalable_target", {"ScalableTargetARN": "arn:target"}, sent)
        aws.suspend("dev-chat-model", state)
        stub.assert_no_pending_responses()


COMPONENT = "dev-chat-model"


@pytest.fixture
def trial(properties: dict[str, str]) -> TrialProperties:
    return TrialProperties.of(properties)


@pytest.mark.parametrize("before", [STATE, {}])
def test_what_was_before_is_restored_after_any_number_of_runs(
    trial: TrialProperties, store: DictStore, scaling: DictScaling, before: SuspendedStateTypeDef
) -> None:
    scaling.states[COMPONENT] = before
    for _ in range(2):
        rest(scaling, store, trial, "request-1")
        assert scaling.states == {COMPONENT: ALL_SUSPENDED}
    resume(scaling, store, trial, "request-1")
    assert scaling.states == {COMPONENT: before}
    resume(scaling, store, trial, "request-1")
    assert len(scaling.calls) == 3


def test_a_trial_after_one_whose_function_died_restores_what_was_before_that_one(
    trial: TrialProperties, store: DictStore, scaling: DictScaling
) -> None:
    scaling.states[COMPONENT] = STATE
    rest(scaling, store, trial, "died")
    rest(scaling, store, trial, "next")
    resume(scaling, store, trial, "died")
    assert scaling.states == {COMPONENT: ALL_SUSPENDED}, "the pause is the next one's now"
    resume(scaling, store, trial, "next")
    assert scaling.states == {COMPONENT: STATE}


def test_a_deletion_restores_whatever_trial_suspended(
    trial: TrialProperties, store: DictStore, scaling: DictScaling
) -> None:
    scaling.states[COMPONENT] = STATE
    rest(scaling, store, trial, "request-1")
    for _ in range(2):
        restore(scaling, store, "dev-chat", COMPONENT)
    assert scaling.states == {COMPONENT: STATE}
    assert len(scaling.calls) == 2
