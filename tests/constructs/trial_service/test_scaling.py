from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trial_service.runtime.custom_resource import TrialProperties
from seatrial_cdk.trial_service.runtime.ownership import Ownership, take_ownership
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


def owning(store: DictStore, request_id: str) -> Ownership:
    """Return the ownership of a request that has just become the owner."""
    take_ownership(store, "dev-chat", request_id, document="", now_s=100.0)
    return Ownership(store=store, endpoint_name="dev-chat", request_id=request_id, now_s=lambda: 100.0)


@pytest.fixture
def trial(properties: dict[str, str]) -> TrialProperties:
    return TrialProperties.of(properties)


@pytest.mark.parametrize("before", [STATE, {}])
def test_what_was_before_is_restored_after_any_number_of_runs(
    trial: TrialProperties, store: DictStore, scaling: DictScaling, before: SuspendedStateTypeDef
) -> None:
    scaling.states[COMPONENT] = before
    for _ in range(2):
        rest(scaling, store, trial, owning(store, "request-1"))
        assert scaling.states == {COMPONENT: ALL_SUSPENDED}
    resume(scaling, store, trial, "request-1")
    assert scaling.states == {COMPONENT: before}
    resume(scaling, store, trial, "request-1")
    assert len(scaling.calls) == 3


def test_a_trial_after_one_whose_function_died_restores_what_was_before_that_one(
    trial: TrialProperties, store: DictStore, scaling: DictScaling
) -> None:
    scaling.states[COMPONENT] = STATE
    rest(scaling, store, trial, owning(store, "died"))
    rest(scaling, store, trial, owning(store, "next"))
    resume(scaling, store, trial, "died")
    assert scaling.states == {COMPONENT: ALL_SUSPENDED}, "the pause is the next one's now"
    resume(scaling, store, trial, "next")
    assert scaling.states == {COMPONENT: STATE}


def test_a_deletion_restores_whatever_trial_suspended(
    trial: TrialProperties, store: DictStore, scaling: DictScaling
) -> None:
    scaling.states[COMPONENT] = STATE
    rest(scaling, store, trial, owning(store, "request-1"))
    for _ in range(2):
        restore(scaling, store, "dev-chat", COMPONENT)
    assert scaling.states == {COMPONENT: STATE}
    assert len(scaling.calls) == 2


def test_a_trial_that_lost_its_endpoint_meanwhile_suspends_nothing(
    trial: TrialProperties, store: DictStore, scaling: DictScaling
) -> None:
    scaling.states[COMPONENT] = STATE
    late = owning(store, "late")
    rest(scaling, store, trial, owning(store, "next"))
    before = dict(store.texts)
    rest(scaling, store, trial, late)
    assert (store.texts, len(scaling.calls)) == (before, 1)


def test_a_note_that_another_trial_wrote_meanwhile_is_read_again(
    trial: TrialProperties, store: DictStore, scaling: DictScaling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the pause of the other trial would be taken for what was before."""
    scaling.states[COMPONENT] = STATE
    create, once = store.create, ["other"]

    def overtaken(key: str, text: str) -> bool:
        if key.endswith("scaling.json") and once:
            rest(
                scaling,
                store,
                trial,
                Ownership(store=store, endpoint_name="dev-chat", request_id=once.pop(), now_s=float),
            )
        return create(key, text)

    take_ownership(store, "dev-chat", "other", document="", now_s=100.0)
    monkeypatch.setattr(store, "create", overtaken)
    rest(scaling, store, trial, Ownership(store=store, endpoint_name="dev-chat", request_id="other", now_s=float))
    resume(scaling, store, trial, "other")
    assert scaling.states == {COMPONENT: STATE}
