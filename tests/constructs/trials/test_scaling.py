from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trials.runtime.ownership import Ownership, take_ownership
from seatrial_cdk.trials.runtime.scaling import (
    MOST_WRITES,
    AwsCopyScaling,
    held_scalings,
    read_held,
    restore_scaling,
    resume_scaling,
    suspend_scale_in,
)
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.constructs.conftest import component

if TYPE_CHECKING:
    from mypy_boto3_application_autoscaling.type_defs import SuspendedStateTypeDef

    from seatrial_cdk.trials.runtime.components import ComponentState
    from tests.constructs.conftest import DictComponents, DictScaling, DictStore

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


@pytest.mark.parametrize(("targets", "most"), [([], None), ([TARGET], 2)])
def test_the_most_copies_are_those_of_the_scalable_target(
    aws: AwsCopyScaling, targets: list[dict[str, object]], most: int | None
) -> None:
    with Stubber(aws.client) as stub:
        stub.add_response("describe_scalable_targets", {"ScalableTargets": targets})
        assert aws.most_copies("dev-chat-model") == most


def test_what_autoscaling_refuses_is_told(aws: AwsCopyScaling) -> None:
    with Stubber(aws.client) as stub:
        for operation in ("describe_scalable_targets", "register_scalable_target"):
            stub.add_client_error(operation, "ThrottlingException")
        with pytest.raises(UnavailableError, match="asking what scales dev-chat-model"):
            aws.suspended("dev-chat-model")
        with pytest.raises(UnavailableError, match="suspending or resuming the scaling of dev-chat-model"):
            aws.suspend("dev-chat-model", {})


@pytest.mark.parametrize("state", [STATE, {"DynamicScalingInSuspended": True}])
def test_suspending_says_each_kind_and_leaves_the_bounds(aws: AwsCopyScaling, state: SuspendedStateTypeDef) -> None:
    with Stubber(aws.client) as stub:
        sent = {**PLACE, "ResourceId": "inference-component/dev-chat-model", "SuspendedState": STATE}
        stub.add_response("register_scalable_target", {"ScalableTargetARN": "arn:target"}, sent)
        aws.suspend("dev-chat-model", state)
        stub.assert_no_pending_responses()


COMPONENT = "dev-chat-model"
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/seatrial-dev-chat/1"


def owning(store: DictStore, request_id: str) -> Ownership:
    """Return the ownership of a request that has just become the owner."""
    take_ownership(store, "dev-chat", request_id, document="", now_s=100.0)
    return Ownership(store=store, endpoint_name="dev-chat", request_id=request_id, now_s=lambda: 100.0)


def hold(scaling: DictScaling, store: DictStore, ownership: Ownership, *, copies: int = 1) -> None:
    suspend_scale_in(scaling, store, ownership, component=COMPONENT, stack_id=STACK, copies=copies)


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        ({}, {"DynamicScalingInSuspended": True}),
        (
            {"DynamicScalingOutSuspended": True, "ScheduledScalingSuspended": True},
            {
                "DynamicScalingInSuspended": True,
                "DynamicScalingOutSuspended": True,
                "ScheduledScalingSuspended": True,
            },
        ),
    ],
)
def test_scale_in_alone_is_suspended_and_what_was_before_is_restored_after_any_number_of_runs(
    store: DictStore,
    scaling: DictScaling,
    components: DictComponents,
    before: SuspendedStateTypeDef,
    meanwhile: SuspendedStateTypeDef,
) -> None:
    scaling.states[COMPONENT] = before
    for _ in range(2):
        hold(scaling, store, owning(store, "request-1"))
        assert scaling.states == {COMPONENT: meanwhile}
    assert resume_scaling(scaling, store, components, owning(store, "request-1"))
    assert scaling.states == {COMPONENT: before}
    assert resume_scaling(scaling, store, components, owning(store, "request-1"))
    assert len(scaling.calls) == 3


def test_a_component_that_nothing_scales_is_left_alone(
    store: DictStore, scaling: DictScaling, components: DictComponents
) -> None:
    hold(scaling, store, owning(store, "request-1"))
    assert (scaling.calls, read_held(store, "dev-chat")) == ([], None)
    assert resume_scaling(scaling, store, components, owning(store, "request-1"))


def test_a_request_after_one_whose_function_died_restores_what_was_before_that_one(
    store: DictStore, scaling: DictScaling, components: DictComponents
) -> None:
    scaling.states[COMPONENT] = STATE
    died = owning(store, "died")
    hold(scaling, store, died, copies=3)
    hold(scaling, store, owning(store, "next"), copies=2)
    assert resume_scaling(scaling, store, components, died)
    assert len(scaling.calls) == 2, "it is the next one's to restore"
    held = read_held(store, "dev-chat")
    assert held is not None
    assert (held.request_id, held.before, held.copies) == ("next", STATE, 3)


def test_copies_that_a_rollback_took_away_are_given_back_before_scale_in_resumes(
    store: DictStore, scaling: DictScaling, components: DictComponents
) -> None:
    scaling.states[COMPONENT] = {}
    hold(scaling, store, owning(store, "request-1"), copies=3)
    (held,) = held_scalings(store)
    components.found[COMPONENT] = component(status="Updating", current_copies=1)
    assert not restore_scaling(scaling, store, components, held), "SageMaker refuses the write: it is waited out"
    components.found[COMPONENT] = component(current_copies=1)
    assert not restore_scaling(scaling, store, components, held)
    assert components.found[COMPONENT].copies == 3
    assert restore_scaling(scaling, store, components, held)
    assert (scaling.states, list(held_scalings(store))) == ({COMPONENT: {}}, [])


@pytest.mark.parametrize("live", [component(status="Failed", current_copies=0), None])
def test_a_component_that_failed_or_is_gone_gets_no_copies_back(
    store: DictStore, scaling: DictScaling, components: DictComponents, live: ComponentState | None
) -> None:
    scaling.states[COMPONENT] = {}
    hold(scaling, store, owning(store, "request-1"), copies=3)
    components.found = {} if live is None else {COMPONENT: live}
    (held,) = held_scalings(store)
    assert restore_scaling(scaling, store, components, held)
    assert scaling.states == {COMPONENT: {}}


def test_no_more_copies_are_given_back_than_the_scaling_allows_now(
    store: DictStore, scaling: DictScaling, components: DictComponents
) -> None:
    scaling.states[COMPONENT], scaling.most = {}, 2
    hold(scaling, store, owning(store, "request-1"), copies=3)
    components.found[COMPONENT] = component(current_copies=2)
    (held,) = held_scalings(store)
    assert restore_scaling(scaling, store, components, held)


def test_a_request_that_lost_its_endpoint_meanwhile_suspends_nothing(store: DictStore, scaling: DictScaling) -> None:
    scaling.states[COMPONENT] = STATE
    late = owning(store, "late")
    hold(scaling, store, owning(store, "next"))
    before = dict(store.texts)
    hold(scaling, store, late)
    assert (store.texts, len(scaling.calls)) == (before, 1)


def test_a_note_that_another_request_wrote_meanwhile_is_read_again(
    store: DictStore, scaling: DictScaling, components: DictComponents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the suspension of the other request would be taken for what was before."""
    scaling.states[COMPONENT] = STATE
    create, once = store.create, ["other"]

    def overtaken(key: str, text: str) -> bool:
        if key.endswith("scaling.json") and once:
            hold(
                scaling,
                store,
                Ownership(store=store, endpoint_name="dev-chat", request_id=once.pop(), now_s=float),
            )
        return create(key, text)

    take_ownership(store, "dev-chat", "other", document="", now_s=100.0)
    monkeypatch.setattr(store, "create", overtaken)
    other = Ownership(store=store, endpoint_name="dev-chat", request_id="other", now_s=float)
    hold(scaling, store, other)
    assert resume_scaling(scaling, store, components, other)
    assert scaling.states == {COMPONENT: STATE}


def test_a_note_that_is_never_written_suspends_nothing_and_is_told(
    store: DictStore, scaling: DictScaling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Suspended without a note, scale-in would stay so: nobody would know what was before."""
    scaling.states[COMPONENT] = {}
    ownership, writes = owning(store, "request-1"), list[str]()

    def conflicting(key: str, _: str) -> bool:
        writes.append(key)
        return False

    monkeypatch.setattr(store, "create", conflicting)
    with pytest.raises(UnavailableError, match=f"held/dev-chat/scaling.json: {MOST_WRITES} concurrent writes"):
        hold(scaling, store, ownership)
    assert (writes, scaling.calls) == (["held/dev-chat/scaling.json"] * MOST_WRITES, [])


def test_what_is_written_down_says_whose_it_is(store: DictStore, scaling: DictScaling) -> None:
    scaling.states[COMPONENT] = STATE
    hold(scaling, store, owning(store, "request-1"), copies=3)
    held = read_held(store, "dev-chat")
    assert held is not None
    assert (held.endpoint_name, held.component, held.request_id) == ("dev-chat", COMPONENT, "request-1")
    assert (held.stack_id, held.copies, held.before) == (STACK, 3, STATE)
    assert list(held_scalings(store)) == [held]


def test_scaling_that_is_gone_is_not_made_again(
    store: DictStore, scaling: DictScaling, components: DictComponents
) -> None:
    scaling.states[COMPONENT] = {}
    hold(scaling, store, owning(store, "request-1"))
    del scaling.states[COMPONENT]
    (held,) = held_scalings(store)
    assert restore_scaling(scaling, store, components, held)
    assert (scaling.states, len(scaling.calls), read_held(store, "dev-chat")) == ({}, 1, None)


def test_without_scaling_all_copies_are_given_back(
    store: DictStore, scaling: DictScaling, components: DictComponents
) -> None:
    scaling.states[COMPONENT] = {}
    hold(scaling, store, owning(store, "request-1"), copies=9)
    del scaling.states[COMPONENT]
    (held,) = held_scalings(store)
    assert not restore_scaling(scaling, store, components, held)
    assert components.found[COMPONENT].copies == 9


def test_a_component_with_more_copies_than_before_keeps_them(
    store: DictStore, scaling: DictScaling, components: DictComponents
) -> None:
    scaling.states[COMPONENT] = {}
    hold(scaling, store, owning(store, "request-1"), copies=2)
    components.found[COMPONENT] = component(current_copies=3, desired_copies=3)
    (held,) = held_scalings(store)
    assert restore_scaling(scaling, store, components, held)
    assert components.found[COMPONENT].copies == 3
